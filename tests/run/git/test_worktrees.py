"""Agents beside each other have a tree each, and nobody's edits are taken by another."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from mulligan.errors import GitRefused
from mulligan.run import git
from mulligan.run.git import add_worktree, merge_worktree, record_baseline, sharing_problem
from mulligan.run.git.tree_lock import locked
from mulligan.run.git.worktrees import _record_changes

pytestmark = pytest.mark.real


@pytest.fixture
def lent(repo):
    return add_worktree(repo.tree, "r1", "one")


def at(repo, lent):
    return type(repo)(Path(lent.folder))


@pytest.mark.parametrize("mode", ["commit", "stash", "snapshot"])
def test_agents_that_share_a_tree_in_parallel_need_worktree(mode):
    """Others stashed away what a running sibling had just written."""
    assert sharing_problem(mode, is_parallel=True, agents=2) == (
        f"git mode {mode!r} needs a tree for one agent at a time, and 2 run in parallel: "
        "one would set the other's edits aside; use 'worktree'"
    )
    assert sharing_problem(mode, is_parallel=False, agents=2) == ""
    assert sharing_problem(mode, is_parallel=True, agents=1) == ""


@pytest.mark.parametrize("mode", ["worktree", "off"])
def test_worktree_is_for_any_number(mode):
    assert sharing_problem(mode, is_parallel=True, agents=5) == ""


def test_an_agent_sees_the_tree_as_the_user_does(repo):
    repo.write("mine.txt", "my change\n")
    repo.write("notes", "untracked, mine\n", 0o755)
    (repo.folder / "dir/b.txt").unlink()
    repo.write("staged", "staged\n")
    repo.git("add", "staged")
    own = at(repo, add_worktree(repo.tree, "r1", "one"))
    seen = own.seen()
    seen.pop(".git", None)
    assert seen == repo.seen()
    assert own.status() == repo.status()


def test_lending_twice_is_lending_once(repo, lent):
    at(repo, lent).write("a.txt", "begun\n")
    assert add_worktree(repo.tree, "r1", "one") == lent
    assert at(repo, lent).read("a.txt") == "begun\n"


def test_a_tree_that_was_half_made_is_made_again(repo, lent):
    repo.git("update-ref", "-d", "refs/mulligan/r1/agents/one/baseline")
    at(repo, lent).write("half", "x")
    again = add_worktree(repo.tree, "r1", "one")
    assert not at(repo, again).has("half")


def test_two_agents_changes_land_in_the_users_tree(repo):
    tree = repo.tree
    repo.write("mine.txt", "my change\n")
    one, two = add_worktree(tree, "r1", "one"), add_worktree(tree, "r1", "two")
    at(repo, one).write("a.txt", "ONE\ntwo\nthree\nfour\nfive\n")
    at(repo, one).write("new/one.txt", "1\n", 0o755)
    at(repo, two).write("a.txt", "one\ntwo\nthree\nfour\nFIVE\n")
    (Path(two.folder) / "dir/b.txt").unlink()
    first, second = merge_worktree(one), merge_worktree(two)
    assert first.given is not None
    assert first.given.is_whole
    assert second.given is not None
    assert second.given.merged == ("a.txt",)
    assert repo.read("a.txt") == "ONE\ntwo\nthree\nfour\nFIVE\n"
    assert repo.read("new/one.txt") == "1\n"
    assert not repo.has("dir/b.txt")
    assert repo.read("mine.txt") == "my change\n"
    assert len(repo.git("worktree", "list").splitlines()) == 1
    assert not Path(one.folder).exists()
    assert repo.git("branch", "--list").split() == ["*", "main"]


def test_a_conflict_is_kept_on_a_branch_and_touches_nothing(repo):
    tree = repo.tree
    one, two = add_worktree(tree, "r1", "one"), add_worktree(tree, "r1", "two")
    at(repo, one).write("a.txt", "by one\n")
    at(repo, two).write("a.txt", "by two\n")
    at(repo, two).write("also.txt", "by two\n")
    merge_worktree(one)
    before = repo.state()
    kept = merge_worktree(two)
    assert repo.state() == before
    assert kept.branch == "mulligan/r1/two"
    assert kept.given is not None
    assert [each.path for each in kept.given.conflicts] == ["a.txt"]
    assert repo.git("show", "mulligan/r1/two:a.txt") == "by two\n"
    assert repo.git("show", "mulligan/r1/two:also.txt") == "by two\n"
    assert not Path(two.folder).exists()
    assert merge_worktree(two).branch == "mulligan/r1/two"  # asked again


def test_changes_can_be_kept_on_a_branch_as_told(repo, lent):
    at(repo, lent).write("a.txt", "kept\n")
    before = repo.state()
    kept = merge_worktree(lent, is_kept=True)
    assert kept == git.WorktreeMerge(branch="mulligan/r1/one")
    assert repo.state() == before
    repo.git("merge", "--quiet", "mulligan/r1/one")
    assert repo.read("a.txt") == "kept\n"


def test_commits_of_the_agent_count(repo, lent):
    own = at(repo, lent)
    own.commit(**{"a.txt": "committed there\n"})
    own.write("b.txt", "and not committed\n")
    taken = merge_worktree(lent)
    assert taken.given is not None
    assert set(taken.given.paths) == {"a.txt", "b.txt"}
    assert repo.read("a.txt") == "committed there\n"
    assert repo.status().split("\0")[-2] == "? b.txt"


def test_an_agent_that_did_nothing_leaves_nothing(repo, lent):
    assert merge_worktree(lent) == git.WorktreeMerge()
    assert not Path(lent.folder).exists()
    assert merge_worktree(lent) == git.WorktreeMerge()


def test_a_folder_with_a_secret_is_not_removed(repo, lent):
    own = at(repo, lent)
    own.write(".env", "KEY=1")
    own.write("a.txt", "done\n")
    taken = merge_worktree(lent)
    assert taken.folder == lent.folder
    assert [each.path for each in taken.left] == [".env"]
    assert own.read(".env") == "KEY=1"
    assert not repo.has(".env")
    assert repo.read("a.txt") == "done\n"


def test_taking_back_goes_on_where_it_was_killed(repo, lent):
    at(repo, lent).write("a.txt", "done\n")
    at(repo, lent).write("new.txt", "new\n")
    own = git.Tree.find(lent.folder)
    baseline = git.load_baseline(own, lent.key)
    assert baseline is not None
    with locked(own):  # and here the process dies
        _record_changes(own, lent.key, baseline, [], folder=lent.owner)
    taken = merge_worktree(lent)
    assert taken.given is not None
    assert repo.read("new.txt") == "new\n"
    assert len(git.load_all(repo.tree, "r1")) == 1


def test_line_endings_survive_the_way_there_and_back(repo):
    repo.commit(**{".gitattributes": "*.txt text eol=crlf\n"})
    repo.git("rm", "--cached", "-rq", ".")
    repo.git("reset", "--hard", "--quiet")
    lent = add_worktree(repo.tree, "r1", "one")
    own = at(repo, lent)
    assert own.read("a.txt") == repo.read("a.txt")
    own.write("a.txt", b"ONE\r\ntwo\r\nthree\r\nfour\r\nfive\r\n")
    taken = merge_worktree(lent)
    assert taken.given is not None
    assert taken.given.is_whole
    assert repo.read("a.txt") == "ONE\r\ntwo\r\nthree\r\nfour\r\nfive\r\n"


def test_a_branch_without_a_commit_cannot_be_lent(empty):
    with pytest.raises(GitRefused, match=r"has no commit yet, and a work tree needs one; commit"):
        add_worktree(empty.tree, "r1", "one")


def test_an_agent_can_set_its_own_tree_aside(repo, lent):
    """A retry inside a parallel phase: stash in the agent's tree, nobody else's."""
    own = at(repo, lent)
    own.write("a.txt", "first attempt\n")
    own.aside("snapshot", lent.key)
    assert own.read("a.txt") == repo.read("a.txt")
    own.write("a.txt", "second attempt\n")
    own.aside("stash", lent.key)
    own.write("b.txt", "third attempt\n")
    assert git.recover(repo.tree, "r1") == git.RecoveryResult()
    taken = merge_worktree(lent)
    assert taken.given is not None
    assert taken.given.paths == ("b.txt",)
    assert [each.state for each in git.load_all(repo.tree, "r1")] == ["aside", "aside", "returned"]


def test_a_later_phase_sees_what_an_earlier_one_did(repo, lent):
    record_baseline(repo.tree, "r1")
    at(repo, lent).write("a.txt", "by the first phase\n")
    merge_worktree(lent)
    later = at(repo, add_worktree(repo.tree, "r1", "two"))
    assert later.read("a.txt") == "by the first phase\n"


def test_what_git_ignores_stays_with_the_folder_that_it_is_in(repo, lent):
    """Six hours of results were in an ignored folder, and went with the tree."""
    own = at(repo, lent)
    own.write(".gitignore", "results/\n*.log\n")
    own.write("results/r", "six hours\n")
    own.write("dir/x.log", "log\n")
    taken = merge_worktree(lent)
    assert [(each.path, each.reason) for each in taken.left] == [
        ("dir/x.log", "git ignores it"),
        ("results", "git ignores it"),
    ]
    assert taken.folder == lent.folder
    assert own.read("results/r") == "six hours\n"
    assert repo.read(".gitignore") == "results/\n*.log\n"
    assert merge_worktree(lent).folder == lent.folder


def test_caches_are_no_reason_to_keep_a_folder(repo, lent):
    own = at(repo, lent)
    own.write(".gitignore", "__pycache__/\n.cache/\n*.pyc\n")
    own.write("dir/__pycache__/x.pyc", "made again\n")
    own.write("y.pyc", "made again\n")
    own.write(".cache/CACHEDIR.TAG", "Signature: 8a477f597d28d172789f06886806bc55\n")
    taken = merge_worktree(lent)
    assert (taken.left, taken.folder) == ((), "")
    assert not own.folder.exists()


def test_commits_in_a_tree_that_its_agent_removed_are_kept_on_a_branch(repo, lent):
    own = at(repo, lent)
    made = own.commit(**{"new.txt": "new\n"})
    shutil.rmtree(own.folder)
    for _ in range(2):
        taken = merge_worktree(lent)
        assert (taken.is_gone, taken.branch) == (True, "mulligan/r1/one")
    assert repo.git("rev-parse", "mulligan/r1/one").strip() == made
    with pytest.raises(GitRefused, match="is gone: it was removed"):
        add_worktree(repo.tree, "r1", "one")
    repo.git("merge", "--quiet", "mulligan/r1/one")
    assert merge_worktree(lent) == git.WorktreeMerge()


def test_a_tree_that_its_agent_removed_with_all_it_had_is_said_to_be_gone(repo, lent):
    at(repo, lent).write("new.txt", "new\n")
    repo.git("worktree", "remove", "--force", lent.folder)
    taken = merge_worktree(lent)
    assert (taken.is_gone, taken.branch, taken.given) == (True, "", None)


def test_a_tree_is_removed_whole_or_not_at_all(repo, lent, monkeypatch):
    own = at(repo, lent)
    own.write("new.txt", "new\n")
    repo.git("worktree", "lock", lent.folder)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "rmtree", lambda *_, **__: None)  # killed before it began
        merge_worktree(lent)
    assert [each.name[:6] for each in own.folder.parent.iterdir()] == [".gone-"]
    assert merge_worktree(lent).folder == ""
    assert not own.folder.parent.exists()
    assert lent.folder not in repo.git("worktree", "list")


def test_empty_folders_are_lent_as_well(repo):
    (repo.folder / "work").mkdir()
    assert (Path(add_worktree(repo.tree, "r1", "one").folder) / "work").is_dir()
