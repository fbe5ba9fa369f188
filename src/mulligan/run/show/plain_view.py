"""The plain view of a run: the program's text on stdout, messages of Mulligan on stderr.

A status line for terminals is in `status_line`, events for programs are in `json_events`. Text of
programs was cleaned and masked before it was written to the journal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..journal.entries import AttemptBegun, AttemptEnd
from ..listeners import RunListener

if TYPE_CHECKING:
    from ..agents.adapter import Stream
    from ..journal.entries import JournalEntry
    from ..journal.state import RunState
    from .messages import StatusText
    from .standard_streams import StandardStreams

__all__ = ("PlainView",)

# Shorter waits are not reported.
_SHORT_HOLD = 5.0


class PlainView(RunListener):
    """Prints a run as plain lines on stderr; nothing for a run that succeeds at once.

    `label` stands before each line, where several runs tell theirs in one place.
    """

    def __init__(
        self,
        id_: str,
        program: str,
        *,
        streams: StandardStreams,
        label: str = "",
    ) -> None:
        self._id, self._program = id_, program
        self._streams = streams
        self._label = f"{label} " if label else ""
        self._day = ""
        self._is_told = False  # why it waits, or that it goes on

    def step(self, step: JournalEntry) -> None:
        self._is_told = True
        # A run that succeeds at once has nothing to say; the words for the rest are loaded then.
        is_silent = isinstance(step, AttemptBegun) and step.attempt == 1
        if isinstance(step, AttemptEnd):
            self._restore_terminal()
            is_silent = step.then == "done"
        if not is_silent:
            from .messages import step_messages, time_of_day

            said = step_messages(step, self._program)
            when, self._day = time_of_day(step.at, self._day)
            self._say(said, f"{when} ")

    def output(self, stream: Stream, chunk: bytes) -> None:
        """Show what the program printed."""
        self._streams.pass_on(stream, chunk)

    def close(self) -> None:
        """Nothing is shown any more."""
        self._restore_terminal()

    def _restore_terminal(self) -> None:
        if self._streams.terminal is not None:
            self._streams.terminal.restore()

    def waiting(self, until: float, left: float) -> None:
        if self._is_told or left < _SHORT_HOLD:
            return
        self._is_told = True
        from .messages import StatusText, clock, time_of_day

        now = until - left
        when, self._day = time_of_day(now, self._day)
        said = StatusText(f"{self._program} waits until {clock(until, now)}", "wait")
        self._say([said], f"{when} ")

    def notified(self, error: str) -> None:
        """The notify command was run; what went wrong with that, or nothing."""
        from .messages import StatusText

        if error:
            self._say([StatusText(f"the notify command failed: {error}", "bad")])

    def over(self, state: RunState) -> None:
        if state.status == "done" and state.attempts <= 1:
            return  # nothing to report
        from .messages import summary

        self._say(summary(self._id, state))

    def _say(self, said: list[StatusText], when: str = "") -> None:
        if said:
            lines = [f"{self._prefix(each)} {self._label}{when}{each.text}" for each in said]
            self._streams.say("\n".join(lines))

    def _prefix(self, said: StatusText) -> str:  # noqa: ARG002 -- a terminal paints it
        return "mulligan:"
