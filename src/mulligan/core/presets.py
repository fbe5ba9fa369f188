"""Presets: policies with a name.

`default` is our own judgement; the others are published tables, kept to the number, so that a
team that follows one of them finds its own rules here. Tests hold each against REQUIREMENTS.

A preset is built when it is asked for: using one does not build the other six.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import SettingError
from .backoff import Exponential, Fixed, Linear, Schedule
from .failure import Effects, Kind
from .policy import Policy, Rule
from .shared_settings import Breaker, Gate
from .timeouts import Timeouts

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("PRESETS", "preset")

_TRANSIENT = (
    Kind.RATE_LIMIT,
    Kind.QUOTA,
    Kind.OVERLOADED,
    Kind.SERVER,
    Kind.NETWORK,
    Kind.TIMEOUT,
)

# R-K1, R-K2 as the tables have them: so many failures in a row, always open for as long.
_MINUTE = Breaker(failures=5, open_for=60, open_at_least=60)

_cache: dict[str, Policy] = {}


def preset(name: str) -> Policy:
    """The policy called `name`; the same object every time."""
    found = _cache.get(name)
    if found is None:
        build = PRESETS.get(name)
        if build is None:
            from difflib import get_close_matches

            near = get_close_matches(name, PRESETS, n=1)
            guess = f"; did you mean {near[0]!r}?" if near else ""
            raise SettingError(f"no preset {name!r}; there are {', '.join(PRESETS)}{guess}")
        found = _cache[name] = build()
    return found


def _default() -> Policy:
    """Limits are bounded by time, faults by attempts as well."""
    fault = Rule(attempts=10, backoff=Exponential(first=0.5, cap=30))
    limit = Rule(attempts=None, backoff=Exponential(first=1, cap=60), is_paced=True)
    return Policy(
        name="default",
        rules={
            Kind.RATE_LIMIT: limit,
            Kind.QUOTA: limit,
            Kind.OVERLOADED: fault,
            Kind.SERVER: fault,
            Kind.NETWORK: fault,
            Kind.TIMEOUT: fault,
            # One more try, if a validator reports that the condition has changed (R-A3).
            Kind.CONDITIONAL: Rule(attempts=2, backoff=Exponential(first=1), check="required"),
        },
    )


def _skill() -> Policy:
    """R-B1, R-C7, R-C8, R-L6: full jitter, three retries, four statuses."""
    rule = Rule(attempts=4, backoff=Exponential(first=1, cap=30))
    return Policy(
        name="skill",
        rules=dict.fromkeys(_TRANSIENT, rule),
        statuses=frozenset({429, 502, 503, 504}),
        effects=Effects.IDEMPOTENT,
        breaker=_MINUTE,
        when_open="fail",  # R-K6, R-K8
    )


def _tools() -> Policy:
    """R-B3, R-B4, R-L1 to R-L3: one rule per family; a network failure only if safe to repeat."""
    server = Rule(attempts=5, backoff=Exponential(first=0.2, cap=30, jitter="additive", spread=0.1))
    network = Rule(attempts=3, backoff=Linear(first=0.5, step=0.5, cap=30))
    limit = Rule(attempts=3, backoff=Fixed(wait=1))
    return Policy(
        name="tools",
        rules={
            Kind.RATE_LIMIT: limit,
            Kind.QUOTA: limit,
            Kind.OVERLOADED: server,
            Kind.SERVER: server,
            Kind.NETWORK: network,
            Kind.TIMEOUT: network,
        },
        budget=30,  # R-B18
        breaker=_MINUTE,
        when_open="fail",
    )


def _pattern() -> Policy:
    """R-B5 to R-B10, R-L4, R-L8: a strategy a kind; linear for a server short of capacity."""
    slow = Exponential(first=2, cap=30)
    limit = Rule(attempts=4, backoff=Fixed(wait=5))
    return Policy(
        name="pattern",
        rules={
            Kind.RATE_LIMIT: limit,
            Kind.QUOTA: limit,
            Kind.OVERLOADED: Rule(attempts=6, backoff=Linear(first=1, step=1, cap=5)),
            Kind.SERVER: Rule(attempts=4, backoff=Exponential(first=1, cap=10)),
            Kind.NETWORK: Rule(attempts=6, backoff=slow, check="if_given"),
            Kind.TIMEOUT: Rule(attempts=6, backoff=slow),
            Kind.CONDITIONAL: Rule(
                attempts=4, backoff=Exponential(first=1, cap=10), check="required"
            ),
        },
        effects=Effects.IDEMPOTENT,
        breaker=Breaker(failures=5, open_for=60, open_at_least=60, successes=2),  # R-K4
        when_open="fail",  # retry, then the breaker, then fail at once
        gate=Gate(low=10, high=20),
    )


def _surface() -> Policy:
    """R-B11, R-C10, R-L5, R-L7: additive jitter, the header where there is one."""
    rule = Rule(attempts=4, backoff=Exponential(first=1, cap=60, jitter="additive", spread=1))
    return Policy(
        name="surface",
        rules=dict.fromkeys(_TRANSIENT, rule),
        effects=Effects.IDEMPOTENT,
        breaker=Breaker(failures=5, open_for=30, open_at_least=30),  # R-K2
        when_open="fail",
        gate=Gate(keep=5),
    )


def _pipeline() -> Policy:
    """R-B13, R-B14: a schedule of minutes, the longer of schedule and reset, six hours at most."""
    rule = Rule(
        attempts=4,
        backoff=Schedule(waits=(120, 300, 900, 1800), jitter="additive", spread=30),
        hint="at_least",
    )
    return Policy(
        name="pipeline",
        rules=dict.fromkeys(_TRANSIENT, rule),
        in_place=21_600,
        horizon=21_600,
        patience=4 * 21_600,  # four attempts with six hours between them
        breaker=None,  # R-K9: calls are few, and resets are known
    )


def _subagent() -> Policy:
    """R-B19: a sub-agent gets 300 s, then 240, then 192."""
    rule = Rule(attempts=3, backoff=Exponential(first=1, cap=30))
    return Policy(
        name="subagent",
        rules=dict.fromkeys(_TRANSIENT, rule),
        timeouts=Timeouts(total=300, shrink=0.8),
        patience=900,
        breaker=_MINUTE,
        when_open="fail",
    )


PRESETS: dict[str, Callable[[], Policy]] = {
    "default": _default,
    "skill": _skill,
    "tools": _tools,
    "pattern": _pattern,
    "surface": _surface,
    "pipeline": _pipeline,
    "subagent": _subagent,
}
