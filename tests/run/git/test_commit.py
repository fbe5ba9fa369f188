"""Only what the run has changed is committed, and a hook's no is an error (R-P5)."""

from __future__ import annotations

import time

import pytest

from mulligan.errors import GitError, GitRefused, HookFailed
from mulligan.run import git
from mulligan.run.git import commits, record_baseline
from mulligan.run.git.tree_lock import locked

pytestmark = pytest.mark.real


def hook(repo, name, script):
    repo.write(f".git/hooks/{name}", f"#!/bin/sh\n{script}\n", 0o755)


def committed(repo, commit="HEAD"):
    return repo.git("show", "--format=", "--name-status", "--no-renames", commit).splitlines()


def test_the_run_is_committed_and_the_users_changes_are_not(repo):
    repo.write("mine.txt", "my change\n")
    repo.write("notes", "untracked, mine\n")
    repo.write("staged.txt", "staged, mine\n")
    repo.git("add", "staged.txt")
    mine = repo.status()
    tree = repo.tree
    record_baseline(tree, "r1")
    repo.write("a.txt", "the agent's\n")
    repo.write("new/x.txt", "new\n")
    (repo.folder / "dir/b.txt").unlink()
    aside = repo.aside("commit", "r1", words="Parser fixed, tests pass")
    assert committed(repo) == ["M\ta.txt", "D\tdir/b.txt", "A\tnew/x.txt"]
    assert repo.status() == mine
    assert aside.made == repo.git("rev-parse", "HEAD").strip()
    assert aside.state == "committed"
    assert repo.git("log", "-1", "--format=%B").strip() == (
        "mulligan: Parser fixed, tests pass\n\nMulligan-Run: r1/1"
    )


def test_a_file_changed_by_both_is_an_error_and_nothing_is_committed(repo):  # R-P5
    repo.write("mine.txt", "my change\n")
    tree = repo.tree
    record_baseline(tree, "r1")
    repo.write("mine.txt", "the agent's on top\n")
    repo.write("a.txt", "the agent's\n")
    before = repo.state()
    with pytest.raises(GitRefused, match=r"^mine.txt had changes before the run began"):
        repo.aside("commit", "r1")
    assert repo.state() == before
    assert git.load_all(tree) == []


def test_what_an_earlier_run_left_is_committed_if_it_counts_as_ours(repo):
    tree = repo.tree
    record_baseline(tree, "plan")
    repo.write("a.txt", "by an earlier agent\n")
    record_baseline(tree, "r2")
    repo.write("a.txt", "by an earlier agent, and by this one\n")
    repo.aside("commit", "r2", since="plan")
    assert committed(repo) == ["M\ta.txt"]
    assert repo.is_clean()


def test_env_files_are_never_committed(repo):
    """Others committed `.env` with everything else."""
    repo.write(".env", "KEY=hunter2\n")
    repo.write("config/.env.production", "KEY=hunter2\n")
    repo.write("id_rsa", "key\n")
    repo.write("note.txt", "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n")
    repo.write("a.txt", "the agent's\n")
    repo.git("add", "--all")  # not even if the agent has staged them
    aside = repo.aside("commit", "r1")
    assert committed(repo) == ["M\ta.txt"]
    assert [each.path for each in aside.left] == [
        ".env",
        "config/.env.production",
        "id_rsa",
        "note.txt",
    ]
    assert repo.read(".env") == "KEY=hunter2\n"


def test_ignored_files_are_never_committed(repo):
    repo.commit(**{".gitignore": "*.log\n"})
    repo.write("x.log", "noise")
    repo.write("a.txt", "the agent's\n")
    repo.aside("commit", "r1")
    assert committed(repo) == ["M\ta.txt"]


def test_a_failing_hook_is_an_error_with_its_words_and_changes_nothing(repo):
    """Others only logged it, and went on with a dirty tree."""
    hook(repo, "pre-commit", "echo 'lint: a.txt:1: too long' >&2; exit 3")
    repo.write("a.txt", "the agent's\n")
    repo.write("new.txt", "new\n")
    before, head = repo.state(), repo.git("rev-parse", "HEAD")
    with pytest.raises(HookFailed, match=r"lint: a.txt:1: too long") as caught:
        repo.aside("commit", "r1")
    assert "lint: a.txt:1: too long" in caught.value.output
    assert repo.state() == before
    assert repo.git("rev-parse", "HEAD") == head
    assert repo.git("show", "refs/mulligan/r1/1:new.txt") == "new\n"  # nothing is lost


def test_once_the_hook_is_content_recovery_commits(repo):
    hook(repo, "pre-commit", "exit 1")
    repo.write("a.txt", "the agent's\n")
    with pytest.raises(HookFailed):
        repo.aside("commit", "r1", words="half done")
    hook(repo, "pre-commit", "exit 0")
    git.recover(repo.tree, "r1")
    assert committed(repo) == ["M\ta.txt"]
    assert repo.status() == ""


def test_hooks_run_and_may_change_the_commit(repo):
    hook(repo, "pre-commit", "echo formatted > a.txt && git add a.txt")
    hook(repo, "commit-msg", 'echo "Reviewed-by: hook" >> "$1"')
    repo.write("a.txt", "the agent's\n")
    repo.aside("commit", "r1")
    assert repo.git("show", "HEAD:a.txt") == "formatted\n"
    assert "Reviewed-by: hook" in repo.git("log", "-1", "--format=%B")
    assert repo.status() == ""


def test_hooks_run_in_no_other_mode(repo, tmp_path):
    for name in ("pre-commit", "post-checkout", "reference-transaction", "post-index-change"):
        hook(repo, name, f"touch {tmp_path}/ran")
    repo.git("config", "core.fsmonitor", f"touch {tmp_path}/ran;")
    repo.write("a.txt", "the agent's\n")
    tree = repo.tree
    record_baseline(tree, "r0")
    git.restore_changes(tree, repo.aside("stash", "r1"))
    git.merge_worktree(git.add_worktree(tree, "r2", "one"))
    repo.aside("snapshot", "r1")
    assert not (tmp_path / "ran").exists()


def test_a_hook_that_waits_for_somebody_is_ended(repo, monkeypatch):
    hook(repo, "pre-commit", "sleep 30")
    monkeypatch.setattr(commits, "HOOK_SECONDS", 0.3)
    repo.write("a.txt", "the agent's\n")
    with pytest.raises(GitError, match=r"^git commit took longer than 0.3 s and was stopped"):
        repo.aside("commit", "r1")
    assert repo.read("a.txt") == "the agent's\n"


def test_a_commit_needs_somebody_who_commits(repo):
    repo.git("config", "user.useConfigOnly", "true")
    repo.git("config", "user.name", "")
    repo.git("config", "user.email", "")
    repo.write("a.txt", "the agent's\n")
    with pytest.raises(GitRefused, match=r"^git does not know who commits; set user"):
        repo.aside("commit", "r1")
    assert repo.read("a.txt") == "the agent's\n"


def test_an_author_can_be_given_for_where_there_is_none(repo):
    repo.git("config", "user.useConfigOnly", "true")
    repo.git("config", "user.name", "")
    repo.git("config", "user.email", "")
    repo.write("a.txt", "the agent's\n")
    repo.aside("commit", "r1", author="Robot <robot@example.com>")
    assert repo.git("log", "-1", "--format=%an %ae %cn").strip() == "Robot robot@example.com Robot"


def test_no_signature_is_asked_for(repo):
    repo.git("config", "commit.gpgsign", "true")
    repo.git("config", "gpg.program", "false")
    repo.write("a.txt", "the agent's\n")
    assert repo.aside("commit", "r1").made


def test_the_first_commit_of_a_branch(empty):
    empty.write("a.txt", "the agent's\n")
    empty.aside("commit", "r1")
    assert committed(empty) == ["A\ta.txt"]
    assert empty.status() == ""


def test_on_a_detached_head_the_commit_stays_reachable(repo):
    repo.git("checkout", "--quiet", "--detach")
    repo.write("a.txt", "the agent's\n")
    aside = repo.aside("commit", "r1")
    repo.git("checkout", "--quiet", "main")
    repo.git("reflog", "expire", "--expire=now", "--all")
    repo.git("gc", "--quiet", "--prune=now")
    assert repo.git("show", f"{aside.made}:a.txt") == "the agent's\n"


def test_a_folder_that_became_a_file_is_committed(repo):
    (repo.folder / "dir/b.txt").unlink()
    (repo.folder / "dir").rmdir()
    repo.write("dir", "a file\n")
    (repo.folder / "mine.txt").unlink()
    repo.write("mine.txt/x", "in a folder\n")
    repo.aside("commit", "r1")
    assert repo.status() == ""


def test_what_was_staged_and_taken_back_makes_no_empty_commit(repo):
    repo.write("a.txt", "staged\n")
    repo.git("add", "a.txt")
    repo.write("a.txt", "one\ntwo\nthree\nfour\nfive\n")
    head = repo.git("rev-parse", "HEAD")
    repo.aside("commit", "r1")
    assert repo.git("rev-parse", "HEAD") == head
    assert repo.status() == ""


def test_a_commit_that_was_made_before_it_could_be_written_down_is_not_made_twice(repo):
    tree = repo.tree
    repo.write("a.txt", "the agent's\n")
    aside = repo.prepared("commit", "r1")
    with locked(tree):
        commits._commit(tree, aside)  # and here the process dies
    assert repo.status() != ""  # the index does not know of it
    git.recover(tree, "r1")
    assert repo.status() == ""
    assert len(repo.git("rev-list", "HEAD").split()) == 2


def test_run_1_is_not_mistaken_for_run_12(repo):
    tree = repo.tree
    repo.write("a.txt", "1\n")
    one = repo.prepared("commit", "r1")
    repo.commit(**{"b.txt": "x"})
    repo.git("commit", "--quiet", "--amend", "-m", "other\n\nMulligan-Run: r1/12")
    assert commits.made_before(tree, one) == ""


def test_a_commit_is_not_given_back(repo):
    repo.write("a.txt", "the agent's\n")
    aside = repo.aside("commit", "r1")
    given = git.restore_changes(repo.tree, aside)
    assert given.paths == ()
    assert repo.status() == ""


def test_undoing_what_was_only_prepared_commits_nothing(repo):
    repo.write("a.txt", "the agent's\n")
    repo.prepared("commit", "r1")
    before, head = repo.state(), repo.git("rev-parse", "HEAD")
    git.recover(repo.tree, "r1", is_undone=True)
    assert repo.state() == before
    assert repo.git("rev-parse", "HEAD") == head
    assert [each.state for each in git.load_all(repo.tree)] == ["returned"]


def test_a_hook_that_leaves_something_running_does_not_hold_the_run(repo):
    hook(repo, "pre-commit", "sleep 20 & exit 0")
    repo.write("a.txt", "the agent's\n")
    began = time.monotonic()
    assert repo.aside("commit", "r1").made
    assert time.monotonic() - began < 20


def test_a_hook_finds_git_as_the_user_would(repo):
    hook(
        repo,
        "pre-commit",
        "git ls-files --error-unmatch -- '*.txt' >/dev/null || exit 1; env >.git/e",
    )
    repo.write("a.txt", "the agent's\n")
    repo.aside("commit", "r1")
    names = {line.partition("=")[0] for line in repo.read(".git/e").splitlines()}
    assert not names & {"GIT_LITERAL_PATHSPECS", "GIT_OPTIONAL_LOCKS", "GIT_NO_REPLACE_OBJECTS"}


def test_what_a_hook_refused_can_be_set_aside_in_another_way(repo):
    hook(repo, "pre-commit", "exit 1")
    repo.write("a.txt", "the agent's\n")
    with pytest.raises(HookFailed):
        repo.aside("commit", "r1")
    aside = repo.aside("stash", "r1")
    assert repo.status() == ""
    git.restore_changes(repo.tree, aside)
    assert repo.read("a.txt") == "the agent's\n"


def test_an_author_without_a_mail_is_no_hooks_fault(repo):
    repo.git("config", "user.useConfigOnly", "true")
    repo.git("config", "user.name", "")
    repo.git("config", "user.email", "")
    repo.write("a.txt", "the agent's\n")
    with pytest.raises(GitError, match=r"^the commit was refused with exit code 128") as caught:
        repo.aside("commit", "r1", author="<>")
    assert not isinstance(caught.value, HookFailed)
