"""Policies of runs: presets for whole programs, and how long a policy lets an agent wait. Pure."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

from ...core.backoff import Exponential
from ...core.failure import Kind
from ...core.presets import preset

if TYPE_CHECKING:
    from ...core.policy import Policy

__all__ = ("longest_wait", "run_policy")

# Four to eight minutes in all: a provider that is down for longer is rare, and a stream that breaks
# for ever costs its tokens each time. A timeout gets fewer attempts, because each one takes long.
_FAULTS, _SILENCES = 8, 5
_PASSING = Exponential(first=4, cap=300, jitter="equal")
_BACKOFFS = {
    Kind.OVERLOADED: _PASSING,
    Kind.NETWORK: _PASSING,
    Kind.SERVER: _PASSING,
    Kind.TIMEOUT: _PASSING,
    # Most windows of this kind last a minute, and the program has waited for a part of it.
    Kind.RATE_LIMIT: Exponential(first=30, cap=1800, jitter="equal"),
    # A plan's window lasts minutes to days. Gemini does not pass on when it ends.
    Kind.QUOTA: Exponential(first=60, cap=1800, jitter="equal"),
}


@cache
def run_policy(name: str = "default") -> Policy:
    """The preset for whole programs; the same object every time.

    `default` is made for calls. A program has retried several times by itself before it fails,
    every attempt starts it again, and no user waits at a screen: so the waits are longer, and
    patience lasts as long as the horizon.
    """
    policy = preset(name)
    if policy.name != "default":
        return policy
    rules = {
        kind: replace(rule, backoff=_BACKOFFS.get(kind, rule.backoff))
        for kind, rule in policy.rules.items()
    }
    for kind in (Kind.OVERLOADED, Kind.NETWORK, Kind.SERVER):
        rules[kind] = replace(rules[kind], attempts=_FAULTS)
    rules[Kind.TIMEOUT] = replace(rules[Kind.TIMEOUT], attempts=_SILENCES)
    # A program that announces a longer sleep is stopped and resumed later.
    return replace(policy, rules=rules, in_place=120.0)


def longest_wait(policy: Policy) -> tuple[float, str]:
    """How long an agent may wait at once, in seconds, with the setting that bounds it."""
    if all(rule.attempts == 1 for rule in policy.rules.values()):
        return 0.0, "attempts"
    bounds = [(policy.horizon, "horizon"), (policy.deadline, "deadline")]
    if policy.horizon <= policy.in_place:  # else a longer wait is parked, and these do not apply
        bounds += [(policy.budget, "budget"), (policy.patience, "patience")]
    return min((bound, name) for bound, name in bounds if bound is not None)
