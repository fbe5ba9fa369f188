"""What only a server can do wrong."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
import time
from itertools import count

import pytest

from mulligan.errors import StoreDown, StoreError
from mulligan.once.claims import Finish, Take
from mulligan.shared.breaker import BREAKER, AskBreaker, Breaker, ManualOverride, OpenBreaker, Shut
from mulligan.stores.entries import JournalLine
from mulligan.stores.redis.store import Redis
from mulligan.stores.state_machine import Key

KEY = Key("target", "breaker")
FIVE = Breaker()
_numbers = count()


@pytest.fixture
def store(server):
    """A store on a shared server, under a prefix of its own."""
    store = Redis(server.url, f"test-{os.getpid()}-s{next(_numbers)}")
    yield store
    store.close()


def ask(store):
    return store.state.transact(KEY, AskBreaker(permit="p", settings=FIVE))


def test_it_is_the_version_we_think_it_is(server):
    said = subprocess.check_output([server.binary, "--version"], text=True, timeout=5)
    assert ("v=9.1.2" if "valkey" in server.binary else "v=") in said


def test_scripts_that_the_server_forgot_are_sent_again(store):
    store.state.transact(KEY, ManualOverride(move="block"))
    store._hot.command("SCRIPT", "FLUSH")
    assert isinstance(ask(store), Shut)


@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_closed_under_its_users_it_is_down_and_nothing_else(store, is_async):
    found: list[BaseException] = []

    def ask_on() -> None:
        for _ in range(100):
            try:
                if is_async:
                    asyncio.run(
                        store.state.atransact(KEY, AskBreaker(permit="p", settings=Breaker()))
                    )
                else:
                    ask(store)
                    store.state.known(BREAKER)
            except Exception as error:  # noqa: BLE001 -- looked at below
                found.append(error)

    users = [threading.Thread(target=ask_on) for _ in range(3)]
    for each in users:
        each.start()
    while any(each.is_alive() for each in users):
        store.close()
        time.sleep(0.001)
    assert [each for each in found if not isinstance(each, StoreDown)] == []


def test_what_was_acknowledged_survives_kill_9_of_the_server(new_server):
    server = new_server()
    store = Redis(server.url)
    for number in range(50):
        store.journal.append("run", JournalLine(f"e{number}", "1"))
    store.state.transact(KEY, ManualOverride(move="block"))
    server.end(signal.SIGKILL)
    with pytest.raises(StoreDown):
        ask(store)
    server.start()
    assert len(store.journal.read("run")) == 50
    assert isinstance(ask(store), Shut)
    store.close()


def test_a_server_that_hangs_holds_nobody_up_for_more_than_250_ms(new_server, within):
    server = new_server()
    store = Redis(server.url)
    store.state.peek(KEY, BREAKER)
    server.process.send_signal(signal.SIGSTOP)
    for asking in (lambda: ask(store), lambda: store.state.peek(KEY, BREAKER)):
        silent = pytest.raises(StoreDown, match=r"^redis://127.0.0.1:\d+/0: no answer")
        with within(0.25), silent:
            asking()
    store.close()


def test_settings_that_put_data_at_risk_are_remarked_on(store, new_server, caplog):
    assert store.remarks() == ()
    server = new_server(
        *("--appendonly", "no", "--maxmemory", "64mb", "--maxmemory-policy", "allkeys-lru")
    )
    risky = Redis(server.url)
    first, second = risky.remarks()
    assert first.endswith("set appendonly yes")
    assert second.endswith("set maxmemory-policy noeviction")
    assert caplog.messages == []
    risky.journal.append("run", JournalLine("e", "1"))
    risky.keys.transact(KEY, ManualOverride(move="reset"))
    assert caplog.messages == [first, second]  # once, and before anything is entrusted to it
    risky.close()


def test_a_clients_skewed_clock_changes_nothing(store, monkeypatch):
    store.state.transact(KEY, OpenBreaker(stated=600, because="test"))
    monkeypatch.setattr(time, "time", lambda: 0.0)
    answer = ask(store)
    assert isinstance(answer, Shut)
    assert 599 < answer.retry_in <= 600


def test_a_state_that_somebody_else_wrote_is_begun_anew(store):
    store._hot.command("SET", store.state._names(KEY)[0], "no state")
    assert store.state.peek(KEY, BREAKER)[0] == BREAKER.start
    store._cold.command("SET", store.keys._names(KEY)[0], "[1]")
    with pytest.raises(StoreError, match="the breaker of target cannot be read"):
        store.keys.transact(KEY, ManualOverride(move="block"))


def test_every_key_of_a_target_lives_on_one_node(store):
    names = store.state._names(KEY) + store.state._names(Key("target", "gate"))
    assert {name[name.index("{") : name.index("}")] for name in names} == {"{target|"}


def test_a_slow_operation_on_one_key_holds_up_no_other(store):
    begun, done = threading.Event(), threading.Event()

    class Slow:
        machine = BREAKER

        def __call__(self, state, moment):
            begun.set()
            done.wait(10)
            return state, None

    thread = threading.Thread(target=store.state.transact, args=(Key("slow", "breaker"), Slow()))
    thread.start()
    begun.wait(10)
    try:
        assert store.state.transact(KEY, ManualOverride(move="block"))
        assert isinstance(ask(store), Shut)
    finally:
        done.set()
        thread.join()
    assert not store.state._batches  # and the queues go with those who stand in them


def test_what_is_kept_for_years_or_for_ever_is_not_forgotten_after_one(store):
    done, years = Key("target", "operation"), 3 * 31_536_000
    store.keys.transact(done, Take(holder="a", fingerprint="f", lease=60))
    store.keys.transact(done, Finish(holder="a", epoch=1, fingerprint="f", value="1", ttl=years))
    assert store._cold.command("PTTL", store.keys._names(done)[0]) >= years * 1000
    store.state.transact(KEY, ManualOverride(move="block"))
    assert store._hot.command("PTTL", store.state._names(KEY)[0]) == -1  # it has no end


def test_no_password_is_ever_shown():
    store = Redis("redis://user:sEcr3t@127.0.0.1:1/0?password=sEcr3t")
    with pytest.raises(StoreError) as caught:
        store.state.peek(KEY, BREAKER)
    assert "sEcr3t" not in f"{store!r} {store.url} {caught.value}"
    assert caught.value.url == "redis://127.0.0.1:1/0?password=[masked]"
    store.close()
