"""StoreListener: events counted in a store, for `mulligan stats` and `mulligan dashboard`."""

from __future__ import annotations

import json
from collections import defaultdict
from contextlib import suppress
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..core.events import Ended
from ..errors import StoreError
from ..shared.target import STORE, store_for
from ..stores.state_machine import Key
from .background import QueuedListener
from .figures import FIGURES, HOUR, MINUTE, STORIES, AddCounts, AddStories, Bucket, Tally
from .metrics import BoundedLabels, changes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.events import Event
    from ..core.ports import Store
    from ..stores.state_machine import Operation

__all__ = ("StoreListener", "figures", "figures_store", "stories")

# The name of what has no target, and the parts of a target's key.
NO_TARGET = "(no target)"
_PART, _STORIES_PART = "figures", "stories"

# Seconds that events wait for others, to be written together.
_LINGER = 1.0

# Minutes and hours of targets that wait for a store that is down.
_WAITING = 5_000

# A story longer than this, in characters of JSON, keeps its first and last attempts.
_LONG = 4_000

# Spans up to this are read by the minute, longer ones by the hour.
_BY_MINUTE = 2 * HOUR


def figures_store(store: Store | str | None = None) -> Store:
    """`store`; else that of ``MULLIGAN_STORE``, else a file of this user's.

    Not the process's memory, unless asked for: no other process could read what is there.
    """
    import os

    from ..calls.context import ambient_world

    world = ambient_world.get()
    if store is None and not os.environ.get(STORE) and (world is None or world.store is None):
        from ..stores.home import home

        store = f"sqlite:{home() / 'mulligan.db'}"
    return store_for(store)


class StoreListener(QueuedListener):
    """A listener that counts events in a store, by target, minute and hour, and keeps stories.

    A thread of its own writes once a second at most, one row for each target, so that neither the
    store's speed nor its absence holds up a call. Of each target the 20 newest stories are kept.

    Args:
        store: A store or its address. Default: ``MULLIGAN_STORE``, else a file of this user's.
        capacity: How many events may wait to be counted; more are dropped, see `dropped`.
        targets: How many targets are told apart; the others are counted as ``other``.
        successes: Whether to count calls that succeed at once, too.
    """

    def __init__(
        self,
        store: Store | str | None = None,
        *,
        capacity: int = 10_000,
        targets: int = 1_000,
        successes: bool = False,
    ) -> None:
        self.store, self.successes = figures_store(store), successes
        self._names = BoundedLabels(targets)
        self._waiting: dict[tuple[str, int, int], Tally] = {}
        self._stories: dict[str, list[str]] = defaultdict(list)
        super().__init__("StoreListener", capacity=capacity, linger=_LINGER)

    def deliver(self, events: list[Event]) -> None:
        """Count the events, and write the counts and stories to the store."""
        for event in events:
            self._sort(event)
        # What a store that is down does not take is kept, and written with the next events.
        for key in sorted(self._waiting):
            target, length, number = key
            place = Key(target, f"{_PART}/{length}/{number}")
            if not self._written(place, AddCounts(length, self._waiting[key].counts)):
                break
            del self._waiting[key]
        for target, texts in list(self._stories.items()):
            if not self._written(Key(target, _STORIES_PART), AddStories(tuple(texts))):
                break
            del self._stories[target]

    def _sort(self, event: Event) -> None:
        target = self._names(event.target) or NO_TARGET
        for length in (MINUTE, HOUR):
            key = (target, length, int(event.at // length))
            if key not in self._waiting and len(self._waiting) >= _WAITING:
                self._lost(1, "the store has been down for too long")
                return
            tally = self._waiting.setdefault(key, Tally())
            for change in changes(event):
                tally.count(change)
        if isinstance(event, Ended) and not event.is_passed_on:
            kept = self._stories[target]
            kept.append(_packed(event))
            del kept[:-20]

    def _written(self, key: Key, step: Operation[Any, None]) -> bool:
        try:
            self.store.state.transact(key, step)
        except StoreError as trouble:
            self._lost(0, f"{trouble}; the counts are kept and written later")
            return False
        return True


def _packed(event: Ended) -> str:
    """A story as JSON, cut in the middle if it is long."""
    tale = {"at": event.at, "request_id": event.request_id, **asdict(event.story)}
    tries = list(tale["tries"])
    text = json.dumps({**tale, "tries": tries})
    while len(text) > _LONG and len(tries) > 2:
        del tries[len(tries) // 2]
        text = json.dumps({**tale, "tries": tries})
    return text


def figures(
    store: Store, *, since: float, now: float, target: str | None = None
) -> tuple[Bucket, ...]:
    """The figures of the last `since` seconds, the oldest first.

    Spans of up to two hours come by the minute, longer ones by the hour.

    Raises:
        StoreDown: The store cannot be read.
    """
    length = MINUTE if since <= _BY_MINUTE else HOUR
    first, last = int((now - since) // length), int(now // length)
    found = []
    for key, number in _places(store.state.known(FIGURES), length):
        if first < number <= last and target in (None, key.target):
            state, _ = store.state.peek(key, FIGURES)
            found.append(Bucket(key.target, number * length, length, state.counts))
    return tuple(sorted(found, key=lambda each: (each.at, each.target)))


def _places(keys: Iterable[Key], length: int) -> Iterable[tuple[Key, int]]:
    for key in keys:
        part, _, rest = key.part.partition("/")
        span, _, number = rest.partition("/")
        if part == _PART and span == str(length) and number.isdecimal():
            yield key, int(number)


def stories(store: Store) -> list[dict[str, Any]]:
    """The stories that are kept, the newest first; those that cannot be read are left out.

    Raises:
        StoreDown: The store cannot be read.
    """
    found = []
    for key in store.state.known(STORIES):
        state, _ = store.state.peek(key, STORIES)
        for text in state.kept:
            with suppress(ValueError):
                tale = json.loads(text)
                if isinstance(tale, dict):
                    found.append(tale)
    return sorted(found, key=lambda each: -float(each.get("at") or 0))
