"""The store of runs: their journal and leases, and a folder for each with the user's bytes.

A run belongs to the process that claimed it last. Each claim is an entry of the journal under a
higher epoch, written in one step with a lease, so of two claims at the same time one succeeds.
Everything that is written later carries the epoch, and the journal refuses what carries an older
one: a holder that slept while another process took over, or whose run was cancelled, can write
nothing more.

Whether a lease still holds is judged by `journal.lease`.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from functools import lru_cache
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple

from ...errors import Fenced, MulliganError, StoreError
from ...stores.boot_clock import boot_id, boot_time
from ...stores.entries import JournalLine, StreamLease
from ...stores.home import home, private_folder
from ...stores.sqlite.journal import SqliteJournal, journal_file
from ..process import table
from .entries import AttemptEnd, RunAdopted, RunTaken, packed, unpacked
from .lease import Holder, holder_of, standing
from .state import RunState, new_state, state_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ...core.moment import Moment
    from ...core.ports import Store
    from .entries import JournalEntry, RunCancelled, RunMade
    from .lease import Standing

__all__ = (
    "MACHINE_ID",
    "ClaimedRun",
    "NoSuchRun",
    "RunHeld",
    "RunStore",
    "UnreadableRun",
    "is_alive",
    "machine_id",
    "myself",
)

_PREFIX = "run/"
MACHINE_ID = "machine-id"
# Without vowels, so that no id is a word, and without look-alike characters; one for each byte.
_LETTERS = (b"bcdfghjkmnpqrstvwxz23456789" * 10)[:256]
_REMOVED = "the folder of run {} was removed: it cannot be resumed"
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class NoSuchRun(MulliganError):
    """There is no run of that name."""


class RunHeld(MulliganError):
    """Another process drives the run."""


class UnreadableRun(MulliganError):
    """The journal has entries of the run that this version cannot read."""

    def __init__(self, id_: str, because: str) -> None:
        self.id, self.because = id_, because
        super().__init__(f"run {id_} cannot be read: {because}; mulligan doctor shows what to do")


class ClaimedRun(NamedTuple):
    """A run that this process holds.

    Args:
        id: The run.
        holder: The holder, as `Holder.text` writes it.
        epoch: The epoch of this claim.
        folder: Where the user's bytes are: its command, input and logs.
    """

    id: str
    holder: str
    epoch: int
    folder: Path


class RunStore:
    """Runs of this machine and user.

    Args:
        folder: Where they are kept; ``$MULLIGAN_HOME`` or the platform's by default.
        moments: The clock for state that runs share; the machine's clocks by default.
    """

    def __init__(
        self, folder: Path | None = None, moments: Callable[[], Moment] | None = None
    ) -> None:
        self._moments = moments
        self.folder = home() if folder is None else private_folder(folder)
        self._file = journal_file(self.folder / "state.db")
        self._journal = SqliteJournal(self._file)
        self._store: Store | None = None
        self._opening = Lock()
        self._machine = ""
        # Folders of runs are created after the journal, so this looks for them before it.
        runs, file = self.folder / "runs", self._file.path
        has_runs = runs.is_dir() and any(each.is_dir() for each in runs.iterdir())
        if has_runs and not (file.exists() and file.stat().st_size):
            what = "is empty" if file.exists() else "is gone"
            raise StoreError(
                str(self.folder),
                f"the journal {file} {what}, and folders of runs lie beside it: it was lost; "
                f"mulligan doctor shows what to do",
            )

    def store(self) -> Store:
        """The store that contains the journal, for state that runs share; closed with this one."""
        from ...stores.sqlite.store import Sqlite

        with self._opening:
            if self._store is None:
                path = self.folder / "state.db"
                moments = self._moments
                self._store = Sqlite(path) if moments is None else Sqlite(path, moments)
            return self._store

    @property
    def machine(self) -> str:
        """The id of the machine, kept in the folder; made once."""
        self._machine = self._machine or machine_id(self.folder)
        return self._machine

    def is_here(self, made: RunMade) -> bool:
        """Whether a run was made on this machine by this user: its sessions and files are here."""
        if made.user != os.geteuid():
            return False
        # Old journals have only the host's name.
        return made.machine == self.machine if made.machine else made.host == os.uname().nodename

    # Reading

    def ids(self) -> tuple[str, ...]:
        """Every run there is, in no order."""
        return tuple([each[len(_PREFIX) :] for each in self._journal.streams(_PREFIX)])

    def all(self, parent: str = "") -> Iterator[tuple[str, RunState]]:
        """Every run with its state, the newest first; those of one plan, where it is named.

        Those that cannot be read are left out: see `unreadable`.
        """
        # The ids of a plan's agents are the plan's id, a dot and more.
        prefix = f"{parent}." if parent else ""
        ids = [each for each in self.ids() if each.startswith(prefix)]
        if not parent:
            ids = [each for each in ids if "." not in each]
        found = []
        for each in ids:
            with suppress(UnreadableRun):
                if (state := self.look(each)) is not None:
                    found.append((each, state))
        yield from sorted(found, key=lambda each: -each[1].made.at)

    def look(self, id_: str, before: RunState | None = None) -> RunState | None:
        """The state of the run, from what was written after `before`; None if there is no such run.

        Raises:
            UnreadableRun: This version cannot read it.
        """
        seen = 0 if before is None else before.steps
        steps, epochs = [], []
        for number, entry in enumerate(self._journal.read(_PREFIX + id_, after=seen), seen + 1):
            try:
                steps.append(unpacked(entry.body))
                epochs.append(entry.epoch)
            except ValueError as wrong:
                raise UnreadableRun(id_, f"entry {number}: {wrong}") from None
        if not steps:
            return before
        state = state_of(steps, epochs, before=before)
        if state is None:
            raise UnreadableRun(id_, "its first entry is missing: the journal is damaged")
        return state

    def unreadable(self) -> dict[str, str]:
        """The runs that cannot be read, and why."""
        found = {}
        for each in self.ids():
            try:
                self.look(each)
            except UnreadableRun as wrong:
                found[each] = wrong.because
        return found

    def steps_of(self, parent: str = "") -> dict[str, int]:
        """The number of steps of each run, or of each agent of a plan; shows which have changed."""
        found = self._journal.lengths(f"{_PREFIX}{parent}." if parent else _PREFIX)
        return {name[len(_PREFIX) :]: count for name, count in found.items()}

    def leased(self) -> frozenset[str]:
        """The runs that a process drives, or drove when it died."""
        return frozenset(each[len(_PREFIX) :] for each in self._journal.leased(_PREFIX))

    def find(self, name: str) -> str:
        """The id of the run that `name` means: its id, the beginning of it, or its name.

        Raises:
            NoSuchRun: None, or more than one.
        """
        ids = self.ids()
        if name in ids:
            return name
        # A full name given by a user outranks prefixes of ids.
        found = [id_ for id_, state in self.all() if name and state.made.name == name][:1]
        if not found:
            found = [id_ for id_ in ids if name and id_.startswith(name) and "." not in id_]
        if len(found) == 1:
            return found[0]
        if found:
            listed = ", ".join(sorted(found))
            raise NoSuchRun(f"{name!r} could be any of {listed}; give more characters")
        raise NoSuchRun(f"no run {name!r}; mulligan runs lists them")

    # The user's bytes

    def files(self, id_: str) -> Path:
        """The folder of a run."""
        return self.folder / "runs" / id_

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

    # Writing

    def new_folder(self, command: tuple[str, ...], name: str = "") -> str:
        """Create the folder of a new run of `command`; returns its id, random unless it is named.

        The journal is created before the first folder: a folder without a journal means that it was
        lost.
        """
        self._journal.newest(_PREFIX)
        while True:
            id_ = name or os.urandom(6).translate(_LETTERS).decode("ascii")
            folder = private_folder(self.folder / "runs") / id_
            try:
                folder.mkdir(mode=0o700)
                break
            except FileExistsError:
                if name:  # left by a process that died before it wrote the run to the journal
                    (folder / "command.json").unlink(missing_ok=True)
                    break
        with os.fdopen(
            os.open(folder / "command.json", _NEW, 0o600), "w", encoding="utf-8"
        ) as file:
            json.dump(command, file)
        return id_

    def make(self, id_: str, made: RunMade) -> tuple[ClaimedRun, RunState]:
        """A new run, whose folder exists, claimed by this process; with its state."""
        folder, me = self.files(id_), self._me()
        lease = _leased(me)
        made = made._replace(holder=lease.holder, machine=me.machine)
        # Not synced: nothing can be lost before the first attempt, whose `begun` entry syncs this
        # one, too.
        entry = JournalLine("made#1", packed(made), 1)
        self._journal.append(_PREFIX + id_, entry, lease=lease, is_synced=False)
        return ClaimedRun(id_, lease.holder, 1, folder), new_state(made)

    def claim(self, id_: str, now: float, *, is_by_hand: bool = False) -> ClaimedRun:
        """Claim the run for this process.

        A user also claims a run from a holder that is alive but does not renew its lease
        (`is_by_hand`), such as one stopped by Ctrl-Z.

        Raises:
            RunHeld: Another process has it.
            NoSuchRun: There is none, or its folder is gone.
        """
        me = self._me()
        mine = _leased(me)
        taken = packed(RunTaken(now, mine.holder))

        def choose(epoch: int, lease: StreamLease | None) -> tuple[JournalLine, StreamLease]:
            if not epoch:
                raise NoSuchRun(f"no run {id_!r}; mulligan runs lists them")
            how = self._standing(lease, me)
            if lease is not None and (how == "held" or (how == "silent" and not is_by_hand)):
                raise RunHeld(f"run {id_} is being run by {_described(lease.holder, me)}")
            return JournalLine(f"taken#{epoch + 1}", taken, epoch + 1), mine

        folder = self.files(id_)
        if not folder.is_dir() and self._journal.newest(_PREFIX + id_)[0]:
            raise NoSuchRun(f"{_REMOVED.format(id_)}; mulligan cancel {id_} ends it")
        entry = self._journal.take(_PREFIX + id_, choose)
        return ClaimedRun(id_, mine.holder, entry.epoch, folder)

    def is_held(self, id_: str) -> bool:
        """Whether a process drives the run, or was stopped while it did."""
        return self.standing(id_) != "free"

    def standing(self, id_: str) -> Standing:
        """Whether the lease of the run is held, silent or free."""
        return self._standing(self._journal.lease(_PREFIX + id_), self._me())

    def holder(self, id_: str) -> str:
        """The holder of the run, for people; empty for none."""
        lease = self._journal.lease(_PREFIX + id_)
        return "" if lease is None else _described(lease.holder, self._me())

    def renew(self, claimed: ClaimedRun) -> bool:
        """Renew the lease; False if the run was claimed by another process or cancelled."""
        lease = _leased(holder_of(claimed.holder))
        return self._journal.renew(_PREFIX + claimed.id, lease, claimed.epoch)

    def is_ours(self, claimed: ClaimedRun) -> bool:
        """Whether the run was neither claimed by another process nor cancelled since."""
        return self._journal.newest(_PREFIX + claimed.id)[0] == claimed.epoch

    def release(self, claimed: ClaimedRun) -> None:
        """Release the lease."""
        self._journal.release(_PREFIX + claimed.id, claimed.holder)

    def adopt(self, claimed: ClaimedRun, now: float) -> None:
        """Bind the run to this machine and user, at the user's request."""
        step = RunAdopted(now, self.machine, os.uname().nodename, os.geteuid())
        self.write(claimed, step, "adopted")

    def _me(self) -> Holder:
        return myself(self.machine)

    @staticmethod
    def _standing(lease: StreamLease | None, me: Holder) -> Standing:
        return standing(lease, me, boot_time(), is_alive)

    def write(
        self, claimed: ClaimedRun, step: JournalEntry, name: str, *, is_synced: bool = True
    ) -> int:
        """Write an entry to the journal, idempotent per `name`; returns its place there.

        Raises:
            Fenced: Another process has claimed the run, or it was cancelled.
        """
        stream = _PREFIX + claimed.id
        entry = JournalLine(f"{name}#{claimed.epoch}", packed(step), claimed.epoch)
        try:
            return self._journal.append(stream, entry, is_synced=is_synced)
        except Fenced:
            state = self.look(claimed.id) if isinstance(step, AttemptEnd) else None
            if state is None or not state.is_final:
                raise
            # The end of an attempt counts for its cost; a finally cancelled run stays cancelled.
            return self._journal.append(stream, entry._replace(epoch=state.epoch))

    def note(self, id_: str, step: JournalEntry, name: str) -> None:
        """Write a remark to the journal, once per name; needs no claim."""
        epoch, _ = self._journal.newest(_PREFIX + id_)
        with suppress(Fenced):  # another process just claimed it, and will find the same
            self._journal.append(_PREFIX + id_, JournalLine(name, packed(step), epoch))

    def cancel(self, id_: str, over: RunCancelled) -> None:
        """Cancel a run, driven or not: raises the epoch, so its holder can start no attempt.

        The holder checks once a second, and stops its program.
        """

        def choose(epoch: int, _lease: StreamLease | None) -> tuple[JournalLine, None]:
            return JournalLine(f"over#{epoch + 1}", packed(over), epoch + 1), None

        self._journal.take(_PREFIX + id_, choose)

    def forget(self, id_: str, steps: int) -> bool:
        """Remove a run that has so many steps, with its folder; False if it was claimed again."""
        import shutil

        def is_over(place: int, lease: StreamLease | None) -> bool:
            return place == steps and self._standing(lease, self._me()) == "free"

        if not self._journal.forget_if(_PREFIX + id_, is_over):
            return False
        for each in (each for each in self.ids() if each.startswith(f"{id_}.")):
            self._journal.forget(_PREFIX + each)
            shutil.rmtree(self.files(each), ignore_errors=True)
        shutil.rmtree(self.files(id_), ignore_errors=True)
        return True

    def forget_unreadable(self, id_: str) -> Path:
        """Remove a run that cannot be read from the journal; returns where its folder is kept.

        Raises:
            NoSuchRun: There is none, or it can be read.
            RunHeld: A process drives it, which can read it.
        """
        if id_ not in self.unreadable():
            raise NoSuchRun(f"run {id_!r} is not an unreadable run; mulligan runs lists all runs")
        kept = private_folder(self.folder / "lost") / id_
        steps = self._journal.newest(_PREFIX + id_)[1]
        if self.files(id_).is_dir():
            self.files(id_).rename(kept)
        if not self.forget(id_, steps):
            raise RunHeld(f"run {id_} is being run by {self.holder(id_)}, which can read it")
        return kept

    def made_at(self) -> float:
        """When the journal was made, in epoch seconds."""
        return self._journal.made_at()

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
        self._file.close()


def _leased(holder: Holder) -> StreamLease:
    return StreamLease(holder.text, holder.boot, boot_time())


def _described(holder: str, me: Holder) -> str:
    """A holder, for people."""
    found = holder_of(holder)
    where = "" if found.pids == me.pids else f" in another container of {found.host}"
    return f"process {found.pid}{where}"


def machine_id(folder: Path) -> str:
    """The id of the machine that this state folder belongs to; made once.

    Raises:
        StoreError: It can neither be read nor made.
    """
    file = folder / MACHINE_ID
    try:
        with suppress(FileNotFoundError):
            if found := file.read_text(encoding="ascii", errors="replace").strip():
                return found
        return _made(file)
    except OSError as trouble:
        raise StoreError(
            str(folder),
            f"cannot use {file}: {trouble.strerror or trouble}; the file belongs to mulligan",
        ) from trouble


def _made(file: Path) -> str:
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(file, flags, 0o600), "r+", encoding="ascii") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)  # the first id stays, also for processes that wait here
        # An empty file was left by a power failure.
        found = opened.read().strip() or os.urandom(16).hex()
        opened.seek(0)
        opened.write(found)
    return found


def myself(machine: str) -> Holder:
    """This process as a holder, under a new token."""
    return _process(os.getpid())._replace(
        token=os.urandom(4).hex(), machine=machine, host=os.uname().nodename
    )


def is_alive(pid: str, when: str) -> bool:
    """Whether this process, not another with its id, exists; a zombie does not count."""
    return pid.isdigit() and bool(when) and table.began(int(pid)) == when


@lru_cache(maxsize=1)
def _process(pid: int) -> Holder:  # noqa: ARG001 -- asked again after a fork
    shown, where = table.myself()
    return Holder("", shown, table.began(int(shown)), where, boot_id())
