"""A known agent program: how its command line is read, and how it is started and resumed.

The user's flags are kept: an option that they set is not added again, and a resumed session gets
the same flags, permissions included. Only the prompt is replaced: the first attempt has already
received it, with its stdin and files.

To replace the prompt we must find it: ``--allowedTools Bash "fix it"`` gives Claude two tools, no
prompt. So each adapter lists which options take one value, which take many and which take an
optional one. An unknown option counts as a flag; the word after it counts as its value only if
another word can be the prompt.
"""

from __future__ import annotations

import os
import re
from copy import copy
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from ...errors import SettingError
from .accounts import (
    AgentAccount,
    Credential,
    endpoint,
    family_provider,
    key_credentials,
    provider_of_option,
    short_path,
)
from .adapter import GENERIC, AgentAdapter, CommandRefused, Launch
from .catalogue import find
from .output_reader import SESSION_ID

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .adapter import LaunchRequest

__all__ = (
    "CONTINUE",
    "Argument",
    "ArgvGrammar",
    "KnownProgram",
    "cut",
    "given",
    "joined",
    "value_of",
    "without",
    "words",
)

# Must not read like a new task or a complaint, or the model starts over.
CONTINUE = (
    "You were interrupted by a technical failure that is over now. Go on with the same task exactly"
    " where you stopped. Do not repeat steps that are finished; if you cannot tell whether the last"
    " one took effect, look before you do it again."
)

_PENDING = (
    " A tool call was under way when that happened, and may have taken effect although you have no"
    " result of it. Find out whether it did before you make it again: "
)

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

_WORKTREES = ("--worktree", "-w")

# Idle limit for output forms that print only at the end: only processor time and network show that
# the program lives, and these may pause for longer than live output does.
_AT_ITS_END = 1800.0


class Argument(NamedTuple):
    """An option with its values, or a word.

    Args:
        name: The option as it was written, without an attached value; empty for a word.
        tokens: Its words in the command line.
        values: What it was given.
        is_sure: False for a word that may be the value of an unknown option.
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
        maybes: Options that take a value if the next word is not an option.
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
    """All parts of a command line after the program's name, in order."""
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
    """The words that are not the value of an option: subcommands, prompts."""
    found = [part for part in parts if not part.name]
    sure = [part for part in found if part.is_sure]
    return tuple(part.values[0] for part in (sure or found))


def without(parts: tuple[Argument, ...], *names: str, words: bool = False) -> tuple[Argument, ...]:
    """The parts less these options, and less the words that are not values."""
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


def _filled(
    words: tuple[str, ...], *, session: str = "", prompt: str = "", args: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """`words` with a session, a prompt or the user's arguments in the places of their names."""
    found: list[str] = []
    for word in words:
        if word == "{args}":
            found += args
        else:
            found.append(prompt if word == "{prompt}" else word.replace("{session}", session))
    return tuple(found)


@lru_cache(maxsize=16)  # a run asks several questions about one command
def _parsed(
    command: tuple[str, ...], program: str, grammar: ArgvGrammar
) -> tuple[tuple[str, ...], tuple[Argument, ...]]:
    """The command up to the program's name, and the arguments behind it."""
    _, at = find(command, program)
    return command[: at + 1], cut(command[at + 1 :], grammar)


class KnownProgram(AgentAdapter):
    """Base class of the adapters for known programs; a subclass is mostly data."""

    name = ""
    module = ""
    can_resume = True
    # Longer than a model thinks without output.
    idle = 600.0

    grammar = ArgvGrammar()
    # Options and subcommands without agent work; such commands are passed through unchanged.
    asides: tuple[str, ...] = ("--help", "-h", "--version", "-v", "-V")
    commands = ""
    # An unattended command has one of `headless` and none of `interactive`.
    headless: tuple[str, ...] = ()
    interactive: tuple[str, ...] = ()
    usage = ""
    # Options that set the output format, and the ones that we add if the user set none.
    formats: tuple[str, ...] = ()
    format: tuple[str, ...] = ()
    # Output formats that print while the program works; the others print at the end.
    live: tuple[str, ...] = ()
    # Options that choose a session: all of them, those that take an id, the one that we add.
    sessions: tuple[str, ...] = ()
    session_values: tuple[str, ...] = ()
    session_option = ""
    session_pattern = _UUID
    forks: tuple[str, ...] = ()
    # Options that turn off saving the session.
    unsaved: tuple[str, ...] = ()
    # Options that belong to the first prompt; left out when the session is resumed.
    prompts: tuple[str, ...] = ()
    # Words that resume a session, placed before the user's own, and those that must come last.
    resumed: tuple[str, ...] = ()
    resumed_last: tuple[str, ...] = ()
    # Subcommands after which our options are inserted.
    subcommands: tuple[str, ...] = ()
    # The command line that asks it something, with the prompt as an argument, and on stdin; empty
    # if it reads none there. Options of the user's that take any number of words would swallow a
    # prompt behind them, so the prompt stands before them, or behind ``--``.
    asked: tuple[str, ...] = ()
    asked_on_stdin: tuple[str, ...] = ()
    # The account. The provider; empty for a program that supports several. Variables that hold
    # keys, in the program's own order. Variables that name another endpoint. Where it keeps a
    # login: the variable that names the folder, else a folder in the home.
    provider = ""
    keys: tuple[str, ...] = ()
    endpoints: tuple[str, ...] = ()
    home_variable = ""
    folder = ""
    # Whether a key in the program's own file outranks variables.
    is_file_first = False
    # Options that name the provider, and a key for it.
    provider_options: tuple[str, ...] = ()
    key_options: tuple[str, ...] = ()
    # Options that name the model, and variables that do so without them.
    models: tuple[str, ...] = ("--model", "-m")
    model_variables: tuple[str, ...] = ()
    # The variable that limits the program's own retries, and our default for it.
    retries_variable = ""
    retries = 0

    @property
    def variables(self) -> tuple[str, ...]:
        home = (self.home_variable,) if self.home_variable else ()
        return *self.keys, *self.endpoints, *home

    def start(self, command: tuple[str, ...], wish: LaunchRequest, /) -> Launch:
        head, parts = self._read(command)
        if self._is_aside(parts):
            return Launch(argv=command)
        self.check(parts)
        session = self._session(parts)
        chosen: tuple[str, ...] = ()
        is_named = given(parts, *self.sessions)
        if self.session_option and not is_named and SESSION_ID.fullmatch(wish.session):
            session = wish.session
            chosen = (self.session_option, session)
        place = self.place(parts)
        return self._launch(
            (*head, *joined(parts[:place])), chosen, joined(parts[place:]), parts, wish, session
        )

    def resume(self, command: tuple[str, ...], session: str, wish: LaunchRequest, /) -> Launch:
        if not SESSION_ID.fullmatch(session):
            raise SettingError(f"a session of {self.name} to go on with is needed; got {session!r}")
        head, parts = self._read(command)
        if self._is_aside(parts) or not self.can_resume:
            return Launch(argv=command)
        place = self.place(parts)
        gone = (*self.sessions, *self.forks, *self.prompts, *self.headless)
        kept = joined(without(parts[place:], *gone, words=True))
        pending = f"{_PENDING}{wish.pending}" if wish.pending else ""
        prompt = wish.prompt or CONTINUE + pending
        return self._launch(
            (*head, *joined(parts[:place])),
            _filled(self.resume_words(parts), session=session, prompt=prompt),
            (*kept, *_filled(self.resumed_last, session=session, prompt=prompt)),
            parts,
            wish,
            session,
        )

    def command_for(self, prompt: str, args: tuple[str, ...]) -> tuple[str, ...]:
        """The command that asks it `prompt`, as one argument."""
        return _filled(self.asked, prompt=prompt, args=args)

    def stdin_command(self, args: tuple[str, ...]) -> tuple[str, ...]:
        """The command that asks it what is on stdin."""
        return _filled(self.asked_on_stdin, args=args)

    def _launch(  # noqa: PLR0917 -- in the order in which they stand in the command
        self,
        head: tuple[str, ...],
        chosen: tuple[str, ...],
        rest: tuple[str, ...],
        parts: tuple[Argument, ...],
        wish: LaunchRequest,
        session: str,
    ) -> Launch:
        added = () if given(parts, *self.formats) else self.format
        bounds = self.bounds(parts, wish)
        return Launch(
            argv=(*head, *added, *bounds, *chosen, *rest),
            environ=self._environ(wish),
            session=session,
            is_translated=bool(added),
            is_structured=bool(added) or self._is_chosen(parts),
        )

    def _is_chosen(self, parts: tuple[Argument, ...]) -> bool:
        """Whether the user chose the structured form that we would have chosen."""
        if not self.format or not given(parts, *self.formats):
            return False
        return self.format[1:2] in ((), (value_of(parts, *self.formats),))

    def account(self, command: tuple[str, ...], environ: Mapping[str, str], /) -> AgentAccount:
        parts, home = self._read(command)[1], self.home(environ)
        keys = [environ[each] for each in self.keys if environ.get(each)]
        named = (environ.get(each, "") for each in self.model_variables)
        model = self.model_option(parts) or next((each for each in named if each), "")
        found = self._credentials(parts, environ)
        provider = self.provider or self._provider(parts, model, found)
        where = endpoint(self.endpoints, environ)
        host = where.partition("/")[0].rpartition("@")[2]
        at = f" at {host}" if host else ""
        if provider and provider in found:
            secret, label = found[provider]
            return AgentAccount(provider, f"{provider} {where} {secret}", f"{label}{at}", model)
        # The account is unknown, so its limits are not shared with other programs or machines.
        secret = " ".join([self.name, os.uname().nodename, where, home, *keys])
        label = f"keys of {self.name}" if keys else f"login in {short_path(home, environ)}"
        return AgentAccount(provider or self.name, secret, f"{label}{at}", model)

    def home(self, environ: Mapping[str, str]) -> str:
        """The folder that it keeps its login in."""
        named = environ.get(self.home_variable) if self.home_variable else ""
        return named or f"{environ.get('HOME', '')}/{self.folder}"

    def file_credentials(self, environ: Mapping[str, str]) -> dict[str, Credential]:  # noqa: ARG002 -- for subclasses
        """The credentials in files of its own, by provider."""
        return {}

    def model_option(self, parts: tuple[Argument, ...]) -> str:
        """The model that its options name; empty if none does."""
        return value_of(parts, *self.models)

    def _credentials(
        self, parts: tuple[Argument, ...], environ: Mapping[str, str]
    ) -> dict[str, Credential]:
        """The credentials that it can use, by provider."""
        given_key = value_of(parts, *self.key_options)
        files, variables = self.file_credentials(environ), key_credentials(self.keys, environ)
        found = {**variables, **files} if self.is_file_first else {**files, **variables}
        if given_key:
            named, equals, key = given_key.partition("=")  # aider's has the provider in it
            provider = named if equals else value_of(parts, *self.provider_options) or self.provider
            secret = key if equals else given_key
            found[provider_of_option(provider)] = Credential(secret, "key on its command line")
        return found

    def _provider(
        self, parts: tuple[Argument, ...], model: str, found: Mapping[str, Credential]
    ) -> str:
        """The provider that the program calls; empty if that cannot be determined."""
        if named := value_of(parts, *self.provider_options):
            return provider_of_option(named)
        prefix, slash, _ = model.partition("/")  # anthropic/claude-opus-4
        if slash:
            return provider_of_option(prefix)
        family = family_provider(model)
        if family in found:
            return family
        return next(iter(found)) if len(found) == 1 else ""

    def fitted(self, command: tuple[str, ...]) -> AgentAdapter:
        """The adapter for this command, without the abilities that it lacks in this form."""
        _, parts = self._read(command)
        if self._is_aside(parts):
            return GENERIC
        can_resume = self.can_resume and self.is_saved(parts)
        idle = self.idle if self.is_live(parts) else max(self.idle or 0.0, _AT_ITS_END)
        if (can_resume, idle) == (self.can_resume, self.idle):
            return self
        found = copy(self)
        found.can_resume, found.idle = can_resume, idle
        return found

    # Hooks for subclasses that need more than data.

    def check(self, parts: tuple[Argument, ...]) -> None:
        """Refuse a command that waits for a user."""
        asked = next((part.name for part in parts if part.name in self.interactive), "")
        if asked:
            raise self.refused(f"{asked} waits for a person")
        if self.headless and not given(parts, *self.headless):
            raise self.refused(f"without {' or '.join(self.headless)} is interactive")

    def refused(self, because: str) -> CommandRefused:
        hint = f"write {self.usage}; or use --agent generic if this is another program"
        return CommandRefused(f"{self.name} {because}", hint)

    def place(self, parts: tuple[Argument, ...]) -> int:
        """The index at which our options are inserted: after the subcommand, if there is one."""
        for at, part in enumerate(parts, 1):
            if not part.name and part.values[0] in self.subcommands:
                return at
        return 0

    def resume_words(self, parts: tuple[Argument, ...]) -> tuple[str, ...]:  # noqa: ARG002 -- for subclasses
        """The words that resume a session, placed before the user's own."""
        return self.resumed

    def bounds(self, parts: tuple[Argument, ...], wish: LaunchRequest) -> tuple[str, ...]:  # noqa: ARG002 -- for subclasses
        """The options that bound its own retries."""
        return ()

    def is_saved(self, parts: tuple[Argument, ...]) -> bool:
        """Whether the session is saved and can be resumed in the same folder."""
        # Without a name each start creates another worktree.
        strays = [part for part in parts if part.name in _WORKTREES and not part.values]
        return not strays and not given(parts, *self.unsaved)

    def is_live(self, parts: tuple[Argument, ...]) -> bool:
        """Whether the program prints while it works, so that the short idle limit applies."""
        return not given(parts, *self.formats) or value_of(parts, *self.formats) in self.live

    def _read(self, command: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[Argument, ...]]:
        return _parsed(command, self.module or self.name, self.grammar)

    def _is_aside(self, parts: tuple[Argument, ...]) -> bool:
        return given(parts, *self.asides) or bool(
            set(words(parts)[:1]) & set(self.commands.split())
        )

    def _session(self, parts: tuple[Argument, ...]) -> str:
        """The session that the user chose, if the program keeps its id."""
        value = value_of(parts, *self.session_values)
        is_kept = self.session_pattern.fullmatch(value) and not given(parts, *self.forks)
        return value if is_kept and SESSION_ID.fullmatch(value) else ""

    def _environ(self, wish: LaunchRequest) -> dict[str, str]:
        name = self.retries_variable
        if not name or (name in wish.environ and wish.own_retries is None):
            return {}
        return {name: str(self.retries if wish.own_retries is None else wish.own_retries)}
