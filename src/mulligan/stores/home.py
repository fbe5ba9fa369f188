"""The state folder, `MULLIGAN_HOME`.

``$MULLIGAN_HOME``, else the platform's folder for the state of a user's programs. It is made with
mode 0700. One that exists keeps its mode: what Mulligan puts into it is readable by its owner alone
in any case. It is refused if it belongs to another user, or if other users can write to it.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from ..errors import StoreError

__all__ = ("home", "home_path", "private_folder")


def home() -> Path:
    """Where state is kept; made if it does not exist.

    Raises:
        StoreError: It cannot be made, belongs to another user, or others can write to it.
    """
    return private_folder(home_path())


def home_path() -> Path:
    """Where state is kept, or would be."""
    named = os.environ.get("MULLIGAN_HOME")
    return Path(named).expanduser().absolute() if named else _platforms()


def _platforms() -> Path:
    # platformdirs knows these two as well, and costs more to load than a short run takes.
    if sys.platform == "darwin":
        return Path("~/Library/Application Support/mulligan").expanduser()
    state = os.environ.get("XDG_STATE_HOME", "")
    # The XDG specification: a path that is not absolute is to be ignored.
    folder = Path(state) if state.startswith("/") else Path("~/.local/state").expanduser()
    return folder / "mulligan"


def private_folder(path: Path) -> Path:
    """`path` as a folder that only its owner can change, made with mode 0700 if it does not exist.

    Raises:
        StoreError: It cannot be made, is not a folder, belongs to another user, or others can write
            to it.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.stat()
        if found.st_uid != os.geteuid():
            raise StoreError(
                str(path),
                f"the folder belongs to user {found.st_uid}, but the current user is "
                f"{os.geteuid()}; "
                f"choose a folder of your own with MULLIGAN_HOME",
            )
        if found.st_mode & 0o022:
            raise StoreError(
                str(path),
                f"other users can write to this folder (mode {found.st_mode & 0o7777:04o}), and "
                f"could replace what is kept in it; run chmod go-w on it, or choose another with "
                f"MULLIGAN_HOME",
            )
    except OSError as trouble:
        raise StoreError(
            str(path),
            f"cannot use this folder: {trouble.strerror or trouble}; "
            f"choose another with MULLIGAN_HOME",
        ) from trouble
    return path
