"""Runs git as a child that cannot ask questions, with a time limit.

No shell, no prompt, no editor, no pager, no signature. Variables that would point git elsewhere
(``GIT_DIR``, ``GIT_INDEX_FILE`` …) are cleared: a run started from a hook inherits them. Those that
name the author are kept. Hooks and file system monitors are programs of the repository's, so they
are off unless a caller wants them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, replace
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from ...core.redaction import presentable
from ...errors import GitError, GitRefused, GitStopped
from ..process.spawn import spawn

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ..process.stop import Stop

__all__ = (
    "TIMEOUT",
    "CommandTimer",
    "Git",
    "check_stop",
    "inherited_locks",
    "interruptible",
    "null_terminated",
    "pause",
)

# Longer than any of these commands takes on a large tree; a hung network drive ends it.
TIMEOUT = 300.0

# Seconds between two looks for a stop, and seconds that git has after SIGINT and after SIGTERM, on
# which it removes its locks.
_POLL, _GRACE = 0.1, 0.3

_SETTINGS = (
    "core.quotepath=off",
    "core.fsmonitor=false",
    "core.fsync=committed,reference",  # what is set aside must survive a power failure
    "core.fsyncMethod=batch",
    "commit.gpgsign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
)
_NO_PROMPTS = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "GCM_INTERACTIVE": "never",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
}
# The committer's identity, or the configuration that contains it.
_IDENTITY = {
    *("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM"),
    *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"),
    *("GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE"),
}
# Literal pathspecs and fixed output for our own commands; not set for hooks.
_LITERAL = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
}


class _Watch(NamedTuple):
    """A stop that counts only requests made after the block began."""

    stop: Stop
    count_before: int

    @property
    def is_stopped(self) -> bool:
        return self.stop.count > self.count_before


_watch: ContextVar[_Watch | None] = ContextVar("watch", default=None)


@contextmanager
def interruptible(stop: Stop) -> Iterator[None]:
    """Let `stop` interrupt every git command and every wait in this block.

    An interrupted block leaves what a crash would leave, and `recover` finishes it. A block that
    starts after the stop cleans up; only a further request interrupts it.

    Raises:
        GitStopped: A stop was requested.
    """
    token = _watch.set(_Watch(stop, stop.count))
    try:
        yield
    finally:
        _watch.reset(token)


def check_stop(what: str) -> None:
    """Raise `GitStopped` if a stop was requested."""
    watch = _watch.get()
    if watch is not None and watch.is_stopped:
        raise GitStopped(f"{what} was interrupted, and can be continued")


def pause(seconds: float, what: str) -> None:
    """Wait a moment for another process; raises `GitStopped` if a stop is requested."""
    check_stop(what)
    watch = _watch.get()
    if watch is None or watch.count_before:
        time.sleep(seconds)
    else:
        watch.stop.wait(seconds)
    check_stop(what)


#: Descriptors of locks that every git process of this context inherits. The kernel keeps a lock
#: until the last process that has it open exits. So after Mulligan was killed, the lock stays until
#: the git that it started has ended, which may still move a reference or write an index.
inherited_locks: ContextVar[tuple[int, ...]] = ContextVar("inherited_locks", default=())


@dataclass(frozen=True, slots=True, kw_only=True)
class GitOutput:
    """Result of a git command."""

    code: int
    out: bytes
    err: bytes

    @property
    def text(self) -> str:
        """Both streams, cleaned for display."""
        return presentable((self.err + b"\n" + self.out).decode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class Git:
    """Git in one folder."""

    folder: str
    environment: tuple[tuple[str, str], ...] = ()  # on top of the process's
    null_id: str = "0" * 40  # means no object; as long as the repository's ids are

    def with_variables(self, **variables: str) -> Git:
        """A copy with further variables: another index, another work tree."""
        return replace(self, environment=(*self.environment, *variables.items()))

    def ask(
        self,
        *arguments: str,
        stdin: bytes = b"",
        timeout: float = TIMEOUT,
        has_hooks: bool = False,
    ) -> GitOutput:
        """Run a command; the caller checks the exit code.

        Raises:
            GitError: It took longer than `timeout` seconds; it and its children were ended.
            GitStopped: A stop was requested; it and its children were ended.
            GitRefused: There is no git, or no such folder.
        """
        what = f"git {arguments[0]}"
        check_stop(what)
        # Files, not pipes: a hook may leave a process that keeps the pipes open for ever.
        with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
            given.write(stdin)
            given.seek(0)
            child = self.start(*arguments, has_hooks=has_hooks, streams=(given, out, err))
            with CommandTimer(child, timeout) as timer:
                code = child.wait()
            if timer.is_late:
                raise GitError(f"{what} took longer than {timeout:g} s and was stopped")
            if code:
                check_stop(what)
            out.seek(0)
            err.seek(0)
            return GitOutput(code=code, out=out.read(), err=err.read())

    def start(
        self,
        *arguments: str,
        has_hooks: bool = False,
        streams: tuple[Any, Any, Any] = (subprocess.PIPE, subprocess.PIPE, subprocess.DEVNULL),
    ) -> subprocess.Popen[bytes]:
        """Start a command in a process group of its own."""
        settings = _SETTINGS if has_hooks else (*_SETTINGS, f"core.hooksPath={os.devnull}")
        options = [word for setting in settings for word in ("-c", setting)]
        environ = {
            name: value
            for name, value in os.environ.items()
            if name in _IDENTITY or not name.startswith("GIT_")
        }
        if not has_hooks:
            environ.pop("LANGUAGE", None)
            environ.update(_LITERAL)
        try:
            return spawn(
                ["git", *options, *arguments],
                cwd=self.folder,
                env={**environ, **_NO_PROMPTS, **dict(self.environment)},
                stdin=streams[0],
                stdout=streams[1],
                stderr=streams[2],
                # A hook may leave a process that would keep the lock for ever.
                pass_fds=() if has_hooks else inherited_locks.get(),
            )
        except FileNotFoundError as trouble:
            if not os.path.isdir(self.folder):
                raise GitRefused(f"{presentable(self.folder)}: no such folder") from trouble
            raise GitRefused("no git on the PATH; install git, or leave git recovery off") from None

    def run(self, *arguments: str, stdin: bytes = b"") -> bytes:
        """What the command printed; raises `GitError` with its message if it failed."""
        done = self.ask(*arguments, stdin=stdin)
        if done.code:
            message = f"git {arguments[0]} failed with exit code {done.code}: {done.text}"
            raise GitError(message, done.text)
        return done.out

    def line(self, *arguments: str) -> str:
        """What the command printed, without the newline at its end; a path may contain others."""
        return os.fsdecode(self.run(*arguments).removesuffix(b"\n"))

    def fields(self, *arguments: str) -> list[str]:
        """NUL-terminated fields that the command printed."""
        return [os.fsdecode(each) for each in self.run(*arguments).split(b"\0")[:-1]]


def null_terminated(paths: Iterable[str]) -> bytes:
    """Paths as git reads them with ``-z --stdin``."""
    return b"".join(os.fsencode(path) + b"\0" for path in paths)


class CommandTimer:
    """Stops a command at its timeout, or when a stop is requested; kills it if the block raises.

    Uses a thread because `wait(timeout)` polls, which would delay every command.
    """

    def __init__(self, child: subprocess.Popen[bytes], timeout: float = TIMEOUT) -> None:
        self._child, self._timeout, self._watch = child, timeout, _watch.get()
        #: When its timeout began, on the monotonic clock; set again by each question to it.
        self.began = time.monotonic()
        #: Whether it was stopped at its timeout.
        self.is_late = False
        self._is_done = threading.Event()
        self._thread = threading.Thread(target=self._watch_child, name="git", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._child.returncode is None:
            self._signal(signal.SIGKILL)
            self._child.wait()
        self._is_done.set()
        self._thread.join()

    def _watch_child(self) -> None:
        while not self._is_done.wait(_POLL):
            self.is_late = time.monotonic() > self.began + self._timeout
            if self.is_late or (self._watch is not None and self._watch.is_stopped):
                break
        else:
            return
        for number in (signal.SIGINT, signal.SIGTERM):
            self._signal(number)
            if self._is_done.wait(_GRACE):
                break
        self._signal(signal.SIGKILL)  # children of a hook may ignore SIGTERM

    def _signal(self, number: int) -> None:
        """Signal the command's whole process group, because children of hooks would survive."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self._child.pid, number)
