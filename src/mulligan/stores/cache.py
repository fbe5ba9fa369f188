"""Cached copies of shared states, used while the store is down.

A healthy call must not write, and must not wait for a read if the last one was recent. So each
process keeps a copy (`CachedState`), and reads again when it is older than 50 ms. Without a shared
store the copy is the state itself.

While the store is down, or cannot even be opened, a process continues with a copy of its own, which
begins with what it last saw (`FailOpen`). The store is asked again after a pause, by one caller at
a time, so that a call is held up once, not every call.

A store may come and go within a second, and what it has granted must not be granted again each
time: a breaker has one probe. So the copy is not thrown away when the store is back. What this
process changed meanwhile is merged into the state that the store has by then, as part of the next
transaction. And a caller that asks the copy finds in it what is under way at the store at that
time.
"""

from __future__ import annotations

import os
from collections import deque
from itertools import count
from threading import Lock
from time import monotonic, time
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from ..core.moment import Moment
from ..errors import StoreError, StoreUnwritable
from .base import StatesByKey
from .forks import reset_after_fork

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.ports import State
    from .state_machine import Key, Machine, Operation

__all__ = ("CachedState", "FailOpen", "do_all", "refresh")

S = TypeVar("S")
R = TypeVar("R")

# Longest age of a cached state, in seconds.
_FRESH = 0.05


class CachedState(Generic[S]):
    """One process's view of one state.

    Args:
        machine: What is kept.
        key: Whose state it is.
        shared: Where it is shared; None keeps it in this process. It must not raise: a store that
            can go down belongs behind `FailOpen`.
    """

    def __init__(self, machine: Machine[S], key: Key, shared: State | None = None) -> None:
        self.machine, self.key, self.shared = machine, key, shared
        self.state: S = machine.start
        self._base: S = machine.start  # the store's state, without our own notes
        self._moment = Moment(0.0, 0.0)
        self._seen_at = 0.0
        self._is_stale = True
        self._lock = Lock()
        self._numbers = count(1)
        self.worker = ""
        self.after_fork()
        reset_after_fork(self)

    def after_fork(self) -> None:
        self._lock = Lock()
        # A forked child is another voter and another holder.
        self.worker = f"{os.getpid()}-{os.urandom(4).hex()}"

    @property
    def has_notes(self) -> bool:
        """Whether this process has notes that it has not reported."""
        return self.shared is not None and self.state is not self._base

    @property
    def keep(self) -> float:
        """Seconds for which the state must be remembered, from its last change or look on."""
        return self.machine.keep(self.state, self._moment)

    def name(self) -> str:
        """A name that is unique."""
        return f"{self.worker}/{next(self._numbers)}"

    def look(self, now: float, wall: float) -> tuple[S, Moment]:
        """The state and the store's time, at most 50 ms old. Writes nothing."""
        shared = self.shared
        if shared is None:
            return self.state, Moment(now, wall)
        if not self.is_fresh(now):
            self.saw(*shared.peek(self.key, self.machine), now)
        return self.state, self.store_time(now)

    def saw(self, state: S, moment: Moment, now: float) -> None:
        """The store had `state` at `moment`, which was `now` here."""
        with self._lock:
            if state != self._base:
                self.state = self._base = state
            self._moment, self._seen_at = moment, now
            self._is_stale = False

    def is_fresh(self, now: float) -> bool:
        """Whether `look` needs no round trip."""
        if self.shared is None:
            return True
        return not self._is_stale and 0 <= now - self._seen_at <= _FRESH

    def expire(self) -> None:
        """Make the next `look` read from the store."""
        self._is_stale = True

    def seen(self, now: float) -> tuple[S, Moment]:
        """The state as it was last seen, and what the store's time is by now."""
        return self.state, self.store_time(now)

    def store_time(self, now: float) -> Moment:
        """The time of the store, estimated from when it was last read."""
        passed = max(0.0, now - self._seen_at)
        seen = self._moment
        return Moment(seen.now + passed, seen.wall + passed, seen.era)

    def do(self, operation: Operation[S, R], now: float, wall: float) -> R:
        """Apply `operation` in the store, and cache the new state."""
        result: R = do_all(((self, operation),), now, wall)[0]
        return result

    def apply(self, operation: Operation[S, R], moment: Moment) -> R:
        """Apply `operation` here: the state is not shared."""
        with self._lock:
            self._moment = moment
            self.state, result = operation(self.state, moment)
        return result

    def landed(self, sent: _Applied[S, Any], now: float) -> None:
        """The store has applied `sent`."""
        if sent.moment is None or sent.moment.now < self._moment.now:
            self.expire()  # another thread's operation was applied after it
        else:
            self.saw(sent.after, sent.moment, now)

    def note(self, operation: Operation[S, R], now: float, wall: float) -> R:
        """Apply `operation` to the cached copy only."""
        moment = Moment(now, wall) if self.shared is None else self.store_time(now)
        with self._lock:
            self.state, result = operation(self.state, moment)
            if self.shared is None:
                self._moment = moment
        return result


def do_all(
    steps: Sequence[tuple[CachedState[Any], Operation[Any, Any]]], now: float, wall: float
) -> list[Any]:
    """Apply an operation to each of several states, in one transaction of their store.

    All of them are of one target; those that are not shared are changed at once.
    """
    results: list[Any] = [None] * len(steps)
    sent: list[tuple[int, CachedState[Any], _Applied[Any, Any]]] = []
    shared: State | None = None
    for number, (view, operation) in enumerate(steps):
        if view.shared is None:
            results[number] = view.apply(operation, Moment(now, wall))
        else:
            shared = view.shared
            sent.append((number, view, _Applied(operation)))
    if shared is not None:
        answers = shared.transact_all([(view.key, applied) for _, view, applied in sent])
        for (number, view, applied), answer in zip(sent, answers, strict=True):
            results[number] = answer
            view.landed(applied, now)
    return results


def refresh(views: Sequence[CachedState[Any]], now: float, wall: float) -> Moment:
    """Read those of `views` that are older than 50 ms, in one round trip; the time of their store.

    All of them are of one target in one store; the time is the caller's where they are in none.
    """
    if not views:
        return Moment(now, wall)
    stale = [view for view in views if not view.is_fresh(now)]
    if stale:
        shared = stale[0].shared
        assert shared is not None  # noqa: S101 -- a view that is not shared is never old
        states, moment = shared.peek_all([(view.key, view.machine) for view in stale])
        for view, state in zip(stale, states, strict=True):
            view.saw(state, moment, now)
    return views[0].store_time(now)


class _Applied(Generic[S, R]):
    """An operation that remembers the state it left where it was last applied."""

    __slots__ = ("_operation", "after", "machine", "moment")

    def __init__(self, operation: Operation[S, R]) -> None:
        self._operation, self.machine = operation, operation.machine
        self.after: S = operation.machine.start
        self.moment: Moment | None = None

    def __call__(self, state: S, moment: Moment) -> tuple[S, R]:
        self.after, result = self._operation(state, moment)
        self.moment = moment
        return self.after, result


# What must succeed before a store counts as back: any request, a transaction, or one that changes
# something. A locked file can be read, and a full one takes empty transactions.
_ANYTHING, _TRANSACTION, _WRITE = range(3)

# New copies between two sweeps for copies that can be dropped; at least as many as stay.
_SWEEP = 64


class FailOpen(StatesByKey):
    """A `State` that raises no `StoreError`.

    Args:
        state: The store's.
        on_change: Told when the store goes down, with the error, and when it is back, with None.
        pause: Seconds before a store that is down is asked again.
    """

    def __init__(
        self,
        state: State,
        on_change: Callable[[StoreError | None], None] = lambda _: None,
        pause: float = 1.0,
    ) -> None:
        self._state, self._on_change, self._pause = state, on_change, pause
        self._copies: dict[Key, _Copy[Any]] = {}
        self._until_sweep = _SWEEP
        self._clock = (Moment(monotonic(), time()), monotonic())
        self._is_down = False
        self._proof = _ANYTHING
        self._ask_again_at = 0.0
        self._applied = 0
        # Pending calls of `on_change`, in order, and whether a thread is making them.
        self._untold: deque[StoreError | None] = deque()
        self._is_telling = False
        self._lock = Lock()
        reset_after_fork(self)

    def after_fork(self) -> None:
        self._lock = Lock()
        self._untold.clear()  # the parent's threads make these calls
        self._is_telling = False
        for copy in self._copies.values():
            copy.under_way.clear()  # by the parent's threads

    def transact_all(self, steps: Sequence[tuple[Key, Operation[Any, Any]]]) -> list[Any]:
        if self._is_resting():
            with self._lock:
                moment = self._moment()
                return [self._copy(key, each.machine).do(each, moment) for key, each in steps]
        return self._asked(steps)

    def peek_all(self, wanted: Sequence[tuple[Key, Machine[Any]]]) -> tuple[list[Any], Moment]:
        if self._is_resting():
            return self._seen(wanted)
        unsent = self._unsent(wanted)
        if unsent:
            self._asked([(key, _Nothing(machine)) for key, machine in unsent])
        if len(unsent) == len(wanted) or (unsent and self._is_resting()):
            return self._seen(wanted)
        try:
            states, moment = self._state.peek_all(wanted)
        except StoreError as trouble:
            self._went_down(trouble, _ANYTHING)
            return self._seen(wanted)
        self._answers(_ANYTHING)
        with self._lock:
            self._clock = moment, monotonic()
            known = [
                self._copy(key, machine).seen(state, moment)
                for (key, machine), state in zip(wanted, states, strict=True)
            ]
            return known, moment

    def known(self, machine: Machine[S]) -> tuple[Key, ...]:
        return self._state.known(machine)

    # Asking the store

    def _asked(self, steps: Sequence[tuple[Key, Operation[Any, Any]]]) -> list[Any]:
        """The store's answers to operations; those of the copies, if the store is down."""
        with self._lock:
            sent: list[_Sent[Any, Any]] = []
            for key, operation in steps:
                each = _Sent(self, self._copy(key, operation.machine), operation)
                each.copy.under_way[each] = None  # a copy that is under way is not forgotten
                sent.append(each)
        try:
            results = self._state.transact_all(
                [(key, each) for (key, _), each in zip(steps, sent, strict=True)]
            )
        except StoreError as trouble:
            is_full = isinstance(trouble, StoreUnwritable)
            self._went_down(trouble, _WRITE if is_full else _TRANSACTION)
            self._fold(sent)
            return [each.answer() for each in sent]
        except BaseException:
            self._fold(sent)
            raise
        with self._lock:
            for each in sent:
                del each.copy.under_way[each]
                if each.moment is not None:
                    self._clock = each.moment, monotonic()
                    each.copy.landed(each)
        has_written = any(each.has_written for each in sent)
        self._answers(_WRITE if has_written else _TRANSACTION)
        return list(results)

    def _fold(self, sent: Sequence[_Sent[Any, Any]]) -> None:
        """Apply to the copies what the store may not have applied."""
        with self._lock:
            for each in sent:
                each.copy.fold(self._moment())
                del each.copy.under_way[each]

    def apply(self, sent: _Sent[S, R], theirs: S, moment: Moment) -> tuple[S, R]:
        """Apply what was sent to the store's state, with all that the store does not know yet."""
        with self._lock:
            self._applied += 1
            sent.order = moment.now, self._applied
            sent.moment, sent.changes = moment, sent.copy.changes
            after = sent.copy.merged(theirs, moment)
            if sent.is_done_here:
                result = sent.answer()
            else:
                after, result = sent.operation(after, moment)
            sent.after, sent.has_written = after, after is not theirs
        return after, result

    # The copy

    def _copy(self, key: Key, machine: Machine[S]) -> _Copy[S]:
        copy = self._copies.get(key)
        if copy is None:
            self._until_sweep -= 1
            if self._until_sweep <= 0:
                moment = self._moment()
                for old, each in list(self._copies.items()):
                    if each.is_forgettable(moment):
                        del self._copies[old]
                self._until_sweep = max(_SWEEP, len(self._copies))
            copy = self._copies[key] = _Copy(machine)
        return copy

    def _seen(self, wanted: Sequence[tuple[Key, Machine[Any]]]) -> tuple[list[Any], Moment]:
        with self._lock:
            return [self._copy(*each).state for each in wanted], self._moment()

    def _unsent(self, wanted: Sequence[tuple[Key, Machine[Any]]]) -> list[tuple[Key, Machine[Any]]]:
        """Those whose read must be a write: the store lacks changes of ours, or refused writes."""
        if self._is_down and self._proof > _ANYTHING:
            return list(wanted)
        with self._lock:
            copies = [(each, self._copy(*each)) for each in wanted]
            return [each for each, copy in copies if copy.state is not copy.theirs]

    def _moment(self) -> Moment:
        """The store's time, estimated without asking it."""
        moment, then = self._clock
        passed = monotonic() - then
        return Moment(moment.now + passed, moment.wall + passed, moment.era)

    # Down and back

    def _is_resting(self) -> bool:
        """Whether it is too early to ask the store again, or another thread is asking."""
        if not self._is_down:
            return False
        with self._lock:
            now = monotonic()
            if now < self._ask_again_at:
                return True
            self._ask_again_at = now + self._pause
        return False

    def _went_down(self, trouble: StoreError, proof: int) -> None:
        with self._lock:
            self._ask_again_at = monotonic() + self._pause
            was_down, self._is_down = self._is_down, True
            self._proof = max(self._proof, proof) if was_down else proof
            if not was_down:
                self._untold.append(trouble)
        self._tell()

    def _answers(self, proof: int) -> None:
        """The store did what `proof` names: it may be back."""
        with self._lock:
            is_back = self._is_down and proof >= self._proof
            if is_back:
                self._is_down = False
                self._untold.append(None)
        self._tell()

    def _tell(self) -> None:
        """Call `on_change` in order: one thread does, and the others do not wait.

        The lock is not held meanwhile: a listener may ask this state.
        """
        while self._untold:
            with self._lock:
                if self._is_telling or not self._untold:
                    return
                self._is_telling = True
                change = self._untold.popleft()
            try:
                self._on_change(change)
            finally:
                self._is_telling = False


class _Copy(Generic[S]):
    """One state as this process knows it. Always used under the lock of its owner.

    Attributes:
        theirs: What the store had when it was last heard of.
        state: The same, with what this process has changed and the store may not know.
        changes: How often this process has changed it by itself.
        order: When the store had `theirs`: its time, and a number for what has the same time.
        under_way: What has been sent to the store and not been answered, in order.
    """

    __slots__ = ("changes", "machine", "order", "state", "theirs", "under_way")

    def __init__(self, machine: Machine[S]) -> None:
        self.machine = machine
        self.theirs: S = machine.start
        self.state: S = machine.start
        self.changes = 0
        self.order = (0.0, 0)
        self.under_way: dict[_Sent[S, Any], None] = {}

    def is_forgettable(self, moment: Moment) -> bool:
        """Whether the store knows all of it, and none of it matters if the store goes down."""
        if self.under_way or self.state is not self.theirs:
            return False
        machine, state = self.machine, self.state
        return state == machine.start or moment.now - self.order[0] > machine.keep(state, moment)

    def do(self, operation: Operation[S, R], moment: Moment) -> R:
        """Apply `operation` here, after all that may have been applied at the store."""
        self.fold(moment)
        self.state, result = self._after(operation, moment)
        return result

    def fold(self, moment: Moment) -> None:
        """Apply here what is under way: first what the store may have, in its order."""
        waiting = [sent for sent in self.under_way if not sent.is_done_here]
        for sent in sorted(waiting, key=lambda sent: (sent.moment is None, sent.order)):
            sent.is_done_here = True
            try:
                self.state, sent.result = self._after(sent.operation, moment)
            except Exception as error:  # noqa: BLE001 -- raised where the operation was asked for
                sent.error = error

    def _after(self, operation: Operation[S, R], moment: Moment) -> tuple[S, R]:
        after, result = operation(self.state, moment)
        if after is not self.state:
            self.changes += 1
        return after, result

    def merged(self, theirs: S, moment: Moment) -> S:
        """What the store has, with what this process has changed since it last heard of it."""
        if self.state is self.theirs or theirs == self.state:
            return theirs
        if theirs == self.theirs:  # and no other process has changed it
            return self.state
        joined = self.machine.join(self.theirs, self.state, theirs, moment)
        return theirs if joined == theirs else joined

    def seen(self, theirs: S, moment: Moment) -> S:
        """The state, now that the store says that it has `theirs`."""
        merged, order = self.merged(theirs, moment), (moment.now, 0)
        if order >= self.order or moment.now < self.order[0] - _JUMP:
            self.state, self.theirs, self.order = merged, theirs, order
        return merged

    def landed(self, sent: _Sent[S, Any]) -> None:
        """The store has what `sent` left, unless that is old news."""
        if sent.order < self.order or sent.changes != self.changes:
            return
        self.state = self.theirs = sent.after
        self.order = sent.order


# A store's clock that goes back by more seconds than this was set; else an answer came late.
_JUMP = 5.0


class _Sent(Generic[S, R]):
    """An operation on its way to the store."""

    __slots__ = (
        *("_owner", "after", "changes", "copy", "error", "has_written", "is_done_here"),
        *("machine", "moment", "operation", "order", "result"),
    )

    def __init__(self, owner: FailOpen, copy: _Copy[S], operation: Operation[S, R]) -> None:
        self._owner, self.copy, self.operation = owner, copy, operation
        self.machine = operation.machine
        # In the copy, where a caller needed to know before the store had answered:
        self.is_done_here = False
        self.result: Any = None
        self.error: Exception | None = None
        # At the store, when it was last applied there:
        self.after: Any = None
        self.has_written = False
        self.moment: Moment | None = None
        self.order, self.changes = (0.0, 0), 0

    def __call__(self, state: S, moment: Moment) -> tuple[S, R]:
        return self._owner.apply(self, state, moment)

    def answer(self) -> R:
        """Its answer from the copy."""
        if self.error is not None:
            raise self.error
        result: R = self.result
        return result


class _Nothing(Generic[S]):
    """An empty operation, which carries pending changes to the store."""

    def __init__(self, machine: Machine[S]) -> None:
        self.machine = machine

    def __call__(self, state: S, moment: Moment) -> tuple[S, None]:  # noqa: ARG002 -- an operation's signature
        return state, None
