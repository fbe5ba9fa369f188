"""Which adapter a command gets.

Only the module of the one program is imported: wrapping a program that nobody knows must cost
next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from .generic import PROGRAM as GENERIC
from .launchers import NAMES, find

if TYPE_CHECKING:
    from .adapter import AgentAdapter
    from .program import KnownProgram

__all__ = ("known", "program", "recognise")


def recognise(command: tuple[str, ...], name: str | None = None) -> AgentAdapter:
    """The adapter for `command`: by the program's name, or the one that is named.

    What is no agent's work (``claude --version``, ``codex login``) is a program like any other.

    Raises:
        SettingError: No program is called `name`.
    """
    if name is None:
        module, _ = find(command)
    elif name == GENERIC.name:
        module = ""
    else:
        module = NAMES.get(name, "")
        if not module:
            raise _unknown(name)
    return program(module).fitted(command) if module else GENERIC


def program(module: str) -> KnownProgram:
    """The program that a module knows, whatever it is asked to do."""
    found: KnownProgram = import_module(f".{module}", __package__).PROGRAM
    return found


def known() -> tuple[str, ...]:
    """The names that `recognise` takes, one a program, in alphabetical order."""
    return tuple(sorted(program(module).name for module in set(NAMES.values())))


def _unknown(name: str) -> Exception:
    from difflib import get_close_matches

    from ...errors import SettingError

    near = get_close_matches(name, [*NAMES, GENERIC.name], n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known())}, generic"
    return SettingError(f"no agent is called {name!r}; {hint}")
