"""aider: ``aider --message``.

It has no sessions to resume: its work is in the files, and it does not read its history back.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .output_reader import EventReader
from .program import ArgvGrammar, KnownProgram

if TYPE_CHECKING:
    from .adapter import Stream

__all__ = ("PROGRAM", "AiderAdapter", "AiderReader")


class AiderAdapter(KnownProgram):
    """Measured with 0.86.2. Its own retries have no option; they are counted from its words."""

    name = "aider"
    can_resume = False
    # It exits with 0 after every failure that it handles.
    is_exit_trusted = False
    grammar = ArgvGrammar(
        values="""--message --msg -m --message-file -f --model --api-key --set-env --config -c
            --env-file --file --read --weak-model --editor-model --edit-format --test-cmd
            --lint-cmd --timeout --map-tokens --load --apply --encoding""",
        flags="""--yes --yes-always --no-git --no-pretty --no-stream --no-auto-commits --commit
            --lint --test --exit --show-repo-map --help -h --version""",
    )
    asides = (
        *("--help", "-h", "--version", "--commit", "--lint", "--test", "--exit", "--apply"),
        *("--show-repo-map", "--show-prompts", "--list-models", "--models", "--upgrade"),
        *("--install-main-branch", "--just-check-update", "--shell-completions"),
    )
    headless = ("--message", "--msg", "-m", "--message-file", "-f")
    interactive = ("--gui", "--browser", "--watch-files")
    usage = 'aider --message "…"'
    asked = ("aider", "--message", "{prompt}", "{args}")
    keys = (
        *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY"),
        "DEEPSEEK_API_KEY",
    )
    endpoints = ("OPENAI_API_BASE",)
    key_options = ("--api-key",)
    models = ("--model",)
    model_variables = ("AIDER_MODEL",)
    folder = ".aider.conf.yml"


_RETRYING = re.compile(r"Retrying in (\d{1,6}(?:\.\d+)?) seconds")
_AMOUNT = r"(\d{1,12}(?:\.\d{1,6})?)"
_USED = re.compile(rf"Tokens: {_AMOUNT}([kM]?) sent,.{{0,200}}?{_AMOUNT}([kM]?) received")
_COST = re.compile(rf"\${_AMOUNT} session")
_TIMES = {"": 1, "k": 1_000, "M": 1_000_000}


class AiderReader(EventReader):
    """Prose; a report of tokens ends each answer."""

    def words(self, stream: Stream, line: str) -> None:
        if stream != "stdout":
            return
        if found := _RETRYING.match(line):
            self.retry(float(found[1]))
        elif found := _USED.match(line[:500]):
            self.worked()
            sent, received = (float(found[at]) * _TIMES[found[at + 1]] for at in (1, 3))
            self.also_spent(tokens=sent + received)
            if cost := _COST.search(line[:500]):
                self.spent(cost=float(cost[1]))


PROGRAM = AiderAdapter(AiderReader)
