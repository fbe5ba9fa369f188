"""A provider that fails on command.

A real HTTP server on loopback that SDKs, programs and plain HTTP clients take for the vendor.
Nothing here is loaded by `import mulligan`, and nothing beyond the standard library is needed to
serve: raw resets and half-sent chunks are easier to do by hand than through a server library.

The way of one request, a file each:

    wire ───▶ vendors ─▶ desk ────▶ compose ──▶ delivery ──▶ connection
    bytes to  whose API  limits,    the answer  which bytes  sends them, waits,
    request   is this    then the   in that     in which     resets; the ledger
                         script     API's words gaps         remembers

Only `connection` looks at the clock while serving; everything before it takes the time as an
argument, and what has state (`service`, `desk`, `rest`, `ledger`) has neither clock nor socket.
"""

from __future__ import annotations

from .ledger import Entry, Ledger, Totals
from .limits import Limits
from .script import Script
from .server import FaultServer

__all__ = ("Entry", "FaultServer", "Ledger", "Limits", "Script", "Totals")
