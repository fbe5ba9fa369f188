"""Sets a tree aside and gives it back, or lends trees and takes them back, until it is killed."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from mulligan.run import git


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def siblings(tree: git.Tree, run: str) -> None:
    """Two agents in trees of their own, at once; done again, they leave the same."""

    def work(agent: str) -> None:
        lent = git.add_worktree(tree, run, agent)
        say("prepared")
        folder = Path(lent.folder) / agent
        folder.mkdir(exist_ok=True)
        for number in range(60):
            (folder / f"{number}.txt").write_text(f"{number} by {agent}\n")
        git.merge_worktree(lent)
        say("aside")

    threads = [threading.Thread(target=work, args=(agent,)) for agent in ("one", "two")]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    say("done")


def main() -> None:
    folder, mode, run = sys.argv[1:]
    tree = git.Tree.find(folder)
    say("begun")
    if mode == "worktree":
        siblings(tree, run)
        return
    git.recover(tree, run)
    aside = git.prepare(tree, mode, run, words="killed on the way")  # type: ignore[arg-type]
    say("prepared")
    if aside is not None:
        git.finish(tree, aside)
        say("aside")
        git.restore_changes(tree, aside)
    say("done")


if __name__ == "__main__":
    main()
