"""Moments on the machine's own clock."""

from __future__ import annotations

import time

from ..core.moment import Moment
from .boot_clock import boot_id, boot_time

__all__ = ("boot_moment",)


def boot_moment() -> Moment:
    """Now, by the clocks of this machine."""
    return Moment(boot_time(), time.time(), boot_id())
