"""Gemini CLI: ``gemini -p``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .output_reader import EventReader, mapping, number, text
from .program import ArgvGrammar, KnownProgram

if TYPE_CHECKING:
    from .adapter import Stream
    from .output_reader import Event

__all__ = ("PROGRAM", "GeminiAdapter", "GeminiReader")


class GeminiAdapter(KnownProgram):
    """Measured with 0.61.0. Its own retries have no option: up to ten attempts, counted."""

    name = "gemini"
    is_end_reported = True
    grammar = ArgvGrammar(
        values="""-m --model -p --prompt -i --prompt-interactive --approval-mode -r --resume
            --session-file --session-id --delete-session -o --output-format""",
        lists="""--policy --admin-policy --allowed-mcp-server-names --allowed-tools -e --extensions
            --include-directories""",
        maybes="-w --worktree",
        flags="""-d --debug --skip-trust -s --sandbox -y --yolo --acp --experimental-acp -l
            --list-extensions --list-sessions --screen-reader --raw-output
            --accept-raw-output-risk -v --version -h --help""",
    )
    asides = (
        *("--help", "-h", "--version", "-v", "--list-extensions", "-l", "--list-sessions"),
        *("--delete-session", "--acp", "--experimental-acp"),
    )
    commands = "mcp extensions extension skills skill hooks hook gemma update"
    headless = ("-p", "--prompt")
    interactive = ("-i", "--prompt-interactive")
    usage = 'gemini -p "…"'
    # Gemini puts stdin before the prompt; a prompt is needed even with stdin.
    asked = ("gemini", "-p", "{prompt}", "{args}")
    asked_on_stdin = ("gemini", "-p", "Do what is asked above.", "{args}")
    resumed = ("--resume", "{session}", "-p", "{prompt}")
    formats = ("-o", "--output-format")
    format = ("-o", "stream-json")
    live = ("stream-json",)
    sessions = ("--session-id", "--resume", "-r", "--session-file")
    session_values = ("--session-id", "--resume", "-r")
    session_option = "--session-id"
    keys = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS")
    provider = "google"
    endpoints = ("GOOGLE_GEMINI_BASE_URL", "GOOGLE_CLOUD_PROJECT")
    home_variable = "GEMINI_CLI_HOME"
    folder = ".gemini"
    model_variables = ("GEMINI_MODEL",)


_FAILED = re.compile(r"\s*Attempt \d+ failed\b")
_AFTER = re.compile(r"Retrying after (\d{1,9}) ?ms")


class GeminiReader(EventReader):
    """`stream-json` and `json`. In text the answer streams to stdout, all else goes to stderr."""

    lost = re.compile(r"Error resuming session: (?:No previous sessions|Invalid session)")
    session_key = "session_id"

    _is_open = False

    def read(self, event: Event) -> None:
        match event.get("type"):
            case "message" if event.get("role") == "assistant":
                said = text(event, "content")
                self.show("stdout", said)
                self._is_open = not said.endswith("\n") if said else self._is_open
            case "tool_use":
                self.worked()
                self._close()
                self.tool_began(
                    text(event, "tool_id"), text(event, "tool_name"), event.get("parameters")
                )
            case "tool_result":
                self.tool_ended(text(event, "tool_id"))
            case "error":
                self._error(text(event, "message"))
            case "result":
                self._close()
                self._error(text(event, "error", "message"))
                if event.get("status") == "success":
                    self.worked()
                self.spent(tokens=number(event, "stats", "total_tokens"))
            case None if "stats" in event:
                models = mapping(event, "stats", "models").values()
                self.spent(tokens=sum(number(model, "tokens", "total") for model in models))

    def _close(self) -> None:
        self.show("stdout", "\n" if self._is_open else "")
        self._is_open = False

    def _error(self, message: str) -> None:
        self.show("stderr", message + "\n" if message else "")

    def words(self, stream: Stream, line: str) -> None:
        if stream != "stderr":
            return
        if _FAILED.match(line):
            self.retry()
        if found := _AFTER.search(line[-200:]):
            self.silent(int(found[1]) / 1000)

    def ended(self) -> None:
        self._close()


PROGRAM = GeminiAdapter(GeminiReader)
