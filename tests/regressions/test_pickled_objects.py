"""Errors and guards did not survive a pickle.

The constructors of our errors take facts, not a message, so `pickle` and `copy` called them with
the message and raised TypeError: a worker process lost the error it wanted to report.
"""

# Wrong types are the point of some of these.
# mypy: ignore-errors

from __future__ import annotations

import copy
import pickle

import pytest

import mulligan
from mulligan import Failure, Kind


def pickled(error):
    return pickle.loads(pickle.dumps(error))  # noqa: S301 -- our own


@pytest.mark.parametrize(
    "error",
    [
        mulligan.CircuitOpen("acme", 3.0, "five failures in a row"),
        mulligan.DeadlinePassed("acme", "too late"),
        mulligan.FailedAnswer(Failure(kind=Kind.SERVER, message="empty"), ""),
        mulligan.FileError("bad", file="p.toml", key="a.b", line=3, hint="fix it"),
        mulligan.LimitReached("acme", 99.0, "50 requests a minute"),
        mulligan.MissingExtra("mulligan.stores.redis.store", "redis"),
        mulligan.NotAdmitted("acme", "no"),
    ],
    ids=lambda error: type(error).__name__,
)
@pytest.mark.parametrize("move", [pickled, copy.copy, copy.deepcopy])
def test_our_errors_travel_between_processes(error, move):
    """Each raised TypeError in the process that received it."""
    again = move(error)
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert vars(again) == vars(error)


def test_a_guard_travels_in_a_pickle():
    """A guard given to a process pool could not be pickled."""
    guard = mulligan.Guard("api", attempts=2, effects="read")
    again = pickle.loads(pickle.dumps(guard))  # noqa: S301 -- our own
    assert again.target == "api"
    assert again.policy == guard.policy
