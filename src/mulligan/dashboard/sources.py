"""What the page shows: runs, targets, failures, stories and dead letters, as plain data.

The server and the feed share one `Sources`.
"""

from __future__ import annotations

import time
from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING, Any

from ..core.redaction import clean
from ..errors import MulliganError
from ..run.attempt.account_limits import ACCOUNT
from ..run.attempt.account_limits_client import PART
from ..shared.snapshot import snapshots
from ..telemetry.figures import Tally, summary
from ..telemetry.store import figures, stories
from .runs import run_failures, run_figures

if TYPE_CHECKING:
    from collections.abc import Iterable

    from ..core.ports import Store
    from ..dead_letters.browse import DeadLetters
    from .runs import RunIndex

__all__ = ("Sources", "failures_of")

# Rows that are told in one message; if more have changed, pages load them again.
_ROWS = 50

# How many columns a chart has, so that each is wide enough to be seen on a phone.
_COLUMNS = 30

# The most letters and stories that a page shows.
_MOST = 100

# Seconds for which figures are remembered: they are read from every minute of every target.
_REMEMBERED = 3.0


class Sources:
    """Reads what the page shows; of `guards`, `counts` and `letters` what is known.

    Guards share their state in the store `guards`, and count in the store `counts`.
    """

    def __init__(
        self,
        index: RunIndex,
        *,
        guards: Store | None = None,
        counts: Store | None = None,
        letters: DeadLetters | None = None,
    ) -> None:
        self.index, self.now = index, time.time
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
                found["targets"] = _targets_of(self._guards, self.now())
            own = self.index.runs.store()
            stores = {each.url: each for each in (self._guards, own) if each is not None}
            found["limits"] = _limits_of_runs(stores.values())
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
            error = ""
            try:
                found = failures_of(self._counts, self.index, since=since, now=self.now())
            except MulliganError as trouble:
                found = failures_of(None, self.index, since=since, now=self.now())
                error = str(trouble)
            found |= {"error": error, "is_counted": self._counts is not None}
            fresh = self._figures.items()
            self._figures = {k: v for k, v in fresh if self.now() - v[0] < _REMEMBERED}
            self._figures[since] = self.now(), found
            return found

    def stories(self) -> list[dict[str, Any]]:
        """The newest stories; every word in them was cleaned and masked when it was written."""
        try:
            return [] if self._counts is None else stories(self._counts)[:_MOST]
        except MulliganError:
            return []

    def letters(self) -> list[dict[str, Any]]:
        """The newest dead letters that were not replayed."""
        try:
            known = () if self._letters is None else self._letters.all()
        except MulliganError:
            return []
        found = [each for each in reversed(known) if each.state != "replayed"]
        return [
            {
                "id": letter.id,
                "at": letter.at,
                "target": letter.target,
                "function": letter.name or letter.function,
                "state": record.state,
                "because": letter.because,
                "kind": letter.kind,
                "message": letter.message,
                "attempts": letter.attempts,
                "unfit": letter.unfit,
            }
            for record in found[:_MOST]
            for letter in [record.letter]
        ]


def failures_of(
    store: Store | None, index: RunIndex, *, since: float, now: float
) -> dict[str, Any]:
    """The figures of the last `since` seconds, and failures by kind over that time.

    Raises:
        StoreDown: The store cannot be read.
    """
    buckets = () if store is None else figures(store, since=since, now=now)
    first = now - since
    columns: list[Counter[str]] = [Counter() for _ in range(_COLUMNS)]
    requests: dict[str, list[list[int]]] = {}

    def column(at: float) -> int:
        return min(max(int((at - first) * _COLUMNS / since), 0), _COLUMNS - 1)

    for bucket in buckets:
        tally, at = Tally(bucket.counts), column(bucket.at + bucket.length / 2)
        columns[at].update(tally.by_label("retry_failures_total"))
        of_target = requests.setdefault(bucket.target, [[0, 0] for _ in range(_COLUMNS)])
        of_target[at][0] += int(tally.number("retry_failures_total"))
        of_target[at][1] += int(tally.number("retry_held_total"))
    for failed_at, kind in run_failures(index, since=first):
        columns[column(failed_at)][kind] += 1
    return {
        "from": first,
        "to": now,
        "columns": [dict(each) for each in columns],
        "targets": {clean(name, 200): numbers for name, numbers in requests.items()},
        "calls": summary(buckets),
        "runs": run_figures(index, since=first),
    }


def _targets_of(store: Store, now: float) -> list[dict[str, Any]]:
    """The targets that guards share, with absolute times: a page counts down by itself."""
    found = []
    for row in snapshots(store):
        breaker, gate = row["breaker"], row["gate"]
        found.append(
            {
                "target": clean(row["target"], 200),
                "name": row["target"],
                "scope": row["scope"],
                "breaker": breaker["state"],
                "breaker_until": _at(breaker["for"], now),
                "failures": breaker["failures"],
                "gate": gate["state"],
                "gate_until": _at(gate["for"], now),
                "because": clean(breaker["because"] or gate["because"]),
                "limits": [
                    {
                        "dimension": clean(each["dimension"], 40),
                        "remaining": each["remaining"],
                        "limit": each["limit"],
                        "reset_at": _at(each["reset_in"], now),
                    }
                    for each in gate["limits"]
                ],
                "tokens_left": row["tokens"]["left"],
                "tokens_spent": row["tokens"]["spent"],
                "waiting_retries": row["waiting"]["retries"],
                "calls": row["waiting"]["permits"],
            }
        )
    return found


def _limits_of_runs(stores: Iterable[Store]) -> list[dict[str, Any]]:
    """The limits that runs of this user have hit, and what was blocked or allowed for them."""
    found = []
    for store in stores:
        for key in store.state.known(ACCOUNT):
            if key.part != PART:
                continue
            state, moment = store.state.peek(key, ACCOUNT)
            if hand := state.ordered(moment):
                due = state.hand_until
                found.append(
                    {
                        "name": key.target,
                        "label": clean(key.target, 100),
                        "hand": hand,
                        "until": None if due is None else moment.wall + due.left(moment),
                        "because": clean(state.because),
                    }
                )
            found += [
                {
                    "name": key.target,
                    "label": clean(f"{key.target}/{each.model}" if each.model else key.target, 100),
                    "hand": "",
                    "account": clean(state.label, 80),
                    "until": max(each.resets_at or 0.0, moment.wall + each.look.left(moment)),
                    "because": clean(each.because),
                    "program": clean(each.program, 40),
                    "run": each.run,
                }
                for each in state.limits
            ]
    return sorted(found, key=lambda each: (each["label"], each["hand"]))


def _at(seconds: float | None, now: float) -> float | None:
    return None if seconds is None else round(now + seconds, 1)
