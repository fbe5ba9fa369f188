"""A clean tree for every retry of a run (R-P5).

What the run has changed is set aside before an attempt that is not its first, in the way that its
user chose; a stash is given back after it. Nothing is lost on the way: what conflicts stays set
aside, and the run says where.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...core.redaction import presentable
from ..git import give_back, interruptible, record_baseline, recover, set_aside
from ..git.objects import reading
from ..git.refs import load_all, load_baseline
from .last_message import last_words

if TYPE_CHECKING:
    from pathlib import Path

    from ..git import SetAside, Tree
    from ..git.record import Mode
    from ..journal.state import RunState
    from ..process.stop import Stop

__all__ = ("TreeCleaner",)


class TreeCleaner:
    """Cleans a tree before retries.

    Args:
        tree: The tree.
        mode: ``commit``, ``stash`` or ``snapshot``.
        run: Whose changes they are.
        since: Whose baseline tells them from the user's; the run's own by default.
        prefix: Stands before the message of a commit.
        is_for_restarts_only: Whether a session that goes on finds the tree as it left it.
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
    def begins_anew(self) -> bool:
        """Whether a retry begins anew.

        Nothing of a snapshot comes back by itself: a session that goes on would miss its own work.
        """
        return self._mode == "snapshot" and not self._is_for_restarts_only

    def before(self, state: RunState, log: Path, stop: Stop, *, is_restart: bool) -> list[str]:
        """An attempt is about to be made; what there is to say about that.

        Args:
            state: Where the run stands.
            log: What the last attempt has printed.
            stop: Set to interrupt it.
            is_restart: Whether the attempt starts anew, and knows nothing of the one before.

        Raises:
            GitError: The tree cannot be cleaned; nothing is lost.
            GitStopped: We were told to stop; whoever goes on begins here.
        """
        if not state.attempts and self._is_for_restarts_only:
            return []  # lent a moment ago, with its baseline
        with interruptible(stop), reading(self._tree):
            said = self._begun()
            if not state.attempts or (self._is_for_restarts_only and not is_restart):
                return said
            # What is to be mended must be there.
            if state.prompt and self._mode != "commit":
                return said
            failure = state.ended[-1].message if state.ended else ""
            words = last_words(log, failure) if self._mode == "commit" else ""
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
        """The attempt has ended; what there is to say about that."""
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
        # A crash may have left more than one. The newest first: an older one yields to it.
        for aside in reversed(load_all(self._tree, self._run)):
            if (aside.mode, aside.state) != ("stash", "aside"):
                continue
            given = give_back(self._tree, aside, is_partial=True)
            said += [
                f"git: {presentable(each.path)} was changed by the retry as well; what was set "
                f"aside is in {aside.ref}, and mulligan git restore {self._run} restores it"
                for each in given.conflicts
            ]
        return said


def _files(aside: SetAside) -> str:
    return f"{len(aside.moves)} file{'s' if len(aside.moves) != 1 else ''}"
