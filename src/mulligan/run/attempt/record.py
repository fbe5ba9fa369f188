"""What is known about an attempt: how it was started, what it printed, how it ended. Pure.

`recovery` judges its end.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.redaction import presentable
from ..journal.entries import AttemptEnd

if TYPE_CHECKING:
    from ...classify.output.reader import Outcome
    from ..agents.adapter import Launch
    from ..process.supervise import ProcessExit
    from .output import AttemptFacts

__all__ = ("AttemptRecord",)

# Most interrupted tool calls named in the prompt of a resumed session.
_MOST_CALLS = 5


class AttemptRecord:
    """What is known about an attempt, while it runs and when it has ended.

    Args:
        number: Its number.
        chosen: The session chosen for it, or the one that it resumes.
        launch: How it was started.
        facts: Facts read from its output so far.
    """

    def __init__(self, number: int, chosen: str, launch: Launch, facts: AttemptFacts) -> None:
        self.number, self.facts = number, facts
        self._chosen, self._launch = chosen, launch
        #: The silence that it announced, in seconds, and its failure, if it was stopped for that.
        self.announced = 0.0
        self.retried: Outcome | None = None

    @property
    def is_mute(self) -> bool:
        """Whether it prints each step as an event and printed none, so it has done nothing."""
        return self._launch.is_structured and not self.facts.has_spoken

    def session(self, *, is_cut_short: bool) -> str:
        """The session to resume: the one that it named, else the one chosen for it.

        The chosen one is used if the output names none or was cut short before it could. It is not
        used if text came instead of events: then another program has that name.
        """
        if self.facts.session:
            return self.facts.session
        if self._launch.is_structured:
            is_other = self.facts.has_spoken and not self.facts.has_events
            return self._chosen if is_cut_short and not is_other else ""
        return self._chosen if is_cut_short or self.facts.size else ""

    def ended(
        self, at: float, exited: ProcessExit, *, idle: float | None, is_end_reported: bool
    ) -> AttemptEnd:
        """How the attempt ended, not yet judged.

        Args:
            at: When, in epoch seconds.
            exited: How the program exited.
            idle: Seconds without output after which it would have been stopped; None for any.
            is_end_reported: Whether the program's structured output always ends with a report.
        """
        facts, is_mute = self.facts, self.is_mute
        is_report_due = self._launch.is_structured and is_end_reported
        end = AttemptEnd(
            at,
            self.number,
            exited.took,
            exited.code,
            exited.signal,
            exited.stopped,
            is_unstarted=exited.is_unstarted,
            error=exited.error,
            silent=idle,
            announced=self.announced,
            is_mute=is_mute,
            has_answer=facts.has_spoken,
            is_unreported=is_mute or (facts.has_events and is_report_due),
            is_session_named=bool(facts.session),
        )
        return self._told(end, is_cut_short=bool(exited.stopped) or exited.signal is not None)

    def torn(self, at: float, took: float) -> AttemptEnd:
        """The end of an attempt whose supervisor died, not yet judged."""
        end = AttemptEnd(at, self.number, took, stopped="torn")
        return self._told(end, is_cut_short=True)

    def _told(self, end: AttemptEnd, *, is_cut_short: bool) -> AttemptEnd:
        facts = self.facts
        return end._replace(
            session=self.session(is_cut_short=is_cut_short),
            cost=facts.cost,
            tokens=facts.tokens,
            retries=facts.retries,
            is_work=facts.is_work,
            pending="; ".join([presentable(call) for call in facts.pending[:_MOST_CALLS]]),
        )
