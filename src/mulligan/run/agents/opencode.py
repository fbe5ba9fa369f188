"""opencode: ``opencode run``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .accounts import Credential, file_entries
from .output_reader import EventReader, mapping, number, text, total
from .program import ArgvGrammar, KnownProgram

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .output_reader import Event
    from .program import Argument

__all__ = ("PROGRAM", "OpencodeAdapter", "OpencodeReader")


class OpencodeAdapter(KnownProgram):
    """Measured with 1.18.33. Its own retries have no option, and it says nothing of them."""

    name = "opencode"
    # opencode reports a tool only when it has ended, and a subagent is one tool: the usual idle
    # limit would stop it while it works.
    idle = 1800.0
    grammar = ArgvGrammar(
        values="""--log-level --command -s --session -m --model --agent --format --title --attach
            -p --password -u --username --dir --port --variant --hostname --mdns-domain --prompt
            --replay-limit""",
        lists="-f --file --cors",
        flags="""-h --help -v --version --print-logs --pure -c --continue --fork --share --thinking
            -i --interactive --auto --mdns --mini --no-replay""",
    )
    asides = ("--help", "-h", "--version", "-v")
    commands = """
        completion acp mcp attach debug providers auth agent upgrade uninstall serve
        web models stats export import github pr session plugin plug db
    """
    interactive = ("--interactive", "-i", "--mini")
    usage = 'opencode run "…"'
    subcommands = ("run",)
    asked = ("opencode", "run", "{prompt}", "{args}")
    asked_on_stdin = ("opencode", "run", "{args}")
    resumed = ("--session", "{session}", "{prompt}")
    formats = ("--format",)
    format = ("--format", "json")
    live = ("json", "default")
    sessions = ("--session", "-s", "--continue", "-c")
    session_values = ("--session", "-s")
    session_pattern = re.compile(r"ses_[A-Za-z0-9]{4,60}")
    forks = ("--fork",)
    # ``--command`` is a named prompt; the first attempt has already received its files.
    prompts = ("--command", "-f", "--file")
    keys = (
        *("OPENCODE_API_KEY", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY"),
        *("GEMINI_API_KEY", "GOOGLE_GENERATIVE_AI_API_KEY", "DEEPSEEK_API_KEY"),
    )
    is_file_first = True
    endpoints = ("OPENCODE_CONFIG", "OPENCODE_CONFIG_CONTENT")
    folder = ".local/share/opencode"

    def check(self, parts: tuple[Argument, ...]) -> None:
        if not self.place(parts):
            raise self.refused("without run is interactive")
        super().check(parts)

    def home(self, environ: Mapping[str, str]) -> str:
        data = environ.get("XDG_DATA_HOME")
        return f"{data}/opencode" if data else super().home(environ)

    def file_credentials(self, environ: Mapping[str, str]) -> dict[str, Credential]:
        return file_entries(f"{self.home(environ)}/auth.json", environ)


# After a stream that ends without a reason opencode sends another request, one message longer,
# without end: 44 in 50 seconds (1.18.33). This many in a row count as its own retries; after one
# more the supervisor stops it.
_CUT_OFF = 3


class OpencodeReader(EventReader):
    """`--format json`. In text the answer goes to stdout, tools and errors to stderr."""

    lost = re.compile(r"(?:\x1b\[[0-9;]*m)*Error: (?:\x1b\[[0-9;]*m)*Session not found")
    session_key = "sessionID"

    _cut_off = 0

    def read(self, event: Event) -> None:
        part = mapping(event, "part")
        match event.get("type"):
            case "text":
                said = text(part, "text").strip("\n")
                self.show("stdout", said + "\n" if said else "")
            case "tool_use":
                self.worked()
                self._cut_off = -1  # a step that used a tool is always followed by another
                self._tool(part)
            case "step_finish":
                self._finished(text(part, "reason"))
                used = mapping(part, "tokens")
                parts = total(used, "input", "output", "reasoning")
                tokens = number(used, "total") or parts + total(used.get("cache"), "read", "write")
                self.also_spent(cost=number(part, "cost"), tokens=tokens)
            case "error":
                error = mapping(event, "error")
                said = text(error, "data", "message") or text(error, "message")
                self.show("stderr", f"Error: {said or text(error, 'name')}\n")

    def _finished(self, reason: str) -> None:
        if reason != "unknown":
            self.worked()
            self._cut_off = 0
            return
        self._cut_off += 1
        if self._cut_off > _CUT_OFF:
            self.futile()
        elif self._cut_off:
            self.retry()

    def _tool(self, part: Event) -> None:
        state, tool = mapping(part, "state"), text(part, "tool")
        said = text(state, "title") or text(state, "input", "command")
        sign = "$" if tool == "bash" else f"| {tool}"
        output = (text(state, "output") or text(state, "error")).rstrip("\n")
        shown = output + "\n" if output and tool == "bash" else ""
        self.show("stderr", f"{sign} {said}\n{shown}")


PROGRAM = OpencodeAdapter(OpencodeReader)
