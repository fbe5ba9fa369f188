"""A provider that fails on command.

A real HTTP server on loopback that SDKs, programs and plain HTTP clients take for the vendor.
Nothing here is loaded by `import mulligan`, and nothing beyond the standard library is needed to
serve: raw resets and half-sent chunks are easier to do by hand than through a server library.

The way of one request, a file each:

    wire ──▶ routes ──▶ limits ──▶ script ──▶ vendors ──▶ delivery ──▶ connection
    bytes    whose      is there   what it    in whose     as which     sent, paused,
    to a     API is     quota      gets       words        bytes        reset
    request  this       left                               in which gaps

Only `service` and `connection` touch the clock, and only `connection` a socket; everything else
takes the time as an argument. The ledger remembers all of it.
"""

from __future__ import annotations

from .ledger import Entry, Ledger, Totals
from .limits import Limits
from .script import Script
from .server import FaultServer

__all__ = ("Entry", "FaultServer", "Ledger", "Limits", "Script", "Totals")
