"""Qwen Code: ``qwen "…"`` or ``qwen -p``.

Its output is left as it is: 0.15 reports a failed request as a success in both of its structured
forms, with exit code 0, while its text form exits 1. The session is known all the same, because we
choose its id.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .claude import ClaudeReader
from .program import ArgvGrammar, KnownProgram, given, value_of, words

if TYPE_CHECKING:
    from .adapter import Stream
    from .program import Argument

__all__ = ("PROGRAM", "QwenAdapter", "QwenReader")


class QwenAdapter(KnownProgram):
    """Measured with 0.15.10 and 0.24.4. Its own retries have no option; the outer are counted."""

    name = "qwen"
    grammar = ArgvGrammar(
        values="""--telemetry-target --telemetry-otlp-endpoint --telemetry-otlp-protocol
            --telemetry-outfile --proxy -m --model -p --prompt -i --prompt-interactive
            --system-prompt --append-system-prompt --sandbox-image --approval-mode --channel
            --mcp-config --openai-logging-dir --openai-api-key --openai-base-url --input-format -o
            --output-format --json-fd --json-file --json-schema --input-file -r --resume
            --session-id --max-session-turns --auth-type""",
        lists="""--allowed-mcp-server-names --allowed-tools -e --extensions --include-directories
            --add-dir --core-tools --exclude-tools --disabled-slash-commands""",
        flags="""--telemetry --telemetry-log-prompts -d --debug --bare --chat-recording
            --no-chat-recording -s --sandbox -y --yolo --checkpointing --acp --experimental-lsp -l
            --list-extensions --openai-logging --screen-reader --include-partial-messages -c
            --continue -v --version -h --help""",
    )
    asides = ("--help", "-h", "--version", "-v", "--list-extensions", "-l", "--acp")
    commands = "mcp extensions auth hooks hook channel review"
    interactive = ("-i", "--prompt-interactive")
    usage = 'qwen "…"'
    # Qwen puts stdin before the prompt; a prompt is needed even with stdin.
    asked = ("qwen", "-p", "{prompt}", "{args}")
    asked_on_stdin = ("qwen", "-p", "Do what is asked above.", "{args}")
    sessions = ("--session-id", "--resume", "-r", "--continue", "-c")
    session_values = ("--session-id", "--resume", "-r")
    session_option = "--session-id"
    unsaved = ("--no-chat-recording",)
    prompts = ("-p", "--prompt", "--input-format")
    keys = ("OPENAI_API_KEY", "DASHSCOPE_API_KEY")
    endpoints = ("OPENAI_BASE_URL",)
    home_variable = "QWEN_HOME"
    folder = ".qwen"
    model_variables = ("OPENAI_MODEL",)

    def check(self, parts: tuple[Argument, ...]) -> None:
        super().check(parts)
        if not given(parts, "-p", "--prompt", "--input-format") and not words(parts):
            raise self.refused("without a prompt is interactive")

    def is_live(self, parts: tuple[Argument, ...]) -> bool:
        # In text it is silent until it has the answer.
        return value_of(parts, "-o", "--output-format") == "stream-json"

    def resume_words(self, parts: tuple[Argument, ...]) -> tuple[str, ...]:
        flag = ("-p",) if given(parts, "-p", "--prompt") else ()
        return ("--resume", "{session}", *flag, "{prompt}")


_RETRYING = re.compile(
    r"\s*(?:Retrying in (\d{1,6}(?:\.\d+)?) ?s\b(?: \(attempt [^)]{1,20}\))?(?:: (.+))?"
    r"|Attempt \d+ failed\b)"
)


class QwenReader(ClaudeReader):
    """The events have Claude's shapes; retries are told on stderr."""

    lost = re.compile(r"No saved session found")

    def words(self, stream: Stream, line: str) -> None:
        found = _RETRYING.match(line)
        if found and stream == "stderr":
            self.retry(float(found[1] or 0), found[2] or "")


PROGRAM = QwenAdapter(QwenReader)
