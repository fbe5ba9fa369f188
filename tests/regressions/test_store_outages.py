"""A store that was away for longer than a lease let four orders be done twice.

Four processes did orders under keys while their server was stopped for a while. Each of them had
done one order that it could not record. The server's clock went on, so when the server came back
the four leases were over: whoever asked first took the key of another process and did the order
again, although its holder was alive and offered the result. Holders made that likely: once their
lease was over they offered the result only once a minute.

A server that had lost its data was worse: every key was free, and the holder that came to record
its result was told that a successor had taken over, and forgot the result.
"""

from __future__ import annotations

import signal
import threading

import pytest

from mulligan import Guard, Once
from mulligan.core.moment import Moment
from mulligan.errors import StoreDown
from mulligan.once.claims import Claim, Done, Finish, Mine, Renew, Take
from mulligan.stores.redis.store import Redis
from mulligan.stores.state_machine import Key

KEY = Key("bank", "once/x")


def take(holder: str, lease: float = 30.0) -> Take:
    return Take(holder=holder, fingerprint="f", lease=lease)


def at(now: float) -> Moment:
    return Moment(now, 1e9 + now)


def test_a_store_that_nobody_could_ask_for_an_hour_has_not_ended_a_lease():
    state, _ = take("a")(Claim(), at(0))
    state, answer = take("b")(state, at(3600))
    assert not isinstance(answer, Mine)
    state, is_stored = Finish(holder="a", epoch=1, fingerprint="f", value="1", ttl=60)(
        state, at(3605)
    )
    assert is_stored
    assert take("b")(state, at(3606))[1] == Done("1")


def test_a_store_that_comes_and_goes_ends_no_lease_before_its_holder_could_renew_it():
    state, _ = take("a")(Claim(), at(0))
    for outage in range(1, 4):
        state, answer = take("b")(state, at(outage * 60))
        assert not isinstance(answer, Mine)
    assert Renew(holder="a", epoch=1, fingerprint="f", lease=30)(state, at(181))[1]


@pytest.mark.parametrize("every", [0.5, 5, 45, 3600])
def test_a_dead_holder_loses_its_key_however_rarely_somebody_asks(every):
    state, _ = take("a")(Claim(), at(0))
    now = asked = 0.0
    while True:
        now, asked = now + every, asked + 1
        state, answer = take("b")(state, at(now))
        if isinstance(answer, Mine):
            break
    assert now >= 30
    assert asked <= max(6, 30 / every)


def test_what_was_done_is_recorded_where_the_claim_was_forgotten():
    finish = Finish(holder="a", epoch=3, fingerprint="f", value="1", ttl=60)
    state, is_stored = finish(Claim(), at(5))
    assert is_stored
    assert take("b")(state, at(6))[1] == Done("1")


def test_a_living_holder_has_its_claim_back_where_it_was_forgotten():
    state, is_held = Renew(holder="a", epoch=3, fingerprint="f", lease=30)(Claim(), at(5))
    assert is_held
    assert not isinstance(take("b")(state, at(6))[1], Mine)


@pytest.mark.real
def test_an_order_is_not_done_again_after_an_outage_that_was_longer_than_its_lease(flaky, place):
    done: list[str] = []

    def pay(who: str) -> str:
        done.append(who)
        flaky.keys.is_down = who == "first"
        return who

    way = Once("order-52", lease=0.6, exclude=("who",))
    assert Guard("bank", store=flaky).once(way, pay, "first") == "first"
    for _ in range(4):
        place.wait(0.5)
    other, found = Guard("bank", store=place.another()), []
    asking = threading.Thread(target=lambda: found.append(other.once(way, pay, "second")))
    asking.start()
    flaky.keys.is_down = False
    asking.join(10)
    assert (found, done) == (["first"], ["first"])


def test_keys_of_a_server_that_lost_its_data_fail_closed(new_server):
    server = new_server("--appendonly", "no")
    store = Redis(server.url)
    bank, done = Guard("bank", store=store), []

    def pay(number: int) -> int:
        done.append(number)
        return number

    assert bank.once("order-1", pay, 1) == 1
    server.end(signal.SIGKILL)
    server.start()
    for order in (1, 2):
        with pytest.raises(
            StoreDown, match="lost its data while it was in use, so what has been done is unknown"
        ):
            bank.once(f"order-{order}", pay, order)
    assert done == [1]
    store.close()  # as a restart does
    assert bank.once("order-2", pay, 2) == 2
    store.close()


def test_a_store_that_is_closed_while_it_asks_remembers_no_missing_generation(
    new_server, monkeypatch
):
    """It was remembered as known, and every later use failed: `StoreDown … (DataError)`."""
    server = new_server("--appendonly", "no")
    store = Redis(server.url)
    store.keys.transact(KEY, take("a"))
    server.end(signal.SIGKILL)
    server.start()

    known = store.keys._generations
    ask = store._cold.run

    def closed_before_the_answer(*args):
        known.clear()
        return ask(*args)

    with monkeypatch.context() as patch:
        patch.setattr(store._cold, "run", closed_before_the_answer)
        with pytest.raises(StoreDown, match="lost its data"):
            store.keys.transact(KEY, take("a"))
    assert not known
    store.keys.transact(KEY, take("a"))
    store.close()


def test_data_that_vanish_between_reading_and_writing_are_noticed(new_server):
    server = new_server()
    store, other = Redis(server.url), Redis(server.url)
    store.keys.transact(KEY, take("a"))

    class Vanishing(Take):
        def __call__(self, state, moment):
            other._cold.command("FLUSHALL")
            return super().__call__(state, moment)

    with pytest.raises(StoreDown, match="lost its data"):
        store.keys.transact(Key("bank", "once/y"), Vanishing(holder="b", fingerprint="f", lease=30))
    assert isinstance(other.keys.transact(Key("bank", "once/y"), take("c")), Mine)
    for each in (store, other):
        each.close()


def test_a_server_that_has_its_data_back_is_trusted_again(new_server):
    server = new_server()
    store = Redis(server.url)
    store.keys.transact(KEY, take("a"))
    store._cold.command("SWAPDB", "0", "1")
    with pytest.raises(StoreDown, match="lost its data"):
        store.keys.transact(KEY, take("a"))
    store._cold.command("SWAPDB", "0", "1")
    assert store.keys.transact(KEY, take("a")) == Mine(1)
    store.close()
