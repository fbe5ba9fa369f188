"""Gemini CLI: ``gemini -p``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .argv import Grammar
from .program import CONTINUE, Program
from .reading import EventReader, mapping, number, text

if TYPE_CHECKING:
    from .adapter import Launch, Reader, Stream
    from .argv import Part
    from .reading import Event

__all__ = ("PROGRAM", "Gemini", "GeminiReader")


class Gemini(Program):
    """Measured with 0.61.0. Its own retries have no option: up to ten attempts, counted."""

    name = "gemini"
    # With -o json a truncated stream exits 0, the error stands in the object only.
    is_exit_trusted = False
    grammar = Grammar(
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
    formats = ("-o", "--output-format")
    format = ("-o", "stream-json")
    live = ("stream-json",)
    sessions = ("--session-id", "--resume", "-r", "--session-file")
    session_values = ("--session-id", "--resume", "-r")
    session_option = "--session-id"
    keys = ("GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_APPLICATION_CREDENTIALS")
    places = ("GOOGLE_CLOUD_PROJECT", "GOOGLE_GEMINI_BASE_URL", "GEMINI_CLI_HOME")
    folder = ".gemini"

    def again(self, session: str, parts: tuple[Part, ...]) -> tuple[str, ...]:  # noqa: ARG002 -- the base's
        return ("--resume", session, "-p", CONTINUE)

    def reader(self, launch: Launch, /) -> Reader:
        return GeminiReader(launch)


_FAILED = re.compile(r"\s*Attempt \d+ failed\b")
_AFTER = re.compile(r"Retrying after (\d{1,9}) ?ms")


class GeminiReader(EventReader):
    """`stream-json` and `json`. In text the answer streams to stdout, all else goes to stderr."""

    lost = re.compile(r"Error resuming session: (?:No previous sessions|Invalid session)")

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch)
        self._is_open = False

    def read(self, event: Event) -> None:
        self.session(event.get("session_id"))
        match event.get("type"):
            case "message" if event.get("role") == "assistant":
                said = text(event, "content")
                self.show("stdout", said)
                self._is_open = not said.endswith("\n") if said else self._is_open
            case "tool_use":
                self.worked()
                self._close()
                self.tool_began(text(event, "tool_id"))
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


PROGRAM = Gemini()
