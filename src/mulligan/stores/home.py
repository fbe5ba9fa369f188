"""The folder in which Mulligan keeps what must outlive a process.

``$MULLIGAN_HOME``, else the platform's folder for the state of a user's programs. It is private:
made with mode 0700, refused if it is somebody else's.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ..errors import StoreError

__all__ = ("home", "private_folder")


def home() -> Path:
    """Where state is kept; made if it does not exist.

    Raises:
        StoreError: It cannot be made, or belongs to somebody else.
    """
    named = os.environ.get("MULLIGAN_HOME")
    return private_folder(Path(named).expanduser().absolute() if named else _platforms())


def _platforms() -> Path:
    # platformdirs knows these two as well, and costs more to load than a short run takes.
    if sys.platform == "darwin":
        return Path("~/Library/Application Support/mulligan").expanduser()
    state = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification: a path that is not absolute is to be ignored.
    folder = Path(state) if state.startswith("/") else Path("~/.local/state").expanduser()
    return folder / "mulligan"


def private_folder(path: Path) -> Path:
    """`path` as a folder that only its owner can enter, made if it does not exist.

    Raises:
        StoreError: It cannot be made, is no folder, or belongs to somebody else.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.stat()
        if found.st_uid != os.geteuid():
            raise StoreError(
                str(path),
                f"the folder belongs to user {found.st_uid}, and this is user {os.geteuid()}; "
                f"choose a folder of your own with MULLIGAN_HOME",
            )
        if found.st_mode & 0o077:
            path.chmod(0o700)
    except OSError as trouble:
        raise StoreError(
            str(path),
            f"cannot use this folder: {trouble.strerror or trouble}; "
            f"choose another with MULLIGAN_HOME",
        ) from trouble
    return path
