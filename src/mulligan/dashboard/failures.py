"""Failures for the page: kinds over time, figures, dead letters and stories."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ..core.redaction import clean
from ..telemetry.figures import Tally, summary
from ..telemetry.store import figures, stories
from .runs import run_failures, run_figures

if TYPE_CHECKING:
    from ..core.ports import Store
    from ..dead_letters.browse import DeadLetters
    from .runs import RunIndex

__all__ = ("dead_letters_of", "failures_of", "stories_of")

# How many columns a chart has, so that each is wide enough to be seen on a phone.
_COLUMNS = 30

# The most letters and stories that a page shows.
_MOST = 100


def failures_of(
    store: Store | None, index: RunIndex, *, since: float, now: float
) -> dict[str, Any]:
    """The figures of the last `since` seconds, and failures by kind over that time.

    Raises:
        StoreDown: The store cannot be read.
    """
    buckets = () if store is None else figures(store, since=since, now=now)
    width = since / _COLUMNS
    first = now - since
    columns: list[Counter[str]] = [Counter() for _ in range(_COLUMNS)]
    requests: dict[str, list[list[int]]] = {}

    def put(at: float, kinds: Counter[str]) -> None:
        place = int((at - first) / width)
        columns[min(max(place, 0), _COLUMNS - 1)] += kinds

    for bucket in buckets:
        tally = Tally(bucket.counts)
        put(bucket.at + bucket.length / 2, Counter(tally.by_label("retry_failures_total")))
        of_target = requests.setdefault(bucket.target, [[0, 0] for _ in range(_COLUMNS)])
        place = min(max(int((bucket.at + bucket.length / 2 - first) / width), 0), _COLUMNS - 1)
        of_target[place][0] += int(tally.number("retry_failures_total"))
        of_target[place][1] += int(tally.number("retry_held_total"))
    for at, kind in run_failures(index, since=first):
        put(at, Counter({kind: 1}))
    return {
        "from": first,
        "to": now,
        "columns": [dict(each) for each in columns],
        "targets": {clean(name, 200): numbers for name, numbers in requests.items()},
        "calls": summary(buckets),
        "runs": run_figures(index, since=first),
    }


def stories_of(store: Store | None) -> list[dict[str, Any]]:
    """The newest stories; every word in them was cleaned and masked when it was written."""
    return [] if store is None else stories(store)[:_MOST]


def dead_letters_of(letters: DeadLetters) -> list[dict[str, Any]]:
    """The newest dead letters that are not done with."""
    found = []
    for record in reversed(letters.all()):
        letter = record.letter
        if record.state == "replayed":
            continue
        found.append(
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
        )
        if len(found) == _MOST:
            break
    return found
