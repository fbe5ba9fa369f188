"""Failures of calls and runs over time, for the page and for `mulligan stats`."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from ..core.redaction import clean
from ..telemetry.figures import Tally, summary
from ..telemetry.store import figures
from .runs import run_failures, run_figures

if TYPE_CHECKING:
    from ..core.ports import Store
    from .runs import RunIndex

__all__ = ("failures_of",)

# How many columns a chart has, so that each is wide enough to be seen on a phone.
_COLUMNS = 30


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
