"""Settings of breaker, gate and retry tokens, which all callers of a target share.

Numbers only. How a breaker, a gate or a bucket of tokens goes by them stands in `breaker`, `gate`
and `tokens`; a policy can be read without loading any of these.
"""

from __future__ import annotations

from ..errors import SettingError
from .duration import is_number, seconds
from .record import record
from .schema import Seconds

__all__ = ("Breaker", "Gate", "Tokens")


@record(kw_only=True)
class Breaker:
    """When to stop calling, and when to try again.

    Without `failures` and `rate` it goes by both, and by numbers that chance does not reach: ten
    failures in a row, fourteen where all of them ended within two seconds (many calls that run
    into one bad second are one event), or more than half of the calls in the window. Where one
    of the two is given, that one alone opens it.

    Args:
        failures: Failures in a row that open it (R-K1).
        rate: The share of calls in the window that open it by failing, once chance no longer
            explains it: three standard deviations beyond the share.
        calls: Calls that must have ended in the window before their share says anything.
        window: Seconds over which shares are counted.
        slow: A call that takes longer than this many seconds is slow; None if none is.
        slow_rate: The share of slow calls in the window that opens it.
        open_for: The longest it stays open, in seconds, unless the server asked for more (R-K2).
        open_at_least: The shortest. In between it stays open for a seventh of the time that the
            target has been down, so that a recovery is noticed soon after it happened.
        probes: Calls let through at a time once that has passed (R-K3).
        successes: Probes that must be answered to close it (R-K4).
        lease: Seconds after which a probe that has not come back is given up.
        quorum: Different workers that must have seen the failures. A worker alone that cannot
            reach the target has a broken network, not a broken target (E-B15).
    """

    failures: int | None = None
    rate: float | None = None
    calls: int = 20
    window: Seconds = 30.0
    slow: Seconds | None = None
    slow_rate: float = 0.9
    open_for: Seconds = 60.0
    open_at_least: Seconds = 1.0
    probes: int = 1
    successes: int = 1
    lease: Seconds = 30.0
    quorum: int = 1

    def __post_init__(self) -> None:
        for name in ("failures", "calls", "probes", "successes", "quorum"):
            value = getattr(self, name)
            if value is None and name == "failures":
                continue
            if not isinstance(value, int) or isinstance(value, bool) or value < 1:
                raise SettingError(f"Breaker.{name} needs a whole number >= 1; got {value!r}")
        for name in ("rate", "slow_rate"):
            share = getattr(self, name)
            if share is None and name == "rate":
                continue
            if share is None or not is_number(share) or not 0 < share <= 1:
                raise SettingError(
                    f"Breaker.{name} needs a share above 0 and up to 1, such as 0.5; got {share!r}"
                )
        _spans(self, "open_for", "open_at_least", "lease", "window")
        if self.slow is not None:
            _spans(self, "slow")
        if self.open_at_least > self.open_for:
            # Shortening the longest shortens the shortest, too.
            object.__setattr__(self, "open_at_least", self.open_for)


@record(kw_only=True)
class Gate:
    """How a gate reads what it is told.

    Args:
        keep: Requests that are never used: below it, wait for the reset (R-L7).
        low: Below this many remaining, space calls out (R-L8); 0 for never.
        high: Above this many, no longer.
        lease: Seconds after which a probe that has not come back is given up.
        block: The longest that a block of permits is leased for, in seconds.
        horizon: The longest that a rejection or a stated reset is believed, in seconds: then one
            call looks again.
        scout: Whether the first call goes ahead alone, to learn what the answers state.
    """

    keep: float = 0.0
    low: float = 0.0
    high: float = 0.0
    lease: Seconds = 30.0
    block: Seconds = 10.0
    horizon: Seconds = 21_600.0
    scout: bool = False

    def __post_init__(self) -> None:
        _counts(self, "keep", "low", "high")
        _spans(self, "lease", "block", "horizon")
        if self.high < self.low:
            raise SettingError(f"Gate needs low <= high; got low={self.low:g}, high={self.high:g}")


@record(kw_only=True)
class Tokens:
    """How many retry tokens there are, and what a retry costs.

    Args:
        capacity: The most there can be: a quiet day must not bank a storm (E-C1).
        transient: What a retry costs after a fault.
        throttle: What it costs after a limit; the gate paces those.
        success: What a call that succeeds at once puts in.
        floor: Retries that may always be under way, however empty the bucket (E-C6).
    """

    capacity: float = 500.0
    transient: float = 14.0
    throttle: float = 0.0
    success: float = 1.0
    floor: int = 3

    def __post_init__(self) -> None:
        _counts(self, "capacity", "transient", "throttle", "success", "floor")


def _counts(settings: object, *names: str) -> None:
    for name in names:
        value = getattr(settings, name)
        if not is_number(value) or not 0 <= value < float("inf"):
            raise SettingError(
                f"{type(settings).__name__}.{name} needs a number >= 0; got {value!r}"
            )


def _spans(settings: object, *names: str) -> None:
    for name in names:
        given = getattr(settings, name)
        value = seconds(given, name=f"{type(settings).__name__}.{name}")
        if not 0 < value < float("inf"):
            raise SettingError(
                f"{type(settings).__name__}.{name} needs more than 0 seconds; got {given!r}"
            )
        object.__setattr__(settings, name, value)
