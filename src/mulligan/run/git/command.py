"""How git is called: as a child that can ask nobody anything.

No shell, no prompt, no editor, no pager, no signature, a bound in time. Variables that would point
git elsewhere (``GIT_DIR``, ``GIT_INDEX_FILE`` …) are cleared: a run started from a hook inherits
them. Hooks and file system monitors are programs of the repository's, so they are off unless
they are asked for.
"""

from __future__ import annotations

import os
import signal
import subprocess
import threading
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from ...core.text import presentable
from ...errors import GitError, GitRefused

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

__all__ = ("TIMEOUT", "Answer", "Git", "watched")

# Longer than any of these commands takes on a large tree; a hung network drive ends it.
TIMEOUT = 300.0

_SETTINGS = (
    "core.quotepath=off",
    "core.fsmonitor=false",
    "core.fsync=added,reference",  # what is set aside must outlive a power cut
    "commit.gpgsign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "advice.detachedHead=false",
)
# Nobody is asked anything.
_ALONE = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "false",
    "SSH_ASKPASS": "false",
    "GCM_INTERACTIVE": "never",
    "GIT_EDITOR": "false",
    "GIT_PAGER": "cat",
}
# What we say and hear is meant literally. Hooks are spared these: they have their own habits.
_LITERAL = {
    "LC_ALL": "C",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a git command said."""

    code: int
    out: bytes
    err: bytes

    @property
    def words(self) -> str:
        """Both streams, fit to be shown."""
        return presentable((self.err + b"\n" + self.out).decode("utf-8", "replace"))


@dataclass(frozen=True, slots=True)
class Git:
    """Git in one folder.

    Args:
        folder: Where it runs.
        environment: Variables on top of the caller's, after ``GIT_*`` was cleared.
        nothing: The id that means no object; as long as the repository's ids are.
    """

    folder: str
    environment: tuple[tuple[str, str], ...] = ()
    nothing: str = "0" * 40

    def having(self, **variables: str) -> Git:
        """The same, with these variables: another index, another work tree."""
        return replace(self, environment=(*self.environment, *variables.items()))

    def ask(
        self,
        *arguments: str,
        stdin: bytes = b"",
        timeout: float = TIMEOUT,
        has_hooks: bool = False,
    ) -> Answer:
        """Run a command; its exit code is for the caller to judge.

        Raises:
            GitError: It took longer than `timeout` seconds; it and its children were ended.
            GitRefused: There is no git.
        """
        # Files, not pipes: a hook may leave something running that holds the pipes open for ever.
        with TemporaryFile() as given, TemporaryFile() as out, TemporaryFile() as err:
            given.write(stdin)
            given.seek(0)
            child = self.start(*arguments, has_hooks=has_hooks, streams=(given, out, err))
            with watched(child, timeout) as is_late:
                code = child.wait()
            if is_late.is_set():
                raise GitError(f"git {arguments[0]} took longer than {timeout:g} s and was ended")
            out.seek(0)
            err.seek(0)
            return Answer(code=code, out=out.read(), err=err.read())

    def start(
        self,
        *arguments: str,
        has_hooks: bool = False,
        streams: tuple[Any, Any, Any] = (subprocess.PIPE, subprocess.PIPE, subprocess.DEVNULL),
    ) -> subprocess.Popen[bytes]:
        """The running command, in a process group of its own."""
        settings = _SETTINGS if has_hooks else (*_SETTINGS, f"core.hooksPath={os.devnull}")
        options = [word for setting in settings for word in ("-c", setting)]
        try:
            return subprocess.Popen(  # noqa: S603 -- an argv of ours, no shell
                ["git", *options, *arguments],  # noqa: S607 -- the user's git is the one on the PATH
                cwd=self.folder,
                env=_environment(self.environment, has_hooks=has_hooks),
                stdin=streams[0],
                stdout=streams[1],
                stderr=streams[2],
                start_new_session=True,
            )
        except FileNotFoundError as trouble:
            if not os.path.isdir(self.folder):
                raise GitRefused(f"{presentable(self.folder)}: no such folder") from trouble
            raise GitRefused("no git on the PATH; install git, or leave git recovery off") from None

    def run(self, *arguments: str, stdin: bytes = b"", timeout: float = TIMEOUT) -> bytes:
        """What the command printed.

        Raises:
            GitError: It failed, with what it said.
        """
        answer = self.ask(*arguments, stdin=stdin, timeout=timeout)
        if answer.code:
            raise GitError(
                f"git {arguments[0]} failed with exit code {answer.code}: {answer.words}",
                answer.words,
            )
        return answer.out

    def line(self, *arguments: str) -> str:
        """What the command printed, without the newline at its end; a path may contain others."""
        return os.fsdecode(self.run(*arguments).removesuffix(b"\n"))

    def fields(self, *arguments: str, stdin: Iterable[str] = ()) -> list[str]:
        """NUL-separated output, for NUL-separated input."""
        asked = b"".join(os.fsencode(each) + b"\0" for each in stdin)
        return [os.fsdecode(each) for each in self.run(*arguments, stdin=asked).split(b"\0")[:-1]]


@contextmanager
def watched(child: subprocess.Popen[bytes], timeout: float) -> Iterator[threading.Event]:
    """End the command when its time is over, or when its user is interrupted; whether it was late.

    A timer, and not `wait(timeout)`: that one polls, and every command would be late by a nap.
    """
    is_late = threading.Event()

    def late() -> None:
        is_late.set()
        end(child)

    timer = threading.Timer(timeout, late)
    timer.daemon = True
    timer.start()
    try:
        yield is_late
    finally:
        timer.cancel()
        if child.returncode is None:
            end(child)
            child.wait()


def end(child: subprocess.Popen[bytes]) -> None:
    """End a command with everything it started: a hook's children outlive it otherwise."""
    if child.returncode is None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(child.pid, signal.SIGKILL)


def _environment(extra: Iterable[tuple[str, str]], *, has_hooks: bool) -> Mapping[str, str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    if not has_hooks:
        kept.pop("LANGUAGE", None)
        kept.update(_LITERAL)
    return {**kept, **_ALONE, **dict(extra)}
