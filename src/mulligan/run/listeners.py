"""Listeners: told what happens to a run or a plan while this process drives it.

A listener overrides the methods that it needs. Listeners are called one after the other; none calls
another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .agents.adapter import OutputNote
    from .attempt.output import AttemptFacts
    from .journal.entries import JournalEntry
    from .journal.state import RunState
    from .plan.report import Report
    from .plan.schedule import PhaseState

__all__ = ("PlanListener", "RunListener")


class RunListener:
    """Told what happens to a run."""

    def step(self, step: JournalEntry) -> None:
        """A step was written to the journal, and is about to be taken."""

    def noted(self, note: OutputNote, facts: AttemptFacts) -> None:
        """The reader of the program's output found a note."""

    def waiting(self, until: float, left: float) -> None:
        """The run still waits; called about once a second."""

    def over(self, state: RunState) -> None:
        """This process is done: the run has ended, is parked, or was interrupted."""


class PlanListener:
    """Told what happens to a plan."""

    def changed(self, key: str, state: RunState, now: float) -> None:
        """An agent, ``phase/agent``, may have taken a step; called from any thread."""

    def phases(self, states: Mapping[str, PhaseState], because: Mapping[str, str]) -> None:
        """The states of the phases, with reasons."""

    def tick(self, now: float) -> None:
        """Called about once a second."""

    def held(self, key: str, because: str) -> None:
        """An agent's run cannot be claimed, and why; called from any thread."""

    def notified(self, error: str) -> None:
        """The notify command was run; what went wrong with that, or nothing."""

    def over(self, report: Report) -> None:
        """This process is done: the plan has ended, is parked, or was interrupted."""
