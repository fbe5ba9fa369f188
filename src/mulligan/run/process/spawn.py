"""Starts every child process of a run: agents, verification, notification, git.

A child inherits the signals that its parent ignores, and the parent's signal mask. A script that
says ``mulligan run … &`` makes us ignore SIGINT, and an agent would then ignore the interrupt that
lets it save its session. So children start with the default action for the signals that we end
them with, with an empty mask, and in a session of their own: a terminal reaches them through us.

`start` looks for the program on the PATH that the program will get, which need not be ours, and
has a message for each way in which the system can refuse it.
"""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ...errors import MulliganError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path
    from types import FrameType

__all__ = (
    "ENDING",
    "TRANSIENT",
    "CannotStart",
    "cannot_start",
    "do_nothing",
    "find",
    "spawn",
    "start",
)

# Transient errors: out of descriptors, memory, processes or disk space.
TRANSIENT = frozenset(
    {
        *(errno.EMFILE, errno.ENFILE, errno.ENOSPC, errno.EDQUOT, errno.EAGAIN, errno.ENOMEM),
        *(errno.EINTR, errno.EIO, errno.EBUSY, errno.ENOBUFS, errno.ETXTBSY, errno.ESTALE),
    }
)

# The signals by which children are ended. SIGPIPE, which Python ignores, is restored by subprocess
# itself.
ENDING = (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)


def spawn(argv: Sequence[str], **options: Any) -> subprocess.Popen[bytes]:
    """Start `argv` with default signals, in a session of its own; `options` are those of `Popen`.

    A thread other than the main one cannot change what the process ignores; there the main thread
    has done so in `stop.signals`.
    """
    popen: Any = subprocess.Popen  # `options` do not tell a type checker which of its overloads
    with _no_ignored_signals(), _empty_mask():
        child: subprocess.Popen[bytes] = popen(argv, start_new_session=True, **options)
        return child


@contextmanager
def _no_ignored_signals() -> Iterator[None]:
    """Let children start with default signals; this process keeps ignoring what it ignored.

    An ignored signal is inherited through exec, a handler is not. So a signal that is ignored gets
    a handler that does nothing. In another thread than the main one this changes nothing.
    """
    ignored = []
    if threading.current_thread() is threading.main_thread():
        ignored = [each for each in ENDING if signal.getsignal(each) is signal.SIG_IGN]
    try:
        for each in ignored:
            signal.signal(each, do_nothing)
        yield
    finally:
        for each in ignored:
            signal.signal(each, signal.SIG_IGN)


@contextmanager
def _empty_mask() -> Iterator[None]:
    """Unblock the signals of this thread except pending ones, which would reach us here."""
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    if not blocked:
        yield
        return
    signal.pthread_sigmask(signal.SIG_UNBLOCK, blocked - signal.sigpending())
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)


def do_nothing(_number: int, _frame: FrameType | None) -> None:
    """A signal handler that ignores the signal, and is not inherited by children."""


class CannotStart(MulliganError):
    """A program that the system does not start, with the reason in words.

    `code` is what a shell's exit code would be: 127 where nothing was found, 126 for the rest.
    `is_transient` says that the same may work later.
    """

    def __init__(self, because: str, code: int = 126, *, is_transient: bool = False) -> None:
        from ...core.redaction import presentable

        self.code, self.is_transient = code, is_transient
        # The program's name is shown and journaled, so it is cleaned first.
        super().__init__(presentable(because))


def start(
    argv: Sequence[str],
    *,
    cwd: Path,
    environ: Mapping[str, str],
    stdin: int | None,
) -> subprocess.Popen[bytes]:
    """Start `argv` in a session of its own, with pipes for its output.

    A session of its own has no terminal: Ctrl-C reaches the program through us only, and no prompt
    for a password can wait for a user who is not there. `stdin` is a descriptor; None for a pipe
    that we feed.

    Raises:
        CannotStart: The system refuses.
    """
    cwd = (
        cwd.absolute()
    )  # the program is looked for before, and executed after, the change of folder
    if not cwd.is_dir():
        found = "is no folder" if cwd.exists() else "does not exist"
        raise CannotStart(f"cannot start {argv[0]} in {cwd}: that {found}")
    path = find(argv[0], cwd=cwd, environ=environ)
    try:
        return spawn(
            argv,
            executable=path,
            cwd=str(cwd),  # appears unchanged in an error's filename
            env=environ,
            stdin=subprocess.PIPE if stdin is None else stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
    except OSError as trouble:
        raise cannot_start(_words(trouble, argv, path, cwd), trouble) from trouble
    except ValueError as trouble:  # a null byte in an argument, or "=" in a variable's name
        raise CannotStart(f"cannot start {argv[0]}: {trouble}") from trouble


def cannot_start(because: str, trouble: OSError) -> CannotStart:
    """The refusal that `trouble` stands for, in the words `because`."""
    return CannotStart(because, is_transient=trouble.errno in TRANSIENT)


def find(program: str, *, cwd: Path, environ: Mapping[str, str]) -> Path:
    """The file that `program` means, as a shell in `cwd` with `environ` would find it.

    Raises:
        CannotStart: There is none, or it cannot be executed.
    """
    if not program:
        raise CannotStart("cannot start a program without a name", 127)
    if "/" in program:
        places = [cwd / program]
    else:
        folders = environ.get("PATH", os.defpath).split(os.pathsep)
        places = [cwd / folder / program for folder in folders]
    because = "no such file" if "/" in program else "not found on the PATH"
    # With os.path, which returns False without permission: an unreadable folder of the PATH must
    # not end the search.
    isdir, isfile, exists = os.path.isdir, os.path.isfile, os.path.exists
    # Report the first match that cannot be executed, unless a later folder has one that can.
    for place in reversed(places):
        if isdir(place):
            because = f"{place} is a folder"
        elif os.path.islink(place) and not exists(place):  # noqa: PTH114 -- as above
            because = f"{place} is a link to a file that does not exist"
        elif exists(place) and not os.access(place, os.X_OK):
            because = f"{place} is not executable; chmod +x makes it so"
    for place in places:
        if isfile(place) and os.access(place, os.X_OK):
            return place
    raise CannotStart(
        f"cannot start {program}: {because}", 126 if any(map(exists, places)) else 127
    )


def _words(trouble: OSError, argv: Sequence[str], path: Path, cwd: Path) -> str:
    """Why the system refused to start it, in words."""
    name = argv[0]
    if trouble.filename == str(cwd):
        return f"cannot start {name} in {cwd}: {trouble.strerror}"
    if trouble.errno == errno.E2BIG:
        longest = max(len(os.fsencode(word)) for word in argv)
        return (
            f"cannot start {name}: its arguments and environment are too long for this system "
            f"(the longest argument has {longest} bytes); give a long prompt on stdin"
        )
    if trouble.errno == errno.ENOEXEC:
        return (
            f"cannot start {name}: {path} is neither a program for this machine "
            f"nor a script that begins with #!"
        )
    interpreter = _interpreter(path)
    if trouble.errno == errno.ENOENT:
        # The file exists, so its interpreter is missing.
        missing = interpreter or "the loader it was linked for"
        return f"cannot start {name}: {path} needs {missing}, which does not exist"
    if trouble.errno == errno.EACCES and interpreter:
        return f"cannot start {name}: {path} needs {interpreter}, which is not executable"
    return f"cannot start {name}: {trouble.strerror or trouble}"


def _interpreter(path: Path) -> str:
    """What the first line of a script names; empty for anything else."""
    try:
        with path.open("rb") as file:
            first = file.read(256)
    except OSError:
        return ""
    words = first[2:].split(b"\n", 1)[0].split() if first.startswith(b"#!") else []
    return os.fsdecode(words[0]) if words else ""
