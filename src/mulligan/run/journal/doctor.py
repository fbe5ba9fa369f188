"""`mulligan doctor`: checks the files that runs are kept in. Nothing is changed or created.

It reads the files directly, not through the store, which refuses to open damaged ones.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote

from ...stores.boot_clock import boot_time
from ...stores.entries import StreamLease
from ...stores.local_files import remote_file_system
from ...stores.sqlite.journal import journal_file
from ...stores.sqlite.store import hot_file
from .entries import unpacked
from .lease import standing
from .state import state_of
from .store import MACHINE_ID, is_alive, myself

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ...stores.sqlite.file import SqliteFile
    from .state import RunState

__all__ = ("Check", "examine")

_DAY = 86_400.0
_PREFIX = "run/"
# How many names are listed in one sentence.
_MOST = 5


class Check(NamedTuple):
    """The result of one check: about what, what was found, and what to do if that is wrong."""

    about: str
    what: str
    advice: str = ""

    @property
    def is_wrong(self) -> bool:
        return bool(self.advice)


def examine(folder: Path, now: float) -> Iterator[Check]:
    """All checks of the runs in `folder`, in the order in which to fix problems."""
    if not folder.exists():
        yield Check("home", f"{folder} does not exist: nothing was kept here yet")
        return
    yield from _home(folder)
    hot = folder / "state.db"
    yield from _database("state", hot_file(hot))
    file = journal_file(hot)
    found = list(_journal_kept(folder, file.path)) or list(_database("journal", file))
    yield from found
    if not any(each.is_wrong for each in found) and file.path.exists():
        try:
            with closing(_opened(file.path)) as journal:
                yield from _runs(folder, journal, now)
        except sqlite3.Error as trouble:
            yield Check("runs", f"the journal cannot be read: {trouble}", _RECOVER)


_RECOVER = "see docs/doctor.md: how to recover a damaged journal"


def _home(folder: Path) -> Iterator[Check]:
    named = " (MULLIGAN_HOME)" if os.environ.get("MULLIGAN_HOME") else ""
    wrong = list(_permissions(folder, 0o022, "go-w"))
    kind = remote_file_system(folder)
    if kind:
        advice = "choose a local folder with MULLIGAN_HOME"
        wrong.append(Check("home", f"{folder} is on a network file system ({kind})", advice))
    for name in ("state.db", "state.journal.db", MACHINE_ID):
        wrong += _permissions(folder / name, 0o077, "go-rwx")
    runs = folder / "runs"
    for each in sorted(runs.iterdir()) if runs.is_dir() else ():
        wrong += _permissions(each, 0o077, "go-rwx")
    yield from wrong or [Check("home", f"{folder}{named} is accessible only to you")]


def _permissions(path: Path, mask: int, remedy: str) -> Iterator[Check]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return
    except OSError as trouble:
        yield Check("home", f"{path}: {trouble.strerror}", f"look at it with ls -ld {path}")
        return
    if found.st_uid != os.geteuid():
        because = f"{path} belongs to user {found.st_uid}, but the current user is {os.geteuid()}"
        yield Check("home", because, f"chown it, or run this as user {found.st_uid}")
    elif found.st_mode & mask:
        because = f"{path} has mode {found.st_mode & 0o7777:04o}: others can get at it"
        yield Check("home", because, f"chmod {remedy} {path}")


def _journal_kept(folder: Path, file: Path) -> Iterator[Check]:
    """Check that the journal exists if there are folders of runs."""
    runs = folder / "runs"
    count = sum(each.is_dir() for each in runs.iterdir()) if runs.is_dir() else 0
    if file.exists() and file.stat().st_size:
        return
    what = "is empty" if file.exists() else "does not exist"
    if not count:
        yield Check("journal", f"{file} {what}, and there are no runs")
        return
    yield Check(
        "journal",
        f"{file} {what}, though {_counted(count, 'folder')} of runs lie in {runs}: it was lost",
        f"put it back from a backup, or keep the logs and start over: mv {runs} {runs}.lost",
    )


def _opened(file: Path) -> sqlite3.Connection:
    return sqlite3.connect(f"file:{quote(str(file))}?mode=ro", uri=True, timeout=5.0)


def _database(about: str, file: SqliteFile) -> Iterator[Check]:
    """Check that a SQLite file is intact, and of a supported version."""
    path = file.path
    if not path.exists() or not path.stat().st_size:
        yield Check(about, f"{path} holds nothing yet")
        return
    try:
        with closing(_opened(path)) as opened:
            (version,) = opened.execute("PRAGMA user_version").fetchone()
            damage = [row[0] for row in opened.execute("PRAGMA integrity_check(10)")]
    except sqlite3.Error as trouble:
        yield Check(about, f"{path} cannot be read: {trouble}", _RECOVER)
        return
    if damage != ["ok"]:
        yield Check(about, f"{path} is damaged: {damage[0]}", _RECOVER)
    elif not version:
        because = f"{path} has no schema version, as a copy made with .dump"
        yield Check(about, because, f"sqlite3 {path} 'PRAGMA user_version = {file.version}'")
    elif version > file.version:
        because = f"{path} has schema {version}, and this mulligan knows {file.version}"
        yield Check(about, because, "upgrade mulligan: a newer one wrote it")
    else:
        old = f" (schema {version}, brought up to {file.version} at its next use)"
        yield Check(about, f"{path} is intact{old if version < file.version else ''}")


def _runs(folder: Path, journal: sqlite3.Connection, now: float) -> Iterator[Check]:
    states, unreadable = _folded(journal)
    for id_, because in unreadable.items():
        advice = (
            "upgrade mulligan" if "newer" in because else f"its logs are in {folder}/runs/{id_}"
        )
        yield Check("runs", f"run {id_} cannot be read: {because}", advice)
    is_open = {id_ for id_, each in states.items() if each.is_open or each.status == "limited"}
    yield Check(
        "runs", f"{_counted(len(states), 'run')} can be read, {len(is_open)} can be resumed"
    )
    runs = folder / "runs"
    there = {each.name for each in runs.iterdir() if each.is_dir()} if runs.is_dir() else set()
    for id_ in sorted(is_open - there):
        because = f"run {id_} can be resumed, but its folder is gone"
        yield Check("folders", because, f"mulligan cancel {id_} ends it")
    yield from _orphans(runs, there - states.keys() - unreadable.keys(), journal, now)
    yield from _leases(folder, journal, states)


def _folded(journal: sqlite3.Connection) -> tuple[dict[str, RunState], dict[str, str]]:
    """Every run with its state; those that cannot be read, with the reason."""
    states, unreadable = {}, {}
    streams = journal.execute(
        "SELECT DISTINCT stream FROM journal WHERE stream >= ? AND stream < ? ORDER BY stream",
        (_PREFIX, f"{_PREFIX}\U0010ffff"),
    ).fetchall()
    for (stream,) in streams:
        id_, steps, epochs, number = stream[len(_PREFIX) :], [], [], 0
        try:
            for number, (body, epoch) in enumerate(  # noqa: B007 -- told of in the error
                journal.execute(
                    "SELECT CAST(body AS BLOB), epoch FROM journal WHERE stream = ? ORDER BY place",
                    (stream,),
                ),
                1,
            ):
                steps.append(unpacked(body.decode("utf-8", "replace")))
                epochs.append(epoch)
        except ValueError as wrong:
            unreadable[id_] = f"entry {number}: {wrong}"
            continue
        if epochs != sorted(epochs):
            unreadable[id_] = "its epochs fall: the journal is damaged"
        elif (state := state_of(steps, epochs)) is None:
            unreadable[id_] = "its first entry is missing: the journal is damaged"
        else:
            states[id_] = state
    return states, unreadable


def _orphans(
    runs: Path, names: set[str], journal: sqlite3.Connection, now: float
) -> Iterator[Check]:
    """Check for folders without a run in the journal."""
    row = journal.execute("SELECT value FROM meta WHERE name = 'made_at'").fetchone()
    made_at = float(row[0]) if row else now
    older = sorted(name for name in names if (runs / name).stat().st_mtime <= made_at)
    if older:
        listed = ", ".join(older[:_MOST]) + (" …" if len(older) > _MOST else "")
        belong = "belongs" if len(older) == 1 else "belong"
        yield Check(
            "folders",
            f"{_counted(len(older), 'folder')} in {runs} {belong} to an earlier journal: {listed}",
            "they are never removed; look at their logs, then move them away",
        )
    half = [each for each in names - set(older) if (runs / each).stat().st_mtime < now - _DAY]
    if half:
        yield Check("folders", f"{_counted(len(half), 'folder')} of a crash: pruned within a day")


def _leases(
    folder: Path, journal: sqlite3.Connection, states: dict[str, RunState]
) -> Iterator[Check]:
    """Report which processes drive runs."""
    try:
        rows = journal.execute("SELECT stream, holder, boot, seen FROM lease").fetchall()
    except sqlite3.OperationalError:  # of a schema before leases
        return
    machine = folder / MACHINE_ID
    me = myself(machine.read_text(encoding="ascii").strip() if machine.exists() else "")
    found = {
        stream[len(_PREFIX) :]: standing(StreamLease(*lease), me, boot_time(), is_alive)
        for stream, *lease in rows
    }
    held = sum(each == "held" for each in found.values())
    yield Check("leases", f"{_counted(held, 'run')} {'is' if held == 1 else 'are'} driven now")
    for id_, each in sorted(found.items()):
        if each == "silent":
            because = f"the process that runs run {id_} is alive but does not renew its lease"
            yield Check("leases", because, f"continue it (kill -CONT), or mulligan resume {id_}")
        elif each == "free" and id_ in states and states[id_].is_open:
            yield Check("leases", f"the process that ran run {id_} died: a worker will resume it")


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
