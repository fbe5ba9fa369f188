"""Where runs are kept: a journal, a folder with the user's bytes.

A run belongs to whoever took it last. Each taking is an entry of the journal under a number, and a
number is written once, so of two who take at the same time one wins. Everything that is written
later carries the number, and the journal refuses what carries an older one: a holder that slept
while somebody else took over can do nothing more, and learns so.

A holder shows that it is alive in a file of the run's folder, by the clock that a reboot starts
anew. One whose process is dead need not be waited for.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from ..core.entry import Entry
from ..errors import Fenced, MulliganError
from ..stores.boot_clock import boot_id, boot_time
from ..stores.home import home, private_folder
from ..stores.sqlite_journal import SqliteJournal, journal_file
from .agents.launchers import find
from .pids import is_alive, signature
from .state import RunState, state_of
from .steps import Taken, packed, unpacked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ..core.moment import Moment
    from ..core.ports import Store
    from .steps import Made, Over, Step

__all__ = ("LEASE", "Claimed", "Desk", "InOtherHands", "NoSuchRun", "holder_process")

# How long a holder that shows no sign of life keeps its run.
LEASE = 30.0

_PREFIX = "run/"
# Without vowels, so that no id is a word; without what looks alike.
_LETTERS = "bcdfghjkmnpqrstvwxz23456789"
_REMOVED = "the folder of run {} was removed: it cannot go on"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class NoSuchRun(MulliganError):
    """Nothing here answers to that name."""


class InOtherHands(MulliganError):
    """Somebody else drives the run."""


class Claimed(NamedTuple):
    """A run in hand.

    Args:
        id: The run.
        holder: Who has it: host, process, a token of this taking.
        epoch: The number of this taking.
    """

    id: str
    holder: str
    epoch: int


class Desk:
    """Runs of this machine and user.

    Args:
        folder: Where they are kept; ``$MULLIGAN_HOME`` or the platform's by default.
        moments: Says what time it is for what runs share; the machine's clocks by default.
    """

    def __init__(
        self, folder: Path | None = None, moments: Callable[[], Moment] | None = None
    ) -> None:
        self._moments = moments
        self.folder = home() if folder is None else private_folder(folder)
        self._file = journal_file(self.folder / "state.db")
        self._journal = SqliteJournal(self._file)

    def store(self) -> Store:
        """The store that the journal is a part of, for what runs share."""
        from ..stores.sqlite import Sqlite

        path = self.folder / "state.db"
        return Sqlite(path) if self._moments is None else Sqlite(path, self._moments)

    # What there is

    def ids(self) -> tuple[str, ...]:
        """Every run there is, in no order."""
        return tuple([each[len(_PREFIX) :] for each in self._journal.streams(_PREFIX)])

    def all(self, parent: str = "") -> Iterator[tuple[str, RunState]]:
        """Every run with its state, the newest first; those of one plan, where it is named."""
        # The agents of a plan are called like it, with a dot behind.
        prefix = f"{parent}." if parent else ""
        ids = [each for each in self.ids() if each.startswith(prefix)]
        if not parent:
            ids = [each for each in ids if "." not in each]
        found = [(each, state) for each in ids if (state := self.look(each)) is not None]
        yield from sorted(found, key=lambda each: -each[1].made.at)

    def look(self, id_: str) -> RunState | None:
        """Where the run stands; None if there is no such run."""
        return state_of(unpacked(entry.body) for entry in self._journal.read(_PREFIX + id_))

    def steps_of(self, parent: str) -> dict[str, int]:
        """How many steps each agent of a plan has taken: what to look at again."""
        found = self._journal.lengths(f"{_PREFIX}{parent}.")
        return {name[len(_PREFIX) :]: count for name, count in found.items()}

    def find(self, name: str) -> str:
        """The id of the run that `name` means: its id, the beginning of it, or its name.

        Raises:
            NoSuchRun: None, or more than one.
        """
        ids = self.ids()
        if name in ids:
            return name
        # A name that somebody gave means that run, whatever else begins like it.
        found = [id_ for id_, state in self.all() if name and state.made.name == name][:1]
        if not found:
            found = [id_ for id_ in ids if name and id_.startswith(name) and "." not in id_]
        if len(found) == 1:
            return found[0]
        if found:
            listed = ", ".join(sorted(found))
            raise NoSuchRun(f"{name!r} could be any of {listed}; write more of it")
        raise NoSuchRun(f"no run {name!r}; mulligan runs lists what there is")

    # The user's bytes

    def files(self, id_: str) -> Path:
        """The folder of a run."""
        return private_folder(self.folder / "runs" / id_)

    def command(self, id_: str) -> tuple[str, ...]:
        """The command of a run, as it was given.

        Raises:
            NoSuchRun: Its folder is gone.
        """
        try:
            data = json.loads((self.files(id_) / "command.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise NoSuchRun(_REMOVED.format(id_)) from None
        return tuple(data)

    def program(self, id_: str) -> str:
        """The name of its program, for people."""
        command = self.command(id_)
        # What `npx` or `node` starts is what people call it by.
        name = find(command)[0] or os.path.basename(command[0])  # noqa: PTH119 -- no path of ours
        if name.isascii() and name.isprintable() and len(name) <= 40:
            return name
        from ..core.text import presentable

        return presentable(name, 80)

    # What changes it

    def room(self, command: tuple[str, ...], name: str = "") -> str:
        """Room for the bytes of a new run of `command`; the id that it will have.

        Args:
            command: What it will run.
            name: The id, where it follows from something else; else it is drawn.
        """
        while True:
            id_ = name or "".join([_LETTERS[each % len(_LETTERS)] for each in os.urandom(6)])
            folder = private_folder(self.folder / "runs") / id_
            try:
                folder.mkdir(mode=0o700)
                break
            except FileExistsError:
                if name:  # of a process that died before it wrote the run down
                    (folder / "command.json").unlink(missing_ok=True)
                    break
        with os.fdopen(
            os.open(folder / "command.json", _NEW, 0o600), "w", encoding="utf-8"
        ) as file:
            json.dump(command, file)
        return id_

    def make(self, id_: str, made: Made) -> Claimed:
        """A new run, for which there is room, in the hand of whoever made it."""
        claimed = Claimed(id_, _holder(), 1)
        self.renew(claimed)
        made = made._replace(holder=claimed.holder)
        # Before the first attempt there is nothing to lose; its `begun` carries this to the disk.
        self.write(claimed, made, "made", is_synced=False)
        return claimed

    def claim(self, id_: str, now: float, *, is_by_hand: bool = False) -> Claimed:
        """Take the run in hand.

        Args:
            id_: The run.
            now: Epoch seconds.
            is_by_hand: Whether somebody wants it from a holder that lives and shows no sign of it.

        Raises:
            InOtherHands: Somebody else has it.
            NoSuchRun: There is none, or its folder is gone.
        """
        state = self.look(id_)
        if state is None:
            raise NoSuchRun(f"no run {id_!r}; mulligan runs lists what there is")
        if self.is_held(id_, state.holder, is_by_hand=is_by_hand):
            process = holder_process(state.holder)
            raise InOtherHands(f"run {id_} is in the hands of process {process}")
        claimed = Claimed(id_, _holder(), state.epoch + 1)
        try:
            # Before it is ours, so that there is no moment in which it looks free.
            self.renew(claimed)
        except FileNotFoundError:
            raise NoSuchRun(f"{_REMOVED.format(id_)}; mulligan cancel {id_} ends it") from None
        with suppress(Fenced):
            self.write(claimed, Taken(now, claimed.holder), "taken")
        state = self.look(id_)
        if state is None or state.holder != claimed.holder:
            self.release(claimed)
            raise InOtherHands(f"run {id_} was taken by another process at the same time")
        return claimed

    def is_held(self, id_: str, holder: str, *, is_by_hand: bool = False) -> bool:
        """Whether the holder of the run is alive.

        One of this machine that lives has only been stopped, by Ctrl-Z or with the machine, and
        will go on: nobody takes its run unasked, however long it shows no sign.
        """
        try:
            text = self._sign(id_, holder).read_text(encoding="ascii")
        except (FileNotFoundError, NotADirectoryError):
            return False
        seen, _, boot = text.partition(" ")
        host, process, *_ = [*holder.split(" "), ""]
        if host == os.uname().nodename:
            if not is_alive(process):
                return False
            if not is_by_hand:
                return True
        return boot == boot_id() and boot_time() - float(seen or 0) < LEASE

    def renew(self, claimed: Claimed) -> None:
        """Show that the holder is alive."""
        sign = self._sign(claimed.id, claimed.holder)
        new = sign.with_suffix(".new")
        new.write_text(f"{boot_time():.3f} {boot_id()}", encoding="ascii")
        new.replace(sign)  # half a sign would be read as none

    def release(self, claimed: Claimed) -> None:
        """Let go of the run, for whoever wants it next."""
        sign = self._sign(claimed.id, claimed.holder)
        sign.unlink(missing_ok=True)
        sign.with_suffix(".new").unlink(missing_ok=True)

    def _sign(self, id_: str, holder: str) -> Path:
        return self.folder / "runs" / id_ / f"alive-{holder.rpartition(' ')[2]}"

    def write(self, claimed: Claimed, step: Step, name: str, *, is_synced: bool = True) -> None:
        """Write down a step. Written once, however often it is asked for under one name.

        Raises:
            Fenced: Somebody else has taken over.
        """
        entry = Entry(f"{name}#{claimed.epoch}", packed(step), claimed.epoch)
        self._journal.append(_PREFIX + claimed.id, entry, is_synced=is_synced)

    def cancel(self, id_: str, over: Over) -> None:
        """End a run for good, whoever has it in hand: its holder looks, and stops."""
        while True:
            state = self.look(id_)
            epoch, steps = (0, 0) if state is None else (state.epoch, state.steps)
            try:
                self._journal.append(_PREFIX + id_, Entry(f"over#{steps}", packed(over), epoch))
            except Fenced:  # somebody took it in this moment
                continue
            return

    def forget(self, id_: str) -> None:
        """Remove all there is of a run."""
        import shutil

        for each in (*(child for child, _ in self.all(id_)), id_):
            self._journal.forget(_PREFIX + each)
            shutil.rmtree(self.folder / "runs" / each, ignore_errors=True)

    def close(self) -> None:
        self._file.close()


def holder_process(holder: str) -> str:
    """The process id of whoever has a run in hand, for people."""
    return holder.split(" ")[1].partition("@")[0]


def _holder() -> str:
    return f"{os.uname().nodename} {signature(os.getpid())} {os.urandom(4).hex()}"
