"""Who we are: the machine, its boot, the process.

The machine is known by an id that is kept in the state folder, not by the name of the host: a
laptop gets another name with another network, and its runs are still its own.
"""

from __future__ import annotations

import fcntl
import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import StoreError
from ...stores.boot_clock import boot_id
from ..process.table import began
from .lease import Holder

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("MACHINE_ID", "is_alive", "machine_id", "myself")

MACHINE_ID = "machine-id"


def machine_id(folder: Path) -> str:
    """The id of the machine that this state folder belongs to; made once.

    Raises:
        StoreError: It can neither be read nor made.
    """
    file = folder / MACHINE_ID
    try:
        return _read(file) or _made(file)
    except OSError as trouble:
        raise StoreError(
            str(folder),
            f"cannot use {file}: {trouble.strerror or trouble}; the file belongs to mulligan",
        ) from trouble


def _read(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace").strip()
    except FileNotFoundError:
        return ""


def _made(file: Path) -> str:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(file, flags, 0o600), "r+", encoding="ascii") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)  # the first one stays, also for those who came with it
        # An empty file: a machine that was switched off in the middle.
        found = opened.read().strip() or os.urandom(16).hex()
        opened.seek(0)
        opened.write(found)
    return found


def myself(machine: str) -> Holder:
    """This process as a holder, under a new token."""
    return _process(os.getpid())._replace(
        token=os.urandom(4).hex(), machine=machine, host=os.uname().nodename
    )


def is_alive(pid: str, when: str) -> bool:
    """Whether that very process exists; one that has ended and was not reaped does not."""
    return pid.isdigit() and bool(when) and began(int(pid)) == when


@lru_cache(maxsize=1)
def _process(pid: int) -> Holder:  # asked again after a fork
    # In a pid namespace with the /proc of another one, getpid() is not our number there.
    shown = _first(lambda: str(Path("/proc/self").readlink()), str(pid))
    space = _first(lambda: str(Path("/proc/self/ns/pid").stat().st_ino), "")
    view = _first(lambda: str(Path("/proc").stat().st_dev), "")
    return Holder("", shown, began(int(shown)), f"{space}.{view}", boot_id())


def _first(ask: Callable[[], str], otherwise: str) -> str:
    try:
        return ask()
    except OSError:
        return otherwise
