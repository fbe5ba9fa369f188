"""A result that could not be recorded was offered too late, and another process did it again.

The store was down for 16 s when an order had been paid. The process offered the result after 1, 3,
7, 15 and then 31 s; the lease of its key ended after 30 s. So the store was there for 14 s in which
nobody told it, and then whoever waited for the key took it and paid the order a second time. It was
found by reading, when an attack let a Valkey come and go for minutes.
"""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

import mulligan
from mulligan.errors import StoreDown
from mulligan.once import pending as unrecorded
from mulligan.once.renewal import RENEWALS
from mulligan.stores.memory import Memory


class Keys:
    """Keys that are down when told, or go down before they have answered."""

    def __init__(self, keys) -> None:
        self.keys, self.is_down, self.loses_answers, self.refused = keys, False, False, 0

    def transact(self, key, operation):
        if self.is_down:
            self.refused += 1
            raise StoreDown("test:", "gone")
        answer = self.keys.transact(key, operation)
        if self.loses_answers:
            self.is_down, self.loses_answers = True, False
            raise StoreDown("test:", "the answer was lost")
        return answer


@pytest.mark.parametrize("lease", [6, 30, 600])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.8])
def test_a_result_is_recorded_before_its_lease_is_over_if_the_store_is_back(
    monkeypatch, lease, share
):
    memory = Memory()
    keys: Any = Keys(memory.keys)
    store: Any = SimpleNamespace(
        url="test:", keys=keys, state=memory.state, journal=memory.journal, scoped=memory.scoped
    )

    def pay() -> str:
        keys.is_down = True
        return "paid"

    guard = mulligan.Guard("bank", store=store, breaker=False, gate=False, tokens=False)
    assert guard.once(mulligan.Once("order-17", lease=lease), pay) == "paid"
    (offer,) = [each for each in unrecorded._offers.values() if each.keys is keys]
    RENEWALS.remove(offer)  # we offer it ourselves
    began, passed = time.monotonic(), 0.0
    monkeypatch.setattr(unrecorded, "monotonic", lambda: began + passed)
    while (delay := offer.act()) is not None:
        passed += delay
        keys.is_down = passed < share * lease
    assert passed < lease


@pytest.mark.real
def test_a_key_whose_answer_was_lost_is_free_before_its_lease_is_over():
    """It was given back in one try, at once, when the store was still down: all waited 30 s."""
    memory = Memory()
    keys: Any = Keys(memory.keys)
    stores: list[Any] = [
        SimpleNamespace(
            url="test:", keys=each, state=memory.state, journal=memory.journal, scoped=memory.scoped
        )
        for each in (keys, memory.keys)
    ]
    unlucky, other = (
        mulligan.Guard("bank", store=store, breaker=False, gate=False, tokens=False)
        for store in stores
    )
    order = mulligan.Once("order-17", lease=6)

    def pay() -> str:
        return "paid"

    keys.loses_answers = True
    with pytest.raises(StoreDown):
        unlucky.once(order, pay)
    began = time.monotonic()
    while not keys.refused:  # until it was tried while the store was down
        time.sleep(0.01)
    keys.is_down = False
    assert other.once(order, pay) == "paid"
    assert time.monotonic() - began < 6
