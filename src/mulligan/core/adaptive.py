"""A policy that learns from the failures a guard has seen lately (R-B15).

    seen lately              what changes
    ─────────────────────    ──────────────────────────────────────────────────
    5 timeouts or more       their backoff starts at 2 s
    3 rate limits or more    a limit without a time waits a fixed 5 s
    5 server errors or more  their backoff is exponential, 1 s to 10 s
    5 network errors or more two attempts more

Only rules that the policy has are changed: nothing becomes retried that was not.
"""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import replace
from typing import TYPE_CHECKING

from .backoff import Exponential, Fixed
from .failure import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .policy import Policy, Rule

__all__ = ("LATELY", "RecentFailures", "adapted")

# How long a failure is remembered, in seconds: as long as `default` has patience with a call.
LATELY = 300.0

# More than any rule asks for, and few enough that a storm costs no memory.
_MOST = 100

_MANY = {Kind.TIMEOUT: 5, Kind.RATE_LIMIT: 3, Kind.SERVER: 5, Kind.NETWORK: 5}


class RecentFailures:
    """The failures of one guard in the last minutes, in this process.

    Args:
        policy: The policy that is adapted.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._recent: deque[tuple[float, Kind]] = deque(maxlen=_MOST)

    def note(self, kind: Kind, now: float) -> None:
        """Remember a failure."""
        self._recent.append((now, kind))

    def policy(self, now: float) -> Policy:
        """The policy as it stands after what was seen."""
        recent = list(self._recent)  # in one step: other threads add to it
        seen = Counter(kind for at, kind in recent if now - at <= LATELY)
        return adapted(self._policy, seen) if seen else self._policy


def adapted(policy: Policy, seen: Mapping[Kind, int]) -> Policy:
    """`policy` in the light of what has failed lately, counted by kind."""
    rules = dict(policy.rules)
    for kind, many in _MANY.items():
        rule = rules.get(kind)
        if rule is not None and seen.get(kind, 0) >= many:
            rules[kind] = _changed(kind, rule)
    return policy if rules == policy.rules else replace(policy, rules=rules)


def _changed(kind: Kind, rule: Rule) -> Rule:
    if kind is Kind.TIMEOUT:
        backoff = rule.backoff
        if isinstance(backoff, Exponential) and backoff.first < 2:
            return replace(rule, backoff=replace(backoff, first=2.0, cap=max(backoff.cap, 2.0)))
        return rule
    if kind is Kind.RATE_LIMIT:
        return replace(rule, missing_hint=Fixed(wait=5))
    if kind is Kind.SERVER:
        if isinstance(rule.backoff, Exponential):
            return rule
        return replace(rule, backoff=Exponential(first=1, cap=10))
    return rule if rule.attempts is None else replace(rule, attempts=rule.attempts + 2)
