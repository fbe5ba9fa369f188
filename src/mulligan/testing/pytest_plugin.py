"""Fixtures for pytest, loaded by its plugin mechanism."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .clock import VirtualClock

__all__ = ("virtual_clock",)


@pytest.fixture(autouse=True)
def _nothing_shared_with_other_tests() -> None:
    """What guards share in the process's memory is forgotten before every test."""
    targets = sys.modules.get("mulligan.shared.targets")  # not loaded: no guard was made, either
    if targets is not None:
        targets.forget()


@pytest.fixture
def virtual_clock() -> Iterator[VirtualClock]:
    """A VirtualClock that every guard in this test sleeps on; jitter falls on its median."""
    from .world import virtual_time

    with virtual_time() as clock:
        yield clock
