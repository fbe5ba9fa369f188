from __future__ import annotations

import pytest

from mulligan.api.shared import store_for
from mulligan.core.breaker import BREAKER
from mulligan.core.machine import Key
from mulligan.errors import SettingError
from mulligan.stores.memory import Memory
from mulligan.testing import virtual_time


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
