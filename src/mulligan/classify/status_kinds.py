"""The kind of failure for a status, codes and words: the only status table.

The questions are asked in this order, and the first answer wins:

    the caller's own codes  ▶  is it under way?  ▶  can it ever pass?  ▶  the vendor's codes
    ▶  the vendor's words  ▶  the status

`weigh` then corrects the kind in the light of a reset: a limit that names a reset recovers by
waiting, whatever its words say about money.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ..core.failure import Kind, Reach
from ..core.lazy_pattern import lazy
from .vocabulary import (
    CODES,
    NEVER_PASSES,
    OTHER_PAYLOAD,
    PLAN,
    SPENT,
    UNDER_WAY_CODES,
    VAGUE_CODES,
    phrases_beside,
    room_beside,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = (
    "NO_WAIT",
    "Verdict",
    "never_passes",
    "reach_of",
    "speaks_of_a_plan",
    "verdict",
    "weigh",
)


class Verdict(NamedTuple):
    """A kind, what decided it, and whether that settles it whatever else is said.

    `is_under_way` is true of a request that the server is working on, for an earlier attempt;
    `is_vague` of a word that repeats the status and does not say what became of the request.
    """

    kind: Kind
    because: str
    is_retriable: bool | None = None
    is_under_way: bool = False
    is_vague: bool = False


# No sentence about waiting is believed where waiting cannot help; a header or a field is.
NO_WAIT = frozenset((Kind.AUTH, Kind.CLIENT, Kind.CONTEXT_LENGTH, Kind.CONTENT_POLICY))
_REFUSALS = frozenset(
    (
        *(Kind.RATE_LIMIT, Kind.QUOTA, Kind.BILLING, Kind.OVERLOADED, Kind.AUTH, Kind.CLIENT),
        *(Kind.CONDITIONAL, Kind.CONTEXT_LENGTH, Kind.CONTENT_POLICY),
    )
)
# A server that crashes half-way answers 500, and a gateway answers 502 or 504 for a server of which
# it has heard nothing. Only these 5xx say that the work was not started: not implemented,
# version not
# supported, log in to the network first; and 503 and 529 where they speak of capacity or of a time.
_NOT_BEGUN = frozenset((501, 505, 511))
_NO_CAPACITY = frozenset((503, 529))


def reach_of(
    status: int | None, kind: Kind, *, is_vague: bool = False, is_under_way: bool = False
) -> Reach:
    """How far a request came that was answered: by HTTP, or in a program's words.

    `ANSWERED` where the answer proves that the server has not done what was asked.
    """
    if status in _NOT_BEGUN:
        return Reach.ANSWERED
    is_server = status is not None and status >= 500 and status not in _NO_CAPACITY
    is_refused = kind in _REFUSALS and not is_vague
    if is_server or status == 408 or is_under_way or not is_refused:
        return Reach.MAYBE_APPLIED
    return Reach.ANSWERED


_STATUS: dict[int, Kind] = {
    401: Kind.AUTH,
    402: Kind.BILLING,
    403: Kind.AUTH,
    407: Kind.AUTH,
    408: Kind.TIMEOUT,
    409: Kind.CONDITIONAL,
    412: Kind.CONDITIONAL,
    423: Kind.CONDITIONAL,
    425: Kind.CONDITIONAL,
    429: Kind.RATE_LIMIT,
    498: Kind.OVERLOADED,  # Groq: the flex tier is full
    511: Kind.AUTH,
    529: Kind.OVERLOADED,
}
# What the status itself settles (E-G4): not built, not spoken.
_SETTLED = {501: False, 505: False}

# "A request with the same Idempotency-Key is being processed", "another request is in progress".
_NOW = r"(?:in[ _-]progress|being processed)"
_AT_IT = (
    rf"(?:{_NOW}|in[ _-]flight|in[ _-]use|being executed|outstanding|concurrent"
    r"|(?:still|already) processing)"
)
_OTHER = r"(?:another|previous|earlier|same|original|duplicate|concurrent)"
_UNDER_WAY = lazy(
    rf"idempoten.{{0,120}}{_AT_IT}|{_AT_IT}.{{0,120}}idempoten"
    rf"|{_OTHER}[^.]{{0,20}} request\b[^.]{{0,60}}{_NOW}"
    rf"|request (?:is )?(?:already|still) {_NOW}"
)

_ZERO_LIMIT = lazy(r"\blimit(?:: ?|=)0\b(?!\.)")
# 10000, 10,000, 10.000, 10 000: three digits behind a separator are thousands.
_COUNT = r"([0-9]{1,3}(?:[,._'’ \u00a0\u202f][0-9]{3})+(?![0-9])|[0-9]{1,12}(?!\.?[0-9]))"
_LIMIT_REQUESTED = lazy(
    rf"(?i)\blimit:?\s{{0,2}}{_COUNT}(?:(?!\blimit\b).){{0,80}}?"
    rf"\brequested:?\s{{0,2}}[~about ]{{0,7}}{_COUNT}",
)
_SEPARATORS = lazy("[^0-9]")


def verdict(
    status: int | None,
    codes: tuple[str, ...],
    lowered: str,
    own: Mapping[str, Kind] | None = None,
) -> Verdict | None:
    """The kind before a reset is weighed; None where nothing is known.

    Args:
        status: 400 and more, or None.
        codes: The vendor's codes in lower case, the most specific last.
        lowered: The vendor's sentence in lower case.
        own: The caller's own codes in lower case.
    """
    found = _by_own_code(codes, own) if codes else None
    if found is None and status == 409:
        found = _under_way(codes, lowered)
    found = found or _by_size(status, lowered)
    if found is None and codes:
        found = _by_code(status, codes)
    return found or _by_phrase(status, lowered) or _by_status(status, codes)


def _by_own_code(codes: tuple[str, ...], own: Mapping[str, Kind] | None) -> Verdict | None:
    if own:
        for code in reversed(codes):
            if code in own:
                return Verdict(own[code], f"code {code}")
    return None


def _under_way(codes: tuple[str, ...], lowered: str) -> Verdict | None:
    """A server that is still at it for an earlier attempt (E-F2): wait, then ask it again.

    One that knows the key from another payload says so in similar words (E-F3), and is not meant.
    """
    for code in codes:
        if code in UNDER_WAY_CODES:
            said = f"code {code}"
            break
    else:
        found = _UNDER_WAY.search(lowered)
        if found is None:
            return None
        said = f'words "{found[0]}"'
    if any(word in lowered for word in OTHER_PAYLOAD):
        return None
    return Verdict(Kind.CONDITIONAL, said, is_retriable=True, is_under_way=True)


def _by_size(status: int | None, lowered: str) -> Verdict | None:
    if not lowered or (status != 413 and Kind.BILLING not in room_beside(status)):
        return None
    return never_passes(lowered)


def never_passes(lowered: str) -> Verdict | None:
    """What no waiting can help: a request larger than the limit, a limit of nothing."""
    if _asks_too_much(lowered) or any(phrase in lowered for phrase in NEVER_PASSES):
        return Verdict(
            Kind.CONTEXT_LENGTH, "the request is larger than the limit", is_retriable=False
        )
    if _ZERO_LIMIT.search(lowered):
        return Verdict(Kind.BILLING, "the limit is 0", is_retriable=False)
    return None


def _asks_too_much(text: str) -> bool:
    """Whether the words state a limit and a request that is larger than the whole of it.

    Two numbers decide what no word says: "Limit 10,000, Used 9,900, Requested 500" passes by
    waiting, "Limit 10,000, Requested 12,500" never does.
    """
    found = _LIMIT_REQUESTED.search(text) if "equested" in text else None
    if found is None:
        return False
    limit, asked = (int(_SEPARATORS.sub("", each)) for each in found.groups())
    return 0 < limit < asked


def _by_code(status: int | None, codes: tuple[str, ...]) -> Verdict | None:
    room = room_beside(status)
    for code in reversed(codes):
        kind = CODES.get(code)
        if kind is not None and kind in room:
            return Verdict(kind, f"code {code}")
    return None


def _by_phrase(status: int | None, lowered: str) -> Verdict | None:
    if lowered:
        for phrase, kind in phrases_beside(status):
            if phrase in lowered and (kind is not Kind.QUOTA or speaks_of_a_plan(lowered)):
                return Verdict(kind, f'words "{phrase}"')
    return None


def _by_status(status: int | None, codes: tuple[str, ...]) -> Verdict | None:
    if status is None:
        for code in reversed(codes):
            if code in VAGUE_CODES:
                return Verdict(VAGUE_CODES[code], f"code {code}", is_vague=True)
        return None
    if status == 503 and "unavailable" in codes:
        # Google's word for a lack of capacity, but also for a backend that was lost half-way.
        return Verdict(Kind.OVERLOADED, "status 503 UNAVAILABLE", is_vague=True)
    return _of_status(status)


@lru_cache(maxsize=256)
def _of_status(status: int) -> Verdict:
    kind = _STATUS.get(status) or (Kind.SERVER if status >= 500 else Kind.CLIENT)
    return Verdict(kind, f"status {status}", _SETTLED.get(status))


def weigh(
    found: Verdict, *, status: int | None, lowered: str, has_reset: bool, is_plan: bool
) -> Verdict:
    """`found` in the light of a reset (E-G1, E-G2).

    Args:
        found: The verdict so far.
        status: 400 and more, or None.
        lowered: The vendor's sentence in lower case.
        has_reset: Whether the server said when.
        is_plan: Whether the limit is a plan's window rather than a burst's.
    """
    if found.is_retriable is False:
        return found
    kind, because = found.kind, found.because
    to: Kind | None = None
    if has_reset:
        if kind is Kind.BILLING:
            to = Kind.QUOTA if is_plan or status == 402 else Kind.RATE_LIMIT
        elif (kind, status) in _WITH_RESET:
            to = _WITH_RESET[kind, status]
        elif kind is Kind.RATE_LIMIT and is_plan:
            to = Kind.QUOTA
        return found if to is None else Verdict(to, f"{because} with a reset")
    if kind is Kind.RATE_LIMIT and any(phrase in lowered for phrase in SPENT):
        return Verdict(Kind.BILLING, "words about money, without a reset")
    if kind in (Kind.QUOTA, Kind.RATE_LIMIT) and status == 402:
        return Verdict(Kind.BILLING, f"{because}, without a reset")
    if kind is Kind.RATE_LIMIT and is_plan:
        return Verdict(Kind.QUOTA, f"{because}, of a plan")
    return found


_WITH_RESET: dict[tuple[Kind, int | None], Kind] = {
    # GitHub rejects with 403, too; a permission does not come back at a stated time.
    (Kind.AUTH, 403): Kind.RATE_LIMIT,
    # A server that knows when it will be back is full or closed, not broken.
    (Kind.SERVER, 503): Kind.OVERLOADED,
    # RFC 9110 §15.5.14: with Retry-After, too large is temporary.
    (Kind.CLIENT, 413): Kind.CONDITIONAL,
}


def speaks_of_a_plan(lowered: str) -> bool:
    """Whether the words mean a plan's window: a day, a week, five hours."""
    for phrase in PLAN:
        if phrase in lowered:
            rolling = phrase == "per day" and ("(tpd)" in lowered or "(rpd)" in lowered)
            denied = phrase == "usage limit" and "not your usage limit" in lowered
            if not (rolling or denied):
                return True
    return False
