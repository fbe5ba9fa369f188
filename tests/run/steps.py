"""The journal of a run that met a limit and went on, for tests of what is shown of it."""

from __future__ import annotations

from mulligan.run.journal.entries import AttemptBegun, AttemptEnd, JournalEntry, RunMade
from mulligan.run.journal.state import RunState, state_of

MADE = RunMade(1000.0, "claude", "claude -p x", "/src", "host", 0, "", {}, [])
BEGUN = AttemptBegun(1001.0, 1, "start", "", "")
LIMIT = AttemptEnd(
    1010.0,
    1,
    9.0,
    code=1,
    kind="quota",
    message="limit reached",
    reset_at=1100.0,
    then="again",
    until=1101.0,
    because="the limit resets",
    cost=0.2,
)
AGAIN = AttemptBegun(1102.0, 2, "resume", "", "")


def state(*steps: JournalEntry) -> RunState:
    """The run after `steps`."""
    found = state_of([MADE, *steps])
    assert found is not None
    return found
