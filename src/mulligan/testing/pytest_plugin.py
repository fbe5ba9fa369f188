"""Fixtures for pytest, found by themselves once Mulligan is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .clock import VirtualClock

__all__ = ("virtual_clock",)


@pytest.fixture
def virtual_clock() -> Iterator[VirtualClock]:
    """A VirtualClock that every guard in this test sleeps on; jitter falls on its median."""
    from .world import virtual_time

    with virtual_time() as clock:
        yield clock
