"""What a key promises, on every store, for plain functions, asyncio and trio."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import pytest
import trio

import mulligan
from mulligan import Guard, Once
from mulligan.calls.async_time import asleep
from mulligan.errors import StoreDown
from mulligan.once.claims import Mine, Take
from mulligan.once.renewal import RENEWALS
from mulligan.testing import Scripted, VirtualClock

from .conftest import key_of


class Doer:
    """Does a call once, in the way its name says."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __call__(self, guard: Guard, key, function, *args, **kwargs):
        if self.name == "sync":
            return guard.once(key, function, *args, **kwargs)

        async def coroutine(*args, **kwargs):
            return function(*args, **kwargs)

        coroutine.__name__, coroutine.__qualname__ = function.__name__, function.__qualname__
        coroutine.__module__, coroutine.__wrapped__ = function.__module__, function  # type: ignore[attr-defined]

        async def main():
            return await guard.aonce(key, coroutine, *args, **kwargs)

        return asyncio.run(main()) if self.name == "asyncio" else trio.run(main)


@pytest.fixture(params=["sync", "asyncio", "trio"])
def do(request) -> Doer:
    return Doer(request.param)


class Bank:
    """What has been charged, with the keys it was told."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.charged: list[Any] = []
        self.keys: list[str] = []

    def charge(self, amount, note="none"):
        here = mulligan.current()
        assert here is not None
        self.keys.append(here.key)
        if self.errors:
            raise self.errors.pop(0)
        self.charged.append(amount)
        return {"charged": amount, "number": len(self.charged)}


@pytest.fixture
def bank() -> Bank:
    return Bank()


def guard(place, **options) -> Guard:
    return Guard("bank", store=place.store, **options)


def test_success_is_replayed(place, do, bank):
    first = do(guard(place), "order-17", bank.charge, 5)
    again = do(Guard("bank", store=place.another()), "order-17", bank.charge, 5)
    assert first == again == {"charged": 5, "number": 1}
    assert bank.charged == [5]


def test_failure_is_not_kept(place, do):  # E-F6
    bank = Bank(ValueError("no such card"))
    with pytest.raises(ValueError, match="no such card"):
        do(guard(place), "order-17", bank.charge, 5)
    assert do(guard(place), "order-17", bank.charge, 5)["number"] == 1


def test_a_fallback_is_no_success(place, do):  # E-F6
    bank = Bank(ValueError("down"))
    shy = guard(place, fallback={"charged": 0}, on=ValueError, attempts=1)
    assert do(shy, "order-17", bank.charge, 5) == {"charged": 0}
    assert do(shy, "order-17", bank.charge, 5)["number"] == 1


def test_every_attempt_sees_the_same_key(place, do):  # E-F1, R-I4
    bank = Bank(ConnectionResetError("reset"), ConnectionResetError("reset"))
    quick = guard(place, clock=VirtualClock())
    do(quick, "order-17", bank.charge, 5)
    assert bank.keys == ["order-17"] * 3


def test_the_key_is_written_down_before_the_first_send(place, do):  # E-F1
    seen = []

    def send():
        take = Take(holder="somebody else", fingerprint="x", lease=1)
        terms = key_of("order-17")
        seen.append(type(place.another().keys.transact(terms, take)).__name__)
        return 1

    do(guard(place), "order-17", send)
    assert seen == ["Mismatch"]


def test_another_payload_under_the_same_key_is_a_mistake(place, do, bank):  # E-F3
    do(guard(place), "order-17", bank.charge, 5)
    with pytest.raises(
        mulligan.KeyReused,
        match=r"^operation 'order-17': its key stands for a call of charge\(\) with other "
        r"arguments; a new operation needs a new key, and parameters that differ between repeats "
        r"need exclude=$",
    ):
        do(guard(place), "order-17", bank.charge, 6)
    assert bank.charged == [5]


def test_what_may_have_been_applied_leaves_its_key_to_no_other_payload(place, do):  # E-F3, E-F11
    for error, is_free in ((ConnectionResetError("reset"), False), (ValueError("no"), True)):
        bank = Bank(error)
        once = guard(place, attempts=1)
        with pytest.raises(type(error)):
            do(once, f"order {is_free}", bank.charge, 5)
        if is_free:
            do(once, f"order {is_free}", bank.charge, 6)
        else:
            with pytest.raises(mulligan.KeyReused):
                do(once, f"order {is_free}", bank.charge, 6)
            do(once, f"order {is_free}", bank.charge, 5)
        assert len(bank.charged) == 1


def test_another_function_under_the_same_key_is_a_mistake(place, do, bank):  # E-F7
    def refund(amount):
        return amount

    do(guard(place), "order-17", bank.charge, 5)
    with pytest.raises(mulligan.KeyReused, match=r"its key stands for charge\(\), not refund\(\)"):
        do(guard(place), "order-17", refund, 5)


def test_a_payload_that_only_looks_different_is_the_same(place, do, bank):  # E-F9
    do(guard(place), "order-17", bank.charge, 5, note="caf\u00e9")
    do(guard(place), "order-17", bank.charge, amount=5.0, note="cafe\u0301")
    assert bank.charged == [5]


def test_excluded_parameters_may_differ(place, do, bank):  # E-F9
    way = Once("order-17", exclude=("note",))
    do(guard(place), way, bank.charge, 5, note="sent at 10:00")
    do(guard(place), way, bank.charge, 5, note="sent at 10:01")
    assert bank.charged == [5]


def test_a_value_that_is_not_json_reaches_its_caller_and_is_not_done_again(place, do):
    done = []

    def send():
        done.append(1)
        return (1, 2)  # a duplicate would be handed a list

    with pytest.raises(
        mulligan.NotKept,
        match=r"^operation 'order-17': it was done and will not be done again, but its result, "
        r"a tuple, is not JSON and was not kept; the result is this error's value; convert it with "
        r"Once\(…, dump=to_json, load=from_json\)$",
    ) as caught:
        do(guard(place), "order-17", send)
    assert caught.value.value == (1, 2)
    with pytest.raises(mulligan.NotKept, match="it was done and is not done again") as again:
        do(guard(place), "order-17", send)
    assert again.value.value is None
    assert done == [1]


def test_dump_and_load_carry_what_is_not_json(place, do):
    done = []

    def send():
        done.append(1)
        return (1, 2)

    way = Once("order-17", dump=list, load=tuple)
    assert do(guard(place), way, send) == do(guard(place), way, send) == (1, 2)
    assert done == [1]


def test_a_dump_that_raises_loses_nothing(place, do):
    def send():
        return 5

    with pytest.raises(mulligan.NotKept, match="dump= raised ZeroDivisionError") as caught:
        do(guard(place), Once("order-17", dump=lambda value: value / 0), send)
    assert caught.value.value == 5


def test_the_dead_do_not_keep_a_key_longer_than_their_lease(place, do, bank):
    terms = key_of("order-17")
    fingerprint = _fingerprint(bank.charge, 5)
    dead = Take(holder="dead", fingerprint=fingerprint, lease=0.2)
    assert place.store.keys.transact(terms, dead) == Mine(1)
    place.lapse(terms, 0.25)
    assert do(guard(place), "order-17", bank.charge, 5)["number"] == 1


def _fingerprint(function, *args):
    from mulligan.once.operation import arguments_of, fingerprint_of

    return fingerprint_of(function, arguments_of(function, args, {}), ())


def test_whoever_cannot_wait_is_told_which_key_is_in_use(place, do, bank):
    terms = key_of("order-17")
    take = Take(holder="other", fingerprint=_fingerprint(bank.charge, 5), lease=30)
    place.store.keys.transact(terms, take)
    with pytest.raises(
        mulligan.KeyBusy, match=r"^bank: 'order-17' is being done by another caller"
    ) as busy:
        do(guard(place, in_place=0.02), "order-17", bank.charge, 5)
    assert 0 < busy.value.retry_in <= 30
    story = mulligan.story(busy.value)
    assert story is not None
    assert story.ending == "refused"
    assert bank.charged == []


def test_a_deadline_bounds_the_wait_for_a_key(place, do, bank):
    terms = key_of("order-17")
    take = Take(holder="other", fingerprint=_fingerprint(bank.charge, 5), lease=30)
    place.store.keys.transact(terms, take)
    with pytest.raises(mulligan.KeyBusy):
        do(guard(place, deadline=0.02), "order-17", bank.charge, 5)


def test_a_wait_for_a_key_is_announced(place, do, bank):
    terms = key_of("order-17")
    take = Take(holder="other", fingerprint=_fingerprint(bank.charge, 5), lease=30)
    place.store.keys.transact(terms, take)
    heard: list[mulligan.Event] = []
    with pytest.raises(mulligan.KeyBusy):
        do(guard(place, in_place=0.02, listeners=[heard.append]), "order-17", bank.charge, 5)
    assert [(type(each).__name__, getattr(each, "because", "")) for each in heard] == [
        ("Held", "'order-17' is being done"),
        ("Ended", ""),
    ]


@pytest.mark.real
def test_twenty_threads_do_it_once(place, bank):  # E-F4
    slow = threading.Event()

    def charge(amount):
        slow.wait(0.1)
        return bank.charged.append(amount) or len(bank.charged)

    guards = [guard(place), Guard("bank", store=place.another())]
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda n: guards[n % 2].once("order-17", charge, 5), range(20)))
    assert answers == [1] * 20
    assert bank.charged == [5]


@pytest.mark.real
@pytest.mark.parametrize("world", ["asyncio", "trio"])
def test_twenty_tasks_do_it_once(place, world):  # E-F4
    done: list[int] = []
    answers: list[int] = []

    async def charge(amount):
        await asleep(0.05)
        done.append(amount)
        return len(done)

    async def one():
        answers.append(await guard(place).aonce("order-17", charge, 5))

    async def on_asyncio():
        await asyncio.gather(*[one() for _ in range(20)])

    async def on_trio():
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(one)

    asyncio.run(on_asyncio()) if world == "asyncio" else trio.run(on_trio)
    assert (answers, done) == ([1] * 20, [5])


@pytest.mark.real
def test_a_waiter_goes_on_where_the_first_one_failed(place, bank):
    began = threading.Event()

    def charge(amount, *, bank=bank):
        if not began.is_set():
            began.set()
            time.sleep(0.05)
            raise ValueError("no such card")
        bank.charged.append(amount)
        return amount

    with ThreadPoolExecutor(2) as pool:
        way = Once("order-17", exclude=("bank",))
        first = pool.submit(guard(place).once, way, charge, 5)
        began.wait(5)
        second = pool.submit(guard(place).once, way, charge, 5)
        assert isinstance(first.exception(10), ValueError)
        assert second.result(10) == 5
    assert bank.charged == [5]


def test_a_stale_holders_result_is_discarded_for_its_successors(place, caplog):  # E-F5
    def slow():
        # The holder is stopped for longer than its lease, and another one does it meanwhile.
        RENEWALS._due.clear()
        if len(caught) == 0:
            place.lapse(key_of("order-17"), 0.4)
            caught.append("first")
            other = Guard("bank", store=place.another())
            caught.append(other.once(Once("order-17", lease=0.3), slow))
            return "stale"
        return "successor"

    caught: list[str] = []
    assert guard(place).once(Once("order-17", lease=0.3), slow) == "successor"
    assert caught == ["first", "successor"]
    assert "slow was overtaken by another caller of operation 'order-17'" in caplog.text


def test_a_stale_holder_whose_successor_failed_keeps_what_it_has(place):  # E-F5
    caught: list[str] = []

    def slow():
        RENEWALS._due.clear()
        if not caught:
            place.lapse(key_of("order-17"), 0.4)
            caught.append("first")
            other = Guard("bank", store=place.another())
            with pytest.raises(ValueError, match="second"):
                other.once(Once("order-17", lease=0.3), slow)
            return "first"
        raise ValueError("second")

    way = Once("order-17", lease=0.3)
    assert guard(place).once(way, slow) == "first"
    assert guard(place).once(way, slow) == "first"


def test_where_nobody_can_say_whether_it_was_done_it_is_not_done(flaky, do, bank):
    flaky.keys.is_down = True
    with pytest.raises(StoreDown):
        do(Guard("bank", store=flaky), "order-17", bank.charge, 5)
    assert bank.charged == []


@pytest.mark.real
@pytest.mark.parametrize("world", ["asyncio", "trio"])
def test_a_cancelled_holder_gives_its_key_back(place, world, cancelled_once):  # E-D2
    is_held = threading.Event()

    async def hang(amount):
        is_held.set()
        await asleep(60)

    async def call():
        await guard(place).aonce("order-17", hang, 5)

    cancelled_once(world, is_held, call)

    def hang_now(amount):
        return "done"

    hang_now.__name__, hang_now.__qualname__ = hang.__name__, hang.__qualname__
    assert guard(place, in_place=0.9).once("order-17", hang_now, 5) == "done"


def test_scopes_of_a_guard_do_not_share_keys(place, do, bank):  # E-F7
    for scope in ("account 1", "account 2"):
        do(guard(place, scope=scope), "order-17", bank.charge, 5)
    assert bank.charged == [5, 5]


def test_the_key_is_never_stored_as_it_is(tmp_path, bank):
    url = f"sqlite:{tmp_path / 'state.db'}"
    Guard("bank", store=url, scope="sk-live-account").once("ada@example.org", bank.charge, 5)
    for path in tmp_path.iterdir():
        assert b"ada@example.org" not in path.read_bytes()
        assert b"sk-live-account" not in path.read_bytes()


def hand_out(server):
    return server.acall()


def test_a_plain_function_that_returns_a_coroutine_is_driven_under_its_key(place):
    server = Scripted(ConnectionResetError("reset"), "answer")

    async def main():
        quick = guard(place, clock=VirtualClock())
        first = await quick.once("order-17", partial(hand_out, server))
        again = await quick.aonce("order-17", partial(hand_out, server))
        return first, again

    assert asyncio.run(main()) == ("answer", "answer")
    assert len(server.calls) == 2
