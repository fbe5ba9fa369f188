"""Which process a number means.

Numbers are used again. A process is known by its number and when it began, so that nobody takes a
stranger for a holder that is still alive, or ends one for an orphan.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

from ..stores.boot_clock import boot_id

__all__ = ("began", "is_alive", "signature")


def signature(pid: int) -> str:
    """`pid`, and when it began, for `is_alive` later."""
    return f"{pid}@{began(pid)}"


def is_alive(signature_: str) -> bool:
    """Whether that very process still exists; a dead one that nobody waited for does not."""
    number, _, when = signature_.partition("@")
    return number.isdigit() and bool(when) and began(int(number)) == when


def began(pid: int) -> str:
    """When the process began, as this system says it; empty if it is dead."""
    return _by_proc(pid) if _PROC.exists() else _by_ps(pid)


_PROC = Path("/proc/self/stat")


def _by_proc(pid: int) -> str:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    # The name in parentheses may hold anything, also a parenthesis.
    rest = fields.rpartition(")")[2].split()
    return "" if rest[0] in "ZX" else f"{rest[19]}.{boot_id()[:8]}"


def _by_ps(pid: int) -> str:
    shown = subprocess.run(  # noqa: S603 -- a fixed program, a number
        ["/bin/ps", "-o", "state=,lstart=", "-p", str(pid)],
        capture_output=True,
        text=True,
        check=False,
        timeout=10,
    )
    state, _, when = shown.stdout.strip().partition(" ")
    return "" if state.startswith("Z") else "-".join(when.split())
