"""What the page shows, read from the stores: one object that the server and the feed share."""

from __future__ import annotations

import time
from threading import Lock
from typing import TYPE_CHECKING, Any

from ..errors import MulliganError
from .failures import dead_letters_of, failures_of, stories_of
from .targets import limits_of_runs, targets_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.ports import Store
    from ..dead_letters.browse import DeadLetters
    from .runs import RunIndex

__all__ = ("Sources",)

# Rows that are told in one message; if more have changed, pages load them again.
_ROWS = 50

# Seconds for which figures are remembered: they are read from every minute of every target.
_REMEMBERED = 3.0


class Sources:
    """Runs, targets and failures.

    Args:
        index: The runs.
        guards: The store that guards share; None if none is known.
        counts: The store that guards count in; None if none is known.
        letters: The dead letters; None if none were written.
        now: Tells the time, in epoch seconds.
    """

    def __init__(
        self,
        index: RunIndex,
        *,
        guards: Store | None = None,
        counts: Store | None = None,
        letters: DeadLetters | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.index, self.now = index, now
        self._guards, self._counts, self._letters = guards, counts, letters
        self._lock = Lock()
        self._figures: dict[float, tuple[float, dict[str, Any]]] = {}

    def refresh(self) -> dict[str, Any] | None:
        """What has changed among the runs since the last look; None for nothing."""
        was_whole = self.index.is_whole
        changed = self.index.refresh()
        if not changed and was_whole:
            return None
        rows = [self.index.row(each) for each in changed[:_ROWS] if each in self.index]
        return {
            "rows": rows,
            "gone": [each for each in changed if each not in self.index],
            "is_more": len(changed) > _ROWS,
            "counts": self.index.counts(),
            "is_whole": self.index.is_whole,
        }

    def targets(self) -> dict[str, Any]:
        """Targets of guards and limits of runs; what cannot be read is said so."""
        found: dict[str, Any] = {"targets": [], "limits": [], "error": ""}
        try:
            if self._guards is not None:
                found["targets"] = targets_of(self._guards, self.now())
            own = self.index.runs.store()
            stores = {each.url: each for each in (self._guards, own) if each is not None}
            found["limits"] = limits_of_runs(stores.values())
        except MulliganError as trouble:
            found["error"] = str(trouble)
        found["has_store"] = self._guards is not None
        return found

    def failures(self, since: float) -> dict[str, Any]:
        """Figures and failures over time."""
        with self._lock:
            at, known = self._figures.get(since, (float("-inf"), {}))
            if self.now() - at < _REMEMBERED:
                return known
            try:
                found = failures_of(self._counts, self.index, since=since, now=self.now())
                found["error"] = ""
            except MulliganError as trouble:
                found = failures_of(None, self.index, since=since, now=self.now())
                found["error"] = str(trouble)
            found["is_counted"] = self._counts is not None
            fresh = self._figures.items()
            self._figures = {k: v for k, v in fresh if self.now() - v[0] < _REMEMBERED}
            self._figures[since] = self.now(), found
            return found

    def stories(self) -> list[dict[str, Any]]:
        try:
            return stories_of(self._counts)
        except MulliganError:
            return []

    def letters(self) -> list[dict[str, Any]]:
        try:
            return [] if self._letters is None else dead_letters_of(self._letters)
        except MulliganError:
            return []
