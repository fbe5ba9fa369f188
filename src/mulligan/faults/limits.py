"""The limits of each client: requests, tokens, or both.

A request passes if every limit has room for it. Refused by one it takes nothing from the other;
with `counts_refusals` it takes from the requests all the same, as some vendors do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from ..core.duration import seconds
from ..errors import SettingError
from .limiter import Counting, LimitVerdict, Meter, RateLimit, charge, look, postpone

__all__ = ("ClientLimits", "LimitCheck", "admit")

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
