"""Writes the answers of agents to their output files.

An agent runs in that folder before its file is written, and could put a link there. Nothing is
written through a link that leads out of the folder.
"""

from __future__ import annotations

import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from ...core.redaction import clean
from ...errors import SettingError

__all__ = ("output_path", "write_output")

_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def output_path(folder: Path, output: str) -> Path:
    """Where `output` of an agent in `folder` really lies; refused if a link leads out of it."""
    shown = clean(output)
    named = os.path.normpath(folder / output)
    name = os.path.basename(named)  # noqa: PTH119 -- a path, read as text
    if output.endswith(("/", "/.", "/..")) or not name or output in {".", ".."}:
        raise SettingError(f"output {shown!r} names no file")
    home = Path(os.path.realpath(folder))
    parent = Path(os.path.realpath((folder / output).parent))
    is_meant = output.startswith("/") or ".." in Path(output).parts
    if not is_meant and not parent.is_relative_to(home):
        raise SettingError(
            f"output {shown!r} leads out of its folder by a link, to {str(parent)!r}; "
            f"write the absolute path if that is meant"
        )
    target = parent / name
    try:
        is_folder = target.is_dir() and not target.is_symlink()
        is_file = target.is_file() or not target.exists()
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise SettingError(f"output {shown!r} cannot be looked at: {why}") from error
    if is_folder:
        raise SettingError(f"output {shown!r} is a folder")
    if not is_file:
        # It would be replaced by a file for all users: root could replace /dev/null.
        raise SettingError(f"output {shown!r} is a device or a pipe; name a file")
    return target


def write_output(answer: Path, folder: Path, output: str) -> None:
    """Copy `answer` to the file `output` of an agent that runs in `folder`, all or nothing.

    A link in its place is replaced, whatever it points to.

    Raises:
        SettingError: The file cannot be written, or does not lie where the plan says.
    """
    target = output_path(folder, output)
    new = target.with_name(f".{target.name[:100]}.{os.urandom(4).hex()}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = target.lstat().st_mode if os.path.lexists(target) else 0
        with answer.open("rb") as source, os.fdopen(os.open(new, _NEW, 0o666), "wb") as file:
            if stat.S_ISREG(mode):
                os.fchmod(file.fileno(), stat.S_IMODE(mode))
            shutil.copyfileobj(source, file)
        new.replace(target)
    except OSError as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        why = (error.strerror or str(error)).lower()
        raise SettingError(f"output {clean(output)!r} cannot be written: {why}") from error
