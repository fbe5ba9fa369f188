"""Story: all attempts, waits and reasons of one call that failed, in plain values.

A story holds no exception, no frame, no argument: it can be kept, logged, pickled and compared
without keeping anything else alive.
"""

from __future__ import annotations

from .duration import duration_text, moment_text
from .record import record

__all__ = ("Story", "Try")


# How an ending reads before "after 3 attempts".
_WORDS = {
    "final": "not retried",
    "exhausted": "gave up",
    "deadline": "out of time",
    "budget": "out of retry budget",
    "tokens": "out of retry tokens",
    "parked": "parked",
    "horizon": "limited beyond the horizon",
    "maybe_applied": "stopped",
    "committed": "broken off",
    "refused": "not admitted",
    "cancelled": "cancelled",
    "unknown": "not retried",
}


@record(kw_only=True)
class Try:
    """One failed attempt and what was decided about it.

    Args:
        attempt: Which one, from 1.
        kind: What failed.
        message: What was said, cleaned and masked.
        status: The HTTP status, if any.
        code: The vendor's own word, if any.
        decision: ``RetryAfter``, ``Park``, ``Verify`` or ``GiveUp``.
        delay: The wait that was decided, if one was.
        because: Why, in one sentence.
        took: How long the attempt took, where it was measured.
        target: The dependency, or empty.
        reach: How far it came: ``never_sent``, ``maybe_applied`` or ``answered``.
    """

    attempt: int
    kind: str
    message: str
    status: int | None
    code: str | None
    decision: str
    delay: float | None
    because: str
    took: float | None
    target: str = ""
    reach: str = ""


@record(kw_only=True)
class Story:
    """One call that ended without success.

    Args:
        target: The dependency, or empty.
        name: The function.
        ending: Why it ended; a value of `Ending`.
        because: Why it ended, in one sentence.
        attempts: Attempts made in total.
        waited: Seconds spent waiting between them.
        tries: The failed attempts, in order.
        retry_at: When the same call could pass, in epoch seconds, if the server named it.
        delivered: Items a stream had handed over when it broke.
        remark: What the provider should be told, or empty.
        tool_calls: Names of the tool calls that a model's stream had completed when it broke.
    """

    target: str
    name: str
    ending: str
    because: str
    attempts: int
    waited: float
    tries: tuple[Try, ...]
    retry_at: float | None = None
    delivered: int = 0
    remark: str = ""
    tool_calls: tuple[str, ...] = ()

    @property
    def note(self) -> str:
        """One line for the traceback."""
        return f"mulligan: {self.summary}"

    @property
    def summary(self) -> str:
        """How it ended, after how much, and why, in one line."""
        count = "1 attempt" if self.attempts == 1 else f"{self.attempts} attempts"
        waited = f", {duration_text(self.waited)} of waiting" if self.waited else ""
        ended = _WORDS.get(self.ending, self.ending)
        if ended == "not retried" and self.attempts > 1:
            ended = "stopped"
        if self.retry_at is not None and self.ending == "parked":
            ended = f"parked until {moment_text(self.retry_at)}"
        return f"{ended} after {count}{waited}: {self.because}"

    def __str__(self) -> str:
        """The whole story, a line an attempt."""
        lines = [
            (f"{each.target}: " if each.target not in ("", self.target) else "")
            + f"attempt {each.attempt}: "
            + (each.kind if each.status is None else f"{each.status} ({each.kind})")
            + (f": {each.message}" if each.message else "")
            + f" → {each.because}"
            for each in self.tries
        ]
        return "\n".join([self.note, *(f"  {line}" for line in lines)])
