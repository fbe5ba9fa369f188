"""The fixture ``fault_server``: a provider that fails on command, for one test.

Loaded by every pytest run in an environment that has Mulligan, so it imports the server only when
a test asks for it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .server import FaultServer

__all__ = ("fault_server",)


@pytest.fixture
def fault_server() -> Iterator[FaultServer]:
    """A running `FaultServer` that answers ok until the test calls ``set("429x2,ok")``."""
    from .server import FaultServer

    with FaultServer() as server:
        yield server
