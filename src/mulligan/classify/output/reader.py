"""What an agent program's output says about how it ended.

Events, error bodies and headers are read first, then lines of text, of which only those count that
the program wrote about itself. Not failures: text that a tool echoed, talk about limits, warnings,
notices of the program's own retries, and errors that were followed by more work. Never raises.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ...core.failure import Failure, Kind
from ...core.hint import Confidence
from ...core.redaction import presentable
from ..pattern_packs import Meaning
from ..status_kinds import verdict
from ..times.fields import reset_in_fields
from ..times.plain_text import one_line, without_escapes
from ..times.server_formats import ResetTime
from .evidence import Evidence, Role
from .failed_objects import failure_lines
from .failure_score import READS_FAILED, READS_HARMLESS, failure_score
from .guess import error_lines, guess, last_words, says_failed, titled_limit
from .header_lines import headers_reset, is_plan_limit, response_at
from .last_error import goes_on, last_error, tries_again
from .meaning import (
    LIMITS,
    Judgement,
    ReadingContext,
    judge,
    limited_model,
    reach_in_words,
)
from .shown import is_code, is_fence, is_survival, is_trailer, outside, prose_words, shown
from .speaker import read_line
from .talk import explains
from .timeline import Stream, Timeline, judged, split_stream

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from ..pattern_packs import Packs

__all__ = ("Outcome", "read_output")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How a program's run ended, as far as its output tells.

    Args:
        failure: What went wrong; None if nothing did.
        message: The words that decided it, fit to be shown.
        source: Which evidence decided it: ``codex turn.failed event``, ``banner``.
        agent: The program: as it was given, or as its output gives it away; may be empty.
        because: Why, in one clause.
        reset: When a limit resets, as it was stated; its time may be over.
        is_structured: Whether the program itself reported an event; False for words, which a
            caller may hold against the exit code.
        is_progress: Whether the last word was that the program is trying again by itself.
        is_done: Whether the program itself reported that it did well.
        confidence: LOW where the kind was guessed from the last words of a run that failed.
        is_work_left: Whether it did not fail, but says that it ended early because a limit is near.
        is_last_word: Whether it is a banner, or an error that the program marked, which states a
            reset, with nothing but advice below it.
        line: How many lines of its stream stand above what decided, as `split_stream` counts them:
            JSON values are none; None if that is not known.
    """

    failure: Failure | None
    message: str = ""
    source: str = ""
    agent: str = ""
    because: str
    reset: ResetTime | None = None
    is_structured: bool = False
    is_progress: bool = False
    is_done: bool = False
    confidence: Confidence = Confidence.HIGH
    is_work_left: bool = False
    is_last_word: bool = False
    line: int | None = None


# More prose than this around an error body, and the body is an example in an answer.
_PROSE_AROUND_A_BODY = 12
_PROSE_AROUND_AN_ERROR = 40
_LONGEST_BANNER = 160
_LEAD = 12
_BODIES = 8
_NOTICES = 40
# ✔ reads a 529: a test that shows what it read
_TESTED = re.compile(r"\s{0,8}(?:[✓✔] |PASS |ok \d)")
# > a quotation   text: `API Error: 429`
_QUOTED = re.compile(r"^> |\w: `[^`\n]{1,4000}`\s*$")
_INCOMPLETE = re.compile(r"stream ended|finish[_ ]reason|truncated|empty response", re.IGNORECASE)
# Gemini's exit code is the HTTP status modulo 256 in its JSON modes; the rest is documented.
_GEMINI_STATUS = {one % 256: one for one in (400, 401, 403, 404, 408, 429, 499, 500, 502, 503, 504)}
_GEMINI_KINDS = {41: Kind.AUTH, 42: Kind.CLIENT, 44: Kind.CLIENT, 52: Kind.CLIENT, 53: Kind.CLIENT}


def read_output(
    stdout: str | bytes = "",
    stderr: str | bytes = "",
    *,
    packs: Packs,
    now: float,
    zone: tzinfo,
    agent: str = "",
    exit_code: int | None = None,
) -> Outcome:
    """Judge what a program printed.

    Args:
        stdout: What it printed; where the streams are not known apart, all of it.
        stderr: What it printed as errors.
        packs: The patterns; `mulligan.api.agent_output.load_packs` reads them.
        now: Epoch seconds.
        zone: The host's zone: what a clock time without a zone means.
        agent: The program's name, if known.
        exit_code: How it exited; None if that is not known.
    """
    texts = [_text(stdout), _text(stderr)]
    streams = [split_stream(text) if text.strip() else Stream((), ()) for text in texts]
    agent = agent or streams[0].agent or streams[1].agent
    context = ReadingContext(entries=packs.entries(agent), agent=agent, now=now, zone=zone)
    found = _read(streams, context, exit_code)
    if exit_code is None:
        found = _weighed(found, "\n".join(texts), streams, context)
    if found.failure is None and _leaves_work(streams, context):
        return replace(found, is_work_left=True)
    return found


def _read(streams: Sequence[Stream], context: ReadingContext, exit_code: int | None) -> Outcome:
    """What the evidence says, the surest first."""
    has_failed = exit_code not in (None, 0)
    story = _timeline(streams, context, exit_code)
    found = _from_events(story, context)
    if found is not None and found.failure is not None and found.failure.kind is Kind.UNKNOWN:
        said = _from_text(streams, context, exit_code=exit_code)
        found = said if said is not None and said.failure is not None else found
    if found is None or (has_failed and found.failure is None):
        found = _from_words(streams, context, exit_code) or _from_progress(story, context) or found
    if found is None or (found.failure is None and has_failed):
        found = _from_exit(story, context, exit_code, found)
    if has_failed and found.failure is not None and found.failure.kind is Kind.UNKNOWN:
        return _guessed(streams, context, found, has_failed=True) or found
    if exit_code is None and found.failure is None and not (story.last or found.is_progress):
        return _guessed(streams, context, found, has_failed=False) or found
    return found


def _weighed(
    found: Outcome, text: str, streams: Sequence[Stream], context: ReadingContext
) -> Outcome:
    """`found`, unless all the words of `text` say otherwise about whether a run failed.

    Events say so themselves, and so does a banner with nothing below it.
    """
    if found.is_structured or found.is_progress or found.is_done or found.is_last_word:
        return found
    score = failure_score(without_escapes(text))
    words = ", ".join(f'"{word}"' for word in score.words)
    if found.failure is not None and score.value <= READS_HARMLESS:
        because = f"reads like a text about failures ({words}), not like a run that failed"
        return Outcome(failure=None, agent=context.agent, because=because)
    is_line = "\n" not in text.strip()
    is_logging = any(goes_on(one.lines[-1]) for one in streams if one.lines)
    needed = READS_HARMLESS if any(says_failed(one.lines) for one in streams) else READS_FAILED
    if found.failure is not None or is_line or is_logging or score.value < needed:
        return found
    failed = _read([_without_shown(one) for one in streams], context, exit_code=1)
    failure = failed.failure
    if failure is None or failure.kind is Kind.UNKNOWN:
        return found
    because = f"{failed.because}; reads like the output of a run that failed ({words})"
    failure = replace(failure, because=because)
    return replace(failed, failure=failure, because=because, confidence=Confidence.LOW)


def _without_shown(stream: Stream) -> Stream:
    """`stream` with the lines emptied that it merely shows or quotes."""
    told = zip(stream.lines, shown(stream.lines), strict=True)
    spoken = ("" if is_shown or _QUOTED.search(line) else line for line, is_shown in told)
    return replace(stream, lines=tuple(spoken))


def _leaves_work(streams: Sequence[Stream], context: ReadingContext) -> bool:
    """Whether a line in the program's own voice says that it stops early, before a limit."""
    entries = [one for _, one in context.entries if one.means is Meaning.WORK_LEFT]
    for stream in streams:
        lines = [line for line in stream.lines if "limit" in line][-_NOTICES:]
        spoken = (read_line(line).text for line in outside(lines))
        if any(one.match.match(text) for text in spoken for one in entries):
            return True
    return False


def _guessed(
    streams: Sequence[Stream], context: ReadingContext, found: Outcome, *, has_failed: bool
) -> Outcome | None:
    """What the last words of a run that failed hint at, where no rule knows them."""
    words = found.message.split("\n") if found.is_structured else []
    for lines in (words, streams[1].lines, streams[0].lines):
        ends = last_words(lines) if has_failed else error_lines(lines)
        if (guessed := guess(ends, context) or titled_limit(lines, context)) is not None:
            judgement, line = guessed
            heard = Evidence(
                role=Role.FAILED, text=line, source="last words", is_event=found.is_structured
            )
            return replace(_outcome(judgement, heard, context), confidence=Confidence.LOW)
    return None


def _timeline(
    streams: Sequence[Stream], context: ReadingContext, exit_code: int | None
) -> Timeline:
    """What the events tell; one that ended well was not ended by a complaint on stderr."""
    out, err = ([one for one in stream.evidence if one.is_event] for stream in streams)
    told = Timeline(out, context)
    return told if told.is_done and exit_code == 0 else Timeline([*out, *err], context)


def _from_words(
    streams: Sequence[Stream], context: ReadingContext, exit_code: int | None
) -> Outcome | None:
    """What everything but the program's own events says."""
    has_failed = exit_code not in (None, 0)
    found = _from_bodies(streams, context, has_failed=has_failed)
    found = found or _from_text(streams, context, exit_code=exit_code)
    if found is None and has_failed:
        found = _from_bodies(streams, context, has_failed=True, is_fenced=True)
    found = found or _from_headers(streams, context)
    return found or _from_objects(streams, context, has_failed=has_failed)


def _from_events(story: Timeline, context: ReadingContext) -> Outcome | None:
    last = story.last
    if last is None:
        return None
    if story.is_done:
        banner = _banner_as_answer(last, context)
        if banner is not None:
            return _outcome(banner, last, context)
        because = "the run reported success"
        return Outcome(
            failure=None, source=last.source, agent=context.agent, because=because, is_done=True
        )
    judgement = story.judgement()
    if judgement is None:
        because = "the run reported a failure in words that no pack knows"
        judgement = Judgement(means=Kind.UNKNOWN, because=because)
    outcome = _outcome(judgement, replace(last, text=last.text or story.words), context)
    outcome = replace(outcome, line=last.line)
    failure = outcome.failure
    if failure is None or not failure.kind.is_limit or failure.model:
        return outcome
    return replace(outcome, failure=replace(failure, model=story.model))


def _from_progress(story: Timeline, context: ReadingContext) -> Outcome | None:
    if story.progress is None:
        return None
    return _going_on(story.progress.text, story.progress.source, context)


def _going_on(text: str, source: str, context: ReadingContext) -> Outcome:
    return Outcome(
        failure=None,
        message=presentable(text),
        source=source,
        agent=context.agent,
        because="the program is trying again by itself",
        is_progress=True,
    )


def _banner_as_answer(evidence: Evidence, context: ReadingContext) -> Judgement | None:
    """Claude 2.0 reported success with the banner as the whole answer, and no tokens of one."""
    text = one_line(evidence.text)
    if evidence.is_written or not text or len(text) > _LONGEST_BANNER:
        return None
    found = judge(text, context, is_error=False)
    if found is None or found.means is not Kind.QUOTA or found.reset is None:
        return None
    is_all = found.begin < _LEAD and len(text) - found.end < 60 and not explains(text, found.end)
    return found if is_all else None


def _from_bodies(
    streams: Sequence[Stream], context: ReadingContext, *, has_failed: bool, is_fenced: bool = False
) -> Outcome | None:
    """An API's error body that stands alone, with the headers around it."""
    roles = (Role.FAILED, Role.ENDED) if is_fenced else (Role.FAILED,)
    for stream in reversed(streams):
        bodies = [
            one
            for one in stream.evidence
            if not one.is_event and one.role in roles and one.is_fenced is is_fenced
        ]
        if not bodies or not (has_failed or _stands_out(bodies[-1], stream.lines)):
            continue
        body, judgement = _last_judged(bodies, context)
        if judgement is None or _is_outlived(body, stream, context, has_failed=has_failed):
            continue
        around = response_at(stream.lines, max(0, body.line - 1), is_error=True)
        headers = headers_reset(around, context)
        if headers is not None:
            # A reset signal means that it recovers, whatever the words (E-G1).
            means = Kind.RATE_LIMIT if judgement.means is Kind.BILLING else judgement.means
            judgement = replace(judgement, means=means, reset=headers)
        found = _outcome(_completed(judgement, streams, context), body, context)
        return replace(found, line=body.line)
    return None


def _is_outlived(
    body: Evidence, stream: Stream, context: ReadingContext, *, has_failed: bool
) -> bool:
    """Whether lines below `body` tell of another end."""
    said = last_error(stream.lines, context, has_failed=has_failed)
    if said is None or said.line < body.line or not isinstance(said.judgement.means, Kind):
        return False
    return said.judgement.by_status is None


def _last_judged(
    bodies: Sequence[Evidence], context: ReadingContext
) -> tuple[Evidence, Judgement | None]:
    """The last body whose words are known, with what they mean; else the last of all."""
    for body in reversed(bodies[-_BODIES:]):
        if (judgement := judged(body, context)) is not None:
            return body, judgement
    return bodies[-1], None


def _stands_out(body: Evidence, lines: Sequence[str]) -> bool:
    """Whether `body` is what a program ended with, not what it shows among its `lines`."""
    if any(is_fence(line) or _TESTED.match(line) for line in lines):
        return False
    if any(is_survival(one) or is_code(one) for one in lines[body.line :]):
        return False
    around = sum(prose_words(line) for line in lines if not is_trailer(line))
    if body.is_introduced:
        return around <= _PROSE_AROUND_AN_ERROR
    return around <= (0 if body.is_doubtful else _PROSE_AROUND_A_BODY)


def _from_text(
    streams: Sequence[Stream], context: ReadingContext, *, exit_code: int | None
) -> Outcome | None:
    has_failed = exit_code not in (None, 0)
    out, err = streams
    said = last_error(out.lines, context, has_failed=has_failed)
    if said is None or not isinstance(said.judgement.means, Kind) or tries_again(said.text):
        other = last_error(err.lines, context, has_failed=has_failed)
        # An answer on stdout with exit 0 outlived whatever stderr complained about, unless the
        # complaint is about the answer.
        has_answer = exit_code == 0 and any(line.strip() for line in out.lines)
        if other is not None and not (has_answer and not _INCOMPLETE.search(other.text)):
            said = other
    if said is None:
        return None
    if not isinstance(said.judgement.means, Kind):
        return replace(_going_on(said.text, "notice", context), line=said.line)
    source = "error line" if said.is_error else "banner"
    heard = Evidence(
        role=Role.FAILED, text=said.text, source=source, status=said.status, is_event=False
    )
    found = _outcome(_completed(said.judgement, streams, context), heard, context)
    is_plain = said.judgement.begin < _LEAD and found.reset is not None
    return replace(found, is_last_word=said.is_last and is_plain, line=said.line)


def _from_headers(streams: Sequence[Stream], context: ReadingContext) -> Outcome | None:
    """Headers of a plan's window that is used up, and not a word beside them."""
    for stream in streams:
        lines = outside(stream.lines) if is_plan_limit(stream.lines) else ()
        if is_plan_limit(lines) and not any(map(is_code, lines)):
            reset = headers_reset(lines, context)
            judgement = Judgement(means=Kind.QUOTA, because="the headers say so", reset=reset)
            words = "limit reached"
            said = Evidence(role=Role.FAILED, text=words, source="headers", is_event=False)
            return _outcome(judgement, said, context)
    return None


def _from_objects(
    streams: Sequence[Stream], context: ReadingContext, *, has_failed: bool
) -> Outcome | None:
    """What objects of an unknown shape say about a failure.

    Where the exit code does not tell of one, only the last object counts, and only at the end
    of what is no document.
    """
    for stream in reversed(streams):
        prose = [*map(prose_words, stream.lines)]
        is_end = not any(prose[len(prose) - stream.lines_below :])
        if not (has_failed or (is_end and sum(prose) <= _PROSE_AROUND_A_BODY)):
            continue
        for data in reversed(stream.objects if has_failed else stream.objects[-1:]):
            lines = failure_lines(data)
            said = last_error(lines, context, has_failed=True)
            if said is None:  # the object says that it is an error, so its sentences need not
                errors = [f"Error: {line}" for line in lines]
                said = last_error(errors, context, has_failed=True)
            if said is None or not isinstance(said.judgement.means, Kind):
                continue
            reset = said.judgement.reset or reset_in_fields(data, now=context.now)
            heard = Evidence(role=Role.FAILED, text=said.text, source="json output", is_event=False)
            return _outcome(replace(said.judgement, reset=reset), heard, context)
    return None


def _completed(
    judgement: Judgement, streams: Sequence[Stream], context: ReadingContext
) -> Judgement:
    """A limit that was stated without its time, with the time in a body or banner beside it.

    A line that says no more than a status means what the body says.
    """
    is_bare = judgement.by_status is not None
    if judgement.reset is not None or not (is_bare or judgement.means in LIMITS):
        return judgement
    bodies = [one for stream in streams for one in stream.evidence if not one.is_event]
    said = [judged(one, context) for one in bodies[-_BODIES:] if one.role is Role.FAILED]
    others = [one for one in reversed(said) if one is not None]
    if is_bare and others and (judgement.means in LIMITS or others[0].means in LIMITS):
        return others[0]
    others = [one for one in others if one.means in LIMITS]
    banners = (last_error(stream.lines, context, has_failed=True) for stream in streams)
    others += [one.judgement for one in banners if one and one.judgement.means in LIMITS]
    resets = [one.reset for one in others]
    resets += [reset_in_fields(one.record, now=context.now) for one in streams]
    if judgement.means not in LIMITS:
        return judgement
    return replace(judgement, reset=next((one for one in resets if one is not None), None))


def _outcome(judgement: Judgement, evidence: Evidence, context: ReadingContext) -> Outcome:
    kind = judgement.means if isinstance(judgement.means, Kind) else Kind.UNKNOWN
    words = one_line(evidence.text, evidence.codes)
    message = presentable(evidence.text or words)
    failure = Failure(
        kind=kind,
        message=message,
        reach=reach_in_words(judgement, evidence.status, evidence.text[:2000]),
        hint=None if judgement.reset is None else judgement.reset.hint,
        status=evidence.status,
        code=presentable(evidence.code, 80) or None,
        is_retriable=None if judgement.by_status is None else judgement.by_status.is_retriable,
        because=judgement.because,
        model=limited_model(words) if kind.is_limit else "",
    )
    return Outcome(
        failure=failure,
        message=message,
        source=evidence.source,
        agent=context.agent,
        because=judgement.because,
        reset=judgement.reset,
        is_structured=evidence.is_event,
    )


def _from_exit(
    story: Timeline, context: ReadingContext, exit_code: int | None, found: Outcome | None
) -> Outcome:
    if exit_code in (None, 0):
        because = "nothing in the output is a failure"
        return Outcome(failure=None, agent=context.agent, because=because)
    if story.progress is not None and (last := judged(story.progress, context)) is not None:
        # It died while it was trying again: what it tried again is what failed.
        return _outcome(last, story.progress, context)
    code, is_gemini = exit_code or 0, context.agent == "gemini"
    status = _GEMINI_STATUS.get(code) if is_gemini else None
    stated = verdict(status, (), "")
    kind = stated.kind if stated is not None else _GEMINI_KINDS.get(code) if is_gemini else None
    because = f"exit code {code}" + (f" is status {status} modulo 256" if status else "")
    failure = Failure(
        kind=kind or Kind.UNKNOWN,
        message=found.message if found is not None and found.message else because,
        status=status,
        because=because,
    )
    return Outcome(
        failure=failure,
        message=failure.message,
        source="exit code",
        agent=context.agent,
        because=because,
    )


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
