"""Sets a tree aside and gives it back, until it is killed."""

from __future__ import annotations

import sys

from mulligan.run import git


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def main() -> None:
    folder, mode, run = sys.argv[1:]
    tree = git.Tree.find(folder)
    say("begun")
    git.recover(tree, run)
    aside = git.prepare(tree, mode, run, words="killed on the way")  # type: ignore[arg-type]
    say("prepared")
    if aside is not None:
        git.finish(tree, aside)
        say("aside")
        git.give_back(tree, aside)
    say("done")


if __name__ == "__main__":
    main()
