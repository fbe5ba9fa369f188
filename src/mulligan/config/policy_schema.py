"""Schema of policy files: what they accept beyond the fields of `Policy`.

A file starts from a preset or from nothing, counts in attempts or in retries, and names a
service instead of its timeouts. All of that is resolved here, before the values are checked:
a file's keys override the preset's, one by one, at every level.
"""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from ..core.backoff import Exponential
from ..core.duration import seconds
from ..core.policy import Policy, Rule
from ..core.presets import PRESETS, preset
from ..core.timeouts import SERVICE_TIMEOUTS
from ..errors import SettingError
from .dump import ANY, OFF, SHARED, as_data, backoff_data, rule_data, settings_data
from .source import shown
from .suggestions import guess

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from .lines import KeyPath

__all__ = ("InvalidKey", "resolve")


class InvalidKey(Exception):
    """An invalid setting, before its file and line are known."""

    def __init__(self, path: KeyPath, message: str, hint: str = "") -> None:
        self.path, self.message, self.hint = path, message, hint
        super().__init__(message)


def resolve(data: Mapping[str, Any], presets: Callable[[str], Policy] = preset) -> dict[str, Any]:
    """`data` of a file as the fields of `Policy`; `presets` says where one starts."""
    own = dict(data)
    if "validator" in own:
        raise InvalidKey(
            ("validator",),
            "a validator is a Python function and cannot be set from a file",
            "load the file, then load_policy(…).but(validator=has_changed)",
        )
    if not own:
        raise InvalidKey((), "is empty: nothing is set", _START)
    _check_store(own.get("store"))
    base = _base(own, presets)
    if not base and "rules" not in own:
        raise InvalidKey((), "has neither a preset nor rules: nothing would be retried", _START)
    everywhere = _attempts(own, ())
    merged = {**base, **own}
    _bound_in_place(merged, own)
    merged["rules"] = _rules(base.get("rules", {}), own.get("rules", {}), everywhere)
    if own.get("statuses") == ANY:
        merged["statuses"] = None
    merged["timeouts"] = _timeouts(base.get("timeouts"), own.get("timeouts"))
    merged["breakers"] = _breakers(base.get("breakers", {}), own.get("breakers", {}))
    for name in SHARED:
        merged[name] = _shared(name, base.get(name), own.get(name))
    # Only here None says something: that there is none.
    return {key: value for key, value in merged.items() if value is not None or key in SHARED}


def _bound_in_place(merged: dict[str, Any], own: dict[str, Any]) -> None:
    """Let a horizon that stands alone bound what is slept through; a preset's does not lift it."""
    if "horizon" in own and "in_place" not in own:
        with suppress(SettingError):  # which is told where all values are looked at
            horizon = seconds(own["horizon"], name="horizon")
            merged["in_place"] = min(horizon, merged.get("in_place", Policy().in_place))


_START = 'start with preset = "default", or give rules such as [rules.server]'


def _base(own: dict[str, Any], presets: Callable[[str], Policy]) -> dict[str, Any]:
    if "preset" not in own:
        return {}
    name = own.pop("preset")
    _check_known(("preset",), name, PRESETS)
    return as_data(presets(name))


def _check_known(path: KeyPath, name: object, known: Collection[str]) -> None:
    if not isinstance(name, str) or name not in known:
        message = f"needs one of {', '.join(known)}; got {shown(name)}"
        raise InvalidKey(path, message, guess(name, known))


def _attempts(table: dict[str, Any], path: KeyPath) -> dict[str, Any]:
    """Take `attempts` or `max_retries` out of `table`; attempts are the total."""
    if "attempts" in table and "max_retries" in table:
        raise InvalidKey(
            (*path, "max_retries"),
            "given together with attempts, and both count the same",
            "keep one: attempts is the total, max_retries is attempts - 1",
        )
    for key, least, extra in (("attempts", 1, 0), ("max_retries", 0, 1)):
        if key not in table:
            continue
        value = table.pop(key)
        if value is None or value == ANY:
            return {"attempts": None}
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise InvalidKey(
                (*path, key),
                f'needs a whole number >= {least}, or "{ANY}" where time is the bound; '
                f"got {shown(value)}",
                "attempts are the total, the first one included" if key == "attempts" else "",
            )
        return {"attempts": value + extra}
    return {}


def _rules(base: dict[str, Any], own: object, everywhere: dict[str, Any]) -> Any:
    if not isinstance(own, dict):
        return own
    rules: dict[str, Any] = {kind: {**rule, **everywhere} for kind, rule in base.items()}
    for kind, given in own.items():
        if not isinstance(given, dict):
            rules[kind] = given
            continue
        table = dict(given)
        count = _attempts(table, ("rules", kind))
        start = rules.get(kind) or {**rule_data(Rule()), **everywhere}
        rules[kind] = {**start, **table, **count}
        for key in ("backoff", "missing_hint"):
            if isinstance(table.get(key), dict):
                rules[kind][key] = _backoff(start[key], table[key])
    named = {kind: rule for kind, rule in own.items() if isinstance(rule, dict)}
    for kind, rule in rules.items():
        # A kind that the file switches off keeps none of the preset's waits: they mean nothing.
        if isinstance(rule, dict) and rule.get("attempts") == 1:
            for key in {"backoff", "missing_hint"}.difference(named.get(kind, ())):
                rule.pop(key, None)
    return rules


def _backoff(start: dict[str, Any] | None, own: dict[str, Any]) -> dict[str, Any]:
    start = dict(start or backoff_data(Exponential()))
    if own.get("shape", start["shape"]) != start["shape"]:
        return own
    if start["shape"] in {"fixed", "schedule"}:
        start.pop("cap")  # it follows from the waits, which the file may change
    if "jitter" in own:
        start.pop("spread")  # seconds for one jitter, a share for another
    return {**start, **own}


# Passwords do not belong in a file that is shared, printed and committed.
_WITH_PASSWORD = re.compile(r"://[^/?#]*:[^/?#]*@")


def _check_store(store: object) -> None:
    if isinstance(store, str) and _WITH_PASSWORD.search(store):
        raise InvalidKey(
            ("store",),
            "carries a password, and a policy must not contain one",
            "leave it out and give the address as MULLIGAN_STORE",
        )


def _shared(name: str, base: object, own: object) -> Any:
    """A table of what callers share; None where it is switched off."""
    if own == OFF or (own is None and base == OFF):
        return None
    if own is not None and not isinstance(own, dict):
        raise InvalidKey((name,), f'needs a table, or "{OFF}"; got {shown(own)}')
    return {**(base if isinstance(base, dict) else {}), **(own or {})}


def _breakers(base: dict[str, Any], own: object) -> Any:
    if not isinstance(own, dict):
        return own
    tables = {
        target: {**base.get(target, {}), **each}
        for target, each in own.items()
        if isinstance(each, dict)
    }
    return {**base, **own, **tables}


def _timeouts(base: dict[str, Any] | None, own: object) -> Any:
    if not isinstance(own, dict):
        return base if own is None else own
    table = dict(own)
    start = dict(base or {})
    if "service" in table:
        name = table.pop("service")
        _check_known(("timeouts", "service"), name, SERVICE_TIMEOUTS)
        start = settings_data(SERVICE_TIMEOUTS[name])
    return {**start, **table}
