"""Prints classifications: as text, as a JSON object, as JSON lines."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

import click

from ...api.agent_output import Outcome, read_output
from ...core.duration import duration_text
from ...core.failure import Kind, Retryability
from ...core.hint import Confidence
from .program_output import unknown

if TYPE_CHECKING:
    from ...classify.pattern_packs import Packs
    from ...classify.times.server_formats import ResetTime
    from ...core.failure import Failure

__all__ = ("RowDefaults", "answer", "as_json", "as_text", "json_text", "outlook")

# What `default` does with a wait; longer ones are for `mulligan run`, which can park.
_IN_PLACE, _HORIZON = 120.0, 21600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RowDefaults:
    """What holds for a JSON line that does not say it itself.

    Args:
        agent: The program; empty if it is not known.
        exit_code: Its exit code; None if it is not known.
        now: Epoch seconds.
        zone: The host's zone; None for the offset of the row's own time, else the local zone.
        local: The local zone.
    """

    agent: str = ""
    exit_code: int | None = None
    now: float
    zone: tzinfo | None = None
    local: tzinfo


def as_json(outcome: Outcome) -> str:
    """One object, with the message that decided."""
    return json_text({**_plain(outcome), "message": outcome.message})


def json_text(data: Mapping[str, Any]) -> str:
    """`data` on one line; half of a character, which JSON can name, is named again."""
    text = json.dumps(data, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def answer(
    raw: bytes | str, number: int, *, packs: Packs, known: Collection[str], defaults: RowDefaults
) -> str:
    """The answer to one JSON line, on one line; an error that names the line if it is none."""
    row = _row(raw, number)
    try:
        outcome = _read(row, packs, known, defaults)
    except ValueError as error:
        raise click.ClickException(f"line {number}: {error}") from None
    return json_text({"id": row.get("id"), **_plain(outcome)})


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


def _iso(at: float) -> str | None:
    there = _moment(at, UTC)
    return None if there is None else there.isoformat().replace("+00:00", "Z")


def _moment(at: float, zone: tzinfo) -> datetime | None:
    """`at` in `zone`; None if it is outside of the years 1 to 9999, or at their edge."""
    try:
        return datetime.fromtimestamp(at, zone)
    except (ValueError, OverflowError, OSError):
        return None


def _reset_text(reset: ResetTime, zone: tzinfo) -> str:
    if reset.seconds <= 0:
        return f"now: {reset.source!r} has passed"
    doubt = "" if reset.confidence is Confidence.HIGH else "; could mean another time"
    at = _clock(reset.at, zone, reset.at - reset.seconds)
    return f"in {duration_text(reset.seconds)}, {at} (read from {reset.source!r}{doubt})"


def _clock(at: float, zone: tzinfo, now: float) -> str:
    there, here = _moment(at, zone), _moment(now, zone)
    if there is None:
        return "beyond the year 9999"
    is_today = here is not None and there.date() == here.date()
    day = "" if is_today else f"{there:%a} {there.day} {there:%b} "
    seconds = there.strftime(":%S") if there.second else ""
    return f"{day}{there:%H:%M}{seconds} {there.tzname()}"


def _row(raw: bytes | str, number: int) -> Mapping[str, Any]:
    try:
        row = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise click.ClickException(f"line {number} of the input is not JSON: {error}") from None
    if not isinstance(row, Mapping):
        raise click.ClickException(
            f"line {number} of the input needs a JSON object; got {row!r:.60}"
        )
    return row


def _read(
    row: Mapping[str, Any], packs: Packs, known: Collection[str], defaults: RowDefaults
) -> Outcome:
    stdout, stderr, text = (_words(row, key) for key in ("stdout", "stderr", "text"))
    if stdout is stderr is text is None:
        raise ValueError("it has no text, stdout or stderr")
    agent, stream = _words(row, "agent") or defaults.agent, _words(row, "stream")
    if agent and agent not in known:
        raise ValueError(unknown(agent, known))
    if stream not in (None, "stdout", "stderr"):
        raise ValueError(f"stream needs stdout or stderr; got {stream!r}")
    # `text` without a stream stands for all that was printed.
    if stream == "stderr":
        stderr = stderr or text
    else:
        stdout = stdout or text
    now, zone = _when(row, defaults)
    code = _exit_code(row, defaults.exit_code)
    return read_output(
        stdout or "", stderr or "", packs=packs, now=now, zone=zone, agent=agent, exit_code=code
    )


def _words(row: Mapping[str, Any], key: str) -> str | None:
    value = row.get(key)
    if value is not None and not isinstance(value, str):
        raise ValueError(f"{key} needs a string; got {value!r:.60}")
    return value


def _exit_code(row: Mapping[str, Any], default: int | None) -> int | None:
    value = row.get("exit_code")
    if value is None:
        return default
    if type(value) is not int:  # True is none
        raise ValueError(f"exit_code needs a whole number; got {value!r:.60}")
    return value


def _when(row: Mapping[str, Any], defaults: RowDefaults) -> tuple[float, tzinfo]:
    """The row's clock and zone; a time without a named zone brings its own offset."""
    stated, name = _words(row, "now"), _words(row, "local_tz")
    try:
        moment = datetime.fromisoformat(stated) if stated else None
    except ValueError:
        raise ValueError(f"now needs ISO 8601; got {stated!r}") from None
    try:
        named = ZoneInfo(name) if name else defaults.zone
    except (KeyError, ValueError, OSError):
        raise ValueError(f"no such zone {name!r}") from None
    zone = named or (moment.tzinfo if moment else None) or defaults.local
    if moment is None:
        return defaults.now, zone
    return (moment if moment.tzinfo else moment.replace(tzinfo=zone)).timestamp(), zone
