"""A known agent program, told by its data.

Two laws hold for all of them. What the user wrote is kept: nothing is added that they chose
themselves, and a resumed session gets their flags, permissions included, as they are. And only the
prompt is replaced: the first one has been given, so has what came with it by stdin or as files.
"""

from __future__ import annotations

import re
from copy import copy
from typing import TYPE_CHECKING

from ...errors import SettingError
from .adapter import Launch, Refused
from .argv import Grammar, Part, cut, given, joined, value_of, without, words
from .generic import PROGRAM as GENERIC
from .launchers import find
from .reading import fits

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .adapter import Adapter, Reader, Wish

__all__ = ("CONTINUE", "Program")

# It must not sound like a new task, nor like a reproach: models start over for less.
CONTINUE = (
    "You were interrupted by a technical failure that is over now. Go on with the same task exactly"
    " where you stopped. Do not repeat steps that are finished; if you cannot tell whether the last"
    " one took effect, look before you do it again."
)

_UUID = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")

_WORKTREES = ("--worktree", "-w")


class Program:
    """What is common to the known programs; a subclass is one of them, mostly as data."""

    name = ""
    module = ""
    can_resume = True
    # Longer than any model thinks in silence, shorter than a lost night.
    idle: float | None = 600.0
    is_exit_trusted = True
    is_end_reported = False

    grammar = Grammar()
    # No agent's work: options and subcommands that are passed through as they are.
    asides: tuple[str, ...] = ("--help", "-h", "--version", "-v", "-V")
    commands = ""
    # Work for a person at a terminal: one of `headless` must be there, none of `interactive`.
    headless: tuple[str, ...] = ()
    interactive: tuple[str, ...] = ()
    usage = ""
    # Options by which a user chooses how it prints, and what we choose if they did not.
    formats: tuple[str, ...] = ()
    format: tuple[str, ...] = ()
    # The forms that show what it does while it does it; in the others silence means nothing.
    live: tuple[str, ...] = ()
    # Options by which a user chooses a session: any, those with an id, that by which we choose.
    sessions: tuple[str, ...] = ()
    session_values: tuple[str, ...] = ()
    session_option = ""
    session_pattern = _UUID
    forks: tuple[str, ...] = ()
    # Options that keep a session from being saved.
    unsaved: tuple[str, ...] = ()
    # Options that belong to the first prompt: not repeated when the session goes on.
    prompts: tuple[str, ...] = ()
    # What tells accounts apart: credentials, else a folder in the home; and where they are used.
    keys: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    folder = ""
    # The variable that bounds its own retries, and how many are good for it.
    retries_variable = ""
    retries = 0

    def start(self, command: tuple[str, ...], wish: Wish, /) -> Launch:
        head, parts = self._read(command)
        if self._is_aside(parts):
            return Launch(argv=command)
        self.check(parts)
        session = self._session(parts)
        chosen: tuple[str, ...] = ()
        if self.session_option and fits(wish.session) and not given(parts, *self.sessions):
            session = wish.session
            chosen = (self.session_option, session)
        place = self.place(parts)
        return self._launch(
            (*head, *joined(parts[:place])), chosen, joined(parts[place:]), parts, wish, session
        )

    def resume(self, command: tuple[str, ...], session: str, wish: Wish, /) -> Launch:
        if not fits(session):
            raise SettingError(f"a session of {self.name} to go on with is needed; got {session!r}")
        head, parts = self._read(command)
        if self._is_aside(parts) or not self.can_resume:
            return Launch(argv=command)
        place = self.place(parts)
        gone = (*self.sessions, *self.forks, *self.prompts, *self.headless)
        kept = joined(without(parts[place:], *gone, words=True))
        said = {CONTINUE: wish.prompt} if wish.prompt else {}
        return self._launch(
            (*head, *joined(parts[:place])),
            tuple([said.get(word, word) for word in self.again(session, parts)]),
            (*kept, *[said.get(word, word) for word in self.tail(session)]),
            parts,
            wish,
            session,
        )

    def _launch(  # noqa: PLR0917 -- in the order in which they stand in the command
        self,
        head: tuple[str, ...],
        chosen: tuple[str, ...],
        rest: tuple[str, ...],
        parts: tuple[Part, ...],
        wish: Wish,
        session: str,
    ) -> Launch:
        added = () if given(parts, *self.formats) else self.format
        bounds = self.bounds(parts, wish)
        return Launch(
            argv=(*head, *added, *bounds, *chosen, *rest),
            environ=self._environ(wish),
            session=session,
            is_translated=bool(added),
        )

    def reader(self, launch: Launch, /) -> Reader:
        return GENERIC.reader(launch)

    def account(self, environ: Mapping[str, str], /) -> str:
        keys, places = (
            [f"{name}={environ[name]}" for name in names if environ.get(name)]
            for names in (self.keys, self.places)
        )
        return " ".join([*places, *(keys or [f"{environ.get('HOME', '')}/{self.folder}"])])

    def fitted(self, command: tuple[str, ...]) -> Adapter:
        """The adapter for this one command: what it cannot do in this form is taken from it."""
        _, parts = self._read(command)
        if self._is_aside(parts):
            return GENERIC
        can_resume = self.can_resume and self.is_saved(parts)
        idle = self.idle if self.is_live(parts) else None
        if (can_resume, idle) == (self.can_resume, self.idle):
            return self
        found = copy(self)
        found.can_resume, found.idle = can_resume, idle
        return found

    # What a subclass says where data is not enough.

    def check(self, parts: tuple[Part, ...]) -> None:
        """Refuses what waits for a person."""
        asked = next((part.name for part in parts if part.name in self.interactive), "")
        if asked:
            raise self.refused(f"{asked} waits for a person")
        if self.headless and not given(parts, *self.headless):
            raise self.refused(f"without {' or '.join(self.headless)} is interactive")

    def refused(self, because: str) -> Refused:
        hint = f"write {self.usage}; or use --agent generic if this is another program"
        return Refused(f"{self.name} {because}", hint)

    def place(self, parts: tuple[Part, ...]) -> int:  # noqa: ARG002 -- for subclasses
        """Behind how many parts our options belong: behind the subcommand, if there is one."""
        return 0

    def again(self, session: str, parts: tuple[Part, ...]) -> tuple[str, ...]:  # noqa: ARG002 -- for subclasses
        """The options that go on with a session, and the new prompt."""
        return ()

    def tail(self, session: str) -> tuple[str, ...]:  # noqa: ARG002 -- for subclasses
        """The words that go on with a session, where they must come last."""
        return ()

    def bounds(self, parts: tuple[Part, ...], wish: Wish) -> tuple[str, ...]:  # noqa: ARG002 -- for subclasses
        """The options that bound its own retries."""
        return ()

    def is_saved(self, parts: tuple[Part, ...]) -> bool:
        """Whether there will be a session to go on with, in the folder where it was."""
        # Without a name each start makes another worktree.
        strays = [part for part in parts if part.name in _WORKTREES and not part.values]
        return not strays and not given(parts, *self.unsaved)

    def is_live(self, parts: tuple[Part, ...]) -> bool:
        """Whether it prints while it works, so that silence tells something."""
        return not given(parts, *self.formats) or value_of(parts, *self.formats) in self.live

    def _read(self, command: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[Part, ...]]:
        _, at = find(command, self.module or self.name)
        return command[: at + 1], cut(command[at + 1 :], self.grammar)

    def _is_aside(self, parts: tuple[Part, ...]) -> bool:
        return given(parts, *self.asides) or bool(
            set(words(parts)[:1]) & set(self.commands.split())
        )

    def _session(self, parts: tuple[Part, ...]) -> str:
        """The session that the user chose, where it will keep its id."""
        value = value_of(parts, *self.session_values)
        is_kept = self.session_pattern.fullmatch(value) and not given(parts, *self.forks)
        return value if is_kept and fits(value) else ""

    def _environ(self, wish: Wish) -> dict[str, str]:
        name = self.retries_variable
        if not name or (name in wish.environ and wish.own_retries is None):
            return {}
        return {name: str(self.retries if wish.own_retries is None else wish.own_retries)}
