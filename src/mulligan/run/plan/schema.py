"""What a plan's file may say beyond the fields of `Plan`.

A phase's policy is a preset's name or a table. The table has the keys of a policy file, and the
words that pipelines of agents use for the same things (R-P1):

    max_retries       attempts - 1
    retry_delays      the waits after each failure, the last of which repeats
    jitter            seconds that the dice may add to each of them
    max_wait          the longest wait at all
    partial_failure   on_failure, here or beside the policy

Without a preset or rules the table starts from `pipeline`, whose values are the defaults of R-P1;
so does a phase without a policy. What has no meaning for a whole program is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...config.policy_schema import InvalidKey
from ...config.source import shown
from ...config.suggestions import POLICY_WORDS, FileKeys, guess, names, policy_keys, synonyms
from ...core.duration import seconds
from ...core.presets import PRESETS, preset
from ...errors import SettingError
from .model import Agent, Phase, Plan

if TYPE_CHECKING:
    from collections.abc import Collection

    from ...config.lines import KeyPath

__all__ = ("PHASE_POLICY_WORDS", "PLAN_WORDS", "WITHOUT_EFFECT", "policy_table", "split_policy")

_PIPELINE = "pipeline"
# R-B13, R-B14.
_DELAYS, _JITTER, _MAX_WAIT, _ATTEMPTS = [120, 300, 900, 1800], 30.0, 21_600.0, 4
_OURS = ("retry_delays", "jitter", "max_wait", "partial_failure")


# Fields of a policy that cannot mean anything for a program, and what they are for.
_SHARED = "for calls that share a target; a program has the limits of its account"
WITHOUT_EFFECT = {
    "store": "where calls share their state; runs share theirs by MULLIGAN_STORE",
    "gate": _SHARED,
    "breaker": _SHARED,
    "breakers": _SHARED,
    "tokens": _SHARED,
    "effects": "for calls; whether a program may be restarted is may_restart of its agent",
    "codes": "for answers of servers; a program's words are read by packs",
    "key_ttl": "for keys of calls; a run that has finished is never run again",
}
# Timeouts that only the code that makes the connection can measure.
_UNFIT_TIMEOUTS = ("connect", "read", "write", "pool")


def split_policy(phase: dict[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """Take the policy's table out of `phase`, and `partial_failure` out of both.

    What is left has the fields of `Phase`. Returns the table, and where the failure mode stood.
    """
    policy = phase.get("policy")
    if isinstance(policy, str) and policy not in PRESETS:
        raise InvalidKey(
            ("policy",),
            f"needs one of {', '.join(PRESETS)}, or a table; got {shown(policy)}",
            guess(policy, PRESETS),
        )
    if not isinstance(phase.get("policy", {}), str | dict):
        raise InvalidKey(("policy",), f"needs a preset's name or a table; got {shown(policy)}")
    table = dict(phase.pop("policy")) if isinstance(policy, dict) else None
    place = ""
    for where, home in (("partial_failure", phase), ("policy.partial_failure", table)):
        if home is None or "partial_failure" not in home:
            continue
        if "on_failure" in phase:
            raise InvalidKey(
                tuple(where.split(".")),
                "given together with on_failure, and both mean the same"
                if not place
                else "given twice, in the phase and in its policy",
                "keep one",
            )
        phase["on_failure"], place = home.pop("partial_failure"), where
    return table, place


def policy_table(table: dict[str, Any]) -> dict[str, Any]:
    """The table of a phase's policy in the words of a policy file."""
    own = dict(table)
    for key, why in WITHOUT_EFFECT.items():
        if key in own:
            raise InvalidKey((key,), f"has no effect on programs: it is {why}", "leave it out")
    timeouts = own.get("timeouts")
    for key in _UNFIT_TIMEOUTS:
        if isinstance(timeouts, dict) and key in timeouts:
            why = "has no effect on programs: their connections cannot be observed"
            raise InvalidKey(("timeouts", key), why, "write timeouts.total, or an agent's idle")
    if "preset" not in own and "rules" not in own:
        own["preset"] = _PIPELINE
    _delays(own)
    _max_wait(own)
    return own


def _delays(own: dict[str, Any]) -> None:
    """`retry_delays` and `jitter` as a backoff of every rule that has none of its own."""
    if "retry_delays" not in own and "jitter" not in own:
        return
    given = own.pop("retry_delays", None)
    if given is None and own.get("preset") != _PIPELINE:
        raise InvalidKey(("jitter",), "is added to retry_delays, and there are none", "add them")
    delays = _DELAYS if given is None else given
    if not isinstance(delays, list) or not delays:
        raise InvalidKey(
            ("retry_delays",),
            f"needs an array of durations; got {shown(delays)}",
            "write retry_delays = [120, 300, 900, 1800]",
        )
    waits = [_positive(each, ("retry_delays", at)) for at, each in enumerate(delays)]
    # A stated jitter is kept; the default one is at most as long as the shortest wait.
    jitter = own.pop("jitter", min(_JITTER, *waits))
    jitter = _positive(jitter, ("jitter",), or_zero=True)
    added = {"jitter": "additive", "spread": jitter} if jitter else {"jitter": "none"}
    backoff = {"shape": "schedule", "waits": waits, **added}
    rules = own.get("rules", {})
    if not isinstance(rules, dict):
        return  # reported where values are checked
    base = preset(own["preset"]).rules if own.get("preset") in PRESETS else ()
    spread: dict[str, Any] = {}
    for kind in (*map(str, base), *rules):
        rule = rules.get(kind, {})
        if isinstance(rule, dict) and "backoff" not in rule:
            rule = {"hint": "at_least", "missing_hint": None, **rule, "backoff": backoff}
        spread[kind] = rule
    own["rules"] = spread


def _max_wait(own: dict[str, Any]) -> None:
    """`max_wait` as the longest wait, with time for as many of them as there are attempts."""
    if "max_wait" in own:
        for other in ("horizon", "in_place"):
            if other in own:
                raise InvalidKey(
                    ("max_wait",), f"given together with {other}", "max_wait sets both; keep one"
                )
        own["in_place"] = own["horizon"] = _positive(own.pop("max_wait"), ("max_wait",))
    elif "horizon" in own or own.get("preset") != _PIPELINE:
        return
    attempts = own.get("attempts")
    if attempts is None and isinstance(own.get("max_retries"), int):
        attempts = own["max_retries"] + 1
    if not isinstance(attempts, int):
        attempts = _ATTEMPTS
    own.setdefault("patience", max(1, attempts) * own.get("horizon", _MAX_WAIT))


def _positive(value: object, path: KeyPath, *, or_zero: bool = False) -> float:
    try:
        found = seconds(value)  # type: ignore[arg-type]
    except SettingError as wrong:
        raise InvalidKey(path, str(wrong).removeprefix("duration ")) from None
    if not found and not or_zero:
        raise InvalidKey(path, f"needs more than 0 s; got {shown(value)}")
    return found


_PLAN, _AGENT = names(Plan), names(Agent)
_PHASE = names(Phase) | {"partial_failure"}


def _known(table: KeyPath, _: str) -> Collection[str]:
    match table:
        case ():
            return _PLAN
        case ("phases", int()):
            return _PHASE
        case ("phases", int(), "agents", int()):
            return _AGENT
    return ()


def _policy_known(table: KeyPath, shape: str) -> Collection[str]:
    """The keys of a table inside a phase's policy."""
    found = policy_keys(table, shape)
    return {*found, *_OURS} - {*WITHOUT_EFFECT} if not table else found


_SYNONYMS = synonyms(
    {
        "phases": "phase steps stages",
        "agents": "agent steps tasks",
        "needs": "depends_on depends after",
        "concurrency": "max_parallel parallelism max_concurrency workers",
        "on_failure": "fail_fast failure_mode",
        "partial_failure": "partial_failure_mode",
        "minimum": "min_success minimum_success required",
        "command": "cmd run argv",
        "program": "cli tool",
        "args": "model",
        "env": "environment",
        "variables": "vars",
        "cwd": "workdir working_directory dir",
        "cost_limit": "max_cost budget",
        "policy": "retry retries",
        "verify": "check test",
        "input": "stdin",
        "may_restart": "restart",
    }
)

PLAN_WORDS = FileKeys(
    known=_known,
    synonyms=_SYNONYMS,
    homes=(
        ("an agent, [[phases.agents]]", _AGENT),
        ("a phase, [[phases]]", _PHASE),
        ("a phase's policy, [phases.policy]", {*policy_keys((), ""), *_OURS}),
        ("the top of the file", _PLAN),
    ),
)
PHASE_POLICY_WORDS = POLICY_WORDS._replace(
    known=_policy_known, synonyms={**POLICY_WORDS.synonyms, "delays": ("retry_delays", "waits")}
)
