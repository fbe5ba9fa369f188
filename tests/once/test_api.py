from __future__ import annotations

import asyncio
import gc
import threading
from functools import partial
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mulligan
from mulligan import Guard, Once, SettingError
from mulligan.core.moment import Moment
from mulligan.once.claims import Take
from mulligan.once.fingerprint import digest
from mulligan.once.holder import KeyHold, OnceTerms
from mulligan.once.operation import fingerprint_of
from mulligan.once.renewal import RENEWALS, RenewalJob
from mulligan.once.wakeups import _waiting
from mulligan.stores.memory import Memory
from mulligan.stores.state_machine import Key
from mulligan.testing import Scripted, VirtualClock, status_error, virtual_time

from .conftest import key

_LAMBDA = lambda: 1  # noqa: E731 -- the point


class Client:
    """Something that no hash can be made of."""

    def charge(self, amount):
        return amount


def test_a_new_key_is_a_uuid_and_never_the_same():  # R-I4
    keys = {mulligan.new_key() for _ in range(100)}
    assert len(keys) == 100
    assert {UUID(key).version for key in keys} == {4}


def charge(amount, currency="EUR"):
    return [amount, currency]


def test_without_a_key_the_arguments_are_the_key(guard):  # E-F8, R-I3
    calls = []

    def keyed(amount, currency="EUR"):
        calls.append(key())
        return amount

    keyed.__wrapped__ = charge  # type: ignore[attr-defined]  # no visible closure
    way = Once(scope=("ada", "run 7", "step 2"))
    for arguments in ({"amount": 5}, {"amount": 5.0, "currency": "EUR"}):
        assert guard.once(way, keyed, **arguments) == 5
    guard.once(way, keyed, 5, "USD")
    guard.once(Once(scope=("ada", "run 7", "step 3")), keyed, 5)
    assert len(calls) == len(set(calls)) == 3


def test_once_per_names_what_makes_the_key(guard):
    calls = []

    @guard.once_per("order", exclude=("at",))
    def bill(order, amount, at):
        calls.append(order)
        return amount

    assert [bill(1, 5, at="10:00"), bill(1, 5, at="10:01"), bill(2, 5, "")] == [5, 5, 5]
    assert calls == [1, 2]
    with pytest.raises(mulligan.KeyReused):  # E-F3
        bill(1, 6, at="10:02")


def test_once_per_nothing_goes_by_all_arguments(guard):
    decorated = guard.once_per()(charge)
    assert decorated(5) == decorated(amount=5.0, currency="EUR") == [5, "EUR"]
    assert decorated(6) == [6, "EUR"]
    assert decorated.__name__ == "charge"


def test_the_same_function_on_another_target_is_another_operation():  # E-F7
    store, seen = Memory(), []

    def keyed():
        seen.append(key())

    for target in ("bank", "bank of another"):
        Guard(target, store=store).once_per(scope="ada")(keyed)()
    assert len(set(seen)) == 2


def test_a_method_decorated_by_the_name_of_a_parameter_is_done_once(guard):
    class Shop:
        done = 0

        @guard.once_per("order")
        def bill(self, order):
            self.done += 1
            return order

    shop = Shop()
    assert [shop.bill(1), shop.bill(1), shop.done] == [1, 1, 1]


@pytest.mark.parametrize(
    ("way", "function", "message"),
    [
        (Once(), _LAMBDA, "<lambda> is a closure or a lambda: it brings values along"),
        (Once(), Client().charge, "charge is a method: it brings values along"),
        (Once(), partial(Client().charge), "charge is a method"),
    ],
)
def test_what_brings_hidden_values_along_needs_a_scope_or_a_key(guard, way, function, message):
    arguments = {"amount": 1} if function is not _LAMBDA else {}
    with pytest.raises(SettingError, match=message):
        guard.once(way, function, **arguments)
    Guard("bank", store=Memory()).once(Once("k"), lambda: 1)


def test_an_argument_that_nobody_can_compare_needs_to_be_excluded(guard):
    def pay(client, amount):
        return amount

    with pytest.raises(SettingError, match=r"exclude=\('client',\), or give the call a key"):
        guard.once(Once(scope="ada"), pay, Client(), 5)
    assert guard.once(Once(scope="ada", exclude=("client",)), pay, Client(), 5) == 5
    assert guard.once("order-17", pay, Client(), 5) == guard.once("order-17", pay, Client(), 5)


def hostile() -> list[object]:
    endless: list[object] = []
    endless.append(endless)
    return [endless, float("nan"), int, "\ud800", 10**5000, (each for each in "ab"), Hostile()]


class Hostile:
    """Raises whenever it is asked anything."""

    def __getattr__(self, name):
        raise ZeroDivisionError

    __repr__ = __eq__ = __hash__ = __index__ = __getattr__  # type: ignore[assignment]


def test_where_the_key_is_said_no_argument_is_too_strange(guard):
    for number, argument in enumerate(hostile()):
        for _ in range(2):
            assert guard.once(f"order-{number}", lambda it: 5, argument) == 5


@pytest.mark.parametrize("key", ["", " ", "a\nb", 5, b"k"])
def test_a_key_is_a_printable_string(guard, key):
    with pytest.raises(SettingError, match="a key needs to be a printable string"):
        guard.once(key, charge, 5)


def test_a_function_where_the_key_should_be_is_explained(guard):
    with pytest.raises(SettingError, match=r"@guard\.once_per\('order_id'\)"):
        guard.once(charge, 5)


def test_a_ttl_shorter_than_the_longest_repeat_is_refused_with_both_numbers(guard):  # E-F8
    words = (
        r"^a key is forgotten after 1m, but a repeat may come 6h later and would then be a second "
        r"effect; raise ttl to 6h, or lower the policy's horizon and patience$"
    )
    with pytest.raises(SettingError, match=words):
        guard.once(Once("k", ttl="1m"), charge, 5)
    with pytest.raises(SettingError, match=words):
        guard.once_per(ttl=60)
    short = Guard("bank", store=Memory(), horizon=60, patience=60, in_place=10)
    assert short.once(Once("k", ttl="1m"), charge, 5) == [5, "EUR"]  # R-I3


def test_a_result_is_forgotten_after_its_ttl():
    with virtual_time(VirtualClock()) as clock:
        bank = Guard("bank", horizon=60, patience=60, in_place=10)
        done = []

        def pay():
            done.append(1)
            return len(done)

        way = Once("k", ttl=60)
        assert [bank.once(way, pay), bank.once(way, pay)] == [1, 1]
        clock.advance(61)
        assert bank.once(way, pay) == 2


def test_a_stream_is_refused(guard):
    def stream():
        yield 1

    async def astream():
        yield 1

    for function in (stream, astream):
        with pytest.raises(SettingError, match="is a stream, and a stream has no value to keep"):
            guard.once("k", function)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"lease": 0}, "lease needs at least 0.1 s"),
        ({"dump": 5}, "dump needs a plain function; got 5"),
        ({"exclude": (1,)}, r"exclude needs strings; got \(1,\)"),
        ({"exclude": ("bogus",)}, r"exclude names 'bogus', which charge\(\) does not take"),
    ],
)
def test_a_setting_that_cannot_be_meant_shows_where_it_is_written(guard, options, message):
    with pytest.raises(SettingError, match=message):
        guard.once_per(**options)(charge)


def test_once_per_checks_the_names_of_parameters(guard):
    with pytest.raises(SettingError, match=r"once_per names 'order', which charge\(\) does not"):
        guard.once_per("order")(charge)
    with pytest.raises(SettingError, match="'amount' makes the key and is excluded from it"):
        guard.once_per("amount", exclude=("amount",))(charge)


def test_arguments_that_the_function_does_not_take_are_its_own_error(guard):
    with pytest.raises(TypeError, match="too many positional arguments"):
        guard.once("k", charge, 1, 2, 3)


def test_a_maybe_applied_attempt_is_repeated_under_its_key():  # E-F11
    with virtual_time():
        errors = [ConnectionResetError("reset by peer")]

        def pay():
            if errors:
                raise errors.pop()
            return "paid"

        assert Guard("bank").once("order-17", pay) == "paid"
        errors.append(ConnectionResetError("reset by peer"))
        with pytest.raises(ConnectionResetError):
            Guard("bank").call(pay)


def test_a_server_that_is_still_at_it_is_asked_again_under_the_same_key():  # E-F2
    busy = status_error(409, body={"error": {"code": "idempotency_key_in_use"}})
    server, keys = Scripted(TimeoutError("no answer"), busy, busy, busy, "paid"), []

    def pay():
        keys.append(key())
        return server()

    with virtual_time() as clock:
        assert Guard("bank").once("order-17", pay) == "paid"
        assert clock.now() > 0
    assert keys == ["order-17"] * 5


def test_without_a_key_of_ours_a_server_that_is_still_at_it_is_not_asked_again():  # E-F2
    server = Scripted(status_error(409, body={"error": {"code": "idempotency_key_in_use"}}), "paid")
    with virtual_time(), pytest.raises(Exception, match="status 409") as caught:
        Guard("bank").call(server)
    story = mulligan.story(caught.value)
    assert story is not None
    assert story.ending == "maybe_applied"


def test_a_key_in_memory_is_waited_for_in_virtual_time():
    with virtual_time() as clock:
        bank = Guard("bank")

        def outer() -> float:
            with pytest.raises(mulligan.KeyBusy):
                bank.once("order-17", outer)
            return clock.now()

        assert bank.once("order-17", outer) == pytest.approx(900)


# Nothing is left behind


def test_a_call_leaves_neither_waiters_nor_jobs(guard):  # E-D8
    for number in range(50):
        guard.once(f"order {number}", charge, 5)
    assert not _waiting
    assert not jobs_for(guard._engine.options["store"].keys)


def jobs_for(keys) -> list[RenewalJob]:
    return [job for job in RENEWALS._due if job.keys is keys]


def test_a_call_that_was_thrown_away_is_not_renewed_for_ever():
    terms = OnceTerms(
        keys=Memory().keys, place=Key("t", "p"), key="k", fingerprint="f", lease=30, ttl=60
    )
    holding = KeyHold(terms)
    holding.taken(terms.keys.transact(terms.place, holding.take()))
    (job,) = jobs_for(terms.keys)
    assert job.act() == 10
    del holding
    gc.collect()
    assert job.act() is None
    RENEWALS.remove(job)


@pytest.mark.real
def test_a_thousand_holders_share_one_thread(guard):
    before, seen = threading.active_count(), []

    async def charge(number):
        if number == 999:
            seen.append(threading.active_count())
        await asyncio.sleep(0.05)
        return number

    async def main():
        return await asyncio.gather(*[guard.aonce(f"k{n}", charge, n) for n in range(1000)])

    assert asyncio.run(main()) == list(range(1000))
    assert seen[0] - before <= 1


# Whatever happens to its callers


@given(fates=st.lists(st.sampled_from(["fails", "dies", "succeeds", "is cancelled"]), max_size=12))
def test_a_success_is_the_last_time_it_is_done(fates):
    moment = [0.0]
    store = Memory(lambda: Moment(moment[0], 1e9 + moment[0]))
    bank = Guard("bank", store=store, breaker=False)
    done: list[str] = []

    def pay(fate):
        done.append(fate)
        if fate == "fails":
            raise ValueError(fate)
        if fate == "is cancelled":
            raise KeyboardInterrupt
        return len(done)

    place = Key("bank", f"once/{digest(['once', '', 'order-17'])}")
    way, answers = Once("order-17", exclude=("fate",)), []
    for fate in fates:
        if fate == "dies":
            # A process that takes the key and is gone; nothing of ours runs behind it.
            fingerprint = fingerprint_of(pay, {}, ())
            store.keys.transact(place, Take(holder="dead", fingerprint=fingerprint, lease=30))
            for _ in range(31):  # while another caller asks for it
                moment[0] += 1
                store.keys.transact(place, Take(holder="x", fingerprint="x", lease=30))
            continue
        try:
            answers.append(bank.once(way, pay, fate))
        except (ValueError, KeyboardInterrupt):
            answers.append(None)
    first = next((n for n, answer in enumerate(answers) if answer is not None), len(answers))
    assert set(answers[first:]) <= {answers[first] if first < len(answers) else None}
    assert done.count("succeeds") <= 1
    assert not done or "succeeds" not in done[:-1]
