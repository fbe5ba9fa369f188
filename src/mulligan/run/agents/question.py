"""How each known program is asked something while nobody is there.

Where the words of a prompt stand in its command line, and what stands there if they come by stdin
instead. Options of the user's that take any number of words would swallow a prompt behind them, so
the prompt stands before them, or behind ``--``.
"""

from __future__ import annotations

from typing import NamedTuple

from ...core.suggestions import nearest
from ...errors import SettingError

__all__ = ("ASKING", "PromptForm", "asking")

_PROMPT, _ARGS = "{prompt}", "{args}"

# Gemini and Qwen put what comes by stdin before the prompt, and do without neither.
_ABOVE = "Do what is asked above."


class PromptForm(NamedTuple):
    """How one program is asked.

    Args:
        words: Its command line with the prompt as an argument.
        stdin: The same with the prompt on stdin; empty if it does not read one there.
    """

    words: tuple[str, ...]
    stdin: tuple[str, ...] = ()

    def argument(self, prompt: str, args: tuple[str, ...]) -> tuple[str, ...]:
        """The command line with `prompt` as one argument."""
        return _filled(self.words, prompt, args)

    def piped(self, args: tuple[str, ...]) -> tuple[str, ...]:
        """The command line for a prompt on stdin."""
        return _filled(self.stdin, "", args)


def _filled(words: tuple[str, ...], prompt: str, args: tuple[str, ...]) -> tuple[str, ...]:
    found: list[str] = []
    for word in words:
        found += args if word == _ARGS else [prompt if word == _PROMPT else word]
    return tuple(found)


def _flagged(program: str, *stdin: str) -> PromptForm:
    return PromptForm((program, "-p", _PROMPT, _ARGS), (program, "-p", *stdin, _ARGS))


ASKING: dict[str, PromptForm] = {
    "aider": PromptForm(("aider", "--message", _PROMPT, _ARGS)),
    "claude": _flagged("claude"),
    "cline": PromptForm(("cline", _PROMPT, _ARGS)),
    "codex": PromptForm(("codex", "exec", _ARGS, "--", _PROMPT), ("codex", "exec", _ARGS, "-")),
    "continue": _flagged("cn"),
    "copilot": PromptForm(("copilot", "-p", _PROMPT, _ARGS)),
    "gemini": _flagged("gemini", _ABOVE),
    "opencode": PromptForm(("opencode", "run", _PROMPT, _ARGS), ("opencode", "run", _ARGS)),
    "pi": _flagged("pi"),
    "qwen": _flagged("qwen", _ABOVE),
}
_OTHER_NAMES = {"cn": "continue"}


def asking(program: str) -> PromptForm:
    """How `program` is asked.

    Raises:
        SettingError: Nobody knows; names the nearest one that is known.
    """
    found = ASKING.get(_OTHER_NAMES.get(program, program))
    if found is None:
        raise SettingError(
            f"program {program!r} is not known; {nearest(program, ASKING)}; "
            f"others are started with command"
        )
    return found
