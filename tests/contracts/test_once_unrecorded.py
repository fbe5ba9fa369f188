"""What was done and could not be recorded is done, for this process at least."""

from __future__ import annotations

import asyncio
import time

import pytest
import trio

import mulligan
from mulligan import Guard, Once
from mulligan.once import pending as unrecorded
from mulligan.once.renewal import RENEWALS

from .conftest import key_of


class Till:
    """Charges; and whoever comes after it finds the store gone."""

    def __init__(self, store, world: str) -> None:
        self.store, self.world = store, world
        self.charged: list[int] = []

    def once(self, amount=5, **options):
        guard = Guard("bank", store=self.store, **options)
        way = Once("order-17", lease=0.3)
        if self.world == "sync":
            return guard.once(way, self.charge, amount)

        async def charge(amount):
            return self.charge(amount)

        async def main():
            return await guard.aonce(way, charge, amount)

        return asyncio.run(main()) if self.world == "asyncio" else trio.run(main)

    def charge(self, amount):
        self.charged.append(amount)
        self.store.keys.is_down = True
        return {"number": len(self.charged)}


@pytest.fixture(params=["sync", "asyncio", "trio"])
def till(request, flaky) -> Till:
    return Till(flaky, request.param)


def test_whoever_asks_this_process_is_handed_the_result(till, caplog):
    assert till.once() == {"number": 1}
    assert till.once() == {"number": 1}
    assert till.charged == [5]
    assert "charge was done as operation 'order-17', which could not be recorded yet" in caplog.text


def test_a_lease_that_is_over_does_not_let_this_process_do_it_again(till, place):
    till.once()
    RENEWALS._due.clear()  # nobody has offered the result yet
    place.lapse(key_of("order-17"), 0.4)
    till.store.keys.is_down = False
    assert till.once() == {"number": 1}
    assert till.charged == [5]


def test_a_result_that_was_not_recorded_stands_for_its_own_arguments(till):
    till.once(5)
    with pytest.raises(mulligan.KeyReused):
        till.once(6)
    assert till.charged == [5]


def test_an_event_says_that_nobody_else_knows(till):
    heard: list[mulligan.Event] = []
    till.once(listeners=[heard.append])
    (event,) = heard
    assert isinstance(event, mulligan.StoreLost)
    assert event.because == "'order-17' was done, which could not be recorded yet (gone)"


@pytest.mark.real
def test_the_result_is_offered_until_the_store_takes_it(till, place):
    till.once()
    (offer,) = unrecorded._offers.values()
    till.store.keys.is_down = False
    for _ in range(100):
        offer.act()  # as the keeper does
        if not unrecorded._offers:
            break
        time.sleep(0.01)
    assert not unrecorded._offers
    till.store = place.another()
    assert till.once() == {"number": 1}
    assert till.charged == [5]


def test_a_result_is_remembered_as_long_as_the_store_would_have(till, monkeypatch):
    till.once()
    (offer,) = unrecorded._offers.values()
    # However long it has been away: whoever asks when it is back finds the key held for a lease.
    monkeypatch.setattr(unrecorded, "monotonic", lambda: time.monotonic() + 3600)
    assert [offer.act() for _ in range(8)] == [pytest.approx(0.3 / 6)] * 8
    monkeypatch.setattr(unrecorded, "monotonic", lambda: time.monotonic() + 86_400)
    assert offer.act() is None
    assert not unrecorded._offers


def test_a_result_that_a_successor_has_replaced_is_forgotten(flaky, place):
    till = Till(flaky, "sync")
    till.once()
    (offer,) = unrecorded._offers.values()
    RENEWALS._due.clear()
    place.lapse(key_of("order-17"), 0.4)
    successor = Guard("bank", store=place.another())
    assert successor.once(Once("order-17", lease=0.3), till.charge, 5) == {"number": 2}
    till.store.keys.is_down = False
    assert offer.act() is None
    assert till.once() == {"number": 2}


class Closed:
    """Keys of a store that is closed while they are used."""

    def __init__(self, keys) -> None:
        self.keys, self.is_down = keys, False

    def transact(self, key, operation):
        if self.is_down:
            raise ValueError("I/O operation on closed file")
        return self.keys.transact(key, operation)

    async def atransact(self, key, operation):
        return self.transact(key, operation)


def test_a_store_that_raises_what_it_should_not_does_not_take_the_answers_place(till):
    till.store.keys = Closed(till.store.keys)
    assert till.once() == {"number": 1}
    assert till.once() == {"number": 1}
    assert till.charged == [5]


def test_a_store_that_raises_what_it_should_not_does_not_take_the_errors_place(till, monkeypatch):
    def refuse(amount):
        till.store.keys.is_down = True
        raise LookupError("no such card")

    till.store.keys = Closed(till.store.keys)
    monkeypatch.setattr(till, "charge", refuse)
    with pytest.raises(LookupError):
        till.once()


def test_a_stale_holder_that_cannot_ask_for_its_successors_result_has_its_own(flaky, place):
    till, way = Till(flaky, "sync"), Once("order-17", lease=0.3)

    def slow(amount):
        RENEWALS._due.clear()
        if not till.charged:
            place.lapse(key_of("order-17"), 0.4)
            till.charged.append(amount)
            Guard("bank", store=place.another()).once(way, slow, amount)
            flaky.keys.after = 2  # the finish is fenced; then the store is gone
            return "first"
        return "second"

    assert Guard("bank", store=flaky).once(way, slow, 5) == "first"
