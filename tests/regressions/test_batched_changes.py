"""Changes of breaker and retry tokens that are applied in one transaction.

What happened when they were first batched: making the copy of one state could drop
the copy of another in the same batch, and a failure that was told while the store was down was not
counted. A call that was admitted while the store was down, by a gate of this process, told its end
to the shared gate once the store was back, which then counted fewer calls than were under way.
And each guarded stream was asked for its `response`, which may raise.
"""

from __future__ import annotations

from math import inf

import pytest

import mulligan
from mulligan.core.moment import Moment
from mulligan.core.shared_settings import Breaker, Gate, Tokens
from mulligan.errors import StoreDown
from mulligan.shared import targets
from mulligan.shared.admission import TargetCall
from mulligan.shared.breaker import BREAKER, TellBreaker
from mulligan.shared.retry_tokens import TOKENS, Reserve
from mulligan.shared.targets import TargetSettings, TargetState, targets_of
from mulligan.stores.cache import FailOpen
from mulligan.stores.memory import MemoryState
from mulligan.stores.sqlite.store import Sqlite
from mulligan.stores.state_machine import Key

FAILED = TellBreaker(permit="", generation=0, result="failure", worker="w", settings=Breaker())


def reserve(name):
    return Reserve(id=name, cost=5, lease=600, tokens=Tokens())


class Unreachable(MemoryState):
    """A state that goes down."""

    is_down = False

    def transact_all(self, steps):
        if self.is_down:
            raise StoreDown("test:", "gone")
        return super().transact_all(steps)

    def peek_all(self, wanted):
        if self.is_down:
            raise StoreDown("test:", "gone")
        return super().peek_all(wanted)


@pytest.mark.parametrize("others", range(56, 66))
def test_a_failure_told_with_tokens_while_the_store_is_down_is_counted(others):
    state = Unreachable(lambda: Moment(100.0, 100.0))
    guarded = FailOpen(state, pause=60)
    for number in range(others):  # copies that nothing has changed are forgotten now and then
        guarded.peek(Key(f"other {number}", "breaker"), BREAKER)
    state.is_down = True
    breaker, tokens = Key("api", "breaker"), Key("api", "tokens")
    guarded.transact_all([(breaker, FAILED), (tokens, reserve("a"))])
    assert guarded.peek(breaker, BREAKER)[0].streak == 1
    assert guarded.peek(tokens, TOKENS)[0].spent == 5


def test_a_call_tells_its_end_to_the_gate_that_admitted_it(monkeypatch, tmp_path):
    monkeypatch.setattr(targets, "_PAUSE", 0.0)
    store = Sqlite(str(tmp_path / "state.db"))
    scoped = store.scoped

    def unreachable(_name):
        raise StoreDown("test:", "gone")

    monkeypatch.setattr(store, "scoped", unreachable)
    home = targets_of(store)
    target = home.get("api", "account")
    parts = target.state = TargetState(target, home)
    settings = TargetSettings(Breaker(), Gate(), Tokens())
    parts.join(settings)

    def entered():
        call = TargetCall(parts, settings, waits=True, deadline_at=inf)
        return call, call.enter(1, now=1.0, wall=1.0)

    old, _ = entered()
    local = old.gate
    monkeypatch.setattr(store, "scoped", scoped)
    new, _ = entered()
    assert new.gate is not local
    old.ended("succeeded", None, (), None, now=2.0, wall=2.0, was_cut=False)
    assert len(new.gate._under_way) == 1
    assert not local._under_way


def test_a_stream_is_not_asked_for_a_response_that_no_guard_observes():
    class Stream:
        def __iter__(self):
            return iter([1, 2, 3])

        @property
        def response(self):
            raise RuntimeError("not available before the end")

    assert list(mulligan.Guard("api").stream(Stream)) == [1, 2, 3]
