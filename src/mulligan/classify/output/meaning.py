"""What a message means: the first entry of the packs that matches, else its HTTP status."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from datetime import tzinfo

from ...core.failure import Kind, Reach
from ..pack import Entry, Meaning, Pack, Packs, Voice
from ..reset_time import ResetTime, find_reset
from ..times.level import level
from ..times.zones import named_zone
from .fields import reset_in_fields

__all__ = (
    "LIMITS",
    "Judgement",
    "World",
    "by_status",
    "goes_on",
    "judge",
    "reach_of",
    "squash",
    "with_status",
)

# What passes by itself, sooner or later.
LIMITS = (Kind.QUOTA, Kind.RATE_LIMIT, Kind.OVERLOADED)
_LONGEST = 4000
_BLANKS = re.compile(r"\s+")

_STATUS_KINDS = {
    401: Kind.AUTH,
    402: Kind.BILLING,
    403: Kind.AUTH,
    408: Kind.TIMEOUT,
    413: Kind.CONTEXT_LENGTH,
    429: Kind.RATE_LIMIT,
    503: Kind.OVERLOADED,
    529: Kind.OVERLOADED,
}
_FIRST_SERVER, _LAST_SERVER, _FIRST_CLIENT = 500, 599, 400

# Statuses that say no more than "the request was at fault".
_VAGUE = (400, 404, 405, 409, 413, 422)
# "api_error" is said beside every status; these tell whose fault it was.
_CALLERS_FAULT = (400, 401, 402, 403, 404, 413, 422, 429)

# Two numbers decide what no word says: a request larger than the whole limit never passes.
_TOO_LARGE = re.compile(
    r"\blimit:?\s{0,2}(?P<limit>[\d,]{1,15})\b(?:(?!\blimit\b).){0,80}?"
    r"\brequested:?\s{0,2}[~about ]{0,7}(?P<asked>[\d,]{1,15})",
    re.IGNORECASE,
)
_NEVER_SENT = re.compile(
    r"refused|ENOTFOUND|EAI_AGAIN|resolve|name or service|getaddrinfo|no route|unreachable",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What a judgement needs to know besides the words.

    Args:
        packs: The patterns.
        agent: The program, if known; its pack is asked first.
        now: Epoch seconds.
        zone: The host's zone.
    """

    packs: Packs
    agent: str
    now: float
    zone: tzinfo
    # A log says the same thing a thousand times.
    known: dict[object, Judgement | None] = field(default_factory=dict, repr=False, compare=False)


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
    """

    means: Kind | Meaning
    because: str
    pack: str = ""
    begin: int = 0
    end: int = 0
    reset: ResetTime | None = None


def squash(text: str) -> str:
    """`text` as patterns see it: plain characters, single blanks, one line."""
    return _BLANKS.sub(" ", level(text[: 2 * _LONGEST])).strip()[:_LONGEST]


def judge(
    text: str,
    world: World,
    *,
    is_error: bool,
    is_weak: bool = False,
    is_over: bool = False,
    fields: object = None,
    zone: tzinfo | None = None,
) -> Judgement | None:
    """What `text` means by the packs, or None if no entry knows it.

    Args:
        text: A squashed message.
        world: Packs, agent, clock, zone.
        is_error: Whether an error speaks: then the words may stand anywhere in it.
        is_weak: Whether weak entries are asked too.
        is_over: Whether the run is known to have failed: then no notice can say otherwise.
        fields: JSON around the message, for reset times under known keys.
        zone: What a time without a zone means here; the host's if None.
    """
    if not (is_error or is_over) and _CONDITION.match(text):
        return None
    asked = (text, is_error, is_weak, is_over, zone) if fields is None else None
    if asked in world.known:
        return world.known[asked]
    found = _asked(
        text, world, is_error=is_error, is_weak=is_weak, is_over=is_over, fields=fields, zone=zone
    )
    if asked is not None:
        world.known[asked] = found
    return found


def _asked(
    text: str,
    world: World,
    *,
    is_error: bool,
    is_weak: bool,
    is_over: bool,
    fields: object,
    zone: tzinfo | None,
) -> Judgement | None:
    """What the first entry that knows `text` says."""
    is_plain = text.isascii()
    for pack, entry in world.packs.entries(world.agent):
        if is_plain and entry.is_foreign:
            continue
        if entry.voice is Voice.ERROR and not is_error:
            continue
        if entry.voice is Voice.WEAK and not is_weak:
            continue
        if is_over and entry.means is Meaning.PROGRESS:
            continue
        found = _found(text, pack, entry, is_error=is_error)
        if found is None:
            continue
        reset = _reset(text, entry, world, fields=fields, zone=zone)
        judgement = _judgement(text, found, (pack, entry), reset)
        if entry.voice is not Voice.STATED or _is_stated(text, reset, is_error=is_error):
            return judgement
    return None


def _found(text: str, pack: Pack, entry: Entry, *, is_error: bool) -> re.Match[str] | None:
    """Where the words of `entry` are said in `text`, by whom they must be said."""
    if entry.voice is Voice.ANYWHERE or (is_error and entry.means is not Meaning.NOT_FAILURE):
        found = entry.match.search(text)
    elif entry.voice is Voice.STATED:
        found = entry.match.search(text, 0, 4 * _EARLY)
        found = None if found is not None and _is_talk(text, found, pack) else found
    else:
        found = entry.match.match(text)
        if found is not None and entry.voice is Voice.WEAK and _TALK.search(found[0]):
            return None
    is_foreign = found is not None and entry.means is Kind.QUOTA and _FOREIGN.search(found[0])
    return None if is_foreign else found


# Limits of other worlds.
_FOREIGN = re.compile(
    r"\b(?:speed|velocity|weight|age|storage|disk|upload|character) limit\b", re.IGNORECASE
)
# "When the weekly limit is reached, …" tells what would happen, not what did.
_CONDITION = re.compile(
    r"(?:if|when|whenever|once|until|unless|before|while|because|since|how|why|whether)\b",
    re.IGNORECASE,
)
# Words in front of a banner that make it a subject of conversation.
_TALK = re.compile(
    r"\b(?:if|when|once|whenever|unless|how|why|detect\w*|handle\w*|patterns?|should|would|could"
    r"|tests?|says?|said|answer\w*|prints?|printed|shows?|showed|mentions?|match\w*|e\.g|example|like|parse\w*|added"
    r"|fix\w*|docs?|readme|regex|string|we|our|i|my|they|he|she|after|treats?|counts?|banners?|reads?"
    r"|quot(?:e|es|ed|ing)|wordings?|means|meant)\b",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"(?:^|[\s(,\[])'|[{}=<]|\bif\b", re.IGNORECASE)
# A sentence that is over before the words begin; a program's own wording may come second.
_SENTENCE = re.compile(r"[.!?]\s+\S")
_EARLY = 160


def _is_stated(text: str, reset: ResetTime | None, *, is_error: bool) -> bool:
    """Whether the time is stated, not quoted: inside quotes somebody else said it."""
    return reset is not None and (is_error or text.count('"', 0, reset.span[0]) % 2 == 0)


def _is_talk(text: str, found: re.Match[str], pack: Pack) -> bool:
    start = found.start()
    is_quoted = text.count('"', 0, start) % 2 == 1 or '"' in found[0]
    if start > _EARLY or is_quoted or _QUOTED.search(text, 0, found.end()):
        return True
    # The wording of one program is its own; one that belongs to nobody must not look like prose.
    is_nobodys = not pack.agents
    return is_nobodys and bool(_TALK.search(text, 0, start) or _SENTENCE.search(text, 0, start))


def _reset(
    text: str, entry: Entry, world: World, *, fields: object, zone: tzinfo | None
) -> ResetTime | None:
    own = named_zone(entry.zone) if entry.zone else None
    under_keys = reset_in_fields(fields, now=world.now, zone=own or world.zone)
    return under_keys or find_reset(text, now=world.now, zone=own or zone or world.zone)


def _judgement(
    text: str, found: re.Match[str], by: tuple[Pack, Entry], reset: ResetTime | None
) -> Judgement:
    pack, entry = by
    means, because = entry.means, f"{pack.name}: {entry.id}"
    if reset is not None and entry.with_reset is not None:
        means = entry.with_reset
    if means in (Kind.RATE_LIMIT, Kind.QUOTA) and _never_passes(text):
        means, because = Kind.CONTEXT_LENGTH, "one request is larger than the whole limit"
    end = found.end() if reset is None else max(found.end(), reset.span[1])
    return Judgement(
        means=means, because=because, pack=pack.name, begin=found.start(), end=end, reset=reset
    )


_ANSWERS_ON = re.compile(
    r"\W{0,3}\s(?:is|was|were|means?|meant|which|when|because|instead|should|would|twice|if|unless|appears?|indicates?|says?"
    r"|pattern|banner|string|message|text|regex)\b",
    re.IGNORECASE,
)


# Programs do not think: somebody explains a banner to somebody.
_SOMEBODY = re.compile(
    r"(?-i:\bI(?:'m|'ve|'ll)?) (?:believe|think|guess|suggest|recommend|fixed|added|found|noticed"
    r"|tried|would|am closing|changed|updated|see|saw)\b",
    re.IGNORECASE,
)


def goes_on(text: str, end: int) -> bool:
    """Whether the sentence that ends its banner at `end` goes on to talk about it."""
    return _ANSWERS_ON.match(text, end) is not None or _SOMEBODY.search(text, end) is not None


def by_status(status: int | None) -> Kind | None:
    """What a bare HTTP status means."""
    if status is None or status < _FIRST_CLIENT or status > _LAST_SERVER:
        return None
    return _STATUS_KINDS.get(status, Kind.SERVER if status >= _FIRST_SERVER else Kind.CLIENT)


def with_status(found: Judgement, status: int | None) -> Judgement:
    """`found`, unless the status knows better whose fault it was.

    "invalid_request_error" and "api_error" are said beside every status.
    """
    if status == 402 and found.means is Kind.RATE_LIMIT and found.reset is None:
        return replace(found, means=Kind.BILLING, because="status 402")
    if found.means is Kind.CLIENT:
        is_vague = status is not None and status not in _VAGUE
    else:
        is_vague = found.means is Kind.SERVER and status in (*_CALLERS_FAULT, 529)
    if not is_vague:
        return found
    return replace(found, means=by_status(status) or found.means, because=f"status {status}")


def reach_of(kind: Kind, text: str) -> Reach:
    """How far the call came, as far as the words tell."""
    if kind not in (Kind.NETWORK, Kind.TIMEOUT):
        return Reach.ANSWERED
    return Reach.NEVER_SENT if _NEVER_SENT.search(text) else Reach.MAYBE_APPLIED


def _never_passes(text: str) -> bool:
    found = _TOO_LARGE.search(text)
    if found is None:
        return False
    limit, asked = (int(found[name].replace(",", "") or 0) for name in ("limit", "asked"))
    return 0 < limit < asked
