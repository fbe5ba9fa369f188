"""Changes that the page can make: each is a `mulligan` command in a process of its own.

So a button does what the command does, with the same checks and messages, and user code that a
replay imports never runs in the dashboard's process. Names are passed as arguments of their own
behind ``--``: none can become an option.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from threading import Lock
from time import monotonic, sleep
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from ..core.redaction import clean, presentable
from ..errors import SettingError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ("TOKEN", "ActionResult", "Actions")

# Seconds that a change may take, and after which a resumed run counts as started.
_PATIENCE, _STARTED = 20.0, 1.5

# The exit code of a run that is parked, or limited beyond its horizon.
_PARKED = 75

# The environment variable for a token that stays the same.
TOKEN = "MULLIGAN_DASHBOARD_TOKEN"  # noqa: S105 -- its name

# The longest word that is passed on, and how much of what a command said is read.
_LONGEST, _SAID = 300, 8_192


class ActionResult(NamedTuple):
    """What came of a change."""

    is_done: bool
    said: str  # by the command
    command: str  # what a user would have typed


class Actions:
    """Runs the commands that change something.

    `store` is the address of the guards' store, `app` the module with the functions that dead
    letters are replayed with; both may be empty.
    """

    def __init__(self, store: str = "", app: str = "") -> None:
        self._store, self._app = store, app
        self._lock = Lock()
        self._children: list[subprocess.Popen[bytes]] = []

    def do(self, name: str, given: Mapping[str, Any]) -> ActionResult:
        """Make a change, and wait for it; a run that was resumed goes on by itself.

        Raises:
            SettingError: There is no such action, or its arguments are invalid.
        """
        self.reap()
        match name:
            case "cancel":
                return self._run("cancel", "--", _word(given, "run"))
            case "resume" | "wake":
                now = ("--now",) if name == "wake" else ()
                run = _word(given, "run")
                return self._start("resume", *now, "--park", "exit", "--", run)
            case "block":
                because = _word(given, "because", "blocked from the dashboard")
                options = ("--because", because, *self._about(given))
                return self._run("block", *options, "--", _word(given, "target"))
            case "allow" | "reset":
                return self._run(name, *self._about(given), "--", _word(given, "target"))
            case "replay":
                app = ("--app", self._app) if self._app else ()
                return self._run("dead", "replay", *app, "--", _word(given, "letter"))
            case _:
                raise SettingError(f"no action {clean(name, 40)!r}")

    def reap(self) -> None:
        """Collect processes that have ended."""
        with self._lock:
            self._children = [each for each in self._children if each.poll() is None]

    def _about(self, given: Mapping[str, Any]) -> tuple[str, ...]:
        scope = _word(given, "scope", "")
        return ("--scope", scope) if scope else ()

    def _run(self, *words: str) -> ActionResult:
        with tempfile.TemporaryFile() as printed:
            # By the environment: other users see the arguments, and with them a password.
            store = {"MULLIGAN_STORE": self._store} if self._store else {}
            code, said = self._until(words, _PATIENCE, printed, store)
            printed.seek(0)
            said = said or printed.read(_SAID)
        if code is None:
            said = b"it takes longer than expected; the list shows when it is done"
        return _result(words, said, is_done=code in {None, 0})

    def _start(self, *words: str) -> ActionResult:
        code, said = self._until(words, _STARTED, subprocess.DEVNULL, {})
        return _result(words, said, is_done=code in {None, 0, _PARKED})

    def _until(
        self,
        words: tuple[str, ...],
        patience: float,
        stdout: int | IO[bytes],
        more: Mapping[str, str],
    ) -> tuple[int | None, bytes]:
        """Start a command, and wait so long for it: its exit code, and its words on stderr.

        One that takes longer goes on, and its code is None: a replay that is killed in the middle
        may have been delivered.
        """
        # An agent that is resumed must not be able to press the buttons itself.
        environ = {name: each for name, each in os.environ.items() if name != TOKEN} | dict(more)
        # Its words go to a file: a pipe would end with the dashboard, and the run with the pipe.
        with tempfile.TemporaryFile() as said:
            child = subprocess.Popen(  # noqa: S603 -- our own command, arguments apart
                # -P: a module of the same name in the working folder is not imported.
                [sys.executable, "-P", "-m", "mulligan", *words],
                env=environ,
                stdin=subprocess.DEVNULL,
                stdout=stdout,
                stderr=said,
                start_new_session=True,  # Ctrl-C on the dashboard is not meant for it
            )
            with self._lock:
                self._children.append(child)
            ends_at = monotonic() + patience
            while child.poll() is None and monotonic() < ends_at:
                sleep(0.05)
            said.seek(0)
            return child.returncode, said.read(_SAID)


def _word(given: Mapping[str, Any], name: str, default: str | None = None) -> str:
    value = given.get(name, default)
    if not isinstance(value, str) or len(value) > _LONGEST or not value.isprintable():
        raise SettingError(f"{name} needs a text of at most {_LONGEST} characters")
    if default is None and not value.strip():
        raise SettingError(f"{name} must not be empty")
    return value


def _result(words: tuple[str, ...], said: bytes, *, is_done: bool = True) -> ActionResult:
    text = said.decode("utf-8", "replace").replace("error: ", "").replace("\n\nhint: ", "; ")
    shown = " ".join(each for each in words if each != "--")
    return ActionResult(is_done, presentable(text, 600), presentable(f"mulligan {shown}", 300))
