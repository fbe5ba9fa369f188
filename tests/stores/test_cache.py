"""What one process sees of a state after it has changed it."""

from __future__ import annotations

from mulligan.core.moment import Moment
from mulligan.shared.retry_tokens import TOKENS, Reserve, Tokens
from mulligan.stores.cache import CachedState
from mulligan.stores.memory import MemoryState
from mulligan.stores.state_machine import Key

KEY = Key("api", "tokens")


class Counted(MemoryState):
    """A store that counts how often it is read."""

    def __init__(self):
        self.now, self.peeks = 100.0, 0
        super().__init__(lambda: Moment(self.now, self.now))

    def peek_all(self, wanted):
        self.peeks += 1
        return super().peek_all(wanted)


def reserve(name):
    return Reserve(id=name, cost=1.0, lease=60.0, tokens=Tokens(), funds=0.0)


def test_what_a_transaction_left_is_seen_without_another_read():
    store = Counted()
    seen = CachedState(TOKENS, KEY, store)
    seen.do(reserve("one"), 5.0, 5.0)
    state, moment = seen.look(5.0, 5.0)
    assert [each.id for each in state.reserved] == ["one"]
    assert moment == Moment(100.0, 100.0)
    assert store.peeks == 0
    seen.look(5.1, 5.1)
    assert store.peeks == 1


def test_an_older_transaction_that_returns_late_does_not_hide_a_newer_one():
    store = Counted()
    seen = CachedState(TOKENS, KEY, store)

    seen.do(reserve("newer"), 5.0, 5.0)
    store.now -= 10  # as if it had been applied before
    seen.do(reserve("older"), 5.0, 5.0)
    seen.look(5.0, 5.0)
    assert store.peeks == 1
