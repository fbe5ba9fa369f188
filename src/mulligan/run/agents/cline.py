"""Cline: ``cline "…"``.

A session cannot go on without a terminal: ``--id`` refuses a prompt (3.0.65).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .output_reader import EventReader, mapping, number, text, total
from .program import ArgvGrammar, KnownProgram, words

if TYPE_CHECKING:
    from .output_reader import Event
    from .program import Argument

__all__ = ("PROGRAM", "ClineAdapter", "ClineReader")


class ClineAdapter(KnownProgram):
    """Measured with 3.0.65. Its own retries have no option: six requests, not told of."""

    name = "cline"
    can_resume = False
    grammar = ArgvGrammar(
        values="""--auto-approve -c --cwd --compaction --id -P --provider -k --key -m --model -s
            --system -t --timeout --config --data-dir --hooks-dir""",
        maybes="--thinking --retries",
        flags="""-V --version -p --plan --json -i --tui -z --zen --acp --worktree --update --kanban
            -v --verbose -h --help""",
    )
    asides = ("--help", "-h", "--version", "-V", "--acp", "--update", "--kanban", "-z", "--zen")
    commands = """
        auth config plugin skill connect mcp doctor history h hook schedule hub
        dashboard update version kanban
    """
    interactive = ("-i", "--tui", "--id")
    usage = 'cline "…"'
    asked = ("cline", "{prompt}", "{args}")
    formats = ("--json",)
    format = ("--json",)
    live = ("",)
    keys = ("CLINE_API_KEY", "OPENAI_API_KEY", "ANTHROPIC_API_KEY")
    home_variable = "CLINE_DIR"
    folder = ".cline"
    provider_options = ("-P", "--provider")
    key_options = ("-k", "--key")

    def check(self, parts: tuple[Argument, ...]) -> None:
        super().check(parts)
        if not words(parts):
            raise self.refused("without a prompt is interactive")


class ClineReader(EventReader):
    """`--json`: everything that happens is an `agent_event`, the end is a `run_result`."""

    _is_open = False

    def read(self, event: Event) -> None:
        match event.get("type"):
            case "agent_event":
                self._agent(mapping(event, "event"))
            case "run_result":
                self._used(mapping(event, "usage"), "inputTokens", "outputTokens")
                self.ended()
            case "error":
                self.show("stderr", f"error: {text(event, 'message')}\n")

    def _agent(self, event: Event) -> None:
        kind, content = event.get("type"), event.get("contentType")
        tool = text(event, "toolCallId") or text(event, "toolName")
        if kind == "content_start":
            self.worked()
            if content == "text":
                self.show("stdout", text(event, "text"))
                self._is_open = True
            elif content == "tool":
                self.tool_began(tool, text(event, "toolName"), event.get("input"))
        elif kind == "content_end":
            self.tool_ended(tool)
            self.ended()
        elif kind == "usage":
            self._used(event, "totalInputTokens", "totalOutputTokens")

    def _used(self, usage: Event, *names: str) -> None:
        self.spent(cost=number(usage, "totalCost"), tokens=total(usage, *names))

    def ended(self) -> None:
        self.show("stdout", "\n" if self._is_open else "")
        self._is_open = False


PROGRAM = ClineAdapter(ClineReader)
