"""Which of the client's tools runs a shell command or writes a file.

Every program names its tools differently, and refuses arguments that do not fit the schema it sent.
So the schema decides: the tool is found by its name, each argument by the property it fits, and
other required properties get a neutral value of their type.
"""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

from .vendors.base import ClientRequest, Json, Tool, ToolCall, a_list, a_table

if TYPE_CHECKING:
    from .fault_names import Fault

__all__ = ("tool_call",)

# In order of preference, lower case: Claude Code, Codex, Gemini with Qwen, opencode with Copilot.
# `exec` is Codex once more: with some models it runs JavaScript that calls the other tools.
_SHELLS = ("bash", "exec_command", "shell", "shell_command", "run_shell_command", "exec")
_WRITERS = ("write", "write_file", "create", "create_file")
_COMMANDS = ("command", "cmd", "commands", "script")
_PATHS = ("file_path", "filepath", "path", "absolute_path", "filename")
_CONTENTS = ("content", "contents", "file_text", "text")


def tool_call(fault: Fault, asked: ClientRequest) -> ToolCall:
    """The call that the fault asks for, in terms of what the client offers."""
    if fault.name == "call":
        arguments: Json = json.loads(fault.text("arguments") or "{}")
        return ToolCall(name=fault.text("tool") or "tool", arguments=arguments)
    if fault.name == "shell":
        return _shell(fault.text("command") or "true", asked)
    path, content = fault.text("path") or "mulligan.txt", fault.text("content") or ""
    tool = _pick(asked.tools, _WRITERS)
    if tool is None and _pick(asked.tools, _SHELLS):
        # Codex writes files by patches of its own; its shell can do it more plainly.
        return _shell(f"printf %s {shlex.quote(content)} > {shlex.quote(path)}", asked)
    return _filled(tool or Tool(name=_WRITERS[0]), ((_PATHS, path), (_CONTENTS, content)))


def _shell(command: str, asked: ClientRequest) -> ToolCall:
    # A client that offers no such tool still gets a call of the usual form: what it does then
    # is worth seeing, too.
    tool = _pick(asked.tools, _SHELLS) or Tool(name=_SHELLS[0])
    if tool.is_free:
        text = f"text(await tools.exec_command({json.dumps({'cmd': command})}))"
        return ToolCall(name=tool.name, arguments={}, text=text)
    return _filled(tool, ((_COMMANDS, command),))


def _pick(tools: tuple[Tool, ...], names: tuple[str, ...]) -> Tool | None:
    known = {tool.name.lower(): tool for tool in tools}
    return next((known[name] for name in names if name in known), None)


def _filled(tool: Tool, wanted: tuple[tuple[tuple[str, ...], str], ...]) -> ToolCall:
    properties = a_table(tool.schema.get("properties"))
    required = a_list(tool.schema.get("required"))
    arguments: Json = {} if properties else {names[0]: value for names, value in wanted}
    for name, schema in properties.items():
        known = a_table(schema)
        value = next((text for names, text in wanted if name.lower() in names), None)
        if value is not None:
            arguments[name] = ["bash", "-lc", value] if known.get("type") == "array" else value
        elif name in required:
            arguments[name] = _neutral(name, known)
    return ToolCall(name=tool.name, arguments=arguments)


def _neutral(name: str, schema: Json) -> object:
    """A value that the schema allows and that does nothing."""
    for value in a_list(schema.get("enum")):
        return value
    number = 30_000 if "timeout" in name.lower() else 1
    by_type = {"boolean": False, "integer": number, "number": number, "array": [], "object": {}}
    return by_type.get(str(schema.get("type")), "asked by the fault server")
