"""The clock since boot: steady, and the same for all processes of the machine.

`time.monotonic` stops while a laptop sleeps, so a lease measured by it could be held twice: by its
holder, and by a process that measures by another clock. Boot time continues.
"""

from __future__ import annotations

import sys
import time
from functools import lru_cache
from pathlib import Path

__all__ = ("BOOT_CLOCK", "boot_id", "boot_time")

# macOS's CLOCK_MONOTONIC continues during sleep, Linux's does not.
BOOT_CLOCK = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


def boot_time() -> float:
    """Seconds since the machine booted."""
    return time.clock_gettime(BOOT_CLOCK)


@lru_cache(maxsize=1)
def boot_id() -> str:
    """Which boot it is."""
    if sys.platform == "darwin":
        import ctypes

        answer, size = ctypes.create_string_buffer(64), ctypes.c_size_t(64)
        libc = ctypes.CDLL(None)
        libc.sysctlbyname(b"kern.bootsessionuuid", answer, ctypes.byref(size), None, 0)
        return answer.value.decode()
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
