"""A command line, cut as its program cuts it.

To replace a prompt one must know what is a prompt: ``--allowedTools Bash "fix it"`` gives Claude
two tools, no prompt. So each program says which of its options take a value, which take as many as
follow, which take one if it is there. An option that nobody knows is taken for a flag; the word
behind it is taken for its value only where another word can be the prompt.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ("Argument", "ArgvGrammar", "cut", "given", "joined", "value_of", "without", "words")


class Argument(NamedTuple):
    """An option with its values, or a word.

    Args:
        name: The option as it was written, without an attached value; empty for a word.
        tokens: What stands in the command line for it.
        values: What it was given.
        is_sure: False for a word that may be the value of an option nobody knows.
    """

    name: str
    tokens: tuple[str, ...]
    values: tuple[str, ...] = ()
    is_sure: bool = True


class ArgvGrammar:
    """Which options of a program take what; each argument is a list of names in one string.

    Args:
        values: Options that take one value.
        lists: Options that take every word up to the next option.
        maybes: Options that take a value if the next word is no option.
        flags: Options that take none.
    """

    __slots__ = ("flags", "lists", "maybes", "values")

    def __init__(
        self, *, values: str = "", lists: str = "", maybes: str = "", flags: str = ""
    ) -> None:
        self.values = frozenset(values.split())
        self.lists = frozenset(lists.split())
        self.maybes = frozenset(maybes.split())
        self.flags = frozenset(flags.split())


def cut(args: tuple[str, ...], grammar: ArgvGrammar) -> tuple[Argument, ...]:
    """The parts of a command line behind the program's name, in order, nothing lost."""
    parts: list[Argument] = []
    rest, is_unknown = list(reversed(args)), False
    while rest:
        arg = rest.pop()
        if arg == "--":
            parts.append(Argument("--", ("--",)))
            parts += [Argument("", (word,), (word,)) for word in reversed(rest)]
            break
        if not _is_option(arg):
            parts.append(Argument("", (arg,), (arg,), is_sure=not is_unknown))
            is_unknown = False
            continue
        *flags, arg = _spread(arg, grammar)
        parts += [Argument(flag, (flag,)) for flag in flags]
        name, attached, takes = _meaning(arg, grammar)
        if attached is not None:
            parts.append(Argument(name, (arg,), (attached,)))
            is_unknown = False
            continue
        values = _values(rest, takes)
        parts.append(Argument(name, (arg, *values), values))
        is_unknown = takes == "" and name not in grammar.flags
    return tuple(parts)


def _is_option(arg: str) -> bool:
    return len(arg) > 1 and arg.startswith("-")


def _spread(arg: str, grammar: ArgvGrammar) -> tuple[str, ...]:
    """``-yp`` as ``-y -p``: letters can stand together, and the last may take a value."""
    if not _is_option(arg) or arg.startswith("--") or _is_known(arg, grammar):
        return (arg,)
    found: list[str] = []
    rest = arg[1:]
    while rest:
        name = f"-{rest[0]}"
        if _takes(name, grammar):
            return (*found, f"-{rest}")
        if name not in grammar.flags:
            return (arg,)
        found.append(name)
        rest = rest[1:]
    return tuple(found)


def _meaning(arg: str, grammar: ArgvGrammar) -> tuple[str, str | None, str]:
    """The option's name, the value attached to it, and what it takes from behind it."""
    letter, rest = arg[:2], arg[2:]
    if rest and not _is_known(arg, grammar) and _takes(letter, grammar) and letter != "--":
        return letter, rest.removeprefix("="), ""
    name, sign, value = arg.partition("=")
    return name, value if sign else None, _takes(name, grammar)


def _is_known(name: str, grammar: ArgvGrammar) -> bool:
    return name in grammar.flags or bool(_takes(name, grammar))


def _takes(name: str, grammar: ArgvGrammar) -> str:
    if name in grammar.values:
        return "one"
    if name in grammar.lists:
        return "all"
    return "maybe" if name in grammar.maybes else ""


def _values(rest: list[str], takes: str) -> tuple[str, ...]:
    """Takes what belongs to an option from `rest`, whose end is what comes next."""
    if takes == "one":
        return (rest.pop(),) if rest else ()
    if takes == "maybe":
        return (rest.pop(),) if rest and not rest[-1].startswith("-") else ()
    found: list[str] = []
    while takes == "all" and rest and not _is_option(rest[-1]):
        found.append(rest.pop())
    return tuple(found)


def given(parts: tuple[Argument, ...], *names: str) -> bool:
    """Whether one of these options was given."""
    return any(part.name in names for part in parts if part.name)


def value_of(parts: tuple[Argument, ...], *names: str) -> str:
    """The last value of these options; empty if none was given."""
    return next(
        (part.values[-1] for part in reversed(parts) if part.name in names and part.values), ""
    )


def words(parts: tuple[Argument, ...]) -> tuple[str, ...]:
    """The words that are nobody's value: subcommands, prompts."""
    found = [part for part in parts if not part.name]
    sure = [part for part in found if part.is_sure]
    return tuple(part.values[0] for part in (sure or found))


def without(parts: tuple[Argument, ...], *names: str, words: bool = False) -> tuple[Argument, ...]:
    """The parts less these options, and less the words that are nobody's value."""
    is_any_sure = any(not part.name and part.is_sure for part in parts)
    return tuple(
        part
        for part in parts
        if part.name not in names
        and not (words and (part.name == "--" or (not part.name and part.is_sure >= is_any_sure)))
    )


def joined(parts: tuple[Argument, ...]) -> tuple[str, ...]:
    """The command line again."""
    return tuple(arg for part in parts for arg in part.tokens)
