"""A clean tree for every retry of a run (R-P5).

Before each retry the run's changes are set aside, in the mode that the user chose; a stash is given
back after the attempt. Changes that conflict stay set aside, and the run says where.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...core.redaction import presentable
from ..git import interruptible, record_baseline, recover, restore_changes, set_aside
from ..git.refs import load_all, load_baseline, reading
from .output import tail

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from ..git import SetAside, Tree
    from ..git.record import Mode
    from ..journal.state import RunState
    from ..process.stop import Stop

__all__ = ("TreeCleaner", "last_message")


# Event types whose text is a tool's, the user's or the program's, not the agent's.
_NOT_SAID = frozenset({
    *("user", "tool_result", "tool_use", "tool", "system", "error", "result", "thinking"),
    *("reasoning", "command_execution", "file_change"),
})  # fmt: skip
# More deeply nested JSON is not an event.
_DEEPEST = 8


class TreeCleaner:
    """Cleans a tree before retries.

    Args:
        tree: The tree.
        mode: ``commit``, ``stash`` or ``snapshot``.
        run: Whose changes they are.
        since: Whose baseline tells them from the user's; the run's own by default.
        prefix: Stands before the message of a commit.
        is_for_restarts_only: Whether the tree is left alone when a session is resumed.
    """

    def __init__(
        self,
        tree: Tree,
        mode: Mode,
        run: str,
        *,
        since: str = "",
        prefix: str = "mulligan: ",
        is_for_restarts_only: bool = False,
    ) -> None:
        self._tree, self._run, self._prefix = tree, run, prefix
        self._mode: Mode = mode
        self._since = since or run
        self._is_for_restarts_only = is_for_restarts_only

    @property
    def always_restarts(self) -> bool:
        """Whether a retry starts over.

        A snapshot is not given back, so a resumed session would miss its own work.
        """
        return self._mode == "snapshot" and not self._is_for_restarts_only

    def before(self, state: RunState, log: Path, stop: Stop, *, is_restart: bool) -> list[str]:
        """Clean the tree before an attempt; returns remarks for the user.

        Args:
            state: Where the run stands.
            log: What the last attempt has printed.
            stop: Set to interrupt it.
            is_restart: Whether the attempt restarts the program without its session.

        Raises:
            GitError: The tree cannot be cleaned; nothing is lost.
            GitStopped: The stop was set; a resume repeats this step.
        """
        if not state.attempts and self._is_for_restarts_only:
            return []  # a tree just lent, with its baseline
        with interruptible(stop), reading(self._tree):
            said = self._begun()
            if not state.attempts or (self._is_for_restarts_only and not is_restart):
                return said
            # The agent is told to fix its work, so the work must be in the tree.
            if state.prompt and self._mode != "commit":
                return said
            failure = state.ended[-1].message if state.ended else ""
            words = last_message(log, failure) if self._mode == "commit" else ""
            aside = set_aside(
                self._tree,
                self._mode,
                self._run,
                since=self._since,
                words=words,
                prefix=self._prefix,
            )
        if aside is None:
            return said
        count = _files(aside)
        done = {
            "commit": f"committed {count} as {aside.made[:10]}",
            "stash": f"set {count} aside for the retry",
            "snapshot": f"set {count} aside; mulligan git restore {self._run} restores them",
        }[self._mode]
        left = [f"git: left {presentable(each.path)}: {each.reason}" for each in aside.left]
        return [*said, f"git: {done}", *left]

    def after(self, stop: Stop) -> list[str]:
        """Give a stash back after the attempt; returns remarks for the user."""
        if self._mode != "stash":
            return []
        with interruptible(stop), reading(self._tree):
            return [*self._begun(), *self._given_back()]

    def _begun(self) -> list[str]:
        """The run begins, or goes on after a crash."""
        if load_baseline(self._tree, self._since) is None:
            record_baseline(self._tree, self._since)
        caught = recover(self._tree, self._run)
        done = "committed" if self._mode == "commit" else "set aside"
        return [f"git: {done} {_files(each)}, which was interrupted" for each in caught.finished]

    def _given_back(self) -> list[str]:
        said = []
        # A crash may have left more than one. Newest first, so that it wins a conflict.
        for aside in reversed(load_all(self._tree, self._run)):
            if (aside.mode, aside.state) != ("stash", "aside"):
                continue
            given = restore_changes(self._tree, aside, is_partial=True)
            said += [
                f"git: {presentable(each.path)} was changed by the retry as well; what was set "
                f"aside is in {aside.ref}, and mulligan git restore {self._run} restores it"
                for each in given.conflicts
            ]
        return said


def _files(aside: SetAside) -> str:
    return f"{len(aside.moves)} file{'s' if len(aside.moves) != 1 else ''}"


def last_message(log: Path, failure: str = "") -> str:
    """The last text that the agent wrote in an attempt; empty if it wrote none.

    It becomes the message of a commit, so it is not the error that ended the attempt, nor what a
    tool printed, nor the question that the agent was asked.

    Args:
        log: The attempt's log, without the suffix.
        failure: The message that it failed with, which the agent did not say.
    """
    printed, _ = tail(log)
    error = " ".join(failure.split())
    for line in reversed(printed.decode("utf-8", "replace").splitlines()):
        for text in _said(line.strip()):
            words = " ".join(text.split())
            if words and not (error and (words in error or error in words)):
                return words
    return ""


def _said(line: str) -> Iterator[str]:
    """The texts of one line of output, the last first."""
    if not line.startswith("{"):
        yield line
        return
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        return  # half an event
    texts = list(_texts(event, 0))
    for text in reversed(texts):
        yield text.strip().rpartition("\n\n")[2]


def _texts(value: Any, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for each in value:
            yield from _texts(each, depth + 1)
    if not isinstance(value, dict) or {value.get("type"), value.get("role")} & _NOT_SAID:
        return
    for key, each in value.items():
        is_text = key == "text" or (key == "content" and value.get("role") == "assistant")
        if isinstance(each, str) and is_text:
            yield each
        elif isinstance(each, dict | list):
            yield from _texts(each, depth + 1)
