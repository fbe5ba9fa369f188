"""Dumps a policy as plain data, in the shape of a policy file.

What is written here loads again as an equal policy. A validator is a function and stays behind.
"""

from __future__ import annotations

import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..core.backoff import Backoff
    from ..core.policy import Policy, Rule

__all__ = (
    "ANY",
    "OFF",
    "SHARED",
    "as_data",
    "as_toml",
    "backoff_data",
    "rule_data",
    "settings_data",
)

# What a file says where Python says None: any number of attempts, any status; no breaker.
ANY, OFF = "any", "off"

# Tables of what the callers of a target share; each can be switched off.
SHARED = ("breaker", "gate", "tokens")


def as_data(policy: Policy) -> dict[str, Any]:
    """`policy` as dictionaries, lists, text, numbers and None."""
    data = settings_data(policy)
    del data["validator"]
    data["rules"] = {str(kind): rule_data(rule) for kind, rule in policy.rules.items()}
    data["statuses"] = None if policy.statuses is None else sorted(policy.statuses)
    data["effects"] = None if policy.effects is None else str(policy.effects)
    data["timeouts"] = None if policy.timeouts is None else settings_data(policy.timeouts)
    data["codes"] = {code: str(kind) for code, kind in policy.codes.items()}
    for name in SHARED:
        shared = getattr(policy, name)
        data[name] = OFF if shared is None else settings_data(shared)
    data["breakers"] = {name: settings_data(each) for name, each in policy.breakers.items()}
    data["store"] = policy.store or None
    return data


def rule_data(rule: Rule) -> dict[str, Any]:
    """`rule` as the table ``[rules.KIND]``."""
    data = settings_data(rule)
    data["backoff"] = backoff_data(rule.backoff)
    if rule.missing_hint is not None:
        data["missing_hint"] = backoff_data(rule.missing_hint)
    return data


def backoff_data(backoff: Backoff) -> dict[str, Any]:
    """`backoff` as the table ``backoff = { … }``, its shape first."""
    data = settings_data(backoff)
    if "waits" in data:
        data["waits"] = list(data["waits"])
    return {"shape": data.pop("shape"), **data}


def settings_data(settings: Any) -> dict[str, Any]:
    """The fields of a dataclass as a table: of timeouts, a breaker, a gate, retry tokens."""
    return {each.name: getattr(settings, each.name) for each in fields(settings)}


def as_toml(policy: Policy) -> str:
    """`policy` as a file that loads as an equal one: a good start for one's own."""
    data = as_data(policy)
    rules, timeouts, codes = data.pop("rules"), data.pop("timeouts"), data.pop("codes")
    breakers = data.pop("breakers")
    shared = {name: data.pop(name) for name in SHARED if isinstance(data[name], dict)}
    lines = _lines(data)
    if not rules:
        lines += ["", "[rules]"]
    for kind, rule in rules.items():
        attempts = ANY if rule["attempts"] is None else rule["attempts"]
        lines += ["", f"[rules.{kind}]", *_lines({**rule, "attempts": attempts})]
    if timeouts is not None:
        lines += ["", "[timeouts]", *_lines(timeouts)]
    for name, table in shared.items():
        lines += ["", f"[{name}]", *_lines(table)]
    for target, table in breakers.items():
        lines += ["", f"[breakers.{_value(target)}]", *_lines(table)]
    if codes:
        lines += ["", "[codes]", *_lines({_value(code): kind for code, kind in codes.items()})]
    return "\n".join(lines) + "\n"


def _lines(table: Mapping[str, Any]) -> list[str]:
    return [f"{key} = {_value(value)}" for key, value in table.items() if value is not None]


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "{ " + ", ".join(_lines(value)) + " }"
    if isinstance(value, list):
        return "[" + ", ".join(map(_value, value)) + "]"
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and value < 1e15 else repr(value)
    # JSON's strings are TOML's, but for one control character.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
