"""A run, put into words.

Whoever reads them has slept meanwhile: each line says what happened, what follows, and why. A run
that simply did well has nothing to say.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Literal, NamedTuple

from ..core.duration import duration_text
from .steps import Begun, Ended, Moved, Remark

if TYPE_CHECKING:
    from .state import RunState
    from .steps import Step

__all__ = (
    "Said",
    "clock",
    "counted",
    "day",
    "followed",
    "is_held",
    "lasted",
    "met",
    "money",
    "one_line",
    "summed_up",
    "told",
    "waited",
)

Tone = Literal["plain", "good", "bad", "wait"]

# How an attempt ended, by kind: as a noun in tables, as a verb in lines.
_KINDS = {
    "rate_limit": ("rate limit", "met a rate limit"),
    "quota": ("usage limit", "met a usage limit"),
    "billing": ("no credit", "has no credit left"),
    "overloaded": ("overloaded", "found its provider overloaded"),
    "server": ("server error", "met an error of its provider"),
    "network": ("network", "lost the network"),
    "timeout": ("timeout", "ran into a timeout"),
    "auth": ("not let in", "was not let in"),
    "context_length": ("too long", "sent more than the model takes"),
    "content_policy": ("refused", "was refused an answer"),
    "client": ("cannot work", "asked for something that cannot work"),
    "conditional": ("not now", "was told: not now"),
    "bad_answer": ("bad answer", "got an answer that cannot be used"),
    "circuit_open": ("not asked", "was not let through"),
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


class Said(NamedTuple):
    """A line, and how it is meant."""

    text: str
    tone: Tone = "plain"


def day(at: float) -> str:
    """The day of `at` here: ``Mon 16 Nov``."""
    there = datetime.fromtimestamp(at).astimezone()
    return f"{there:%a} {there.day} {there:%b}"


def clock(at: float, now: float) -> str:
    """A time as a person here reads it: with the day where that is another one."""
    there = datetime.fromtimestamp(at).astimezone()
    other = "" if day(at) == day(now) else f"{day(at)} "
    return f"{other}{there:%H:%M:%S}"


def money(cost: float | None) -> str:
    """US dollars, for people; nothing where nobody said."""
    return "" if cost is None else f"${cost:.2f}" if cost >= 0.005 or not cost else f"${cost:.4f}"


def counted(tokens: int | None) -> str:
    """Tokens, for people; nothing where nobody said."""
    if not tokens:
        return ""
    if tokens < 10_000:
        return f"{tokens:,} tokens"
    return f"{tokens / 1e3:.0f}k tokens" if tokens < 999_500 else f"{tokens / 1e6:.1f}M tokens"


def met(step: Ended) -> str:
    """How an attempt ended, in a word or two."""
    return _THENS.get(step.then) or _names(step)[0]


def _names(step: Ended) -> tuple[str, str]:
    if step.stopped == "refused":
        return "not started", "was not started"
    if not step.attempt:  # something around it failed: its file, its tree, the journal
        return "given up", "is given up"
    if step.stopped in _STOPS:
        return _STOPS[step.stopped]
    if not step.kind:
        return "cut off", "was cut off"
    if step.signal is not None and step.kind == "server":
        return "crashed", "crashed"
    return _KINDS.get(step.kind, (step.kind, f"failed ({step.kind})"))


def is_held(state: RunState) -> bool:
    """Whether it waits for another reason than its last attempt: its account's limit."""
    if state.status != "waiting" or state.until is None or state.until <= state.at:
        return False
    return not state.ended or state.ended[-1].until != state.until


def lasted(step: Ended) -> str:
    """How an attempt ended, and after how long; where none was made, only how."""
    is_made = step.stopped != "refused" and step.attempt
    return f"{met(step)} after {duration_text(step.took)}" if is_made else met(step)


def one_line(text: str, limit: int = 500) -> str:
    """The end of what a program printed, on one line: where test runners sum up."""
    from ..core.text import clean  # its patterns take longer to compile than all else

    text = text.strip()
    if len(text) <= limit:
        return clean(text, limit)
    return clean(f"…{text[1 - limit :]}", limit)


def followed(step: Ended) -> str:
    """What followed from the end of an attempt, and why."""
    if step.then == "again":
        return _again(step, duration_text(max(0.0, (step.until or step.at) - step.at)))
    if step.then == "stop":
        return _stopped(step)
    return step.because if step.then == "pause" else ""


def _again(step: Ended, wait: str) -> str:
    if step.is_probe:
        return f"again in {wait}: {step.because}"
    if not step.kind:
        return f"again at once: {step.because}"
    if step.reset_at is None or step.until is None:
        return f"again in {wait}, {step.because.partition(', ')[2] or step.because}"
    named = "the limit resets at" if step.kind in _LIMITS else "it was asked to wait until"
    why = f"{named} {clock(step.reset_at, step.at)}"
    if step.until - step.reset_at > _MARGINS and step.because.endswith(_BACKOFF):
        why = f"{why}, and the policy waits longer"
    return f"waits {wait}, until {clock(step.until, step.at)}: {why}"


def _stopped(step: Ended) -> str:
    if step.until is None:
        return f"not repeated: {step.because}"
    limit = step.because.rpartition(": ")[2]
    left = duration_text(max(0.0, step.until - step.at))
    return f"not waited for: it could go on at {clock(step.until, step.at)}, in {left}, {limit}"


def told(step: Step, program: str) -> list[Said]:
    """What there is to say about a step; nothing about a first attempt, or one that did well."""
    if isinstance(step, Begun):
        how = "resumes its session" if step.how == "resume" else "starts anew"
        return [Said(f"attempt {step.attempt}: {program} {how}")] if step.attempt > 1 else []
    if isinstance(step, Moved):
        if step.until <= step.at:  # taken up by hand
            return []
        until = f"waits until {clock(step.until, step.at)}"
        return [Said(f"{program} {until}: {step.because}", "wait")]
    if isinstance(step, Remark):
        return [Said(step.text)]
    return _ended(step, program) if isinstance(step, Ended) else []


def _ended(step: Ended, program: str) -> list[Said]:
    if step.then in {"done", "pause"}:
        return []
    if step.stopped == "refused":
        return [Said(f"{program} is not started: {step.because}", "bad"), *_hinted(step)]
    if not step.attempt:
        return [Said(f"{program} is given up: {step.because}", "bad"), *_hinted(step)]
    if step.message == step.because:  # it could not be started, and that is all there is to say
        return [Said(f"attempt {step.attempt}: {step.message}", "bad"), *_hinted(step)]
    is_end = step.then == "stop"
    spent = f", {money(step.cost)}" if step.cost else ""
    what = f"{_names(step)[1]} after {duration_text(step.took)}{spent}"
    words = f": {step.message}" if step.message else ""
    said = [Said(f"attempt {step.attempt}: {program} {what}{words}", "bad" if is_end else "wait")]
    said.append(Said(followed(step), "bad" if is_end else "wait"))
    return [*said, *_hinted(step)] if is_end else said


def _hinted(step: Ended) -> list[Said]:
    return [Said(f"hint: {step.advice}")] if step.advice else []


def waited(state: RunState) -> float:
    """Seconds that the run has spent between its attempts."""
    made = (each for each in state.ended if each.stopped != "refused")
    pairs = zip(made, state.begun[1:], strict=False)
    return sum(max(0.0, begun.at - ended.at) for ended, begun in pairs)


def summed_up(id_: str, state: RunState) -> list[Said]:
    """The end of a run, or of our part in it; nothing about one that simply did well."""
    if state.status == "done" and state.attempts <= 1:
        return []
    said = [_headline(state)]
    rows = [_row(step) for step in state.ended]
    if len(rows) > _MOST_ROWS:
        last = _MOST_ROWS - _FIRST_ROWS - 1
        left = f"  …  {len(rows) - _FIRST_ROWS - last} more: mulligan show {id_}"
        rows = [*rows[:_FIRST_ROWS], left, *rows[-last:]]
    if len(rows) > 1:
        said += [Said(row) for row in rows]
    if state.status == "waiting":
        said.append(Said(f"to go on then: mulligan worker, or mulligan resume {id_}"))
    elif state.status in {"paused", "limited", "running", "new"}:
        said.append(Said(f"to go on: mulligan resume {id_}"))
    elif state.status == "failed":
        said.append(Said(f"all of it: mulligan show {id_}; once mended: mulligan resume {id_}"))
    return said


def _headline(state: RunState) -> Said:
    count = f"{state.attempts} attempt{'s' if state.attempts != 1 else ''}"
    last = state.ended[-1].at if state.ended else state.made.at
    spent = [f"{count} in {duration_text(max(0.0, last - state.made.at))}"]
    if (rest := waited(state)) >= 1:
        spent.append(f"{duration_text(rest)} of it waiting")
    spent += [each for each in (money(state.cost), counted(state.tokens)) if each]
    what, tone = _STATUSES.get(state.status, (state.status, "wait"))
    if state.status == "waiting" and state.until is not None:
        what = f"parked until {clock(state.until, last)}"
    elif state.status == "limited" and state.until is not None:
        what = f"limited until {clock(state.until, last)}"
    return Said(f"{what}: {', '.join(spent)}", tone)


_STATUSES: dict[str, tuple[str, Tone]] = {
    "done": ("done", "good"),
    "failed": ("failed", "bad"),
    "cancelled": ("cancelled", "bad"),
    "paused": ("interrupted", "wait"),
    "running": ("interrupted", "wait"),
    "new": ("interrupted before it began", "wait"),
}


def _row(step: Ended) -> str:
    took, cost = duration_text(step.took), money(step.cost)
    number = "-" if step.stopped == "refused" else step.attempt
    row = f"  {number:<2} {met(step):<13} {took:>6}  {cost:>6}  {followed(step)}"
    return row.rstrip()
