"""Warnings about policies: settings that contradict each other.

Such settings are allowed, and do not do what they say: a bound that another bound overtakes, a wait
that no attempt ever makes, a repeat that cannot help. A finding names the key, says what really
happens, then what to write instead.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..core.duration import duration_text
from ..core.failure import Effects, Kind
from ..core.policy import Rule
from .forecast import attempts_within, distinct_rules, time_for_waits, upcoming

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..core.policy import Policy
    from ..core.timeouts import Timeouts

__all__ = ("PolicyFinding", "lint")


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFinding:
    """One contradiction."""

    key: str  # the path of the setting, ``rules.billing``
    message: str  # what really happens, in one clause
    hint: str  # what to do about it
    is_grave: bool = False  # the policy does harm as it stands, instead of nothing

    def __str__(self) -> str:
        return f"{self.key}: {self.message}; {self.hint}"


def lint(policy: Policy) -> tuple[PolicyFinding, ...]:
    """Every contradiction in `policy`, the grave ones first."""
    found = [*_bounds(policy), *_effects(policy), *_statuses(policy)]
    if policy.timeouts is not None:
        found += _timeouts(policy, policy.timeouts)
    found += _shared(policy)
    for kind, rule in policy.rules.items():
        found += _rule(kind, rule)
    for rule, kinds in distinct_rules(policy):
        if rule.attempts != 1:
            found += _waits(policy, kinds, rule)
    return tuple(sorted(found, key=lambda finding: not finding.is_grave))


def _bounds(policy: Policy) -> Iterator[PolicyFinding]:
    if not policy.rules:
        yield PolicyFinding(
            key="rules",
            message="there are none, so nothing is retried",
            hint='start with preset = "default", or add rules such as [rules.server]',
        )
    if policy.bound < policy.in_place:
        bound, in_place = duration_text(policy.bound), duration_text(policy.in_place)
        yield PolicyFinding(
            key="patience",
            message=f"no wait of more than {bound} is slept through, though in_place is {in_place}",
            hint=f"lower in_place to {bound}, or leave patience out",
        )
    longest = max(policy.horizon, policy.bound)
    if policy.key_ttl is not None and policy.key_ttl < longest:
        yield PolicyFinding(
            key="key_ttl",
            message=f"a key is forgotten after {duration_text(policy.key_ttl)}, but a repeat may "
            f"come {duration_text(longest)} later and would then be a second effect",
            hint=f"raise key_ttl to {duration_text(longest)}, or lower horizon and patience",
            is_grave=True,
        )


def _effects(policy: Policy) -> Iterator[PolicyFinding]:
    kinds = [kind for kind in (Kind.NETWORK, Kind.TIMEOUT) if kind in policy.rules]
    if policy.effects is Effects.UNSAFE and kinds:
        yield PolicyFinding(
            key="effects",
            message=f"with unsafe, {' and '.join(kinds)} failures are repeated only if nothing was "
            "sent (refused, no such host, connect timeout); a lost reply, 408, 502 and 504 are not",
            hint="write idempotent, keyed or read if repeating is harmless",
        )


# Statuses below 500 whose kind can pass; statuses above that say they never will.
_PASSING = frozenset({408, 409, 412, 423, 425, 429, 498})
_FINAL = frozenset({501, 505, 511})


def _statuses(policy: Policy) -> Iterator[PolicyFinding]:
    for status in sorted(policy.statuses or ()):
        if not 100 <= status <= 599:
            yield PolicyFinding(
                key="statuses", message=f"{status} is not an HTTP status", hint="leave it out"
            )
        elif status in _FINAL or (status < 500 and status not in _PASSING):
            yield PolicyFinding(
                key="statuses",
                message=f"{status} is never retried for its status alone",
                hint="leave it out, or give the application's own code a kind in [codes]",
            )


def _timeouts(policy: Policy, limits: Timeouts) -> Iterator[PolicyFinding]:
    parts = {each: getattr(limits, each) for each in ("connect", "read", "write", "pool")}
    for part, limit in parts.items():
        if limit is not None and limits.total is not None and limit > limits.total:
            yield PolicyFinding(
                key=f"timeouts.{part}",
                message=f"{duration_text(limit)} is never reached, because an attempt ends after "
                f"{duration_text(limits.total)} in total",
                hint=f"lower {part}, or raise timeouts.total",
            )
    if limits.total is not None and policy.deadline is not None and policy.deadline < limits.total:
        yield PolicyFinding(
            key="timeouts.total",
            message=f"{duration_text(limits.total)} is never reached, because the whole call ends "
            f"after {duration_text(policy.deadline)}",
            hint="lower timeouts.total so that a second attempt fits, or raise deadline",
        )
    if limits.shrink < 1 and limits.total is None and not any(parts.values()):
        yield PolicyFinding(
            key="timeouts.shrink",
            message="there is no timeout that could shrink",
            hint="set timeouts.total, or leave shrink out",
        )
    elif limits.shrink < 1 and Kind.TIMEOUT not in policy.rules:
        yield PolicyFinding(
            key="timeouts.shrink",
            message="timeouts are not retried, so none ever shrinks",
            hint="add [rules.timeout], or leave shrink out",
        )


def _shared(policy: Policy) -> Iterator[PolicyFinding]:
    gate, tokens = policy.gate, policy.tokens
    if gate is not None and gate.high and not gate.low:
        yield PolicyFinding(
            key="gate.high",
            message="calls are never spaced out, so there is nothing to end above it",
            hint="set gate.low, too, or leave gate.high out",
        )
    if tokens is not None and tokens.capacity < max(tokens.transient, tokens.throttle):
        yield PolicyFinding(
            key="tokens.capacity",
            message=f"a retry costs up to {max(tokens.transient, tokens.throttle):g}, more than "
            f"there can be: only the {tokens.floor} of tokens.floor are ever made at a time",
            hint="raise tokens.capacity",
        )


# Kinds that the same call meets again, whenever it is repeated; why, then what helps.
_HOPELESS = {
    Kind.BILLING: ("waiting pays no bill", "top up the account, or name another provider"),
    Kind.AUTH: ("the same key is refused again, and accounts get locked", "renew the key"),
    Kind.CONTEXT_LENGTH: ("the same input is too long again", "shorten the input"),
    Kind.CONTENT_POLICY: ("the same words are refused again", "change the words"),
    Kind.CLIENT: ("the same request is wrong again", "correct it; [codes] can name exceptions"),
    Kind.CIRCUIT_OPEN: ("repeating is what the breaker prevents", "use a fallback"),
    Kind.UNKNOWN: ("what is not understood may be a bug or a second effect", "give it a kind"),
}


def _rule(kind: Kind, rule: Rule) -> Iterator[PolicyFinding]:
    key = f"rules.{kind}"
    if rule.attempts == 1:
        if rule.missing_hint is not None or rule.backoff != Rule().backoff:
            yield PolicyFinding(
                key=f"{key}.backoff",
                message="with attempts = 1 nothing is repeated, so no wait is ever made",
                hint="raise attempts, or leave the backoff out",
            )
        return
    if kind in _HOPELESS:
        why, instead = _HOPELESS[kind]
        yield PolicyFinding(
            key=key,
            message=f"repeating does not help: {why}",
            hint=f"{instead}, then remove this rule",
            is_grave=True,
        )
    if kind is Kind.CONDITIONAL and rule.check == "never":
        yield PolicyFinding(
            key=f"{key}.check",
            message="the condition is not looked at, so the same refusal is asked for again",
            hint='write check = "required" and give the policy a validator in Python',
        )
    if rule.missing_hint is not None and not kind.is_limit:
        yield PolicyFinding(
            key=f"{key}.missing_hint",
            message=f"servers name a time for limits, hardly ever for {kind}, so this takes the "
            "place of backoff nearly always",
            hint="write it as backoff",
        )


# Three to five attempts are usual (R-B2). A hundred of one call in five minutes do not help; in
# an hour that was allowed they are one every half minute, and limits are waited for so.
_STORM, _STORM_TIME = 100, 300.0


def _waits(policy: Policy, kinds: list[str], rule: Rule) -> Iterator[PolicyFinding]:
    """The waits of a rule that `kinds` share, against the policy's bounds."""
    backoff = rule.missing_hint or rule.backoff
    key, whose = f"rules.{kinds[0]}", ", ".join(kinds)
    name = "backoff" if rule.missing_hint is None else "missing_hint"
    first = next(upcoming(rule))
    for bound, value in _asked_before(policy, first.median):
        never = first.least > value
        yield PolicyFinding(
            key=bound,
            message=f"{duration_text(value)} is shorter than the "
            f"{'shortest' if never else 'usual'} first wait, "
            f"{duration_text(first.least if never else first.median)}, after {whose}: "
            f"{'never' if never else 'often not'} retried",
            hint=f"raise {bound}, or shorten {key}.{name}",
        )
        return
    if first.median > policy.in_place:
        yield PolicyFinding(
            key="in_place",
            message=f"{duration_text(policy.in_place)} is shorter than the usual first wait, "
            f"{duration_text(first.median)}, after {whose}: a plain call parks instead of waiting",
            hint=f"raise in_place, or shorten {key}.{name}",
        )
        return
    time = time_for_waits(policy)
    fit = attempts_within(rule, time)
    if attempts_within(rule, min(time, _STORM_TIME)) > _STORM:
        yield PolicyFinding(
            key=f"{key}.{name}",
            message=f"waits this short let more than {_STORM} attempts of one call start in "
            f"{duration_text(min(time, _STORM_TIME))}, for {whose}: a storm, not a retry",
            hint="lengthen the waits, or lower attempts",
            is_grave=True,
        )
    elif rule.attempts is not None and fit < rule.attempts:
        yield PolicyFinding(
            key=f"{key}.attempts",
            message=f"time usually ends it first, for {whose}: about {fit} of {rule.attempts} "
            f"attempts start in {duration_text(time)}",
            hint=f"lower attempts to {fit}, or raise patience, deadline or budget",
        )
    elif backoff.cap > time and (rule.attempts is None or first.most >= backoff.cap):
        yield PolicyFinding(
            key=f"{key}.{name}.cap",
            message=f"a wait of {duration_text(backoff.cap)} never ends inside the "
            f"{duration_text(time)} that a call may take",
            hint="lower the cap, or raise patience, deadline or budget",
        )


def _asked_before(policy: Policy, wait: float) -> Iterator[tuple[str, float]]:
    """The bounds that end a call before a first wait of this length, in the order of `decide`.

    A wait that parks the call is checked against the deadline only; patience never ends the first.
    """
    if policy.deadline is not None and policy.deadline <= wait:
        yield "deadline", policy.deadline
    if policy.budget is not None and policy.budget < wait <= policy.in_place:
        yield "budget", policy.budget
