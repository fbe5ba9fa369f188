"""A clean tree for every retry of a run (R-P5).

What the run has changed is set aside before an attempt that is not its first, in the way that its
user chose; a stash is given back after it. Nothing is lost on the way: what conflicts stays set
aside, and the run says where.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.text import presentable
from .git import give_back, record_baseline, recover, set_aside
from .git.refs import load_all, load_baseline

if TYPE_CHECKING:
    from .git import Tree
    from .git.record import Mode

__all__ = ("Tidy",)


class Tidy:
    """Cleans a tree before retries.

    Args:
        tree: The tree.
        mode: ``commit``, ``stash`` or ``snapshot``.
        run: Whose changes they are.
        prefix: Stands before the message of a commit.
        is_for_restarts_only: Whether a session that goes on finds the tree as it left it.
    """

    def __init__(
        self,
        tree: Tree,
        mode: Mode,
        run: str,
        *,
        prefix: str = "mulligan: ",
        is_for_restarts_only: bool = False,
    ) -> None:
        self._tree, self._run, self._prefix = tree, run, prefix
        self._mode: Mode = mode
        self._is_for_restarts_only = is_for_restarts_only

    def begin(self) -> list[str]:
        """The run begins, or goes on after a crash; what there is to say about that."""
        if load_baseline(self._tree, self._run) is None:
            record_baseline(self._tree, self._run)
            return []
        caught = recover(self._tree, self._run)
        return [
            f"git: finished setting aside {len(each.moves)} files, which a crash had cut short"
            for each in caught.finished
        ]

    def before(self, words: str, *, is_restart: bool) -> list[str]:
        """An attempt that is not the first is about to be made; what there is to say about that.

        Raises:
            GitError: The tree cannot be cleaned; nothing is lost.
        """
        if self._is_for_restarts_only and not is_restart:
            return []
        aside = set_aside(self._tree, self._mode, self._run, words=words, prefix=self._prefix)
        if aside is None:
            return []
        count = f"{len(aside.moves)} file{'s' if len(aside.moves) != 1 else ''}"
        done = {
            "commit": f"committed {count} as {aside.made[:10]}",
            "stash": f"set {count} aside for the retry",
            "snapshot": f"set {count} aside; mulligan git restore {self._run} gives them back",
        }[self._mode]
        left = [f"git: left {presentable(each.path)}: {each.reason}" for each in aside.left]
        return [f"git: {done}", *left]

    def after(self) -> list[str]:
        """The attempt has ended; what there is to say about that."""
        if self._mode != "stash":
            return []
        said = []
        # A crash may have left more than one. The newest first: an older one yields to it.
        for aside in reversed(load_all(self._tree, self._run)):
            if (aside.mode, aside.state) != ("stash", "aside"):
                continue
            given = give_back(self._tree, aside, is_partial=True)
            said += [
                f"git: {presentable(each.path)} was changed by the retry as well; what was set "
                f"aside is in {aside.ref}, and mulligan git restore {self._run} gives it back"
                for each in given.conflicts
            ]
        return said
