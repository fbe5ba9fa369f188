"""Where runs are kept: a journal, a claim on each, a folder with the user's bytes.

A run belongs to whoever holds the claim on it. The claim is a lease that its holder renews; each
taking raises its epoch, and the journal refuses entries of an older one. So a holder that slept
through its lease can do nothing more, and learns so. A holder on this machine whose process is
dead need not be waited for.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, NamedTuple

from ..core.claims import Busy, Drop, Mine, Renew, Take
from ..core.machine import Key
from ..core.ports import Entry
from ..errors import MulliganError
from ..stores.home import home, private_folder
from ..stores.sqlite import Sqlite
from .pids import is_alive, signature
from .state import RunState, state_of
from .steps import packed, unpacked

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..core.ports import Store
    from .steps import Made, Over, Step

__all__ = ("LEASE", "Claimed", "Desk", "NoSuchRun", "Taken")

# How long a run stays claimed by a holder that nobody hears of. Its own machine knows sooner.
LEASE = 30.0

_PREFIX = "run/"
# Without vowels, so that no id is a word; without what looks alike.
_LETTERS = "bcdfghjkmnpqrstvwxz23456789"


class NoSuchRun(MulliganError):
    """Nothing here answers to that name."""


class Taken(MulliganError):
    """Somebody else has the run in hand."""


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
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = home() if folder is None else private_folder(folder)
        self.store: Store = Sqlite(self.folder / "state.db")

    # What there is

    def ids(self) -> tuple[str, ...]:
        """Every run there is, in no order."""
        return tuple([each[len(_PREFIX) :] for each in self.store.journal.streams(_PREFIX)])

    def all(self) -> Iterator[tuple[str, RunState]]:
        """Every run with its state, the newest first."""
        found = [(id_, state) for id_ in self.ids() if (state := self.look(id_)) is not None]
        yield from sorted(found, key=lambda each: -each[1].made.at)

    def look(self, id_: str) -> RunState | None:
        """Where the run stands; None if there is no such run."""
        return state_of(unpacked(entry.body) for entry in self.store.journal.read(_PREFIX + id_))

    def find(self, name: str) -> str:
        """The id of the run that `name` means: its id, the beginning of it, or its name.

        Raises:
            NoSuchRun: None, or more than one.
        """
        ids = self.ids()
        if name in ids:
            return name
        found = [id_ for id_ in ids if name and id_.startswith(name)]
        if not found:
            found = [id_ for id_, state in self.all() if state.made.name == name][:1]
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
            raise NoSuchRun(f"the folder of run {id_} was removed: it cannot go on") from None
        return tuple(data)

    # What changes it

    def make(self, made: Made, command: tuple[str, ...]) -> Claimed:
        """A new run, in the hand of whoever made it."""
        while True:
            id_ = "".join([_LETTERS[each % len(_LETTERS)] for each in os.urandom(6)])
            try:
                folder = private_folder(self.folder / "runs") / id_
                folder.mkdir(mode=0o700)
                break
            except FileExistsError:
                continue
        new = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with os.fdopen(os.open(folder / "command.json", new, 0o600), "w", encoding="utf-8") as file:
            json.dump(command, file)
        claimed = self.claim(id_)
        self.write(claimed, made, "made")
        return claimed

    def claim(self, id_: str) -> Claimed:
        """Take the run in hand.

        Raises:
            Taken: Somebody else has it.
        """
        holder = f"{os.uname().nodename} {signature(os.getpid())} {os.urandom(4).hex()}"
        take = Take(holder=holder, fingerprint="run", lease=LEASE)
        key = _key(id_)
        answer = self.store.keys.transact(key, take)
        if isinstance(answer, Busy) and _is_dead(answer.holder):
            self.store.keys.transact(key, Drop(holder=answer.holder, epoch=answer.epoch))
            answer = self.store.keys.transact(key, take)
        if isinstance(answer, Mine):
            return Claimed(id_, holder, answer.epoch)
        raise Taken(f"run {id_} is in the hand of another process")

    def renew(self, claimed: Claimed) -> bool:
        """Stay the holder; False if somebody else has taken over."""
        renew = Renew(holder=claimed.holder, epoch=claimed.epoch, lease=LEASE)
        return self.store.keys.transact(_key(claimed.id), renew)

    def release(self, claimed: Claimed) -> None:
        """Let go of the run, for whoever wants it next."""
        drop = Drop(holder=claimed.holder, epoch=claimed.epoch)
        self.store.keys.transact(_key(claimed.id), drop)

    def write(self, claimed: Claimed, step: Step, name: str) -> None:
        """Write down a step. Written once, however often it is asked for under one name.

        Raises:
            Fenced: Somebody else has taken over.
        """
        entry = Entry(f"{name}#{claimed.epoch}", packed(step), claimed.epoch)
        self.store.journal.append(_PREFIX + claimed.id, entry)

    def cancel(self, id_: str, over: Over) -> None:
        """End a run for good, whoever has it in hand: its holder looks, and stops."""
        entry = Entry(f"over-{over.at}", packed(over), self._epoch(id_))
        self.store.journal.append(_PREFIX + id_, entry)

    def is_cancelled(self, id_: str) -> bool:
        state = self.look(id_)
        return state is None or state.status == "cancelled"

    def _epoch(self, id_: str) -> int:
        entries = self.store.journal.read(_PREFIX + id_)
        return entries[-1].epoch if entries else 0

    def forget(self, id_: str) -> None:
        """Remove all there is of a run."""
        import shutil

        self.store.journal.forget(_PREFIX + id_)
        shutil.rmtree(self.folder / "runs" / id_, ignore_errors=True)

    def close(self) -> None:
        self.store.close()


def _is_dead(holder: str) -> bool:
    """Whether the holder was a process of this machine that no longer exists."""
    host, process, *_ = [*holder.split(" "), ""]
    return host == os.uname().nodename and not is_alive(process)


def _key(id_: str) -> Key:
    return Key(_PREFIX + id_, "claim")
