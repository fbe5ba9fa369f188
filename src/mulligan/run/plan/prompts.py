"""Prompts of a plan's agents: read, filled in, turned into a command.

A prompt is filled in once, from left to right: what a variable or an output brought in is text, in
which no ``{{…}}`` means anything. The result is one argument or stdin; never a command name, a
flag, a variable of the environment, a path or a line for a shell. Outputs are untrusted, so two
more rules hold for them: control characters are removed, and no prompt begins with an output,
because many programs treat ``-``, ``/`` or ``!`` there as a command.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from ...core.redaction import clean, printable
from ...errors import SettingError
from ..agents.catalogue import asking

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from .model import Agent, Phase, Plan

__all__ = (
    "LONGEST_ARGUMENT",
    "LONGEST_OUTPUT",
    "command_for",
    "fill_prompt",
    "prompt_of",
    "read_output",
    "references",
    "unknown_name",
    "variables_of",
)

# Characters of one output that enter a prompt: its first half, its second half.
LONGEST_OUTPUT = 20_000

# What is read of a longer one: characters of each side, with room for the words between them, and
# the bytes that they could take.
_SIDE = LONGEST_OUTPUT // 2 - 50
_MOST_READ = 8 * LONGEST_OUTPUT

# Bytes of one argument. Linux takes 32 pages, the zero at the end included (MAX_ARG_STRLEN).
LONGEST_ARGUMENT = 131_071

# Largest prompt file, in bytes.
_LONGEST_FILE = 1024 * 1024

_MARK = re.compile(r"\\\{\{|\{\{[ \t]*([^{}\n]*?)[ \t]*\}\}")
_COMMAND_LIKE = re.compile(r"-.*|[\w.:-]*", re.DOTALL)


class _Piece(NamedTuple):
    text: str
    is_output: bool = False


def variables_of(plan: Plan, phase: Phase, agent: Agent) -> dict[str, str]:
    """The variables of an agent: its own over the phase's over the plan's."""
    return {**plan.variables, **phase.variables, **agent.variables}


def command_for(
    agent: Agent,
    *,
    folder: Path,
    variables: Mapping[str, str],
    outputs: Mapping[str, Mapping[str, str]],
) -> tuple[tuple[str, ...], bytes | None]:
    """What to execute for an agent, and what it gets on stdin; None for nothing.

    `outputs` has phase → agent → what it printed, of the phases that have ended.

    Raises:
        SettingError: The prompt names something that does not exist, or is too long to be passed.
    """
    prompt = fill_prompt(prompt_of(agent, folder), variables, outputs)
    if not prompt.strip():
        if agent.program:
            raise SettingError(f"the prompt of {agent.name} is empty once it is filled in")
        return agent.command, None
    if agent.input == "stdin":
        words = asking(agent.program).stdin_command(agent.args) if agent.program else agent.command
        return words, prompt.encode()
    if _COMMAND_LIKE.fullmatch(prompt):
        # Every program's parser takes an argument that begins with a blank for a word, also after
        # an option that wants a value; never for a flag or a subcommand.
        prompt = f" {prompt}"
    size = len(prompt.encode())
    if size > LONGEST_ARGUMENT:
        way_out = 'write input = "stdin"'
        if agent.program and not asking(agent.program).asked_on_stdin:
            way_out = f"name fewer outputs, {agent.program} reads no prompt from stdin"
        raise SettingError(
            f"the prompt of {agent.name} has {size} bytes, and an argument may have "
            f"{LONGEST_ARGUMENT}; {way_out}"
        )
    if agent.program:
        return asking(agent.program).command_for(prompt, agent.args), None
    return (*agent.command, prompt), None


def prompt_of(agent: Agent, folder: Path) -> str:
    """What an agent is asked, before anything is filled in.

    Raises:
        SettingError: Its file cannot be read, or lies outside the plan's folder.
    """
    if not agent.prompt_file:
        return _sound(agent.prompt, "prompt")
    file = folder / agent.prompt_file
    shown = clean(agent.prompt_file)
    try:
        real, home = file.resolve(strict=True), folder.resolve()
        if not agent.prompt_file.startswith("/") and not real.is_relative_to(home):
            raise SettingError(
                f"prompt_file {shown!r} leads out of the plan's folder, to {str(real)!r}; "
                f"write the absolute path if that is meant"
            )
        if not real.is_file():
            raise SettingError(f"prompt_file {shown!r} is not a regular file")
        if (size := real.stat().st_size) > _LONGEST_FILE:
            raise SettingError(
                f"prompt_file {shown!r} has {size} bytes; at most {_LONGEST_FILE} are read"
            )
        text = real.read_bytes().decode("utf-8-sig")
    except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError until 3.13
        why = getattr(error, "strerror", None) or str(error)
        raise SettingError(f"prompt_file {shown!r} cannot be read: {why.lower()}") from None
    except UnicodeDecodeError:
        raise SettingError(f"prompt_file {shown!r} is not UTF-8 text") from None
    if not text.strip():
        raise SettingError(f"prompt_file {shown!r} is empty")
    return _sound(text, f"prompt_file {shown!r}")


def _sound(text: str, what: str) -> str:
    if "\0" in text:
        raise SettingError(f"{what} contains a null character, which arguments cannot contain")
    return text


def references(prompt: str) -> Iterator[str]:
    """What ``{{…}}`` in a prompt names, in order."""
    for found in _MARK.finditer(prompt):
        if found[1] is not None:
            yield found[1]


def fill_prompt(
    prompt: str, variables: Mapping[str, str], outputs: Mapping[str, Mapping[str, str]]
) -> str:
    r"""`prompt` with its ``{{…}}`` filled in, once; ``\{{`` stands for the braces themselves.

    Raises:
        SettingError: It names something that does not exist.
    """
    pieces: list[_Piece] = []
    end = 0
    for found in _MARK.finditer(prompt):
        pieces.append(_Piece(prompt[end : found.start()]))
        pieces += _meant(found[1], variables, outputs)
        end = found.end()
    pieces.append(_Piece(prompt[end:]))
    first = next((each for each in pieces if each.text.strip()), _Piece(""))
    lead = "Output of another agent:\n" if first.is_output else ""
    return lead + "".join(each.text for each in pieces)


def _meant(
    name: str | None, variables: Mapping[str, str], outputs: Mapping[str, Mapping[str, str]]
) -> list[_Piece]:
    if name is None:
        return [_Piece("{{")]
    if name in variables:
        return [_Piece(variables[name])]
    for phase, agents in outputs.items():
        if name == f"outputs.{phase}":
            return list(_together(agents))
        for agent, text in agents.items():
            if name == f"outputs.{phase}.{agent}":
                return [_Piece(_fit(text), is_output=True)]
    if any(name.startswith(f"outputs.{phase}.") for phase in outputs):
        # The phase succeeded without this agent: it failed, or was stopped before it printed
        # anything.
        return [_Piece(_fit(""), is_output=True)]
    raise SettingError("the prompt " + unknown_name(name, variables, outputs))


def unknown_name(
    name: str, variables: Iterable[str], outputs: Mapping[str, Mapping[str, str]]
) -> str:
    """What to say about an unknown name that a prompt uses."""
    phases = [f"outputs.{phase}" for phase in outputs]
    agents = [f"outputs.{phase}.{agent}" for phase in outputs for agent in outputs[phase]]
    known = ", ".join([*variables, *phases, *agents])
    none = "none: there are no variables, and no phase before it"
    return f"names {{{{{clean(name, 80)}}}}}; known here are {known or none}"


def _together(agents: Mapping[str, str]) -> Iterator[_Piece]:
    """The outputs of all agents of a phase, each under a heading."""
    for number, (name, text) in enumerate(agents.items()):
        gap = "\n\n" if number else ""
        yield _Piece(f"{gap}## {name}\n\n")
        yield _Piece(_fit(text), is_output=True)


def read_output(file: Path) -> str:
    """What an agent printed, as it enters a prompt; the middle of a long output is not read."""
    try:
        with file.open("rb") as opened:
            size = opened.seek(0, 2)
            opened.seek(0)
            if size <= _MOST_READ:
                return opened.read().decode("utf-8", "replace")
            head = opened.read(_MOST_READ // 2)
            opened.seek(size - _MOST_READ // 2)
            tail = opened.read()
    except FileNotFoundError:
        return ""
    # The cuts may have gone through a character. Each side is as long as what would be kept of it.
    first = head.decode("utf-8", "ignore")[:_SIDE]
    last = tail.decode("utf-8", "ignore")[-_SIDE:]
    left_out = size - len(first.encode()) - len(last.encode())
    return f"{first}\n\n[{left_out} bytes are left out here]\n\n{last}"


def _fit(text: str) -> str:
    """An output as it enters a prompt: without control characters, its middle left out if long."""
    text = printable(text).strip()
    if not text:
        return "(no output)"
    left_out = len(text) - LONGEST_OUTPUT
    if left_out <= 0:
        return text
    half = LONGEST_OUTPUT // 2
    return f"{text[:half]}\n\n[{left_out} characters are left out here]\n\n{text[-half:]}"
