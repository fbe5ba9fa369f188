"""Which adapter a command gets, and where in the command its program stands.

Programs are started through others: ``npx -y @openai/codex exec …``, ``env X=1 claude -p …``,
``mise exec -- gemini -p …``, ``node …/cli.js``. A launcher that starts another program on this
machine, in this folder, as this user is looked through. Shells, containers and remote machines are
not: what they start cannot be resumed from here by adding words to the command.

Only the module of the one program is imported, so that wrapping an unknown program stays cheap.
"""

from __future__ import annotations

import os
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING

from .adapter import GENERIC

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .adapter import AgentAdapter
    from .program import KnownProgram

__all__ = (
    "NAMES",
    "askable",
    "asking",
    "find",
    "inherited",
    "known",
    "program",
    "program_name",
    "recognise",
)


# Module with the adapter → names of commands, packages and modules.
_NAMES = {
    "claude": "claude claude-code @anthropic-ai/claude-code",
    "codex": "codex codex-cli @openai/codex",
    "gemini": "gemini gemini-cli @google/gemini-cli",
    "opencode": "opencode opencode-ai",
    "qwen": "qwen qwen-code @qwen-code/qwen-code",
    "copilot": "copilot copilot-cli @github/copilot",
    "pi": "pi pi-coding-agent @mariozechner/pi-coding-agent",
    "cline": "cline",
    "cn": "cn continue @continuedev/cli",
    "aider": "aider aider-chat",
    "agy": "agy antigravity",
}
NAMES = {name: module for module, names in _NAMES.items() for name in names.split()}

# Launchers that start another program, with their options that take a value.
_WRAPPERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("nohup", "setsid", "bunx", "pnpx", "bun", "deno", "npm", "yarn"), ()),
    **dict.fromkeys(("rtx", "asdf", "nvm", "direnv"), ()),
    "env": ("-u", "--unset", "-C", "--chdir"),
    "nice": ("-n", "--adjustment"),
    "ionice": ("-c", "-n", "--class", "--classdata"),
    "stdbuf": ("-i", "-o", "-e"),
    "time": ("-f", "-o"),
    "caffeinate": ("-t", "-w"),
    "timeout": ("-k", "-s", "--kill-after", "--signal"),
    "sudo": ("-u", "-g", "-C", "-h", "-p"),
    "npx": ("-p", "--package", "-w", "--workspace"),
    "uvx": ("--from", "--with", "-p", "--python", "--index-url"),
    "node": ("-r", "--require", "--import", "--env-file", "-C"),
    "pnpm": ("-C", "--dir", "--filter"),
    "uv": ("--from", "--with", "-p", "--python", "--project", "--directory"),
    "pipx": ("--spec", "--python"),
    "mise": ("-C", "--cd"),
    "volta": ("--node", "--npm", "--yarn"),
    "fnm": ("--using",),
    "dotenvx": ("-f",),
    "op": ("--env-file",),
    "doppler": ("-p", "-c", "--project", "--config"),
}
# Subcommands of launchers that stand before the program.
_WORDS = frozenset({"exec", "x", "run", "dlx", "tool"})
# Launchers that accept NAME=value before the program.
_SETTERS = frozenset({"env", "sudo"})
_PYTHONS = ("python", "pypy")


@lru_cache(maxsize=64)  # asked whenever a run is made, driven or looked at
def recognise(command: tuple[str, ...], name: str | None = None) -> AgentAdapter:
    """The adapter for `command`: by the program's name, or the one that is named.

    Commands that do no agent work (``claude --version``, ``codex login``) get the generic adapter.

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
    """The adapter in a module, for any command."""
    found: KnownProgram = import_module(f".{module}", __package__).PROGRAM
    return found


def asking(name: str) -> KnownProgram:
    """The adapter for the program that an agent of a plan names; it must be able to run unattended.

    Raises:
        SettingError: There is none; names the nearest one.
    """
    found = program(NAMES[name]) if name in NAMES else None
    if found is None or not found.asked or name not in {found.name, found.module}:
        from ...core.suggestions import nearest
        from ...errors import SettingError

        raise SettingError(
            f"program {name!r} is not known; {nearest(name, askable())}; "
            f"others are started with command"
        )
    return found


def askable() -> dict[str, KnownProgram]:
    """The programs that a plan can ask, by name."""
    found = (program(module) for module in sorted(set(NAMES.values())))
    return {each.name: each for each in found if each.asked}


def known() -> tuple[str, ...]:
    """The names that `recognise` accepts, one per program, in alphabetical order."""
    return tuple(sorted(program(module).name for module in set(NAMES.values())))


def _unknown(name: str) -> Exception:
    from difflib import get_close_matches

    from ...errors import SettingError

    near = get_close_matches(name, [*NAMES, GENERIC.name], n=1)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known())}, generic"
    return SettingError(f"no agent is called {name!r}; {hint}")


def find(command: tuple[str, ...], wanted: str = "") -> tuple[str, int]:
    """The module with the program's adapter, and the program's index in `command`.

    An empty name and 0 if it is unknown. With `wanted` only that program is looked for.
    """
    at = 0
    while at < len(command):
        arg = command[at]
        if (name := _known(arg)) and wanted in ("", name):
            return name, at
        base = _base(arg)
        if base.rstrip("0123456789.") in _PYTHONS:
            behind = command[at + 1 :]
            at = at + 2 if behind[:1] == ("-m",) else at + 1
            if at < len(command) and _known(command[at]) == "":
                break
            continue
        if base not in _WRAPPERS:
            break
        at = _behind(command, at + 1, _WRAPPERS[base])
    return "", 0


def inherited(command: tuple[str, ...], environ: Mapping[str, str]) -> dict[str, str]:
    """The environment that the program gets, as far as `command` says: ``env X=1 claude``."""
    found, launcher = dict(environ), ""
    words = iter(command[: find(command)[1]])
    for word in words:
        if _base(word) in _WRAPPERS:
            launcher = _base(word)
        elif launcher not in _SETTERS:
            continue
        elif launcher == "env" and word in {"-i", "-", "--ignore-environment"}:
            found.clear()
        elif launcher == "env" and word in {"-u", "--unset"}:
            found.pop(next(words, ""), None)
        elif (name := word.partition("=")[0]) != word and name.isidentifier():
            found[name] = word.partition("=")[2]
    return found


def _behind(command: tuple[str, ...], at: int, valued: tuple[str, ...]) -> int:
    """Where the next program may stand, behind a wrapper's options, words, assignments."""
    while at < len(command):
        arg = command[at]
        if arg == "--":
            return at + 1
        if arg in valued:
            at += 2
        elif arg.startswith("-") or arg in _WORDS or "=" in arg.partition("/")[0]:
            at += 1
        elif _known(arg) or _base(arg) in _WRAPPERS:
            return at
        elif at + 1 < len(command) and _is_argument(arg):
            at += 1
        else:
            return at
    return at


def _is_argument(arg: str) -> bool:
    """Arguments of launchers, not programs: ``timeout 5m``, ``mise exec node@20``, ``nvm 20``."""
    return arg[:1].isdigit() or "@" in arg[1:] or arg in (".", "lts", "latest")


def _known(arg: str) -> str:
    """The program that a word of the command names: by its own name, a package, or a path."""
    name = arg if arg.startswith("@") else _base(arg)
    package = name[:1] + name[1:].partition("@")[0]
    if found := NAMES.get(package):
        return found
    # node_modules/@openai/codex/bin/codex.js: the folder names the program if the file does not.
    _, _, inside = arg.rpartition("node_modules/")
    if inside and inside != arg:
        parts = inside.split("/")
        return NAMES.get("/".join(parts[: 2 if inside.startswith("@") else 1]), "")
    return ""


def _base(arg: str) -> str:
    base = arg.rstrip("/").rpartition("/")[2].rpartition("\\")[2]
    for suffix in (".exe", ".cmd", ".js", ".mjs", ".cjs", ".py"):
        base = base.removesuffix(suffix)
    return base


@lru_cache(maxsize=64)
def program_name(command: tuple[str, ...]) -> str:
    """The name of the command's program, for people."""
    # What `npx` or `node` starts is what people call it by.
    name = find(command)[0] or os.path.basename(command[0])  # noqa: PTH119 -- no path of ours
    if name.isascii() and name.isprintable() and len(name) <= 40:
        return name
    from ...core.redaction import presentable

    return presentable(name, 80)
