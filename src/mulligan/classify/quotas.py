"""Rate-limit headers: how much of each limit is left, and when it is refilled.

They are read on every answer, not only on rejections, so the usual answer without such headers
costs one pass over the names. Malformed values are skipped; the others still count.
"""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ..core.lazy_pattern import lazy
from ..core.record import record
from .headers import fold, read_clocks, read_retry_after
from .times.server_formats import ClockPair, number, when

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..core.hint import Hint

__all__ = ("Quota", "Unit", "exhausted", "limit_hint", "quotas", "read_quotas")


class Unit(StrEnum):
    """What a quota counts."""

    REQUESTS = "requests"
    TOKENS = "tokens"
    BYTES = "bytes"
    CONCURRENT = "concurrent"  # calls at the same time
    SHARE = "share"  # a part of 1: how much of a plan's window is left, not how many calls


@record(kw_only=True)
class Quota:
    """One dimension of a limit, as the server stated it.

    Args:
        dimension: The server's name for it, ``requests``, ``input-tokens``, ``unified-5h``,
            ``default``.
        unit: What `limit` and `remaining` count.
        limit: How much the window holds; None where it was not stated.
        remaining: How much is left; None where it was not stated.
        reset_in: Seconds until it is refilled; None where it was not stated or has passed.
        window: The window's length in seconds; None where it was not stated.
        hint: The reset as a hint, with its precision and its place.
    """

    dimension: str
    unit: Unit = Unit.REQUESTS
    limit: float | None = None
    remaining: float | None = None
    reset_in: float | None = None
    window: float | None = None
    hint: Hint | None = None

    @property
    def is_exhausted(self) -> bool:
        return self.remaining is not None and self.remaining <= 0


def quotas(headers: object, *, now: float) -> tuple[Quota, ...]:
    """Every dimension that the headers of an answer state, whatever the client library.

    Args:
        headers: Any mapping or list of pairs.
        now: Our wall clock in epoch seconds.
    """
    try:
        names = "\n".join(headers.keys()).lower()  # type: ignore[attr-defined]
    except Exception:  # noqa: BLE001 -- pairs, bytes, anything: fold knows them all
        return read_quotas(fold(headers), now=now)
    # The usual answer says nothing about limits; its values are then not even looked at.
    if "ratelimit" not in names and "rate-limit" not in names and "x-codex-" not in names:
        return ()
    return read_quotas(fold(headers), now=now)


def read_quotas(headers: Mapping[str, str], *, now: float) -> tuple[Quota, ...]:
    """The same for headers that are folded already."""
    names = [
        name
        for name in headers
        if "ratelimit" in name or "rate-limit" in name or name.startswith("x-codex-")
    ]
    if not names:
        return ()
    drafts: dict[str, _Draft] = {}
    for name in names:
        value = headers[name]
        if name.startswith("anthropic-ratelimit-"):
            _anthropic(drafts, name[20:], value)
        elif name.startswith("x-codex-"):
            _codex(drafts, name[8:], value)
        elif name in ("ratelimit", "ratelimit-policy"):
            if "age" not in headers:  # the draft: ignore on answers from a cache
                _structured(drafts, name, value)
        else:
            _named(drafts, name, value)
    # The shortest instant is an epoch of ten digits; without one the Date header is not read.
    has_instant = any(draft.reset and len(draft.reset) > 9 for draft in drafts.values())
    clocks = read_clocks(headers, now=now) if has_instant else ClockPair(now, now)
    found = [draft.quota(dimension, clocks) for dimension, draft in drafts.items()]
    return tuple([quota for quota in found if quota is not None])


def exhausted(stated: Iterable[Quota]) -> Quota | None:
    """The dimension that rejected a call: used up, and the last of those to be refilled.

    Where no dimension says how much is left, the one with the latest reset is meant; where all
    of them have something left, none is.
    """
    with_reset = [quota for quota in stated if quota.reset_in is not None]
    rejecting = [quota for quota in with_reset if quota.is_exhausted] or [
        quota for quota in with_reset if quota.remaining is None
    ]
    return max(rejecting, key=lambda quota: quota.reset_in or 0.0, default=None)


def limit_hint(headers: Mapping[str, str], *, now: float) -> Hint | None:
    """When folded headers say to come back: Retry-After, else the reset of what is used up."""
    hint = read_retry_after(headers, now=now)
    if hint is None:
        quota = exhausted(read_quotas(headers, now=now))
        hint = None if quota is None else quota.hint
    return hint


class _Draft:
    """A quota while its headers are being collected."""

    __slots__ = ("limit", "remaining", "reset", "source", "status", "unit", "window")

    def __init__(self, unit: Unit) -> None:
        self.unit = unit
        self.limit: float | None = None
        self.remaining: float | None = None
        self.window: float | None = None
        self.reset: str | None = None
        self.source = ""
        self.status = ""

    def quota(self, dimension: str, clocks: ClockPair) -> Quota | None:
        remaining = 0.0 if self.status == "rejected" else self.remaining
        if self.status.startswith("allowed") and remaining is None:
            return None  # a window that lets us pass must not be taken for the one that did not
        hint = None
        if self.reset is not None:
            hint = when(self.reset, clocks=clocks, source=self.source)
        if hint is None and remaining is None and self.limit is None:
            return None
        return Quota(
            dimension=dimension,
            unit=self.unit,
            limit=self.limit,
            remaining=remaining,
            reset_in=None if hint is None else hint.delay,
            window=self.window,
            hint=hint,
        )

    def put(self, field: str, value: str, source: str) -> None:
        if field == "reset":
            self.reset, self.source = value, source
        elif field == "limit":
            # "100, 100;w=60": the older draft put its policy behind the number.
            self.limit = number(value.partition(",")[0].partition(";")[0])
        elif field == "remaining":
            self.remaining = _remaining(value)


def _draft(drafts: dict[str, _Draft], dimension: str, unit: Unit) -> _Draft:
    draft = drafts.get(dimension)
    if draft is None:
        draft = drafts[dimension] = _Draft(unit)
    return draft


def _remaining(value: str) -> float | None:
    value = value.strip()
    # A counter below zero is as empty as zero.
    return 0.0 if value.startswith("-") and number(value[1:]) is not None else number(value)


def _unit(dimension: str) -> Unit:
    return Unit.TOKENS if "token" in dimension else Unit.REQUESTS


_FIELDS = ("limit", "remaining", "reset")


def _named(drafts: dict[str, _Draft], name: str, value: str) -> None:
    """``x-ratelimit-remaining``, ``x-ratelimit-remaining-tokens``, ``ratelimit-reset`` and kin."""
    found = _place(name)
    if found is not None:
        draft = _draft(drafts, found.dimension, found.unit)
        draft.window = found.window
        draft.put(found.field, value, name)


class _Place(NamedTuple):
    dimension: str
    unit: Unit
    field: str
    window: float | None


_WINDOWS = {"second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0, "daily": 86400.0}


@lru_cache(maxsize=256)
def _place(name: str) -> _Place | None:
    """What a header's name says about the value.

    Vendors put the dimension behind the field (OpenAI), before it, or leave it out (GitHub); some
    name the window (Kong, Cerebras), some write ``rate-limit`` (X) or ``reset-after`` (Discord).
    """
    words = name.replace("rate-limit", "ratelimit").partition("ratelimit")[2].strip("-").split("-")
    for field in _FIELDS:
        if field in words:
            rest = [word for word in words if word not in (field, "after")]
            dimension = "-".join(rest) or "default"
            window = next((_WINDOWS[word] for word in rest if word in _WINDOWS), None)
            return _Place(dimension, _unit(dimension), field, window)
    return None


_UNIFIED_WINDOWS = {"5h": 18000.0, "7d": 604800.0}


def _anthropic(drafts: dict[str, _Draft], rest: str, value: str) -> None:
    """``requests-remaining``, ``input-tokens-reset``, ``unified-5h-utilization`` and kin."""
    dimension, _, field = rest.rpartition("-")
    if "overage" in dimension or "fallback" in dimension:
        return  # paid usage beyond the plan is not a limit of the plan
    name = "anthropic-ratelimit-" + rest
    if not dimension.startswith("unified"):
        if field in _FIELDS:
            _draft(drafts, dimension, _unit(dimension)).put(field, value, name)
        return
    draft = _draft(drafts, dimension, Unit.SHARE)
    draft.limit = 1.0
    draft.window = _UNIFIED_WINDOWS.get(dimension[8:10])
    if field == "reset":
        draft.put(field, value, name)
    elif field == "status":
        draft.status = value.strip().lower()
    elif field == "utilization":
        used = number(value)
        draft.remaining = None if used is None else max(0.0, 1.0 - used)


def _codex(drafts: dict[str, _Draft], rest: str, value: str) -> None:
    """``primary-used-percent``, ``primary-reset-at``, ``secondary-window-minutes`` and kin."""
    window, _, field = rest.partition("-")
    if window not in ("primary", "secondary"):
        return
    draft = _draft(drafts, "codex-" + window, Unit.SHARE)
    stated = number(value)
    if stated is None:
        return
    if field == "used-percent":
        draft.limit, draft.remaining = 1.0, max(0.0, 1.0 - stated / 100)
    elif field == "window-minutes":
        draft.window = stated * 60
    elif field == "reset-at" or (field == "reset-after-seconds" and draft.reset is None):
        draft.put("reset", value, "x-codex-" + rest)


_ITEM = lazy(r'(?:"((?:[^"\\]|\\.){0,256})"|([A-Za-z0-9*_./:-]{1,256}))((?:\s*;[^,]*)?)')
_PARAMETER = lazy(r";\s*([a-z*][a-z0-9_.*-]*)\s*=\s*(?:\"([^\"]*)\"|([^;,\s]+))")
_INTEGER = lazy(r"[0-9]{1,15}")
_COUNTED = {"content-bytes": Unit.BYTES, "concurrent-requests": Unit.CONCURRENT}


def _structured(drafts: dict[str, _Draft], name: str, value: str) -> None:
    """The draft's two fields: ``"default";r=50;t=30`` beside ``"default";q=100;w=60``.

    Earlier drafts wrote ``limit=100, remaining=50, reset=30``; both forms are in use.
    """
    items = [part.strip() for part in value.split(",") if part.strip()]
    if name == "ratelimit" and all(_is_old_pair(item) for item in items):
        for item in items:
            field, _, stated = item.partition("=")
            _draft(drafts, "default", Unit.REQUESTS).put(field, stated, name)
        return
    for item in items:
        found = _ITEM.fullmatch(item)
        if found is None:
            return  # malformed: the draft has the rest of the field ignored, too
        parameters = {key: quoted or bare for key, quoted, bare in _PARAMETER.findall(found[3])}
        numbers = {key: float(n) for key, n in parameters.items() if _INTEGER.fullmatch(n)}
        if name == "ratelimit" and "r" in numbers:
            draft = _draft(drafts, found[1] or found[2], Unit.REQUESTS)
            draft.remaining = numbers["r"]
            if "t" in numbers and numbers["t"] > 0:
                # t is always a duration, however large: it must not be taken for an epoch.
                draft.reset, draft.source = f"{parameters['t']}s", "ratelimit t"
        elif name == "ratelimit-policy" and "q" in numbers:
            draft = _draft(drafts, found[1] or found[2], Unit.REQUESTS)
            draft.unit = _COUNTED.get(parameters.get("qu", ""), draft.unit)
            draft.limit, draft.window = numbers["q"], numbers.get("w")


def _is_old_pair(item: str) -> bool:
    field, equals, stated = item.partition("=")
    return bool(equals) and field in _FIELDS and number(stated) is not None
