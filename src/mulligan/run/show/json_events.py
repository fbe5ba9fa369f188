"""Events of a run as JSON lines on stdout, for programs.

One object per line, each with ``event``, ``run`` and ``at``; docs/run.md lists them. The program's
text comes as ``output`` events, as it printed it; all other text is cleaned and masked.
"""

from __future__ import annotations

import json
import time
from codecs import getincrementaldecoder
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..journal.entries import AttemptEnd, name_of
from ..listeners import RunListener
from ..plan.acceptance import rejection
from .messages import seconds_waited

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..agents.adapter import OutputNote, Stream
    from ..attempt.output import AttemptFacts
    from ..journal.entries import JournalEntry
    from ..journal.state import RunState
    from .standard_streams import StandardStreams

__all__ = ("JsonEvents", "print_event", "summary")


class JsonEvents(RunListener):
    """Prints a run as events on stdout."""

    def __init__(
        self,
        id_: str,
        *,
        streams: StandardStreams,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._id, self._streams, self._now = id_, streams, now
        self._attempt = 0
        new = getincrementaldecoder("utf-8")
        self._decoders = {"stdout": new("replace"), "stderr": new("replace")}

    def step(self, step: JournalEntry) -> None:
        fields = step._asdict()
        fields.pop("prompt", None)  # a prompt may be private, like the command
        if isinstance(step, AttemptEnd):
            self._flush()
        self._attempt = fields.get("attempt", self._attempt)
        self._tell(name_of(step), **fields)

    def output(self, stream: Stream, chunk: bytes) -> None:
        """Tell what the program printed."""
        # A chunk may end within a character: its rest comes with the next one.
        self._output(stream, self._decoders[stream].decode(chunk))

    def noted(self, note: OutputNote, facts: AttemptFacts) -> None:
        if note.is_retry:
            self._tell("retrying", attempt=self._attempt, retries=facts.retries, quiet=note.quiet)

    def notified(self, error: str) -> None:
        """The notify command was run; what went wrong with that, or nothing."""
        self._tell("notified", error=error)

    def over(self, state: RunState) -> None:
        self._flush()
        self._tell("summary", **summary(state))

    def close(self) -> None: ...

    def _output(self, stream: Stream, text: str) -> None:
        if text:
            self._print("output", attempt=self._attempt, stream=stream, text=text)

    def _flush(self) -> None:
        streams: tuple[Stream, ...] = ("stdout", "stderr")
        for stream in streams:
            with suppress(BrokenPipeError):
                self._output(stream, self._decoders[stream].decode(b"", final=True))

    def _tell(self, event: str, **fields: Any) -> None:
        # If stdout is closed, the program's next output stops it, as without us.
        with suppress(BrokenPipeError):
            self._print(event, **fields)

    def _print(self, event: str, **fields: Any) -> None:
        fields.setdefault("at", self._now())
        print_event(self._streams, {"event": event, "run": self._id, **fields})


def print_event(streams: StandardStreams, event: dict[str, Any]) -> None:
    """Print an event as a line on stdout.

    Raises:
        BrokenPipeError: It is not read any more.
    """
    # In ASCII: many readers take U+0085 for a line end, and terminals execute U+009B.
    line = json.dumps(event, separators=(",", ":"))
    streams.pass_on("stdout", f"{line}\n".encode("ascii"))


def summary(state: RunState) -> dict[str, Any]:
    """The result of a run, as plain data."""
    last = state.ended[-1] if state.ended else None
    return {
        "status": state.status,
        "fell_short": rejection(state),
        "exit": state.exit,
        "attempts": state.attempts,
        "waited": round(seconds_waited(state), 3),
        "cost": state.cost,
        "tokens": state.tokens,
        "until": state.until,
        "kind": "" if last is None else last.kind,
        "message": "" if last is None else last.message,
        "because": state.undelivered if rejection(state) else state.because,
        "advice": "" if last is None else last.advice,
        "name": state.made.name,
        "agent": state.made.agent,
        "command": state.made.command,
        "cwd": state.made.cwd,
    }
