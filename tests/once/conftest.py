"""A guard with a memory of its own, and the key of the call under way."""

from __future__ import annotations

import pytest

import mulligan
from mulligan import Guard
from mulligan.stores.memory import Memory


@pytest.fixture
def guard() -> Guard:
    return Guard("bank", store=Memory())


def key() -> str:
    here = mulligan.current()
    assert here is not None
    return here.key
