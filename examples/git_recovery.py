"""A clean tree for a second attempt, and nothing lost: git recovery alone, without a run.

Run: python examples/git_recovery.py
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from mulligan.run import git


def make_repository(folder: Path) -> None:
    (folder / "parser.py").write_text("def parse(text):\n    return text.split()\n")
    for line in (
        "init --quiet --initial-branch main",
        "config user.name Ada",
        "config user.email ada@example.com",
        "add parser.py",
        "commit --quiet --message first",
    ):
        subprocess.run(["git", *line.split()], cwd=folder, check=True)  # noqa: S603, S607


def status(folder: Path) -> str:
    done = subprocess.run(
        ["git", "status", "--short"],  # noqa: S607
        cwd=folder,
        check=True,
        capture_output=True,
        text=True,
    )
    return ", ".join(done.stdout.split("\n")[:-1]) or "clean"


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_repository(folder)
        (folder / "notes.txt").write_text("mine, and not committed\n")

        tree = git.Tree.find(folder)
        git.record_baseline(tree, "night-1")
        print(f"before the run        {status(folder)}")

        (folder / "parser.py").write_text("def parse(text):\n    return text.split(',')\n")
        (folder / "draft.py").write_text("# half a test\n")
        (folder / ".env").write_text("API_KEY=not-a-real-one\n")
        print(f"the agent hit a limit {status(folder)}")

        aside = git.set_aside(tree, "stash", "night-1")
        if aside is None:
            raise SystemExit("there was nothing to set aside")
        print(f"before the retry      {status(folder)}")
        for left in aside.left:
            print(f"    left: {left.path} ({left.reason})")

        (folder / "tests.py").write_text("# what the retry did\n")
        back = git.restore_changes(tree, aside)
        print(f"given back            {status(folder)}")
        print(f"    {len(back.paths)} files, {len(back.conflicts)} conflicts")


if __name__ == "__main__":
    main()
