"""Messages about a run, for people.

Each line says what happened, what follows, and why. A run that succeeds at once prints nothing.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from ...core.duration import duration_text
from ..journal.entries import INTERRUPTED, AttemptBegun, AttemptEnd, RunRemark, RunRescheduled

if TYPE_CHECKING:
    from ..journal.entries import JournalEntry
    from ..journal.state import RunState

__all__ = (
    "StatusText",
    "clock",
    "day",
    "decision_text",
    "ending_name",
    "ending_with_duration",
    "is_as_stated",
    "is_held",
    "money",
    "one_line",
    "seconds_waited",
    "step_messages",
    "summary",
    "time_of_day",
    "token_text",
)

Tone = Literal["plain", "good", "bad", "wait"]

# How an attempt ended, by kind: as a noun in tables, as a verb in lines.
_KINDS = {
    "rate_limit": ("rate limit", "hit a rate limit"),
    "quota": ("usage limit", "hit a usage limit"),
    "billing": ("no credit", "has no credit left"),
    "overloaded": ("overloaded", "found the provider overloaded"),
    "server": ("server error", "got a server error"),
    "network": ("network", "lost the network"),
    "timeout": ("timeout", "timed out"),
    "auth": ("auth error", "failed to authenticate"),
    "context_length": ("too long", "exceeded the context length"),
    "content_policy": ("refused", "was refused by the content policy"),
    "client": ("cannot work", "sent an invalid request"),
    "conditional": ("not now", "was refused for now"),
    "bad_answer": ("bad answer", "got an invalid answer"),
    "circuit_open": ("not asked", "was blocked by the circuit breaker"),
    "unknown": ("failed", "failed"),
}
_STOPS = {"idle": ("fell silent", "fell silent"), "timeout": ("too slow", "took too long")}
_THENS = {"done": "done", "pause": "interrupted"}
_LIMITS = frozenset({"rate_limit", "quota"})

# A limit is waited for with a margin, and runs that wait for one come back spread: at most so long.
_MARGINS = 95.0
_BACKOFF = "by backoff"

# More rows than this are cut in the middle: `mulligan show` has them all.
_MOST_ROWS, _FIRST_ROWS = 12, 2


class StatusText(NamedTuple):
    """A line, and how it is meant."""

    text: str
    tone: Tone = "plain"


def _here(at: float) -> datetime | None:
    """`at` on the calendar here; None if it lies beyond that, as a program or a journal may say."""
    try:
        return datetime.fromtimestamp(at).astimezone()
    except (OverflowError, ValueError, OSError):
        return None


def day(at: float) -> str:
    """The day of `at` here: ``Mon 16 Nov``; empty if it is on no calendar."""
    there = _here(at)
    return "" if there is None else f"{there:%a} {there.day} {there:%b}"


def clock(at: float, now: float) -> str:
    """A time as a person here reads it: with the day where that is another one."""
    there = _here(at)
    if there is None:
        return "an unknown time"
    other = "" if day(at) == day(now) else f"{day(at)} "
    return f"{other}{there:%H:%M:%S}"


def time_of_day(at: float, before: str) -> tuple[str, str]:
    """The time at the beginning of a line, and its day; named if the line `before` had another."""
    today, time = day(at), clock(at, at)
    return (time if before in {"", today} else f"{today} {time}".lstrip()), today


def money(cost: float | None) -> str:
    """US dollars, for people; empty if unknown."""
    return "" if cost is None else f"${cost:.2f}" if cost >= 0.005 or not cost else f"${cost:.4f}"


def token_text(tokens: int | None) -> str:
    """Tokens, for people; empty if unknown."""
    if not tokens:
        return ""
    if tokens < 10_000:
        return f"{tokens:,} tokens"
    return f"{tokens / 1e3:.0f}k tokens" if tokens < 999_500 else f"{tokens / 1e6:.1f}M tokens"


def ending_name(step: AttemptEnd) -> str:
    """How an attempt ended, in a word or two."""
    return _THENS.get(step.then) or _names(step)[0]


def _names(step: AttemptEnd) -> tuple[str, str]:
    if step.stopped == "refused" or step.is_unstarted:
        return "not started", "was not started"
    if not step.attempt:  # something around it failed: its file, its tree, the journal
        return "given up", "is given up"
    if step.stopped in _STOPS:
        return _STOPS[step.stopped]
    if step.is_doubt or not step.kind:
        return ("in doubt", "ended in doubt") if step.is_doubt else ("cut off", "was cut off")
    if step.signal is not None and step.kind == "server":
        return "crashed", "crashed"
    return _KINDS.get(step.kind, (step.kind, f"failed ({step.kind})"))


def is_held(state: RunState) -> bool:
    """Whether it waits for another reason than its last attempt: its account's limit."""
    if state.status != "waiting" or state.until is None or state.until <= state.at:
        return False
    return not state.ended or state.ended[-1].until != state.until


def ending_with_duration(step: AttemptEnd) -> str:
    """How an attempt ended, and after how long; where none was made, only how."""
    is_made = step.stopped != "refused" and step.attempt
    return f"{ending_name(step)} after {duration_text(step.took)}" if is_made else ending_name(step)


def one_line(text: str, limit: int = 500) -> str:
    """The end of what a program printed, on one line: where test runners sum up."""
    from ...core.redaction import clean  # its patterns take longer to compile than all else

    text = text.strip()
    if len(text) <= limit:
        return clean(text, limit)
    return clean(f"…{text[1 - limit :]}", limit)


def decision_text(step: AttemptEnd) -> str:
    """What followed from the end of an attempt, and why."""
    if step.then == "again":
        return _again(step, duration_text(max(0.0, (step.until or step.at) - step.at)))
    if step.then == "stop":
        return _stopped(step)
    return step.because if step.then == "pause" else ""


def is_as_stated(step: AttemptEnd) -> bool:
    """Whether the next attempt waits for the time that was stated, and not for a backoff."""
    if step.is_probe or step.reset_at is None or step.until is None:
        return False
    return step.until - step.reset_at <= _MARGINS or not step.because.endswith(_BACKOFF)


def _again(step: AttemptEnd, wait: str) -> str:
    if step.is_probe:
        return f"retry in {wait}: {step.because}"
    if not step.kind:
        return f"retry now: {step.because}"
    if step.reset_at is None or step.until is None:
        return f"retry in {wait}, {step.because.partition(', ')[2] or step.because}"
    named = "the limit resets at" if step.kind in _LIMITS else "it was asked to wait until"
    why = f"{named} {clock(step.reset_at, step.at)}"
    if not is_as_stated(step):
        why = f"{why}, but the policy waits longer"
    return f"waits {wait}, until {clock(step.until, step.at)}: {why}"


def _stopped(step: AttemptEnd) -> str:
    if step.until is None:
        return f"not retried: {step.because}"
    limit = step.because.rpartition(": ")[2]
    left = duration_text(max(0.0, step.until - step.at))
    return f"not waiting: it could continue at {clock(step.until, step.at)}, in {left}, {limit}"


def step_messages(step: JournalEntry, program: str) -> list[StatusText]:
    """The message for a step; nothing for a first attempt, or one that succeeded."""
    if isinstance(step, AttemptBegun):
        how = "resumes its session" if step.how == "resume" else "restarts"
        return [StatusText(f"attempt {step.attempt}: {program} {how}")] if step.attempt > 1 else []
    if isinstance(step, RunRescheduled):
        if step.until <= step.at:  # resumed by the user
            return []
        until = f"waits until {clock(step.until, step.at)}"
        return [StatusText(f"{program} {until}: {step.because}", "wait")]
    if isinstance(step, RunRemark):
        return [StatusText(step.text)]
    return _ended(step, program) if isinstance(step, AttemptEnd) else []


def _ended(step: AttemptEnd, program: str) -> list[StatusText]:
    if step.then in {"done", "pause"}:
        return []
    if step.stopped == "refused":
        return [StatusText(f"{program} is not started: {step.because}", "bad"), *_hinted(step)]
    if not step.attempt:
        return [StatusText(f"{program} was given up: {step.because}", "bad"), *_hinted(step)]
    if step.message == step.because:  # it could not be started
        return [StatusText(f"attempt {step.attempt}: {step.message}", "bad"), *_hinted(step)]
    is_end = step.then == "stop"
    tone: Tone = "bad" if is_end else "wait"
    spent = f", {money(step.cost)}" if step.cost else ""
    what = f"{_names(step)[1]} after {duration_text(step.took)}{spent}"
    words = f": {step.message}" if step.message else ""
    line = step.message if step.is_unstarted else f"{program} {what}{words}"
    said = [
        StatusText(f"attempt {step.attempt}: {line}", tone),
        StatusText(decision_text(step), tone),
    ]
    return [*said, *_hinted(step)] if is_end else said


def _hinted(step: AttemptEnd) -> list[StatusText]:
    return [StatusText(f"hint: {step.advice}")] if step.advice else []


def seconds_waited(state: RunState) -> float:
    """Seconds that the run has spent between its attempts."""
    made = (each for each in state.ended if each.stopped != "refused")
    pairs = zip(made, state.begun[1:], strict=False)
    return sum(max(0.0, begun.at - ended.at) for ended, begun in pairs)


def summary(id_: str, state: RunState) -> list[StatusText]:
    """The summary when this process is done; nothing for a run that succeeded at once."""
    if state.status == "done" and state.attempts <= 1:
        return []
    said = [_headline(state)]
    if len(state.ended) > 1:
        said += [StatusText(row) for row in _rows(id_, state)]
    if state.needs_restart:
        twice = "to restart it, which may repeat its work"
        said.append(StatusText(f"{twice}: mulligan resume {id_} --restart"))
    elif state.status == "waiting":
        said.append(StatusText(f"to continue then: mulligan worker, or mulligan resume {id_}"))
    elif state.status == "limited":
        said.append(
            StatusText(
                f"to continue then: mulligan worker; to try now: mulligan resume {id_} --now"
            )
        )
    elif state.status in {"paused", "running", "new"}:
        said.append(StatusText(f"to continue: mulligan resume {id_}"))
    elif state.status == "failed":
        said.append(StatusText(f"details: mulligan show {id_}; once fixed: mulligan resume {id_}"))
    return said


def _headline(state: RunState) -> StatusText:
    count, cost, tokens = state.attempts, state.cost, state.tokens
    last = state.ended[-1].at if state.ended else state.made.at
    attempts = f"{count} attempt{'s' if count != 1 else ''}"
    spent = [f"{attempts} in {duration_text(max(0.0, last - state.made.at))}"]
    if (rest := seconds_waited(state)) >= 1:
        spent.append(f"{duration_text(rest)} of it waiting")
    spent += [each for each in (money(cost), token_text(tokens)) if each]
    what, tone = _STATUSES.get(state.status, (state.status, "wait"))
    if state.status == "paused" and state.because:
        what = state.because
    elif state.status == "waiting" and state.until is not None:
        how = "interrupted, due at" if state.because == INTERRUPTED else "parked until"
        what = f"{how} {clock(state.until, last)}"
    elif state.status == "limited" and state.until is not None:
        what = f"limited until {clock(state.until, last)}"
    return StatusText(f"{what}: {', '.join(spent)}", tone)


_STATUSES: dict[str, tuple[str, Tone]] = {
    "done": ("done", "good"),
    "failed": ("failed", "bad"),
    "cancelled": ("cancelled", "bad"),
    "paused": ("interrupted", "wait"),
    "running": ("interrupted", "wait"),
    "new": ("interrupted before it began", "wait"),
}


def _rows(id_: str, state: RunState) -> list[str]:
    rows = [_row(step) for step in state.ended]
    if len(rows) <= _MOST_ROWS:
        return rows
    last = _MOST_ROWS - _FIRST_ROWS - 1
    left = f"  …  {len(rows) - _FIRST_ROWS - last} more: mulligan show {id_}"
    return [*rows[:_FIRST_ROWS], left, *rows[-last:]]


def _row(step: AttemptEnd) -> str:
    took, cost = duration_text(step.took), money(step.cost)
    number = "-" if step.stopped == "refused" else step.attempt
    row = f"  {number:<2} {ending_name(step):<13} {took:>6}  {cost:>6}  {decision_text(step)}"
    return row.rstrip()
