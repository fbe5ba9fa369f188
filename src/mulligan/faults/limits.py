"""The limits of one account: requests, tokens, or both.

A request passes if every limit has room for it. Refused by one it takes nothing from the other;
with `counts_refusals` it takes from the requests all the same, as some vendors do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from ..core.duration import seconds
from ..errors import SettingError
from .limiter import Counting, LimitVerdict, Meter, RateLimit, charge, look, postpone

__all__ = ("ClientLimits", "ClientUsage", "LimitCheck", "admit")

_WRITTEN = re.compile(r"([0-9]{1,12})/([0-9][0-9.a-z]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientLimits:
    """What each client may use; None is no limit.

    Args:
        requests: Requests in a window.
        tokens: Tokens in a window, counted when they are asked: the answer is still unknown.
        counts_refusals: Whether a refused request costs a request.
    """

    requests: RateLimit | None = None
    tokens: RateLimit | None = None
    counts_refusals: bool = False

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


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientUsage:
    """What one client has used."""

    requests: Meter = field(default_factory=Meter)
    tokens: Meter = field(default_factory=Meter)


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitCheck:
    """What the limits say about one request; a dimension without a limit is None.

    Args:
        limits: The limits that were asked.
        requests: What the limit of requests says.
        tokens: What the limit of tokens says.
    """

    limits: ClientLimits
    requests: LimitVerdict | None = None
    tokens: LimitVerdict | None = None

    @property
    def is_admitted(self) -> bool:
        return all(each.is_admitted for each in (self.requests, self.tokens) if each is not None)

    @property
    def refused_by(self) -> str:
        """``requests`` or ``tokens``; empty if admitted."""
        if self.requests is not None and not self.requests.is_admitted:
            return "requests"
        return "tokens" if self.tokens is not None and not self.tokens.is_admitted else ""

    @property
    def retry_after(self) -> float | None:
        """Seconds until every limit has room; None if one of them never will."""
        waits = [each.retry_after for each in (self.requests, self.tokens) if each is not None]
        known = [wait for wait in waits if wait is not None]
        return max(known, default=0.0) if len(known) == len(waits) else None


def admit(
    limits: ClientLimits, account: ClientUsage, *, tokens: int, now: float
) -> tuple[LimitCheck, ClientUsage]:
    """What the limits say about a request of that many tokens, and the account after it.

    A counted refusal delays the next admission, so its wait is computed after it was counted: a
    client that waits as told is admitted.
    """
    said = LimitCheck(
        limits=limits,
        requests=_asked(limits.requests, account.requests, 1.0, now),
        tokens=_asked(limits.tokens, account.tokens, tokens, now),
    )
    by_request, by_token = account.requests, account.tokens
    if said.is_admitted:
        if limits.requests is not None:
            by_request = charge(limits.requests, by_request, 1.0, now)
        if limits.tokens is not None:
            by_token = charge(limits.tokens, by_token, tokens, now)
        return said, ClientUsage(requests=by_request, tokens=by_token)
    if limits.counts_refusals and limits.requests is not None:
        by_request = postpone(limits.requests, by_request, now)
    said = LimitCheck(
        limits=limits,
        requests=_refused(limits.requests, said.requests, by_request, 1.0, now),
        tokens=_refused(limits.tokens, said.tokens, by_token, tokens, now),
    )
    return said, ClientUsage(requests=by_request, tokens=by_token)


def _asked(limit: RateLimit | None, meter: Meter, cost: float, now: float) -> LimitVerdict | None:
    return None if limit is None else look(limit, meter, cost, now)


def _refused(
    limit: RateLimit | None, said: LimitVerdict | None, meter: Meter, cost: float, now: float
) -> LimitVerdict | None:
    """What a limit says about a request that one of the limits has refused: it took nothing."""
    if limit is None or said is None:
        return None
    wait = look(limit, meter, cost, now).retry_after
    return replace(look(limit, meter, 0.0, now), is_admitted=said.is_admitted, retry_after=wait)
