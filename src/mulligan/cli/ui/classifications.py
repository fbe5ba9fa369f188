"""Prints classifications: as text, as a JSON object, as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import click

from ...api.agent_output import Outcome, read_output
from ...core.duration import duration_text
from ...core.failure import Kind, Retryability
from ...core.hint import Confidence

if TYPE_CHECKING:
    from ...classify.pattern_packs import Packs
    from ...classify.times.server_formats import ResetTime
    from ...core.failure import Failure

__all__ = ("as_json", "as_lines", "as_text", "outlook")

# What `default` does with a wait; longer ones are for `mulligan run`, which can park.
_IN_PLACE, _HORIZON = 120.0, 21600.0


def as_json(outcome: Outcome) -> str:
    """One object, with the message that decided."""
    return json.dumps({**_plain(outcome), "message": outcome.message}, ensure_ascii=False)


def as_lines(
    lines: Iterable[bytes], *, packs: Packs, agent: str, now: float, zone: tzinfo
) -> Iterator[str]:
    """An answer for each JSON line; a line that is none ends it with an error that names it."""
    for number, raw in enumerate(lines, 1):
        if not raw.strip():
            continue
        row = _row(raw, number)
        moment, here = _when(row, number, now, zone)
        stdout, stderr = _streams(row)
        outcome = read_output(
            stdout,
            stderr,
            packs=packs,
            now=moment,
            zone=here,
            agent=_words(row, "agent") or agent,
            exit_code=row["exit_code"] if isinstance(row.get("exit_code"), int) else None,
        )
        yield json.dumps({"id": row.get("id"), **_plain(outcome)}, ensure_ascii=False)


def as_text(outcome: Outcome, *, now: float, zone: tzinfo) -> str:
    """A few aligned lines."""
    doubt = " (a guess)" if outcome.confidence is Confidence.LOW else ""
    kind = str(outcome.failure.kind) + doubt if outcome.failure else "not a failure"
    rows = [("kind", kind)]
    if outcome.message:
        rows.append(("message", outcome.message))
    if outcome.reset is not None and outcome.failure is not None:
        rows.append(("resets", _reset_text(outcome.reset, zone)))
    if outcome.is_work_left:
        rows.append(("work left", "yes: it says that it ended early because a limit is near"))
    if outcome.agent:
        rows.append(("agent", outcome.agent))
    why = outcome.because if not outcome.source else f"{outcome.because} ({outcome.source})"
    rows.append(("because", why))
    rows.append(("mulligan", outlook(outcome, now=now, zone=zone)))
    return "\n".join(f"{name:<9} {text}" for name, text in rows)


def outlook(outcome: Outcome, *, now: float, zone: tzinfo) -> str:
    """What Mulligan would do about it, with its defaults."""
    failure = outcome.failure
    if failure is None:
        by_itself = ": the program is retrying by itself" if outcome.is_progress else ""
        return f"does nothing{by_itself}"
    if outcome.confidence is Confidence.LOW:
        return _about_guess(failure, now=now, zone=zone)
    if failure.kind.is_limit:
        if failure.hint is None:
            return "retries, waiting longer each time: the server named no time"
        wait = _about_wait(failure.hint.floor, now=now, zone=zone)
        is_sure = failure.hint.confidence is Confidence.HIGH
        return wait if is_sure else f"tries once first, the time may have passed; then {wait}"
    if failure.retryability is Retryability.NON_RETRYABLE:
        is_unknown = failure.kind is Kind.UNKNOWN
        why = "unknown failures are not retried" if is_unknown else "waiting cannot fix it"
        return f"stops: {why}"
    return "retries a few times, waiting longer each time"


def _about_guess(failure: Failure, *, now: float, zone: tzinfo) -> str:
    if not (failure.kind.is_limit or failure.kind is Kind.OVERLOADED):
        return "stops: what failed is not known for sure"
    then = "waits longer each time"
    if failure.hint is not None:
        then = _about_wait(failure.hint.floor, now=now, zone=zone)
    return f"resumes the session once after a minute, then {then}"


def _about_wait(wait: float, *, now: float, zone: tzinfo) -> str:
    until = _clock(now + wait, zone, now)
    if wait <= _IN_PLACE:
        return f"waits {duration_text(wait)} and retries"
    if wait <= _HORIZON:
        return f"parks the run and resumes it at {until}"
    return f"stops and says when: {until} is beyond the horizon of {duration_text(_HORIZON)}"


def _plain(outcome: Outcome) -> dict[str, Any]:
    reset = outcome.reset if outcome.failure is not None else None
    # How sure the answer is: low if the kind is a guess, else as sure as the stated reset.
    sure = None if reset is None else reset.confidence
    if outcome.confidence is Confidence.LOW:
        sure = outcome.confidence
    return {
        "kind": None if outcome.failure is None else str(outcome.failure.kind),
        "reset_in": None if reset is None else round(reset.seconds, 6),
        "reset_at": None if reset is None else _iso(reset.at),
        "confidence": None if sure is None else str(sure),
        "agent": outcome.agent or None,
        "model": (outcome.failure.model or None) if outcome.failure is not None else None,
        "work_left": outcome.is_work_left,
        "source": outcome.source or None,
        "because": outcome.because,
    }


def _iso(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


def _reset_text(reset: ResetTime, zone: tzinfo) -> str:
    if reset.seconds <= 0:
        return f"now: {reset.source!r} has passed"
    doubt = "" if reset.confidence is Confidence.HIGH else "; could mean another time"
    at = _clock(reset.at, zone, reset.at - reset.seconds)
    return f"in {duration_text(reset.seconds)}, {at} (read from {reset.source!r}{doubt})"


def _clock(at: float, zone: tzinfo, now: float) -> str:
    there, here = datetime.fromtimestamp(at, zone), datetime.fromtimestamp(now, zone)
    day = "" if there.date() == here.date() else f"{there:%a} {there.day} {there:%b} "
    seconds = there.strftime(":%S") if there.second else ""
    return f"{day}{there:%H:%M}{seconds} {there.tzname()}"


def _row(raw: bytes, number: int) -> Mapping[str, Any]:
    try:
        row = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise click.ClickException(f"line {number} of the input is not JSON: {error}") from None
    if not isinstance(row, Mapping):
        raise click.ClickException(
            f"line {number} of the input needs a JSON object; got {row!r:.60}"
        )
    return row


def _streams(row: Mapping[str, Any]) -> tuple[str, str]:
    """What was printed where; `text` without a stream stands for all of it."""
    stdout, stderr, text = (_words(row, key) for key in ("stdout", "stderr", "text"))
    if row.get("stream") == "stderr":
        return stdout, stderr or text
    return stdout or text, stderr


def _words(row: Mapping[str, Any], key: str) -> str:
    value = row.get(key)
    return value if isinstance(value, str) else ""


def _when(row: Mapping[str, Any], number: int, now: float, zone: tzinfo) -> tuple[float, tzinfo]:
    """The row's clock and zone; a stated time without a named zone brings its own offset."""
    here = zone
    if stated := _words(row, "now"):
        try:
            moment = datetime.fromisoformat(stated)
        except ValueError:
            raise click.ClickException(
                f"line {number}: now needs ISO 8601; got {stated!r}"
            ) from None
        here = moment.tzinfo or zone
        now = moment.replace(tzinfo=here).timestamp()
    if name := _words(row, "local_tz"):
        try:
            here = ZoneInfo(name)
        except (KeyError, ValueError, OSError):
            raise click.ClickException(f"line {number}: no such zone {name!r}") from None
    return now, here
