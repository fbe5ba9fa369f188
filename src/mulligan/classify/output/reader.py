"""What an agent program's output says about how it ended.

Structured evidence first: events, error bodies, headers. Then text, where only the program's own
voice counts. Text that a tool echoed, talk about limits, warnings, notices of the program's own
retries, errors that it survived: not failures. Never raises, whatever the bytes.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..core.failure import Failure, Kind
from ..core.text import presentable
from .output.dumps import dumped
from .output.echo import is_fence, is_survival, is_trailer, outside, prose_words
from .output.evidence import Evidence, Role
from .output.fields import reset_in_fields
from .output.header_lines import headers_reset, is_plan_limit, response_at
from .output.kinds import LIMITS, Judgement, World, by_status, goes_on, judge, reach_of, squash
from .output.objects import failed_words
from .output.story import Story, Stream, judged, take_apart
from .output.text import last_word, tries_again
from .reset_time import ResetTime

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from .pack import Packs

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


# More prose than this around an error body, and the body is an example in an answer.
_PROSE_AROUND_A_BODY = 12
_PROSE_AROUND_AN_ERROR = 40
_LONGEST_BANNER = 160
_BODIES = 8
# ✔ reads a 529: a test that shows what it read
_TESTED = re.compile(r"\s{0,8}(?:[✓✔] |PASS |ok \d)")
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
        packs: The patterns; `mulligan.api.words.load_packs` reads them.
        now: Epoch seconds.
        zone: The host's zone: what a clock time without a zone means.
        agent: The program's name, if known.
        exit_code: How it exited; None if that is not known.
    """
    streams = [take_apart(_text(stdout)), take_apart(_text(stderr))]
    given_away = streams[0].agent or streams[1].agent
    world = World(packs=packs, agent=agent or given_away, now=now, zone=zone)
    has_failed = exit_code not in (None, 0)
    story = _story(streams, world, exit_code)
    found = _from_events(story, world)
    if found is not None and found.failure is not None and found.failure.kind is Kind.UNKNOWN:
        said = _from_text(streams, world, exit_code=exit_code)
        found = said if said is not None and said.failure is not None else found
    if found is None or (has_failed and found.failure is None):
        found = _from_words(streams, world, exit_code) or _from_progress(story, world) or found
    if found is not None and (found.failure is not None or not has_failed):
        return found
    return _from_exit(story, world, exit_code, found)


def _story(streams: Sequence[Stream], world: World, exit_code: int | None) -> Story:
    """What the events tell; one that ended well was not ended by a complaint on stderr."""
    out, err = ([one for one in stream.evidence if one.is_event] for stream in streams)
    told = Story(out, world)
    return told if told.is_done and exit_code == 0 else Story([*out, *err], world)


def _from_words(streams: Sequence[Stream], world: World, exit_code: int | None) -> Outcome | None:
    """What everything but the program's own events says."""
    has_failed = exit_code not in (None, 0)
    found = _from_bodies(streams, world, has_failed=has_failed)
    found = found or _from_text(streams, world, exit_code=exit_code)
    if found is None or (found.failure is not None and found.failure.kind is Kind.CLIENT):
        # "Bad request", and below it what the server really said
        found = _from_dumps(streams, world) or found
    if found is None and has_failed:
        found = _from_bodies(streams, world, has_failed=True, is_fenced=True)
    found = found or _from_headers(streams, world)
    return found if found is not None or exit_code == 0 else _from_objects(streams, world)


def _from_events(story: Story, world: World) -> Outcome | None:
    last = story.last
    if last is None:
        return None
    if story.is_done:
        banner = _banner_as_answer(last, world)
        if banner is not None:
            return _outcome(banner, last, world)
        because = "the run reported success"
        return Outcome(
            failure=None, source=last.source, agent=world.agent, because=because, is_done=True
        )
    judgement = story.judgement()
    if judgement is None:
        because = "the run reported a failure in words that no pack knows"
        judgement = Judgement(means=Kind.UNKNOWN, because=because)
    return _outcome(judgement, replace(last, text=last.text or story.words), world)


def _from_progress(story: Story, world: World) -> Outcome | None:
    if story.progress is None:
        return None
    return _going_on(story.progress.text, story.progress.source, world)


def _going_on(text: str, source: str, world: World) -> Outcome:
    return Outcome(
        failure=None,
        message=presentable(text),
        source=source,
        agent=world.agent,
        because="the program is trying again by itself",
        is_progress=True,
    )


def _banner_as_answer(evidence: Evidence, world: World) -> Judgement | None:
    """Claude 2.0 reported success with the banner as the whole answer."""
    text = squash(evidence.text)
    if not text or len(text) > _LONGEST_BANNER:
        return None
    found = judge(text, world, is_error=False)
    if found is None or found.means is not Kind.QUOTA or found.reset is None:
        return None
    is_all = found.begin < 12 and len(text) - found.end < 60 and not goes_on(text, found.end)
    return found if is_all else None


def _from_bodies(
    streams: Sequence[Stream], world: World, *, has_failed: bool, is_fenced: bool = False
) -> Outcome | None:
    """An API's error body that stands alone, with the headers around it."""
    for stream in reversed(streams):
        bodies = [
            one
            for one in stream.evidence
            if not one.is_event and one.role is Role.FAILED and one.is_fenced is is_fenced
        ]
        if not bodies or not (has_failed or _stands_out(bodies[-1], stream.lines)):
            continue
        body, judgement = _last_judged(bodies, world)
        if judgement is None or _is_outlived(body, stream, world, has_failed=has_failed):
            continue
        around = response_at(stream.lines, max(0, body.line - 1), is_error=True)
        headers = headers_reset(around, world)
        if headers is not None:
            # A reset signal means that it recovers, whatever the words (E-G1).
            means = Kind.RATE_LIMIT if judgement.means is Kind.BILLING else judgement.means
            judgement = replace(judgement, means=means, reset=headers)
        return _outcome(judgement, body, world)
    return None


def _is_outlived(body: Evidence, stream: Stream, world: World, *, has_failed: bool) -> bool:
    """Whether lines below `body` tell of another end."""
    said = last_word(stream.lines, world, has_failed=has_failed)
    if said is None or said.line < body.line or not isinstance(said.judgement.means, Kind):
        return False
    return not said.judgement.because.startswith("status ")


def _last_judged(bodies: Sequence[Evidence], world: World) -> tuple[Evidence, Judgement | None]:
    """The last body whose words are known, with what they mean; else the last of all."""
    for body in reversed(bodies[-_BODIES:]):
        if (judgement := judged(body, world)) is not None:
            return body, judgement
    return bodies[-1], None


def _stands_out(body: Evidence, lines: Sequence[str]) -> bool:
    """Whether `body` is what a program ended with, not what it shows among its `lines`."""
    if any(is_fence(line) or _TESTED.match(line) for line in lines):
        return False
    if any(is_survival(line) for line in lines[body.line :]):
        return False
    around = sum(prose_words(line) for line in lines if not is_trailer(line))
    if body.is_introduced:
        return around <= _PROSE_AROUND_AN_ERROR
    return around <= (0 if body.is_doubtful else _PROSE_AROUND_A_BODY)


def _from_text(streams: Sequence[Stream], world: World, *, exit_code: int | None) -> Outcome | None:
    has_failed = exit_code not in (None, 0)
    out, err = streams
    said = last_word(out.lines, world, has_failed=has_failed)
    if said is None or not isinstance(said.judgement.means, Kind) or tries_again(said.text):
        other = last_word(err.lines, world, has_failed=has_failed)
        # An answer on stdout with exit 0 outlived whatever stderr complained about, unless the
        # complaint is about the answer.
        has_answer = exit_code == 0 and any(line.strip() for line in out.lines)
        if other is not None and not (has_answer and not _INCOMPLETE.search(other.text)):
            said = other
    if said is None:
        return None
    if not isinstance(said.judgement.means, Kind):
        return _going_on(said.text, "notice", world)
    source = "error line" if said.is_error else "banner"
    heard = Evidence(
        role=Role.FAILED, text=said.text, source=source, status=said.status, is_event=False
    )
    return _outcome(_with_body(said.judgement, streams, world), heard, world)


def _from_dumps(streams: Sequence[Stream], world: World) -> Outcome | None:
    """An error object that a runtime dumped."""
    for stream in reversed(streams):
        if (found := dumped(stream.lines)) is not None:
            judgement = judged(found, world)
            if judgement is not None and judgement.reset is None and judgement.means in LIMITS:
                judgement = replace(judgement, reset=headers_reset(outside(stream.lines), world))
            return None if judgement is None else _outcome(judgement, found, world)
    return None


def _from_headers(streams: Sequence[Stream], world: World) -> Outcome | None:
    """Headers of a plan's window that is used up, and not a word beside them."""
    for stream in streams:
        lines = outside(stream.lines) if is_plan_limit(stream.lines) else ()
        if is_plan_limit(lines):
            reset = headers_reset(lines, world)
            judgement = Judgement(means=Kind.QUOTA, because="the headers say so", reset=reset)
            words = "limit reached"
            said = Evidence(role=Role.FAILED, text=words, source="headers", is_event=False)
            return _outcome(judgement, said, world)
    return None


def _from_objects(streams: Sequence[Stream], world: World) -> Outcome | None:
    """What objects in a shape that nobody knows say about a failure."""
    for stream in reversed(streams):
        for data in reversed(stream.objects):
            said = last_word(failed_words(data), world, has_failed=True)
            if said is None or not isinstance(said.judgement.means, Kind):
                continue
            reset = said.judgement.reset or reset_in_fields(data, now=world.now, zone=world.zone)
            heard = Evidence(role=Role.FAILED, text=said.text, source="json output", is_event=False)
            return _outcome(replace(said.judgement, reset=reset), heard, world)
    return None


def _with_body(judgement: Judgement, streams: Sequence[Stream], world: World) -> Judgement:
    """A limit that a line stated without its time, with the time in a body beside the line.

    A line that says no more than a status means what the body says.
    """
    is_bare = judgement.because.startswith("status ")
    if judgement.reset is not None or not (is_bare or judgement.means in LIMITS):
        return judgement
    bodies = (one for stream in streams for one in stream.evidence if not one.is_event)
    for body in [one for one in bodies if one.role is Role.FAILED][: -_BODIES - 1 : -1]:
        found = judged(body, world)
        if found is None or found.means not in LIMITS:
            continue
        if is_bare:
            return found
        if found.reset is not None:
            return replace(judgement, reset=found.reset)
    if judgement.means not in LIMITS:
        return judgement
    records = (one.record for one in streams if one.record is not None)
    resets = (reset_in_fields(one, now=world.now, zone=world.zone) for one in records)
    return replace(judgement, reset=next((one for one in resets if one is not None), None))


def _outcome(judgement: Judgement, evidence: Evidence, world: World) -> Outcome:
    kind = judgement.means if isinstance(judgement.means, Kind) else Kind.UNKNOWN
    message = presentable(evidence.text or evidence.aside)
    failure = Failure(
        kind=kind,
        message=message,
        reach=reach_of(kind, evidence.text[:2000]),
        hint=None if judgement.reset is None else judgement.reset.hint,
        status=evidence.status,
        code=presentable(evidence.code, 80) or None,
        because=judgement.because,
    )
    return Outcome(
        failure=failure,
        message=message,
        source=evidence.source,
        agent=world.agent,
        because=judgement.because,
        reset=judgement.reset,
        is_structured=evidence.is_event,
    )


def _from_exit(story: Story, world: World, exit_code: int | None, found: Outcome | None) -> Outcome:
    if exit_code in (None, 0):
        because = "nothing in the output is a failure"
        return Outcome(failure=None, agent=world.agent, because=because)
    if story.progress is not None and (last := judged(story.progress, world)) is not None:
        # It died while it was trying again: what it tried again is what failed.
        return _outcome(last, story.progress, world)
    code, is_gemini = exit_code or 0, world.agent == "gemini"
    status = _GEMINI_STATUS.get(code) if is_gemini else None
    kind = by_status(status) or (_GEMINI_KINDS.get(code) if is_gemini else None)
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
        agent=world.agent,
        because=because,
    )


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
