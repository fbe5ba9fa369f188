"""Time and luck under control, for tests of code that uses Mulligan."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..faults.server import FaultServer as FaultServer


def __getattr__(name: str) -> object:
    # The fault server is for tests, so this is where people look for it; but it stands two layers
    # above (it knows vendors and programs). The name is found at run time, when it is used: no
    # module here imports upward, and importing `mulligan.testing` loads no server.
    if name == "FaultServer":
        from importlib import import_module

        return import_module("mulligan.faults").FaultServer
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
