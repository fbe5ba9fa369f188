"""Testing tools: virtual time, fixed random numbers, scripted calls, the fault server.

`virtual_time()` replaces the clock and the dice of everything that runs inside it: a test of a
six-hour wait takes no time and gives the same answer every time. `FaultServer` is a provider that
fails on command, for what only a real socket can show.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .clock import VirtualClock
from .script import Scripted, status_error
from .world import LoadedDice, virtual_time

if TYPE_CHECKING:
    from ..faults.server import FaultServer

__all__ = (
    "FaultServer",
    "LoadedDice",
    "Scripted",
    "VirtualClock",
    "status_error",
    "virtual_time",
)


def __getattr__(name: str) -> object:
    # The fault server is for tests, so this is where people look for it; but it stands two layers
    # above (it knows vendors and programs). The name is found at run time, when it is used: no
    # module here imports upward, and importing `mulligan.testing` loads no server.
    if name == "FaultServer":
        from importlib import import_module

        return import_module("mulligan.faults").FaultServer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
