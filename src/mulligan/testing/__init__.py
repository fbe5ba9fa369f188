"""Time and luck under control, for tests of code that uses Mulligan.

`virtual_time()` replaces the clock and the dice of everything that runs inside it: a test of a
six-hour wait takes no time and gives the same answer every time.
"""

from __future__ import annotations

from .clock import VirtualClock
from .dice import LoadedDice
from .script import Scripted, status_error
from .world import virtual_time

__all__ = ("LoadedDice", "Scripted", "VirtualClock", "status_error", "virtual_time")
