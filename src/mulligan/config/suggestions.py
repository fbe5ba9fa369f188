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

__all__ = ("POLICY_WORDS", "FileKeys", "about_key", "guess", "names", "policy_keys")


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

# Words of other libraries and of other units, each with ours; the first that fits the table is it.
_SYNONYMS: dict[str, tuple[str, ...]] = {
    "retries": ("max_retries",),
    "num_retries": ("max_retries",),
    "retry_count": ("max_retries",),
    "max_attempts": ("attempts",),
    "tries": ("attempts",),
    "max_tries": ("attempts",),
    "stop_after_attempt": ("attempts",),
    "base": ("first", "preset"),
    "base_delay": ("first",),
    "initial": ("first",),
    "initial_delay": ("first",),
    "wait_initial": ("first",),
    "min": ("first",),
    "delay": ("wait", "first", "backoff"),
    "max": ("cap",),
    "max_delay": ("cap", "horizon"),
    "max_wait": ("cap", "horizon"),
    "wait_max": ("cap",),
    "max_interval": ("cap",),
    "multiplier": ("factor",),
    "exponent": ("factor",),
    "exp_base": ("factor",),
    "increment": ("step",),
    "delays": ("waits",),
    "schedule": ("waits", "backoff"),
    "strategy": ("shape", "backoff"),
    "type": ("shape", "backoff"),
    "kind": ("shape",),
    "timeout": ("total", "timeouts"),
    "max_time": ("patience",),
    "max_elapsed": ("patience",),
    "wait_jitter": ("jitter",),
    "retry_after": ("hint",),
    "ttl": ("key_ttl",),
    "fail_max": ("failures",),
    "failure_threshold": ("failures",),
    "threshold": ("failures",),
    "recovery_timeout": ("open_for",),
    "reset_timeout": ("open_for",),
    "success_threshold": ("successes",),
    "circuit_breaker": ("breaker",),
    "rate_limiter": ("gate",),
    "extends": ("preset",),
    "retry_on": ("rules",),
    "retryable_statuses": ("statuses",),
    "status_codes": ("statuses",),
}


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
