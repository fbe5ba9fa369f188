"""Rate limits of the fault server, for each client: of requests, of tokens, or of both.

Ways of counting differ in when used units come back, which is what the quota headers state.

    bucket    flows back all the time; a burst may use all of it, then it trickles
    fixed     comes back at once when the clock passes a multiple of the window
    sliding   comes back piece by piece, each one window after it was taken

Only a sliding window keeps to its capacity in any window; around the edge of a fixed one, or after
a full bucket, up to twice as much is admitted. Pure: the state goes in with the time, the next
state comes out.

A request passes if every limit has room for it. Refused by one it takes nothing from the other;
with `counts_refusals` it takes from the requests all the same, as some vendors do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from math import ceil, floor

from ..core.duration import seconds
from ..errors import SettingError

__all__ = (
    "ClientLimits",
    "Counting",
    "LimitCheck",
    "LimitVerdict",
    "Meter",
    "RateLimit",
    "admit",
    "charge",
    "look",
    "postpone",
    "whole_seconds",
)

_WRITTEN = re.compile(r"([0-9]{1,12})/([0-9][0-9.a-z]*)")


class Counting(StrEnum):
    """How a limit counts."""

    BUCKET = "bucket"
    FIXED = "fixed"
    SLIDING = "sliding"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """A limit: so much in so long."""

    capacity: int  # requests or tokens in one window; at least 1
    window: float  # seconds; more than 0
    counting: Counting = Counting.BUCKET

    def __post_init__(self) -> None:
        if self.capacity < 1 or not self.window > 0:
            raise SettingError(
                "a limit needs capacity >= 1 and window > 0; "
                f"got capacity={self.capacity}, window={self.window}"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """What has been taken from one limit."""

    taken: float = 0.0  # how much is out, as of `at`
    at: float = 0.0  # when that was; for a fixed window, when the window began
    log: tuple[tuple[float, float], ...] = ()  # sliding only: what was taken when, oldest first


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitVerdict:
    """What a limit says about one request."""

    is_admitted: bool  # whether there is room for it
    remaining: int  # what is left after it was admitted, or now if it was not
    reset_at: float  # when everything is back
    # Seconds until there is room; 0 if admitted, None if there never will be.
    retry_after: float | None


def look(limit: RateLimit, meter: Meter, cost: float, now: float) -> LimitVerdict:
    """What the limit says about a request of that cost, without taking anything."""
    meter = _settled(limit, meter, now)
    free = limit.capacity - meter.taken
    # A bucket's level is a float; ignore rounding errors.
    if cost <= free + 1e-9:
        after = charge(limit, meter, cost, now)
        remaining = max(0, floor(limit.capacity - after.taken + 1e-9))
        return LimitVerdict(
            is_admitted=True,
            remaining=remaining,
            reset_at=_full_at(limit, after, now),
            retry_after=0.0,
        )
    return LimitVerdict(
        is_admitted=False,
        remaining=max(0, floor(free + 1e-9)),
        reset_at=_full_at(limit, meter, now),
        retry_after=None if cost > limit.capacity else _room_in(limit, meter, cost - free, now),
    )


def charge(limit: RateLimit, meter: Meter, cost: float, now: float) -> Meter:
    """The meter after taking `cost`; more than is there takes all of it."""
    meter = _settled(limit, meter, now)
    cost = min(cost, limit.capacity - meter.taken)
    if cost <= 0:
        return meter
    if limit.counting is Counting.SLIDING:
        return replace(meter, taken=meter.taken + cost, log=(*meter.log, (now, cost)))
    return replace(meter, taken=meter.taken + cost)


def postpone(limit: RateLimit, meter: Meter, now: float) -> Meter:
    """The meter after a refused request that counts all the same.

    If nothing is left, a refusal cannot take more, and retrying early would cost nothing; vendors
    that count refusals delay the reset instead. A sliding window gives its oldest piece the time of
    this refusal, a bucket loses what has flowed back. A fixed window is not delayed.
    """
    meter = _settled(limit, meter, now)
    if limit.counting is Counting.SLIDING and meter.log and meter.taken > limit.capacity - 1:
        (_, oldest), *rest = meter.log
        return replace(meter, log=(*rest, (now, oldest)))
    return charge(limit, meter, 1.0, now)


def _settled(limit: RateLimit, meter: Meter, now: float) -> Meter:
    """The meter as time has left it."""
    if limit.counting is Counting.FIXED:
        begin = floor(now / limit.window) * limit.window
        return meter if meter.at == begin else Meter(at=begin)
    if limit.counting is Counting.SLIDING:
        log = tuple(piece for piece in meter.log if piece[0] + limit.window > now)
        if len(log) == len(meter.log):
            return meter
        return Meter(taken=sum(cost for _, cost in log), at=now, log=log)
    back = max(0.0, now - meter.at) * limit.capacity / limit.window
    return Meter(taken=max(0.0, meter.taken - back), at=now)


def _full_at(limit: RateLimit, meter: Meter, now: float) -> float:
    match limit.counting:
        case Counting.FIXED:
            return meter.at + limit.window
        case Counting.SLIDING:
            return meter.log[-1][0] + limit.window if meter.log else now
        case Counting.BUCKET:
            return now + meter.taken * limit.window / limit.capacity


def _room_in(limit: RateLimit, meter: Meter, missing: float, now: float) -> float:
    """Seconds until `missing` more is free; more than 0."""
    match limit.counting:
        case Counting.FIXED:
            return max(meter.at + limit.window - now, 1e-6)
        case Counting.BUCKET:
            return missing * limit.window / limit.capacity
        case Counting.SLIDING:
            back = 0.0
            for at, cost in meter.log:
                back += cost
                if back >= missing - 1e-9:
                    return max(at + limit.window - now, 1e-6)
            return limit.window


def whole_seconds(wait: float) -> int:
    """`wait` as ``Retry-After`` states it: whole seconds, never too few."""
    return max(1, ceil(wait - 1e-9))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """What each client may use; None is no limit."""

    requests: RateLimit | None = None
    tokens: RateLimit | None = None  # counted when they are asked: the answer is still unknown
    counts_refusals: bool = False  # whether a refused request costs a request

    @classmethod
    def parse(
        cls,
        *,
        requests: str | None = None,
        tokens: str | None = None,
        counting: str = "bucket",
        counts_refusals: bool = False,
    ) -> ClientLimits:
        """Limits as the command line writes them: ``50/60s``."""
        if counting not in set(Counting):
            raise SettingError(f"limits count as bucket, fixed or sliding; got {counting!r}")
        how = Counting(counting)
        return cls(
            requests=_limit(requests, "requests", how),
            tokens=_limit(tokens, "tokens", how),
            counts_refusals=counts_refusals,
        )

    @property
    def by_name(self) -> dict[str, RateLimit]:
        """The limits that are set."""
        both = {"requests": self.requests, "tokens": self.tokens}
        return {name: limit for name, limit in both.items() if limit is not None}


def _limit(text: str | None, name: str, counting: Counting) -> RateLimit | None:
    if text is None:
        return None
    found = _WRITTEN.fullmatch(text.replace(" ", ""))
    if found is None:
        raise SettingError(f"a limit of {name} is written like 50/60s; got {text!r}")
    window = found[2] if found[2][-1].isalpha() else found[2] + "s"
    return RateLimit(
        capacity=int(found[1]),
        window=seconds(window, name=f"the window of {name}"),
        counting=counting,
    )


@dataclass(frozen=True, slots=True)
class LimitCheck:
    """What the limits say about one request: each limit with its verdict, by name."""

    verdicts: dict[str, tuple[RateLimit, LimitVerdict]]

    @property
    def is_admitted(self) -> bool:
        return not self.refused_by

    @property
    def refused_by(self) -> str:
        """``requests`` or ``tokens``; empty if admitted."""
        refused = (name for name, (_, said) in self.verdicts.items() if not said.is_admitted)
        return next(refused, "")

    @property
    def retry_after(self) -> float | None:
        """Seconds until every limit has room; None if one of them never will."""
        waits = [said.retry_after for _, said in self.verdicts.values()]
        known = [wait for wait in waits if wait is not None]
        return max(known, default=0.0) if len(known) == len(waits) else None


def admit(
    limits: ClientLimits, used: dict[str, Meter], *, tokens: int, now: float
) -> tuple[LimitCheck, dict[str, Meter]]:
    """What the limits say about a request of that many tokens, and what the client has used then.

    A counted refusal delays the next admission, so its wait is computed after it was counted: a
    client that waits as told is admitted.
    """
    known, costs = limits.by_name, {"requests": 1.0, "tokens": float(tokens)}
    used = {name: used.get(name, Meter()) for name in known}
    said = {name: look(limit, used[name], costs[name], now) for name, limit in known.items()}
    if all(each.is_admitted for each in said.values()):
        used = {name: charge(limit, used[name], costs[name], now) for name, limit in known.items()}
    else:
        if limits.counts_refusals and "requests" in known:
            used["requests"] = postpone(known["requests"], used["requests"], now)
        for name, limit in known.items():
            wait = look(limit, used[name], costs[name], now).retry_after
            # The request took nothing from this limit: what remains is what was there before.
            said[name] = replace(
                look(limit, used[name], 0.0, now),
                is_admitted=said[name].is_admitted,
                retry_after=wait,
            )
    return LimitCheck({name: (limit, said[name]) for name, limit in known.items()}), used
