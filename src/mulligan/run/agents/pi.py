"""pi: ``pi -p``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .accounts import Credential, file_entries
from .output_reader import EventReader, contents, mapping, number, text
from .program import ArgvGrammar, KnownProgram, value_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .output_reader import Event
    from .program import Argument

__all__ = ("PROGRAM", "PiAdapter", "PiReader")


class PiAdapter(KnownProgram):
    """Measured with 0.73.1. Its own retries are a setting in a file of the user's: counted."""

    name = "pi"
    grammar = ArgvGrammar(
        values="""--provider --model --api-key --system-prompt --append-system-prompt --mode
            --session --fork --session-dir --models --tools -t --thinking --extension -e --skill
            --prompt-template --theme --export""",
        maybes="--list-models",
        flags="""--print -p --continue -c --resume -r --no-session --no-tools -nt
            --no-builtin-tools -nbt --no-extensions -ne --no-skills -ns --no-prompt-templates -np
            --no-themes --no-context-files -nc --verbose --offline --help -h --version -v""",
    )
    asides = ("--help", "-h", "--version", "-v", "--export", "--list-models")
    commands = "install remove uninstall update list config"
    headless = ("-p", "--print")
    interactive = ("-r", "--resume")
    usage = 'pi -p "…"'
    asked = ("pi", "-p", "{prompt}", "{args}")
    asked_on_stdin = ("pi", "-p", "{args}")
    resumed = ("--session", "{session}", "-p", "{prompt}")
    formats = ("--mode",)
    format = ("--mode", "json")
    live = ("json",)
    sessions = ("--session", "--continue", "-c", "--resume", "-r")
    session_values = ("--session",)
    forks = ("--fork",)
    unsaved = ("--no-session",)
    keys = (
        *("ANTHROPIC_OAUTH_TOKEN", "ANTHROPIC_API_KEY", "OPENAI_API_KEY", "GEMINI_API_KEY"),
        "OPENROUTER_API_KEY",
    )
    is_file_first = True
    home_variable = "PI_CODING_AGENT_DIR"
    folder = ".pi/agent"
    provider_options = ("--provider",)
    key_options = ("--api-key",)
    models = ("--model",)

    def check(self, parts: tuple[Argument, ...]) -> None:
        # ``--mode json`` is unattended even without ``-p``.
        if value_of(parts, "--mode") != "json":
            super().check(parts)

    def file_credentials(self, environ: Mapping[str, str]) -> dict[str, Credential]:
        return file_entries(f"{self.home(environ)}/auth.json", environ)


class PiReader(EventReader):
    """`--mode json`. In text it prints the last answer when it is done, or why there is none."""

    lost = re.compile(r"No session found matching")

    _answer = _error = ""

    def skips(self, line: bytes) -> bool:
        # Each update repeats the whole message so far; parsing all of them would be quadratic.
        return line.startswith(b'{"type":"message_update"')

    def read(self, event: Event) -> None:
        match event.get("type"):
            case "session":
                self.session(event.get("id"))
            case "auto_retry_start":
                self.retry(number(event, "delayMs") / 1000, text(event, "errorMessage"))
            case "tool_execution_start":
                self.tool_began(
                    text(event, "toolCallId"), text(event, "toolName"), event.get("args")
                )
            case "tool_execution_end":
                self.tool_ended(text(event, "toolCallId"))
            case "message_end":
                self._message(mapping(event, "message"))

    def _message(self, message: Event) -> None:
        if message.get("role") != "assistant":
            return
        usage = mapping(message, "usage")
        self.also_spent(cost=number(usage, "cost", "total"), tokens=number(usage, "totalTokens"))
        said = [text(part, "text") for part in contents(message, "content")]
        self._answer, self._error = "\n".join(filter(None, said)), ""
        if message.get("stopReason") in ("error", "aborted"):
            self._error = text(message, "errorMessage") or f"Request {message['stopReason']}"
        else:
            self.worked()

    def ended(self) -> None:
        if self._error:
            self.show("stderr", self._error + "\n")
        elif self._answer:
            self.show("stdout", self._answer + "\n")


PROGRAM = PiAdapter(PiReader)
