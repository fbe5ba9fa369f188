"""What a message means: the first entry of the packs that matches, else its status or codes.

The status is read as in an HTTP answer (`status_kinds`), and so are sizes and reset times.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo

from ...core.failure import Kind, Reach
from ...core.hint import Confidence
from ..pattern_packs import Entry, Meaning, Pack, Voice
from ..status_kinds import (
    NO_WAIT,
    Verdict,
    never_passes,
    reach_of,
    speaks_of_a_plan,
    verdict,
    weigh,
)
from ..times.fields import reset_in_fields
from ..times.reset_time import find_reset
from ..times.server_formats import ResetTime
from ..times.zones import named_zone
from ..vocabulary import FROM_WORDS, SPENT, room_beside
from .talk import is_condition, is_inside_quotes, is_person, is_talk

__all__ = (
    "LIMITED_MODELS",
    "LIMITS",
    "THIS",
    "Judgement",
    "ReadingContext",
    "judge",
    "judge_status",
    "judge_stems",
    "judge_unknown",
    "limited_model",
    "reach_in_words",
    "with_status",
)

# What passes by itself, sooner or later.
LIMITS = (Kind.QUOTA, Kind.RATE_LIMIT, Kind.OVERLOADED)
_LONGEST_UNKNOWN = 600
_NEVER_SENT = re.compile(
    r"refused|ENOTFOUND|EAI_AGAIN|resolve|name or service|getaddrinfo|no route|unreachable",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingContext:
    """What a judgement needs to know besides the words.

    Args:
        entries: The patterns with their packs, those of the program first.
        agent: The program, if known.
        now: Epoch seconds.
        zone: What a time without a zone means: the host's zone, or one that was named just above.
        is_over: Whether the run is known to have failed: then no notice can say otherwise.
        is_weak: Whether weak entries are asked too, because nothing else matched.
    """

    entries: Sequence[tuple[Pack, Entry]]
    agent: str
    now: float
    zone: tzinfo
    is_over: bool = False
    is_weak: bool = False
    # A log says the same thing a thousand times.
    known: dict[object, Judgement | None] = field(default_factory=dict, repr=False, compare=False)

    def reset_in(self, text: str) -> ResetTime | None:
        """The reset that `text` states."""
        return find_reset(text, now=self.now, zone=self.zone)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """What a message was found to mean.

    Args:
        means: A kind of failure, or a Meaning.
        because: What decided it, in a clause.
        pack: The pack that decided it; empty if none did.
        begin: Where the words that decided it begin in the squashed text.
        end: Where they end, the reset included.
        reset: When it resets, if the message says so.
        by_status: The verdict of the status, where no pack knew the words.
    """

    means: Kind | Meaning
    because: str
    pack: str = ""
    begin: int = 0
    end: int = 0
    reset: ResetTime | None = None
    by_status: Verdict | None = None


def judge(
    text: str, context: ReadingContext, *, is_error: bool, fields: object = None
) -> Judgement | None:
    """What `text` means by the packs, or None if no entry knows it.

    Args:
        text: A squashed message.
        context: Packs, agent, clock, zone.
        is_error: Whether an error speaks: then the words may stand anywhere in it.
        fields: JSON around the message, for reset times under known keys.
    """
    if not (is_error or context.is_over) and is_condition(text):
        return None
    if fields is not None:
        return _first_entry(text, context, is_error=is_error, fields=fields)
    asked = (text, is_error, context.is_weak, context.is_over, context.zone)
    if asked not in context.known:
        context.known[asked] = _first_entry(text, context, is_error=is_error, fields=None)
    return context.known[asked]


def _first_entry(
    text: str, context: ReadingContext, *, is_error: bool, fields: object
) -> Judgement | None:
    """What the first entry that knows `text` says."""
    is_plain, vague = text.isascii(), None
    for pack, entry in context.entries:
        if is_plain and entry.is_foreign:
            continue
        if entry.voice is Voice.GUESS or (entry.voice is Voice.ERROR and not is_error):
            continue
        if entry.voice is Voice.WEAK and not context.is_weak:
            continue
        if context.is_over and entry.means is Meaning.PROGRESS:
            continue
        found = _found(text, pack, entry, is_error=is_error)
        if found is None:
            continue
        reset = _reset(text, entry, context, fields)
        judgement = _judgement(text, found, (pack, entry), reset)
        # "Internal error: session limit reached, resets 5am": a server that says when is full.
        if judgement.means is Kind.SERVER and reset and reset.confidence is Confidence.HIGH:
            vague = vague or judgement
        elif entry.voice is not Voice.STATED or _is_stated(text, reset, is_error=is_error):
            return judgement if vague is None or judgement.means in LIMITS else vague
    return vague


def judge_stems(text: str, context: ReadingContext, near: Sequence[str] = ()) -> Judgement | None:
    """What the first entry for guesses says whose stem stands in `text`, or None.

    Args:
        text: A squashed message.
        context: Packs, agent, clock, zone.
        near: Where its reset may stand, the nearest first; only in `text` if empty.
    """
    for pack, entry in context.entries:
        found = entry.match.search(text) if entry.voice is Voice.GUESS else None
        if found is None or (entry.means in LIMITS and _NOT_MET.search(text)):
            continue
        may_reset = entry.means not in NO_WAIT
        resets = map(context.reset_in, (near or (text,)) if may_reset else ())
        reset = next((one for one in resets if one is not None), None)
        # Where the reset stands in another line, its place says nothing about these words.
        judgement = _judgement(text, found, (pack, entry), reset)
        return replace(judgement, end=found.end())
    return None


def judge_unknown(text: str, context: ReadingContext) -> Judgement | None:
    """What an error in unknown words is about; a limit must be stated, not only mentioned."""
    found = judge_stems(text[:_LONGEST_UNKNOWN], context)
    is_known = found is not None and isinstance(found.means, Kind) and found.means not in LIMITS
    return found if is_known else None


def _found(text: str, pack: Pack, entry: Entry, *, is_error: bool) -> re.Match[str] | None:
    """Where the words of `entry` are said in `text`, by whom they must be said."""
    if entry.voice is Voice.ANYWHERE or (is_error and entry.means not in _HARMLESS):
        found = entry.match.search(text)
    elif entry.voice is Voice.STATED:
        found = entry.match.search(text, 0, 4 * _EARLY)
        found = None if found is not None and _is_talk(text, found, pack) else found
    elif entry.voice is Voice.WEAK:
        head = _SENTENCE_END.split(text[:_LONGEST_STATEMENT], maxsplit=1)[0]
        is_said = not (_QUOTATION.search(head) or is_person(head))
        found = entry.match.search(head) if is_said else None
        if found is not None:
            start = found.start()
            is_ahead = _AHEAD.search(head, max(0, start - 12), found.end()) is not None
            found = None if is_ahead or is_inside_quotes(head, start) else found
    else:
        found = entry.match.match(text)
    if found is not None and entry.means in LIMITS:
        is_foreign = entry.means is Kind.QUOTA and _FOREIGN.search(found[0])
        if is_foreign or _NOT_MET.search(text, found.start(), found.end() + _A_VALUE):
            return None
    return found


_HARMLESS = (Meaning.NOT_FAILURE, Meaning.WORK_LEFT)
# Limits of other worlds.
_FOREIGN = re.compile(
    r"\b(?:speed|velocity|weight|age|storage|disk|upload|character|execution|turn|step|iteration"
    r"|recursion|depth|budget|time|memory|heap|stack|size|line) limit\b",
    re.IGNORECASE,
)
# usage limit almost reached   rate limit not exceeded   rate_limit_exceeded: false
_NOT_MET = re.compile(
    r"(?<![.!?] )\b(?:almost|nearly|not|never|not yet) (?:been )?"
    r"(?:reached|exceeded|exhausted|hit|met)\b"
    r"|(?:reached|exceeded|exhausted|hit|met|limited|overloaded)['\"]?\s?[:=]\s?"
    r"(?:no|false|0|none|null)(?=\s*(?:$|[,;}\])]|\w{1,40}=))",
    re.IGNORECASE,
)
_A_VALUE = 32
_QUOTED = re.compile(r"(?:^|[\s(,\[])'|[{}=<]|\bif\b", re.IGNORECASE)
# A sentence that is over before the words begin; a program's own wording may come second.
_SENTENCE = re.compile(r"[.!?]\s+\S")
_EARLY = 160
_SENTENCE_END = re.compile(r"(?<=[.!?])\s")
_LONGEST_STATEMENT = 240
_QUOTATION = re.compile(r'"[^"\s]{1,20} [^"\s]{1,20} [^"]')
# The limit will be reached before 5pm: not yet
_AHEAD = re.compile(r"\b(?:will|would|may|might|could|cannot|not|never)\b", re.IGNORECASE)


def _is_stated(text: str, reset: ResetTime | None, *, is_error: bool) -> bool:
    """Whether the time is stated, not quoted: a time inside quotes is a quotation."""
    return reset is not None and (is_error or text.count('"', 0, reset.span[0]) % 2 == 0)


def _is_talk(text: str, found: re.Match[str], pack: Pack) -> bool:
    start = found.start()
    is_quoted = text.count('"', 0, start) % 2 == 1 or '"' in found[0]
    if start > _EARLY or is_quoted or _QUOTED.search(text, 0, found.end()):
        return True
    # A wording of no particular program must not look like prose.
    is_generic = not pack.agents
    return is_generic and (is_talk(text, 0, start) or _SENTENCE.search(text, 0, start) is not None)


def _reset(text: str, entry: Entry, context: ReadingContext, fields: object) -> ResetTime | None:
    own = named_zone(entry.zone) if entry.zone else None
    under_keys = reset_in_fields(fields, now=context.now, zone=own)
    return under_keys or find_reset(text, now=context.now, zone=own or context.zone)


def _judgement(
    text: str, found: re.Match[str], by: tuple[Pack, Entry], reset: ResetTime | None
) -> Judgement:
    pack, entry = by
    means, because = entry.means, f"{pack.name}: {entry.id}"
    if reset is not None and entry.with_reset is not None:
        means = entry.with_reset
    if means in (Kind.RATE_LIMIT, Kind.QUOTA):
        lowered = text.lower()
        never = never_passes(lowered)
        if never is not None:
            means, because = never.kind, never.because
        elif means is Kind.RATE_LIMIT and reset is None and any(one in lowered for one in SPENT):
            means, because = Kind.BILLING, "words about money, without a reset"
    end = found.end() if reset is None else max(found.end(), reset.span[1])
    return Judgement(
        means=means, because=because, pack=pack.name, begin=found.start(), end=end, reset=reset
    )


def judge_status(
    status: int | None,
    text: str,
    context: ReadingContext,
    *,
    codes: tuple[str, ...] = (),
    fields: object = None,
) -> Judgement | None:
    """What a status or codes mean beside words that no pack knows, exactly as in an HTTP answer.

    Args:
        status: The status; None where there is none, and then only the codes count.
        text: The words beside it.
        context: Clock, zone.
        codes: The vendor's codes in lower case.
        fields: JSON around the message, for reset times under known keys.
    """
    lowered = "" if status is None else text.lower()
    is_error = status is None or 400 <= status <= 599
    found = verdict(status, codes, lowered) if is_error else None
    if found is None:
        return None
    reset = reset_in_fields(fields, now=context.now)
    if reset is None and found.kind not in NO_WAIT:
        reset = context.reset_in(text)
    is_plan, has_reset = speaks_of_a_plan(lowered), reset is not None
    found = weigh(found, status=status, lowered=lowered, has_reset=has_reset, is_plan=is_plan)
    return Judgement(means=found.kind, because=found.because, reset=reset, by_status=found)


def with_status(found: Judgement, status: int | None) -> Judgement:
    """`found`, unless the status leaves no room for it: a 404 is a 404 whatever its page says."""
    own = verdict(status, (), "") if status is not None and 400 <= status <= 599 else None
    if own is None or not isinstance(found.means, Kind) or own.kind is found.means:
        return found
    is_unpaid = status == 402 and found.means is Kind.RATE_LIMIT and found.reset is None
    # A 429 that states a wait is a limit, although its words name a policy.
    is_slowed = status == 429 and found.means is Kind.CONTENT_POLICY and found.reset is not None
    if found.means in FROM_WORDS & room_beside(status) and not (is_unpaid or is_slowed):
        return found
    return replace(found, means=own.kind, because=own.because, by_status=own)


def reach_in_words(judgement: Judgement, status: int | None, text: str) -> Reach:
    """How far the call came, as far as the words tell; a status means what it means in HTTP."""
    kind = judgement.means if isinstance(judgement.means, Kind) else Kind.UNKNOWN
    if kind in (Kind.NETWORK, Kind.TIMEOUT) and _NEVER_SENT.search(text):
        return Reach.NEVER_SENT
    own = judgement.by_status
    return reach_of(
        status,
        kind,
        is_vague=own is not None and own.is_vague and judgement.reset is None,
        is_under_way=own is not None and own.is_under_way,
    )


#: A limit on the model that was asked, which the message does not name.
THIS = "this model"
_FAMILY = r"(?P<model>(?:claude[ -])?(?:opus|sonnet|haiku|fable)(?:[ -]\d[\d.-]{0,5})?)"
_MAKERS = r"claude|codex|deepseek|gemini|gemma|glm|gpt|grok|kimi|llama|mistral|o(?=\d)|qwen"
# Programs and plans are called like models.
_NO_MODEL = r"(?!\w{1,8}-(?:code|cli|max|plus|pro|team|free|enterprise|sdk)\b(?![\w.-]))"
_ID = (
    rf"(?:[\w.-]{{1,30}}/)?{_NO_MODEL}"
    rf"(?P<model>(?:{_MAKERS})(?:[- ]?\d[\w.-]{{0,60}}|-[a-z][\w.-]{{0,60}})"
    r"(?: (?:pro|flash|mini|sonnet|opus|haiku)\b)?)"
)
# Sonnet limit has 40% left: a model that may still be asked
_HAS_MORE = r"(?!.{0,8}\d{1,3} ?%)"
_WINDOW = r"(?:(?:\d{1,2}[- ]?hour|weekly|daily|monthly|session|usage|rate) ){0,2}"
_LIMIT = r"(?:limit|quota|capacity)"

#: How messages name it, each with an example.
LIMITED_MODELS = (
    (rf"\b{_FAMILY} {_WINDOW}{_LIMIT}\b{_HAS_MORE}", "You've hit your Opus limit · resets 3:45pm"),
    (rf"\b{_LIMIT} (?:for|on) (?:the )?{_FAMILY}\b", "You've hit your weekly limit for Opus"),
    (
        rf"\b{_LIMIT} (?:(?:reached|exceeded) )?(?:for|on) (?:the )?(?:model )?['\"`]?{_ID}",
        "You've hit your usage limit for GPT-5.3-Codex-Spark. Switch to another model now",
    ),
    (
        rf"\b{_ID} {_WINDOW}{_LIMIT}\b{_HAS_MORE}",
        "You have reached your daily gemini-2.5-pro quota limit",
    ),
    (
        rf"\b{_ID}(?::\w{{1,12}})? (?:is|has been) (?:\w{{1,12}} )?(?:rate[- ]?limited|overloaded)",
        "deepseek/deepseek-r1:free is temporarily rate-limited upstream. Please retry in 3 hours",
    ),
    (
        rf"\b{_LIMIT}\b.{{0,200}}?\bmodel['\"]?: ?['\"]?{_ID}",
        "Quota exceeded for metric: requests_per_day, limit: 250, model: gemini-2.5-pro",
    ),
    (
        rf"\b{_LIMIT} (?:for|on|of) (?P<model>{THIS})\b",
        "You have exhausted your capacity on this model. Your quota will reset after 10m.",
    ),
)
_MODEL_PATTERNS = tuple(re.compile(pattern, re.IGNORECASE) for pattern, _ in LIMITED_MODELS)
_LONGEST_ABOUT_MODEL = 2000


def limited_model(text: str) -> str:
    """The model or family that the limit in `text` is about; empty if it names none."""
    for pattern in _MODEL_PATTERNS:
        if found := pattern.search(text, 0, _LONGEST_ABOUT_MODEL):
            return found["model"].rstrip(".-_").lower()
    return ""
