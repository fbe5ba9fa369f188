"""Real servers and other processes, as the contract suites have them."""

from __future__ import annotations

from ..contracts.conftest import flaky, new_server, place, server, servers

__all__ = ("flaky", "new_server", "place", "server", "servers")
