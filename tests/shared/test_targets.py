from __future__ import annotations

import gc
from typing import Any
from weakref import ref

import pytest

import mulligan
from mulligan.errors import SettingError
from mulligan.shared.breaker import BREAKER
from mulligan.shared.target import store_for
from mulligan.shared.targets import forget
from mulligan.stores.memory import Memory
from mulligan.stores.state_machine import Key
from mulligan.testing import Scripted, status_error, virtual_time


@pytest.fixture(autouse=True)
def _no_environment(monkeypatch):
    monkeypatch.delenv("MULLIGAN_STORE", raising=False)


def test_a_process_has_one_memory():
    assert isinstance(store_for(), Memory)
    assert store_for() is store_for("memory:")


def test_the_environment_names_the_store_that_nobody_names(monkeypatch, tmp_path):
    monkeypatch.setenv("MULLIGAN_STORE", f"sqlite:{tmp_path}/state.db")
    assert store_for().url.startswith("sqlite:")
    assert isinstance(store_for("memory:"), Memory)


def test_a_store_is_itself():
    memory = Memory()
    assert store_for(memory) is memory


def test_virtual_time_begins_with_an_empty_memory_of_its_own():
    with virtual_time() as clock:
        mine = store_for()
        assert mine is not store_for("memory:")
        assert mine is store_for()
        clock.advance(5)
        assert mine.state.peek(Key("x", "breaker"), BREAKER)[1].now == clock.now()
    with virtual_time():
        assert store_for() is not mine


def test_what_is_no_store_is_refused_with_what_one_looks_like():
    with pytest.raises(
        SettingError, match=r"^store needs an address such as sqlite:PATH .* got 7$"
    ):
        store_for(7)  # type: ignore[arg-type]


def test_a_guard_goes_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.setenv("MULLIGAN_STORE", f"sqlite:{tmp_path}/state.db")
    guard = mulligan.Guard("acme")
    assert guard.call(Scripted("well")) == "well"
    assert (tmp_path / "state.db").exists()
    assert not guard._engine.shared.is_calm  # others may have changed it: every call looks


def test_the_environment_wins_over_the_policy_and_the_option_over_both(monkeypatch, tmp_path):
    policy = mulligan.Policy(store=f"sqlite:{tmp_path}/file.db", rules={})
    named: Any = {"policy": policy, "store": f"sqlite:{tmp_path}/option.db"}
    urls = [_url(mulligan.Guard("acme", policy=policy))]
    monkeypatch.setenv("MULLIGAN_STORE", f"sqlite:{tmp_path}/environment.db")
    urls += [_url(mulligan.Guard("acme", policy=policy)), _url(mulligan.Guard("acme", **named))]
    assert [url.rpartition("/")[2] for url in urls] == ["file.db", "environment.db", "option.db"]


def _url(guard):
    return guard._engine.shared.state.home.url


def test_what_is_shared_in_memory_is_forgotten_between_tests():
    guard = mulligan.Guard(
        "acme", effects="read", attempts=1, breaker=mulligan.Breaker(failures=1), when_open="fail"
    )
    with pytest.raises(Exception, match="status 503"):
        guard.call(Scripted(status_error(503)))
    with pytest.raises(mulligan.CircuitOpen):
        guard.call(Scripted("never"))
    forget()
    assert guard.call(Scripted("well")) == "well"


def test_a_world_that_has_ended_leaves_nothing_behind():
    guard = mulligan.Guard("acme", effects="read")
    with virtual_time() as clock:
        guard.call(Scripted(status_error(503), "well"))
        memory = ref(store_for())
    del clock
    gc.collect()
    assert memory() is None
