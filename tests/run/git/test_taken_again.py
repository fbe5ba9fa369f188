"""What an agent does after its tree was taken back is taken as well, and nothing stands for it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from mulligan.errors import GitRefused
from mulligan.run import git
from mulligan.run.git import add_worktree, merge_worktree

pytestmark = pytest.mark.real


@pytest.fixture
def lent(repo):
    return add_worktree(repo.tree, "r1", "one")


def at(repo, lent):
    return type(repo)(Path(lent.folder))


def test_who_goes_on_after_a_tree_was_taken_back_is_lent_another(repo, lent):
    at(repo, lent).write("half.txt", "half\n")
    merge_worktree(lent)
    own = at(repo, add_worktree(repo.tree, "r1", "one"))
    assert own.read("half.txt") == "half\n"
    own.write("whole.txt", "whole\n")
    taken = merge_worktree(lent)
    assert taken.given is not None
    assert taken.given.paths == ("whole.txt",)
    assert repo.read("whole.txt") == "whole\n"
    assert not own.folder.exists()


def test_what_is_done_in_a_folder_that_stayed_is_taken_back_as_well(repo, lent):
    """The first half was in the tree, the second went with the folder, and all was well."""
    own = at(repo, lent)
    own.write(".gitignore", "build/\n")
    own.write("build/o", "made\n")
    own.write("half.txt", "half\n")
    assert merge_worktree(lent).folder == lent.folder
    add_worktree(repo.tree, "r1", "one")
    assert git.set_aside(own.tree, "snapshot", lent.key) is None
    own.write("whole.txt", "whole\n")
    shutil.rmtree(own.folder / "build")
    taken = merge_worktree(lent)
    assert taken.given is not None
    assert taken.given.paths == ("whole.txt",)
    assert (repo.read("half.txt"), repo.read("whole.txt")) == ("half\n", "whole\n")
    assert not own.folder.exists()


def test_what_was_edited_in_a_folder_that_stayed_is_no_part_of_the_next_baseline(repo, lent):
    own = at(repo, lent)
    own.write(".env", "KEY=1")
    own.write("a.txt", "done\n")
    merge_worktree(lent)
    own.write("a.txt", "better, by its user\n")
    add_worktree(repo.tree, "r1", "one")
    merge_worktree(lent)
    assert repo.read("a.txt") == "better, by its user\n"


def test_later_work_is_kept_beside_the_branch_of_the_earlier(repo, lent):
    at(repo, lent).write("a.txt", "first\n")
    assert merge_worktree(lent, is_kept=True).branch == "mulligan/r1/one"
    at(repo, add_worktree(repo.tree, "r1", "one")).write("a.txt", "second\n")
    assert merge_worktree(lent, is_kept=True).branch == "mulligan/r1/one-2"
    assert repo.git("show", "mulligan/r1/one:a.txt") == "first\n"
    assert repo.git("show", "mulligan/r1/one-2:a.txt") == "second\n"


def test_what_was_improved_before_anything_was_given_is_given(repo, lent):
    """The delivery was refused in the middle of a merge, and the old version came after it."""
    own = at(repo, lent)
    own.write("new.txt", "by the agent\n")
    merging = repo.write(".git/MERGE_HEAD", repo.git("rev-parse", "HEAD"))
    with pytest.raises(GitRefused, match="a merge is under way"):
        merge_worktree(lent)
    own.write("new.txt", "better, by its user\n")
    own.write("more.txt", "more\n")
    merging.unlink()
    merge_worktree(lent)
    assert (repo.read("new.txt"), repo.read("more.txt")) == ("better, by its user\n", "more\n")
    assert [each.state for each in git.load_all(repo.tree, "r1")] == ["returned"]


def test_a_folder_in_which_somebody_still_writes_is_not_removed(repo, lent, monkeypatch):
    own = at(repo, lent)
    own.write("a.txt", "done\n")
    replace = os.replace

    def meanwhile(new, place):
        own.write("a.txt", "done later\n")
        replace(new, place)

    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", meanwhile)
        taken = merge_worktree(lent)
    assert taken.folder == lent.folder
    assert [(each.path, each.reason) for each in taken.left] == [
        ("a.txt", "it was changed meanwhile")
    ]
    assert repo.read("a.txt") == "done\n"
    assert merge_worktree(lent).folder == ""
    assert repo.read("a.txt") == "done later\n"


def test_work_trees_of_the_users_own_are_known_to_git_afterwards(repo, tmp_path):
    """A drive that was not mounted: what was staged on it was lost, and commits on no branch."""
    drive = tmp_path / "drive"
    repo.git("worktree", "add", "--quiet", "--detach", str(drive))
    theirs = type(repo)(drive)
    theirs.write("staged", "staged\n")
    theirs.git("add", "staged")
    away = drive.rename(tmp_path / "unmounted")
    lent = add_worktree(repo.tree, "r1", "one")
    at(repo, lent).write("a.txt", "done\n")
    merge_worktree(lent)
    away.rename(drive)
    assert theirs.git("status", "--short") == "A  staged\n"
    assert lent.folder not in repo.git("worktree", "list")


def test_who_is_killed_while_it_removes_a_tree_misses_none(repo, lent):
    folder = Path(lent.folder)
    folder.rename(folder.with_name(".gone-0a1b2c3d-one"))  # and here the process dies
    assert merge_worktree(lent) == git.WorktreeMerge()
    assert not folder.parent.exists()
    assert add_worktree(repo.tree, "r1", "one") == lent
    folder.rename(folder.with_name(".gone-0a1b2c3d-one"))
    assert add_worktree(repo.tree, "r1", "one") == lent
    assert [each.name for each in folder.parent.iterdir()] == ["one"]


def test_a_conflict_is_one_until_its_branch_is_merged(repo, lent):
    at(repo, lent).write("a.txt", "by one\n")
    repo.write("a.txt", "by its user\n")
    for _ in range(2):
        kept = merge_worktree(lent)
        assert kept.given is not None
        assert [(each.path, each.reason) for each in kept.given.conflicts] == [
            ("a.txt", "it was changed since")
        ]
    repo.git("commit", "--quiet", "--all", "--message", "mine")
    repo.git("merge", "--quiet", "--strategy=ours", "mulligan/r1/one")
    assert merge_worktree(lent) == git.WorktreeMerge(branch="mulligan/r1/one")


def test_a_conflict_is_none_once_its_branch_is_deleted(repo, lent):
    at(repo, lent).write("a.txt", "by one\n")
    repo.write("a.txt", "by its user\n")
    merge_worktree(lent)
    repo.git("branch", "--quiet", "-D", "mulligan/r1/one")
    assert merge_worktree(lent) == git.WorktreeMerge()


def test_later_work_that_comes_does_not_settle_an_earlier_conflict(repo, lent):
    at(repo, lent).write("a.txt", "by one\n")
    repo.write("a.txt", "by its user\n")
    merge_worktree(lent)
    at(repo, add_worktree(repo.tree, "r1", "one")).write("more.txt", "more\n")
    for _ in range(2):
        taken = merge_worktree(lent)
        assert taken.given is not None
        assert ([each.path for each in taken.given.conflicts], taken.branch) == (
            ["a.txt"],
            "mulligan/r1/one",
        )
        assert repo.read("more.txt") == "more\n"
    repo.git("branch", "--quiet", "-D", "mulligan/r1/one")
    taken = merge_worktree(lent)
    assert taken.given is not None
    assert taken.given.is_whole
