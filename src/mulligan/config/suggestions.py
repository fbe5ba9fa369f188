"""Suggestions for misspelt keys of files, and for keys that other libraries use."""

from __future__ import annotations

from dataclasses import fields
from difflib import get_close_matches
from typing import TYPE_CHECKING, NamedTuple

from ..core.backoff import Exponential, Fixed, Linear, Schedule
from ..core.failure import Kind
from ..core.policy import Policy, Rule
from ..core.shared_settings import Breaker, Gate, Tokens
from ..core.timeouts import Timeouts

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from .lines import KeyPath

__all__ = ("POLICY_WORDS", "FileKeys", "about_key", "guess", "names", "policy_keys", "synonyms")


class FileKeys(NamedTuple):
    """The keys of one sort of file."""

    # The keys of the table at a path; the text is the shape of a backoff, if it is one.
    known: Callable[[KeyPath, str], Collection[str]]
    # Names in other libraries, each with ours; the first that the table knows is suggested.
    synonyms: Mapping[str, tuple[str, ...]]
    # Where else a key could belong: the place in words, its keys.
    homes: tuple[tuple[str, Collection[str]], ...]


_SHAPES = {"exponential": Exponential, "linear": Linear, "fixed": Fixed, "schedule": Schedule}


def names(cls: type) -> set[str]:
    """The fields of a dataclass."""
    return {each.name for each in fields(cls)}


_POLICY = (names(Policy) - {"validator"}) | {"preset", "attempts", "max_retries"}
_RULE = names(Rule) | {"max_retries"}
_TIMEOUTS = names(Timeouts) | {"service"}
_TABLES = {
    "timeouts": _TIMEOUTS,
    "breaker": names(Breaker),
    "gate": names(Gate),
    "tokens": names(Tokens),
}
_BACKOFF = {name: names(cls) for name, cls in _SHAPES.items()}
_ANY_BACKOFF: set[str] = set().union(*_BACKOFF.values())


def synonyms(ours: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Names in other libraries, each with ours, from our names, each with those of others."""
    found: dict[str, tuple[str, ...]] = {}
    for name, others in ours.items():
        for other in others.split():
            found[other] = (*found.get(other, ()), name)
    return found


# Our names, each with those of other libraries and of other units. Where two of ours have the same,
# the first that the table knows is suggested.
_SYNONYMS = synonyms(
    {
        "max_retries": "retries num_retries retry_count",
        "attempts": "max_attempts tries max_tries stop_after_attempt",
        "wait": "delay",
        "first": "base base_delay initial initial_delay wait_initial min delay",
        "preset": "base extends",
        "cap": "max max_delay max_wait wait_max max_interval",
        "horizon": "max_delay max_wait",
        "factor": "multiplier exponent exp_base",
        "step": "increment",
        "waits": "delays schedule",
        "shape": "strategy type kind",
        "backoff": "delay schedule strategy type",
        "total": "timeout",
        "timeouts": "timeout",
        "patience": "max_time max_elapsed",
        "jitter": "wait_jitter",
        "hint": "retry_after",
        "key_ttl": "ttl",
        "failures": "fail_max failure_threshold threshold",
        "open_for": "recovery_timeout reset_timeout",
        "successes": "success_threshold",
        "breaker": "circuit_breaker",
        "gate": "rate_limiter",
        "rules": "retry_on",
        "statuses": "retryable_statuses status_codes",
    }
)


def guess(word: object, known: Iterable[str]) -> str:
    """``did you mean 'rate_limit'?``, or nothing where nothing is near."""
    near = _near(word, list(known))
    return f"did you mean {near!r}?" if near else ""


def about_key(path: KeyPath, shape: str, words: FileKeys) -> str:
    """What to do about the unknown key at the end of `path`, in a backoff of this `shape`."""
    key, known = str(path[-1]), words.known(path[:-1], shape)
    for ours in words.synonyms.get(key, ()):
        if ours in known:
            return f"mulligan's word is {ours!r}"
    if key in _ANY_BACKOFF and known in _BACKOFF.values():
        homes = ", ".join(name for name, keys in _BACKOFF.items() if key in keys)
        return f"{key!r} belongs to shape {homes}; {shape} takes {', '.join(sorted(known))}"
    if near := _near(key, list(known)):
        return f"did you mean {near!r}?"
    for home, keys in words.homes:
        if key in keys:
            return f"{key!r} belongs in {home}"
    return f"known here: {', '.join(sorted(known))}" if known else ""


def policy_keys(table: KeyPath, shape: str) -> Collection[str]:
    """The keys of the table at `table` in a policy."""
    match table:
        case ():
            return _POLICY
        case ("timeouts" | "breaker" | "gate" | "tokens" as name,):
            return _TABLES[str(name)]
        case ("breakers", _):
            return _TABLES["breaker"]
        case ("rules", _):
            return _RULE
        case ("rules", _, "backoff" | "missing_hint"):
            return _BACKOFF.get(shape, _ANY_BACKOFF)
    return ()


POLICY_WORDS = FileKeys(
    known=policy_keys,
    synonyms=_SYNONYMS,
    homes=(
        ("a backoff, backoff = { … }", _ANY_BACKOFF),
        ("a rule, [rules.KIND]", _RULE),
        *((f"[{table}]", keys) for table, keys in _TABLES.items()),
        ("[rules]", set(Kind)),
        ("the top of the file", _POLICY),
    ),
)


def _near(word: object, known: list[str]) -> str:
    if not isinstance(word, str):
        return ""
    plain = word.strip().lower().replace("-", "_").replace(" ", "_")[:80]
    return next(iter(get_close_matches(plain, known, n=1)), "")
