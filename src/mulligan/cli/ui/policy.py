"""Describes a policy in words, for `mulligan explain`.

The lines are those a reviewer asks for (R-X6): target, strategy, attempts, backoff, retryable
errors, timeouts, on exhaustion. Nothing here prints; the caller gets labels with sentences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...config.forecast import attempts_within, distinct_rules, time_for_waits
from ...core.backoff import Exponential, Fixed, Linear, Schedule
from ...core.duration import duration_text
from ...core.failure import Effects, Kind
from ...stores.open import printable

if TYPE_CHECKING:
    from ...core.backoff import Backoff
    from ...core.policy import Policy, Rule
    from ...core.shared_settings import Breaker, Gate, Tokens
    from ...core.timeouts import Timeouts

__all__ = ("ABOUT", "attempts_text", "backoff_text", "sheet")

# One line per preset, for `--list`. A test holds the names against core.presets.
ABOUT = {
    "default": "the built-in policy: limits bounded by time, faults also by attempts",
    "skill": "four attempts, full jitter up to 30s, only 429, 502, 503 and 504",
    "tools": "per family of failures, for agents' tools; 30s for all retries together",
    "pattern": "per kind: fixed for limits, linear for overload, slow for timeouts",
    "surface": "four attempts, exponential plus up to a second, for clients of public APIs",
    "pipeline": "minutes between attempts, waits of up to 6h slept through, for agent programs",
    "subagent": "three attempts of 300s, 240s and 192s, for an agent inside an agent",
}

_EXHAUSTED = (
    "your own exception is raised again, with the reason in a note and everything that "
    "happened in mulligan.story(exc)"
)

_EFFECTS = {
    None: "set by the caller; by default, what may have been applied is not repeated",
    Effects.READ: "read: changes nothing, so every retryable failure is retried",
    Effects.IDEMPOTENT: "idempotent: repeating is harmless, so a lost reply is retried too",
    Effects.KEYED: "keyed: the server detects repeats by a key, so a lost reply is retried too",
    Effects.UNSAFE: "unsafe: what may have been applied is not retried",
}


def sheet(policy: Policy) -> list[tuple[str, str]]:
    """The policy as labels with sentences."""
    retried = [kind for kind, rule in policy.rules.items() if rule.attempts != 1]
    lines = [
        ("target", "whatever the Guard or the decorated function calls"),
        ("strategy", _strategy(policy)),
        ("attempts", _attempts(policy)),
        ("backoff", _backoffs(policy)),
        ("retryable errors", _retried(policy, retried)),
        ("raised at once", _raised(retried)),
        ("repeating", _EFFECTS[policy.effects]),
        ("timeouts", _timeouts(policy, policy.timeouts)),
        ("waits", _bands(policy)),
        ("time", _time(policy)),
        ("breaker", _breaker(policy)),
        ("gate", _gate(policy.gate)),
        ("tokens", _tokens(policy.tokens)),
        ("on exhaustion", _EXHAUSTED),
    ]
    if policy.store:
        lines.insert(-1, ("store", printable(policy.store)))
    if policy.codes:
        codes = ", ".join(f"{code} is {kind}" for code, kind in policy.codes.items())
        lines.insert(6, ("codes", codes))
    if policy.key_ttl is not None:
        lines.insert(-1, ("keys", f"remembered for {duration_text(policy.key_ttl)}"))
    return lines


def attempts_text(policy: Policy, rule: Rule) -> str:
    """``5 attempts``, or how many time allows where time is the bound."""
    if rule.attempts is None:
        time = time_for_waits(policy)
        usual = attempts_within(rule, time)
        return f"any number of attempts, usually {usual} within {duration_text(time)}"
    return "1 attempt, never repeated" if rule.attempts == 1 else f"{rule.attempts} attempts"


def backoff_text(backoff: Backoff) -> str:
    """``1s, then doubled, 30s at most, full jitter``."""
    curve = _curve(backoff)
    match backoff.jitter:
        case "none":
            return f"{curve}, no jitter"
        case "additive":
            return f"{curve}, up to {duration_text(backoff.spread)} added"
        case "proportional":
            return f"{curve}, give or take {backoff.spread:.0%}"
        case "full" | "equal":
            return f"{curve}, {backoff.jitter} jitter"


def _curve(backoff: Backoff) -> str:
    cap = f", {duration_text(backoff.cap)} at most"
    match backoff:
        case Exponential(first=first, factor=2):
            return f"{duration_text(first)}, then doubled{cap}"
        case Exponential(first=first, factor=factor):
            return f"{duration_text(first)}, then times {factor:g}{cap}"
        case Linear(first=first, step=step):
            return f"{duration_text(first)}, then {duration_text(step)} more each time{cap}"
        case Fixed(wait=wait):
            return f"{duration_text(wait)} every time"
        case Schedule(waits=(wait,)):
            return f"{duration_text(wait)} every time"
        case Schedule(waits=waits):
            return f"{', '.join(map(duration_text, waits))}, then the last again"


def _strategy(policy: Policy) -> str:
    shapes: dict[str, None] = {}
    for rule, _ in distinct_rules(policy):
        shapes[(rule.missing_hint or rule.backoff).shape] = None
    if not shapes:
        return "none: nothing is retried"
    modes = {rule.hint for rule in policy.rules.values()}
    hint = "replaced by a time that the server names"
    if modes == {"at_least"}:
        hint = "or the time that the server names, if it is later"
    elif len(modes) > 1:
        kinds = ", ".join(kind for kind, rule in policy.rules.items() if rule.hint == "at_least")
        hint += f" (for {kinds} the later of the two counts)"
    *most, last = shapes
    names = f"{', '.join(most)} and {last}" if most else last
    return f"{names} backoff{', by kind of failure' if most else ''}; {hint}"


def _attempts(policy: Policy) -> str:
    groups: dict[int | None, list[str]] = {}
    for kind, rule in policy.rules.items():
        groups.setdefault(rule.attempts, []).append(kind)
    if len(groups) == 1 and None not in groups:
        return f"{next(iter(groups))} in total, the first one included"
    return "; ".join(
        f"{'as many as time allows' if count is None else count} for {', '.join(kinds)}"
        for count, kinds in groups.items()
    )


def _backoffs(policy: Policy) -> str:
    groups: dict[str, list[str]] = {}
    for kind, rule in policy.rules.items():
        if rule.attempts != 1:
            groups.setdefault(backoff_text(rule.missing_hint or rule.backoff), []).append(kind)
    if len(groups) <= 1:
        return next(iter(groups), "none")
    return "\n".join(f"{', '.join(kinds)}: {words}" for words, kinds in groups.items())


def _retried(policy: Policy, retried: list[Kind]) -> str:
    words = ", ".join(retried) or "none"
    if policy.statuses is not None:
        only = ", ".join(map(str, sorted(policy.statuses)))
        words += f"; of HTTP statuses only {only}, and limits whatever their status"
    checked = [kind for kind in retried if policy.rules[kind].check == "required"]
    if checked and policy.validator is None:
        words += f"; {', '.join(checked)} only with a validator, and none is given"
    return words


def _raised(retried: list[Kind]) -> str:
    words = ", ".join(kind for kind in Kind if kind not in retried)
    # An explicit statement wins, and is answered as a server failure would be.
    return (
        (f"{words}, unless the answer says that it may succeed")
        if Kind.SERVER in retried
        else words
    )


def _timeouts(policy: Policy, limits: Timeouts | None) -> str:
    parts = ("connect", "read", "write", "pool", "total")
    named = [part for part in parts if getattr(limits, part, None) is not None]
    if not named or limits is None:
        return "none of its own; the client's apply"
    words = ", ".join(f"{part} {duration_text(getattr(limits, part))}" for part in named)
    rule = policy.rules.get(Kind.TIMEOUT)
    if limits.shrink == 1 or rule is None:
        return words
    # Two steps show the law; a longer series is a table.
    steps = range(1, min(rule.attempts or 3, 3))
    shorter = " and then ".join(
        duration_text(getattr(limits.after(step), named[-1])) for step in steps
    )
    return f"{words}; after a timeout {limits.shrink:.0%} of it: {named[-1]} {shorter}"


def _bands(policy: Policy) -> str:
    in_place, horizon = duration_text(policy.in_place), duration_text(policy.horizon)
    words = f"up to {in_place} slept through (in_place)"
    if policy.horizon > policy.in_place:
        words += f"; up to {horizon} parked: the call ends and says when to come back (horizon)"
    return f"{words}; beyond {horizon} given up, with the time"


def _time(policy: Policy) -> str:
    name = "patience"
    if policy.patience is None and policy.bound in (policy.deadline, policy.in_place):
        name = "deadline" if policy.bound == policy.deadline else "in_place"
    words = f"no attempt starts after {duration_text(policy.bound)} without progress ({name})"
    if policy.budget is not None:
        words += f"; retrying takes {duration_text(policy.budget)} at most (budget)"
    if policy.deadline is not None:
        words += f"; the whole call takes {duration_text(policy.deadline)} at most (deadline)"
    return words


def _breaker(policy: Policy) -> str:
    words = "off" if policy.breaker is None else _opens(policy.breaker)
    if policy.breaker is not None:
        is_fast = policy.when_open == "fail"
        words += "\nwhile it is open calls " + ("fail at once" if is_fast else "wait for the probe")
    for target, breaker in policy.breakers.items():
        words += f"\nfor {target}: {_opens(breaker)}"
    return words


def _opens(breaker: Breaker) -> str:
    probes = "one probe" if breaker.probes == 1 else f"{breaker.probes} probes"
    good = (
        "one success closes" if breaker.successes == 1 else f"{breaker.successes} successes close"
    )
    ways = []
    if breaker.failures is not None:
        is_one = breaker.failures == 1
        ways.append("1 failure" if is_one else f"{breaker.failures} failures in a row")
    if breaker.rate is not None:
        ways.append(f"{breaker.rate:.0%} of {breaker.calls} calls or more")
    if not ways:
        ways = ["10 failures in a row", "14 within 2s", f"half of {breaker.calls} calls or more"]
    if breaker.slow is not None:
        ways.append(f"{breaker.slow_rate:.0%} slower than {duration_text(breaker.slow)}")
    longest = duration_text(breaker.open_for)
    open_for = f"for {longest}"
    if breaker.open_at_least < breaker.open_for:
        shortest = duration_text(breaker.open_at_least)
        open_for = f"for a seventh of the time it is down, {shortest} to {longest}"
    return f"{' or '.join(ways)} open it {open_for}, then {probes} at a time; {good} it"


def _gate(gate: Gate | None) -> str:
    if gate is None:
        return "off"
    words = "all callers of a target obey the limits that it states"
    if gate.keep:
        words += f"; the last {gate.keep:g} requests are kept"
    if gate.low:
        words += f"; below {gate.low:g} calls are spaced out, until there are {gate.high:g} again"
    return words


def _tokens(tokens: Tokens | None) -> str:
    if tokens is None:
        return "off"
    return (
        f"{tokens.capacity:g} a target: a retry takes {tokens.transient:g}, after a limit "
        f"{tokens.throttle or 'none'}; a success puts {tokens.success:g} in; "
        f"{tokens.floor} at a time are always allowed"
    )
