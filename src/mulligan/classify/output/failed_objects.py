"""What any JSON says about a failure, whoever printed it: one walk over its fields.

An object that says of itself that it failed (``status: ERROR``, ``isError``, ``kind: error``,
``run.failed``, ``exit_code: 1``) is read with all sentences in it. What was asked, shown or changed
(a tool call, a prompt, a diff) is not what happened: such an object is left out with all in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..bodies import opened

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("failure_lines",)

_FLAGS = frozenset(("iserror", "isapierrormessage", "isfailed", "haserror", "errored"))
_EXITS = frozenset(("exitcode", "returncode", "rc", "exitstatus"))
_STATES = frozenset(
    (
        *("status", "statuscode", "state", "outcome", "stopreason", "finishreason", "conclusion"),
        *("subtype", "errorcode", "errortype", "failurereason", "errors", "fail"),
    )
)
# What an object is called says less than its state: it must end in the word.
_NAMES = frozenset(
    (
        *("type", "kind", "event", "level", "lvl", "levelname", "log.level", "severity", "name"),
        "result",
    )
)
_BAD = re.compile(
    r"(?<!no )(?<!0 )(?<!without )(?<![a-z])"
    r"(?:fail|error|exhaust|abort|reject|block|unavailable|limit|needs_intervention)",
    re.IGNORECASE,
)
_BAD_NAME = re.compile(
    r"(?:(?!test)[\w-]{1,30}[._:/-])?(?:err|errors?|failed|failure|fatal|critical|panic|aborted|exhausted)",
    re.IGNORECASE,
)
_ASKED = re.compile(
    r"(?:tool|tool_\w{1,20}|toolName|toolCallId|command|cmd|args|arguments|prompt|input|query|question"
    r"|answer|diff|patch|files?|contents|body_html|snippet|sample|tests?)",
    re.IGNORECASE,
)
# What a program found wrong with other things, not with itself.
_FINDINGS = re.compile(
    r"findings|issues|problems|diagnostics|annotations|violations|runs|test_?results", re.IGNORECASE
)
_OTHERS = ("user", "tool", "system")
_REASONS = ("reason", "code", "error")
_DEEPEST = 6
_MOST_NODES = 400
_LONGEST_VALUE = 4000


def failure_lines(data: object) -> list[str]:
    """The lines that `data` says about a failure; none if it tells of no failure."""
    stack: list[tuple[object, int]] = [(data, 0)]
    for _ in range(_MOST_NODES):
        if not stack:
            break
        node, depth = stack.pop()
        node = (opened(node) or node) if isinstance(node, str) else node
        if depth > _DEEPEST or not isinstance(node, Mapping | list):
            continue
        if isinstance(node, Mapping):
            if any(_ASKED.fullmatch(str(key)) for key in node) or node.get("role") in _OTHERS:
                continue
            if _says_failed(node):
                # {"result": "error", "reason": "rate_limit"}: a reason in one word
                words = [node[key] for key in _REASONS if isinstance(node.get(key), str)]
                return list(_lines(node)) or [str(word) for word in words]
            node = [one for key, one in node.items() if not _FINDINGS.fullmatch(str(key))]
        inner = node[:64]
        stack.extend((one, depth + 1) for one in reversed(inner))
    return []


def _says_failed(data: Mapping[object, object]) -> bool:
    is_run = "stdout" in data or "stderr" in data
    return any(_is_sign(str(key), value, is_run=is_run) for key, value in data.items())


def _is_sign(key: str, value: object, *, is_run: bool) -> bool:
    """Whether one field says that what it stands in has failed."""
    name = key.lower().replace("_", "").replace("-", "")
    is_flag = name in _FLAGS or name.endswith(("error", "failure", "failed"))
    if isinstance(value, bool):
        return is_flag if value else name in ("ok", "success", "succeeded")
    if isinstance(value, Mapping):
        return is_flag and bool(value)
    if isinstance(value, int):
        is_exit = name in _EXITS or (is_run and name == "code")
        is_level = name == "level" and value in (50, 60)  # as Pino counts
        return value != 0 if is_exit else is_level or (name in _STATES and 400 <= value < 600)
    if not isinstance(value, str):
        return False
    if name in ("text", "content") and value.startswith("Error: "):
        return True  # an error that stands where the answer should be
    is_state = (is_flag or name in _STATES) and _BAD.search(value[:200]) is not None
    return is_state or (name in _NAMES and _BAD_NAME.fullmatch(value[:80]) is not None)


def _lines(data: object, depth: int = 0) -> Iterator[str]:
    """The lines of all sentences in `data`, in the order in which they were written."""
    data = (opened(data) or data) if isinstance(data, str) else data
    if isinstance(data, str):
        if " " in data or not data.isascii():
            yield from data[:_LONGEST_VALUE].split("\n")
    elif depth <= _DEEPEST and isinstance(data, Mapping):
        if depth == 0 or not any(_ASKED.fullmatch(str(key)) for key in data):
            for value in list(data.values())[:64]:
                yield from _lines(value, depth + 1)
    elif depth <= _DEEPEST and isinstance(data, list):
        for value in data[:64]:
            yield from _lines(value, depth + 1)
