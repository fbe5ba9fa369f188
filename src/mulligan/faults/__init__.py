"""The fault server: a fake provider that fails on command.

A real HTTP server on loopback that SDKs, programs and plain HTTP clients take for the vendor.
Nothing here is loaded by `import mulligan`, and nothing beyond the standard library is needed to
serve: raw resets and half-sent chunks are easier to write directly than through a server library.

The path of one request, one file per step:

    wire ───▶ vendors ─▶ service ─────▶ compose ──▶ delivery ──▶ connection
    bytes to  whose API  limits, then   the answer  which bytes  sends them, waits,
    request   is this    the script     in that     in which     resets; the ledger
                                        API's words gaps         records it

Only `connection` looks at the clock while serving; everything before it takes the time as an
argument. `service`, `rest` and `ledger` hold the state, without clock or socket.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .ledger import LedgerEntry, RequestLedger, Totals
    from .limits import ClientLimits
    from .script import Script
    from .server import FaultServer

# Loaded when first used: pytest loads the plugin in this package in every project that has Mulligan
# installed, and most of their runs start no server.
_HOME = {
    "LedgerEntry": "ledger",
    "FaultServer": "server",
    "RequestLedger": "ledger",
    "ClientLimits": "limits",
    "Script": "script",
    "Totals": "ledger",
}

__all__ = ("ClientLimits", "FaultServer", "LedgerEntry", "RequestLedger", "Script", "Totals")


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{home}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
