"""What cannot be worked on is refused, with the reason and the way out, and not touched."""

from __future__ import annotations

import os
import subprocess
import time

import pytest

from mulligan.errors import GitError, GitRefused
from mulligan.run import git
from mulligan.run.git import baseline, locks, record_baseline, restore_changes, set_aside

pytestmark = pytest.mark.real


def test_a_folder_without_a_repository(tmp_path):
    with pytest.raises(GitRefused, match=r"not a git repository.*; run `git init` there, or leave"):
        git.Tree.find(tmp_path)


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(GitRefused, match=r"gone: no such folder$"):
        git.Tree.find(tmp_path / "gone")


def test_a_bare_repository(tmp_path, repo):
    repo.git("clone", "--quiet", "--bare", ".", str(tmp_path / "bare"))
    with pytest.raises(GitRefused, match=r"bare is a bare repository, with no files to set aside"):
        git.Tree.find(tmp_path / "bare")


def test_a_git_folder(repo):
    with pytest.raises(GitRefused, match=r"is inside a .git folder, with no files to set aside"):
        git.Tree.find(repo.folder / ".git")


def test_no_git(repo, monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitRefused, match=r"^no git on the PATH; install git, or leave"):
        git.Tree.find(repo.folder)


def test_an_old_git(repo, monkeypatch, tmp_path):
    old = tmp_path / "git"
    old.write_text("#!/bin/sh\necho git version 2.17.1\n")
    old.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(GitRefused, match=r"^git 2.26 or newer is needed; found 'git version 2.17"):
        git.Tree.find(repo.folder)


def test_a_subfolder_belongs_to_its_tree(repo):
    assert git.Tree.find(repo.folder / "dir").folder == os.path.realpath(repo.folder)


def test_a_folder_with_a_newline_in_its_name(new_repo):
    outer = new_repo()
    inner = type(outer)(outer.folder / "a\nb")
    inner.folder.mkdir()
    inner.git("init", "--quiet")
    inner.write("x", "1")
    before = inner.state()
    restore_changes(inner.tree, inner.aside("stash", "r1"))
    assert inner.state() == before


def test_variables_that_point_elsewhere_are_not_heard(repo, new_repo, monkeypatch):
    other = new_repo()
    monkeypatch.setenv("GIT_DIR", str(other.folder / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other.folder / "index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other.folder))
    assert repo.tree.folder == os.path.realpath(repo.folder)


def diverge(repo):
    repo.git("checkout", "--quiet", "-b", "other")
    repo.commit(**{"a.txt": "theirs\n"})
    repo.git("checkout", "--quiet", "main")
    repo.commit(**{"a.txt": "ours\n"})


@pytest.mark.parametrize(
    ("command", "what"),
    [
        (("merge", "other"), "a merge is under way; git merge --continue or --abort first"),
        (("rebase", "other"), "a rebase is under way"),
        (("cherry-pick", "other"), "a cherry-pick is under way"),
        (("revert", "--no-edit", "HEAD~1"), "a revert is under way"),
    ],
)
@pytest.mark.parametrize("mode", ["stash", "commit", "snapshot"])
def test_in_the_middle_of_something(repo, command, what, mode):
    diverge(repo)
    if command[0] == "revert":
        repo.commit(**{"a.txt": "later\n"})
    repo.git(*command, check=False)
    before = repo.state()
    with pytest.raises(GitRefused, match=what):
        repo.aside(mode, "r1")
    with pytest.raises(GitRefused, match=what):
        record_baseline(repo.tree, "r2")
    assert repo.state() == before


def test_a_conflict_that_a_stash_left_is_refused(repo):
    repo.write("a.txt", "stashed\n")
    repo.git("stash", "--quiet")
    repo.commit(**{"a.txt": "committed\n"})
    repo.git("stash", "pop", check=False)
    with pytest.raises(GitRefused, match=r"^a.txt has a conflict that is not resolved"):
        repo.aside("stash", "r1")


@pytest.mark.parametrize("mode", ["stash", "snapshot"])
def test_a_branch_without_a_commit(empty, mode):
    tree = empty.tree
    empty.write("mine.txt", "mine\n")
    record_baseline(tree, "r1")
    empty.write("new.txt", "staged\n")
    empty.git("add", "new.txt")
    empty.write("new.txt", "and changed\n")
    before = empty.state()
    aside = empty.aside(mode, "r1")
    assert empty.status() == "? mine.txt\0"
    restore_changes(tree, aside)
    assert empty.state() == before


def test_a_detached_head(repo):
    repo.git("checkout", "--quiet", "--detach")
    repo.write("a.txt", "the agent's\n")
    before = repo.state()
    aside = repo.aside("stash", "r1")
    assert aside.branch == ""
    restore_changes(repo.tree, aside)
    assert repo.state() == before


def test_submodules_and_repositories_inside_are_left_and_reported(repo, new_repo):
    library = new_repo()
    library.commit(x="1\n")
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add",
             str(library.folder), "lib")  # fmt: skip
    repo.git("commit", "--quiet", "-m", "lib")
    repo.write("lib/x", "changed inside\n")
    nested = type(repo)(repo.folder / "nested")
    nested.folder.mkdir()
    nested.git("init", "--quiet")
    nested.commit(y="1\n")
    repo.write("a.txt", "the agent's\n")
    for mode in ("stash", "commit"):
        aside = repo.aside(mode, "r1")
        assert [(each.path, each.reason) for each in aside.left] == [
            ("lib", "a submodule: a repository of its own"),
            ("nested", "a repository of its own"),
        ]
        assert repo.read("lib/x") == "changed inside\n"
        assert repo.read("nested/y") == "1\n"
        assert repo.read("a.txt") == "one\ntwo\nthree\nfour\nfive\n" or mode == "commit"
        if mode == "stash":
            assert restore_changes(repo.tree, aside).is_whole


def test_inside_a_submodule_the_submodule_is_the_tree(repo, new_repo):
    library = new_repo()
    library.commit(x="1\n")
    repo.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "add",
             str(library.folder), "lib")  # fmt: skip
    inner = type(repo)(repo.folder / "lib")
    inner.write("x", "changed\n")
    before = inner.state()
    aside = inner.aside("stash", "r1")
    assert inner.read("x") == "1\n"
    restore_changes(inner.tree, aside)
    assert inner.state() == before


def test_a_sparse_checkout_stays_sparse(repo):
    repo.commit(**{"in/x": "1\n", "out/y": "2\n"})
    repo.git("sparse-checkout", "set", "in")
    assert not repo.has("out")
    repo.write("in/x", "changed\n")
    repo.write("in/new", "new\n")
    before = repo.state()
    aside = repo.aside("stash", "r1")
    assert repo.status() == ""
    assert not repo.has("out")
    restore_changes(repo.tree, aside)
    assert repo.state() == before


def test_a_repository_with_sha256(tmp_path, new_repo):
    repo = type(new_repo())(tmp_path / "sha256")
    repo.folder.mkdir()
    repo.git("init", "--quiet", "--object-format=sha256")
    repo.commit(x="1\n", y="2\n")
    repo.write("x", "changed\n")
    repo.write("z", "new\n")
    (repo.folder / "y").unlink()
    before = repo.state()
    aside = repo.aside("stash", "r1")
    assert repo.status() == ""
    restore_changes(repo.tree, aside)
    assert repo.state() == before


def test_empty_folders_are_nobodys(repo):
    (repo.folder / "empty/inner").mkdir(parents=True)
    assert set_aside(repo.tree, "stash", "r1") is None
    assert (repo.folder / "empty/inner").is_dir()


def test_a_socket_in_a_tracked_files_place_is_refused(repo):
    (repo.folder / "a.txt").unlink()
    os.mkfifo(repo.folder / "a.txt")
    repo.write("new", "1")
    with pytest.raises(GitRefused, match=r"^a.txt is not a file that git can store; move it away"):
        repo.aside("stash", "r1")
    assert repo.has("new")


def test_too_much_is_refused_before_anything_is_stored(repo, monkeypatch):
    monkeypatch.setattr(baseline, "MOST_BYTES", 10)
    repo.write("huge.bin", b"x" * 11)
    with pytest.raises(GitRefused, match=r"in 1 changed files is more than .*\.gitignore$"):
        repo.aside("stash", "r1")
    assert repo.has("huge.bin")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read_is_an_error_and_nothing_is_touched(repo):
    repo.write("locked", "x", 0)
    repo.write("new", "1")
    with pytest.raises(GitError, match=r"Permission denied"):
        repo.aside("stash", "r1")
    assert repo.has("new")


def lock_of(repo, age=0.0):
    place = repo.write(".git/index.lock", "")
    then = time.time() - age
    os.utime(place, (then, then))
    return place


def test_a_lock_left_by_a_dead_git_is_moved_out_of_the_way(repo):
    left = lock_of(repo, age=120)
    repo.write("a.txt", "the agent's\n")
    before = repo.status()
    restore_changes(repo.tree, repo.aside("stash", "r1"))
    assert not left.exists()
    assert (repo.folder / ".git/mulligan/index.lock.dead").exists()
    assert repo.status() == before


@pytest.mark.parametrize("age", [0.0, -3600.0])
def test_a_young_lock_is_watched_until_it_is_certain_that_nobody_holds_it(repo, monkeypatch, age):
    monkeypatch.setattr(locks, "_OLD", 0.4)
    left = lock_of(repo, age=age)
    repo.write("a.txt", "the agent's\n")
    began = time.monotonic()
    assert repo.aside("stash", "r1")
    assert not left.exists()
    assert time.monotonic() - began > 0.3


def test_a_lock_that_somebody_has_open_is_never_removed(repo, monkeypatch):
    monkeypatch.setattr(locks, "_WAIT", 0.1)
    left = lock_of(repo, age=86400)
    repo.write("a.txt", "the agent's\n")
    with left.open("rb"), pytest.raises(GitRefused, match=rf"held by process {os.getpid()} "):
        repo.aside("stash", "r1")
    assert left.exists()


def test_a_lock_is_never_removed_while_a_git_runs_in_the_tree(repo, monkeypatch):
    """During a hook git holds the lock without having the file open."""
    monkeypatch.setattr(locks, "_WAIT", 0.1)
    left = lock_of(repo, age=86400)
    with subprocess.Popen(
        ["git", "cat-file", "--batch"],  # noqa: S607
        cwd=repo.folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    ) as running:
        with pytest.raises(GitRefused, match=rf"held by process {running.pid} \(git\)"):
            repo.aside("stash", "r1")
        assert running.stdin is not None
        running.stdin.close()
    assert left.exists()


def test_a_lock_that_goes_is_waited_for(repo, monkeypatch):
    left = lock_of(repo)
    real = time.sleep

    def sleep(seconds):
        left.unlink(missing_ok=True)
        real(seconds)

    monkeypatch.setattr(time, "sleep", sleep)
    repo.write("a.txt", "the agent's\n")
    assert repo.aside("stash", "r1")


def test_names_that_differ_only_in_case_are_refused_where_they_are_one_file(repo):
    repo.write("new.txt", "new\n")
    repo.write("NEW.txt", "a twin\n")
    before = repo.state()
    repo.git("config", "core.ignorecase", "true")
    with pytest.raises(GitRefused, match=r"^NEW.txt and new.txt differ only in case"):
        set_aside(repo.tree, "stash", "r1")
    repo.git("config", "core.ignorecase", "false")
    restore_changes(repo.tree, repo.aside("stash", "r1"))
    assert repo.state() == before


def test_files_marked_as_unchanged_are_taken_at_their_word(repo):
    repo.git("update-index", "--assume-unchanged", "a.txt")
    repo.git("update-index", "--skip-worktree", "mine.txt")
    repo.write("a.txt", "local\n")
    repo.write("mine.txt", "local\n")
    repo.write("new.txt", "the agent's\n")
    for mode in ("stash", "commit"):
        aside = repo.aside(mode, "r1")
        assert [move.path for move in aside.moves] == ["new.txt"]
        assert repo.read("a.txt") == repo.read("mine.txt") == "local\n"
        restore_changes(repo.tree, aside)


@pytest.mark.parametrize(
    "lock", ["HEAD.lock", "packed-refs.lock", "refs/heads/main.lock", "refs/mulligan/r1/1.lock"]
)
def test_locks_on_references_are_moved_out_of_the_way_as_well(repo, lock):
    repo.write("a.txt", "the agent's\n")
    aside = repo.prepared("commit", "r1")
    left = repo.write(f".git/{lock}", "")
    then = time.time() - 120
    os.utime(left, (then, then))
    git.recover(repo.tree, "r1")
    assert not left.exists()
    assert repo.status() == ""
    assert [each.state for each in git.load_all(repo.tree)] == ["committed"]
    assert aside.state == "prepared"
