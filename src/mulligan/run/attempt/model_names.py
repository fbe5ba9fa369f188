"""Names of models, as far as limits are about them.

A limit is about the whole account, a family ("Opus") or one model ("gpt-5.3-codex-spark"). A run
names its model by an alias ("opus"), an id ("claude-opus-4-5-20251101") or a path
("anthropic/claude-opus-4-5"), or leaves it to the program.
"""

from __future__ import annotations

import re

__all__ = ("OWN", "THIS", "covers", "plain_model")

#: What a limit is about that says "this model", and that model where the run did not name it.
THIS, OWN = "this-model", "default-model"

_LONGEST = 80
_TOKENS = re.compile(r"[a-z]+|\d+")
_SUFFIX = re.compile(r"(?:\[[^\]]*\]|:.*)$")
# The maker's name says nothing where another word follows.
_MAKERS = frozenset({"claude", "anthropic"})


def plain_model(name: str) -> str:
    """`name` in the form in which models are compared, shown and typed; empty for the default."""
    from ...core.redaction import presentable

    plain = "-".join(presentable(name.rpartition("/")[2], _LONGEST).lower().split())
    return "" if plain in {"default", "inherit", "auto"} else plain


def covers(limited: str, model: str) -> bool:
    """Whether a limit on `limited` holds for a run of `model`.

    One word is a family: "opus" covers every Opus, "opus 4" those of version 4. A longer name is
    one model: "gemini-2.5-flash" does not cover "gemini-2.5-flash-lite". Where one of the two names
    no version, or a shorter one, the versions agree.
    """
    words, version = _parts(limited)
    mine, my_version = _parts(model)
    if not words or not mine:
        return limited == model
    if any(one != other for one, other in zip(version, my_version, strict=False)):
        return False
    if len(words) == 1:
        return any(word.startswith(words[0]) for word in mine)
    return words == mine


def _parts(name: str) -> tuple[list[str], list[str]]:
    """The words and the numbers of a model's name."""
    bare = _SUFFIX.sub("", name.lower().rpartition("/")[2])
    tokens = _TOKENS.findall(bare)
    words = [each for each in tokens if each.isalpha()]
    named = [each for each in words if each not in _MAKERS]
    return named or words, [each for each in tokens if each.isdigit()]
