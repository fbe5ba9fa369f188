"""Forecast of a rule's waits if the server names no time.

Every jitter of ours is symmetric around its median, so the median of a sum of waits is the sum
of their medians, and totals can be added up row by row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.policy import Policy, Rule

__all__ = ("ForecastWait", "attempts_within", "distinct_rules", "time_for_waits", "upcoming")

# Attempts of a rule that is bounded by time alone are counted up to here.
_MOST = 10_000


class ForecastWait(NamedTuple):
    """The wait after one failed attempt, and all waits up to it, in seconds."""

    after: int  # the attempt that failed, counted from 1
    least: float
    median: float
    most: float
    total_least: float  # it and all earlier ones together
    total_median: float
    total_most: float


def upcoming(rule: Rule) -> Iterator[ForecastWait]:
    """The waits of `rule` without hints, one by one; endless where attempts are."""
    backoff = rule.missing_hint or rule.backoff
    totals = (0.0, 0.0, 0.0)
    after = 0
    while rule.attempts is None or after < rule.attempts - 1:
        after += 1
        bounds = backoff.bounds(after)
        totals = (totals[0] + bounds[0], totals[1] + bounds[1], totals[2] + bounds[2])
        yield ForecastWait(after, *bounds, *totals)


def attempts_within(rule: Rule, time: float) -> int:
    """How many attempts can usually start before `time` seconds of waiting are over."""
    for wait in upcoming(rule):
        if wait.total_median > time or wait.after >= _MOST:
            return wait.after
    return rule.attempts or 1


def time_for_waits(policy: Policy) -> float:
    """Seconds after the first failure in which a wait can end, by the tightest bound."""
    bounds = (policy.bound, policy.deadline, policy.budget)
    return min(bound for bound in bounds if bound is not None)


def distinct_rules(policy: Policy) -> list[tuple[Rule, list[str]]]:
    """Each rule once, with the kinds that share it, in the order of the policy."""
    rules: list[Rule] = []
    for rule in policy.rules.values():
        if rule not in rules:
            rules.append(rule)
    return [
        (rule, [str(kind) for kind, each in policy.rules.items() if each == rule]) for rule in rules
    ]
