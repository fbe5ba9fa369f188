"""Objects of programs that nobody knows: a sign of failure, somewhere the words that explain it.

``{"runner": "acme", "exit_code": 1, "last_lines": ["…"]}`` says that something failed. What its
strings say then counts, wherever they stand. What a tool was asked or answered does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from .bodies import opened

__all__ = ("failed_words",)

_SIGN = re.compile(
    r"(?:\w{0,20}_)?(?:fail|failed|failure|error|errors|exit_?code|return_?code|rc|status"
    r"|status_?code|state|outcome|stop_?reason)",
    re.IGNORECASE,
)
_BAD = re.compile(
    r"(?<!no )(?<!0 )(?<!without )(?<![a-z])"
    r"(?:fail|error|exhaust|abort|reject|block|unavailable|limit|needs_intervention)",
    re.IGNORECASE,
)
# What was asked, shown or changed is not what happened.
_ASKED = re.compile(
    r"(?:tool|tool_\w{1,20}|toolName|command|cmd|args|arguments|prompt|input|query|question|diff"
    r"|patch|files?|content|contents|body_html|snippet|sample|tests?|role)",
    re.IGNORECASE,
)
_DEPTH = 6
_MOST = 400
_LONGEST = 4000


def failed_words(data: object) -> list[str]:
    """The lines that `data` says about a failure; none if it tells of no failure."""
    pairs = list(_walk(data))
    if any(_ASKED.fullmatch(key) for key, _ in pairs):
        return []
    is_run = any(key in ("stdout", "stderr") for key, _ in pairs)
    if not any(_is_sign(key, value) or (is_run and _is_exit(key, value)) for key, value in pairs):
        return []
    strings = (value for _, value in pairs if isinstance(value, str) and " " in value)
    return [line for value in strings for line in value[:_LONGEST].split("\n")]


def _is_sign(key: str, value: object) -> bool:
    if not _SIGN.fullmatch(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", key)):
        return False
    if isinstance(value, bool | Mapping):
        return bool(value) and ("fail" in key.lower() or "error" in key.lower())
    if isinstance(value, int):
        is_exit = "exit" in key.lower() or "return" in key.lower() or key == "rc"
        return value != 0 if is_exit else 400 <= value < 600
    return isinstance(value, str) and _BAD.search(value[:200]) is not None


def _is_exit(key: str, value: object) -> bool:
    return key == "code" and isinstance(value, int) and value > 0


def _walk(data: object) -> Iterator[tuple[str, object]]:
    """Every key with its plain value, in the order in which they were written."""
    stack: list[tuple[str, object, int]] = [("", data, 0)]
    for _ in range(_MOST):
        if not stack:
            return
        key, node, depth = stack.pop()
        node = (opened(node) or node) if isinstance(node, str) else node
        if depth > _DEPTH:
            continue
        if isinstance(node, Mapping):
            yield key, node
            stack.extend(
                (str(name), value, depth + 1) for name, value in reversed(list(node.items())[:64])
            )
        elif isinstance(node, list):
            stack.extend((key, value, depth + 1) for value in reversed(node[:64]))
        else:
            yield key, node
