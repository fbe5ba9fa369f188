"""What was set aside is given back to the byte, and nothing else is touched (R-P5)."""

from __future__ import annotations

import json
import os

import pytest

from mulligan.errors import GitError, SettingError
from mulligan.run import git
from mulligan.run.git import record_baseline, refs, restore_changes, set_aside

pytestmark = pytest.mark.real


def a_busy_agent(repo):
    repo.write("a.txt", "the agent's\n")
    repo.write("new/deep/file.txt", "new\n")
    (repo.folder / "dir/b.txt").unlink()
    repo.write("tool.sh", "#!/bin/sh\n", 0o755)


def test_a_clean_tree_has_nothing_to_set_aside(repo):
    assert repo.is_clean()
    assert set_aside(repo.tree, "stash", "r1") is None


def test_the_tree_is_clean_and_comes_back_to_the_byte(repo):
    tree = repo.tree
    record_baseline(tree, "r1")
    a_busy_agent(repo)
    before = repo.state()
    assert not repo.is_clean("r1")
    aside = repo.aside("stash", "r1")
    assert repo.status() == ""
    assert not repo.has("new")
    assert repo.is_clean("r1")
    assert restore_changes(tree, aside).is_whole
    assert repo.state() == before


def test_what_is_set_aside_can_be_journaled_as_json(repo):
    repo.write(os.fsdecode(b"caf\xe9 \n.txt"), "not UTF-8\n")
    tree = repo.tree
    before = repo.state()
    aside = repo.aside("stash", "r1")
    read = git.SetAside.from_json(json.loads(json.dumps(aside.to_json())))
    assert read == aside
    assert restore_changes(tree, read).is_whole
    assert repo.state() == before


def test_the_users_own_changes_stay_where_they_are(repo):
    repo.write("mine.txt", "my change\n")
    repo.write("notes", "untracked, mine\n")
    repo.write("staged.txt", "staged, mine\n")
    repo.git("add", "staged.txt")
    mine = repo.state()
    tree = repo.tree
    record_baseline(tree, "r1")
    a_busy_agent(repo)
    both = repo.state()
    aside = repo.aside("stash", "r1")
    assert repo.state() == mine
    restore_changes(tree, aside)
    assert repo.state() == both


def test_a_file_changed_by_both_goes_back_to_the_users_version(repo):
    repo.write("mine.txt", "my change\n")
    tree = repo.tree
    record_baseline(tree, "r1")
    repo.write("mine.txt", "the agent's on top\n")
    aside = repo.aside("stash", "r1")
    assert repo.read("mine.txt") == "my change\n"
    restore_changes(tree, aside)
    assert repo.read("mine.txt") == "the agent's on top\n"


@pytest.mark.parametrize("how", [("checkout", "--", "mine.txt"), ("clean", "-fdq")])
def test_what_the_agent_threw_away_of_the_users_comes_back(repo, how):
    repo.write("mine.txt", "my change\n")
    repo.write("notes", "untracked, mine\n")
    tree = repo.tree
    record_baseline(tree, "r1")
    mine = repo.state()
    repo.git(*how)
    repo.aside("stash", "r1")
    assert repo.state() == mine


def test_commits_of_the_agent_are_never_undone(repo):
    tree = repo.tree
    record_baseline(tree, "r1")
    head = repo.commit(**{"a.txt": "committed by the agent\n"})
    repo.write("a.txt", "and more\n")
    aside = repo.aside("stash", "r1")
    assert repo.git("rev-parse", "HEAD").strip() == head
    assert repo.read("a.txt") == "committed by the agent\n"
    restore_changes(tree, aside)
    assert repo.read("a.txt") == "and more\n"


def test_partly_staged_files_come_back_partly_staged(repo):
    repo.write("a.txt", "staged\n")
    repo.git("add", "a.txt")
    repo.write("a.txt", "and changed\n")
    repo.write("new.txt", "staged\n")
    repo.git("add", "new.txt")
    (repo.folder / "new.txt").unlink()
    repo.git("rm", "--cached", "--quiet", "dir/b.txt")
    repo.write("promised.txt", "intended\n")
    repo.git("add", "--intent-to-add", "promised.txt")
    before = repo.state()
    aside = repo.aside("stash", "r1")
    assert repo.status() == ""
    restore_changes(repo.tree, aside)
    assert repo.state() == before


@pytest.mark.parametrize(
    "name",
    [
        "with space",
        "new\nline",
        'quo"te',
        "back\\slash",
        "-rf",
        "--help",
        "ünï/cödé☃",
        ":(glob)*",
        "*",
        "[a]",
        "a\tb",
        " ",
        os.fsdecode(b"\xff\xfe"),
    ],
)
def test_every_name_comes_back(repo, name):
    repo.write(name, "content")
    repo.write("aa", "a sibling that no pattern may catch")
    before = repo.state()
    aside = repo.aside("stash", "r1")
    assert repo.status() == ""
    restore_changes(repo.tree, aside)
    assert repo.state() == before


def test_modes_and_links_come_back(repo):
    repo.write("a.txt", "one\n", 0o755)
    repo.write("secretive", "x", 0o600)
    repo.write("fixed", "x", 0o444)
    (repo.folder / "link").symlink_to("nowhere at all")
    (repo.folder / "dir/b.txt").unlink()
    (repo.folder / "dir/b.txt").symlink_to("/etc")
    before = repo.state()
    aside = repo.aside("stash", "r1")
    assert repo.status() == ""
    restore_changes(repo.tree, aside)
    assert repo.state() == before


def test_a_file_that_became_a_folder_comes_back_either_way(repo):
    (repo.folder / "mine.txt").unlink()
    repo.write("mine.txt/inner", "deep\n")
    (repo.folder / "dir/b.txt").unlink()
    (repo.folder / "dir").rmdir()
    repo.write("dir", "a file now\n")
    before = repo.state()
    aside = repo.aside("stash", "r1")
    assert repo.status() == ""
    restore_changes(repo.tree, aside)
    assert repo.state() == before


def test_nothing_is_written_through_a_link_out_of_the_tree(repo, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "b.txt").write_text("not yours\n")
    (repo.folder / "dir/b.txt").unlink()
    (repo.folder / "dir").rmdir()
    (repo.folder / "dir").symlink_to(outside)
    before = repo.state()
    aside = repo.aside("stash", "r1")
    assert repo.status() == ""
    assert (outside / "b.txt").read_text() == "not yours\n"
    restore_changes(repo.tree, aside)
    assert repo.state() == before
    assert (outside / "b.txt").read_text() == "not yours\n"


def test_line_endings_come_back_as_they_were(repo):
    repo.commit(**{".gitattributes": "*.txt text eol=crlf\n"})
    repo.git("rm", "--cached", "-rq", ".")
    repo.git("reset", "--hard", "--quiet")
    assert "\r\n" in repo.read("a.txt")
    clean = repo.seen()
    repo.write("a.txt", b"mixed\r\nendings\nhere\r")
    repo.write("crlf.txt", b"new\r\nfile\r\n")
    before = repo.state()
    aside = repo.aside("stash", "r1")
    assert repo.seen() == clean
    assert repo.status() == ""
    restore_changes(repo.tree, aside)
    assert repo.state() == before


def test_an_agents_attributes_do_not_change_what_comes_back(repo):
    clean = repo.seen()
    repo.write(".gitattributes", "*.txt text eol=crlf\n")
    repo.write("a.txt", "changed\n")
    before = repo.seen()
    aside = repo.aside("stash", "r1")
    assert repo.seen() == clean
    restore_changes(repo.tree, aside)
    assert repo.seen() == before


def test_a_filter_is_applied_where_git_would(repo):
    repo.git("config", "filter.rot.clean", "tr a-z b-za")
    repo.git("config", "filter.rot.smudge", "tr b-za a-z")
    repo.commit(**{".gitattributes": "*.rot filter=rot\n", "x.rot": "hello\n"})
    clean = repo.seen()
    repo.write("x.rot", "world\n")
    before = repo.state()
    aside = repo.aside("stash", "r1")
    assert repo.seen() == clean
    restore_changes(repo.tree, aside)
    assert repo.state() == before


def test_ignored_files_are_never_touched(repo):
    repo.commit(**{".gitignore": "*.log\ncache/\n"})
    repo.write("run.log", "mine")
    repo.write("cache/x", "mine")
    repo.write("a.txt", "changed\n")
    repo.aside("stash", "r1")
    assert repo.read("run.log") == repo.read("cache/x") == "mine"


def test_what_was_ignored_until_the_agent_changed_the_rules_is_not_touched(repo):
    repo.commit(**{".gitignore": "*.sqlite\ndata/\n"})
    repo.write("users.sqlite", "mine")
    repo.write("data/x/y", "mine")
    tree = repo.tree
    record_baseline(tree, "r1")
    repo.write(".gitignore", "")
    repo.write("new.txt", "the agent's")
    aside = repo.aside("stash", "r1")
    assert repo.read("users.sqlite") == repo.read("data/x/y") == "mine"
    assert not repo.has("new.txt")
    assert [(each.path, each.reason) for each in aside.left] == [
        ("data/x/y", "ignored before"),
        ("users.sqlite", "ignored before"),
    ]


def test_secret_looking_files_are_left_and_reported(repo):
    repo.write(".env", "KEY=1")
    repo.write("deploy/id_ed25519", "key")
    repo.write(".env.example", "KEY=")
    aside = repo.aside("stash", "r1")
    assert repo.read(".env") == "KEY=1"
    assert repo.has("deploy/id_ed25519")
    assert not repo.has(".env.example")
    assert [each.path for each in aside.left] == [".env", "deploy/id_ed25519"]
    objects = repo.git("rev-list", "--objects", "--all")
    assert repo.git("hash-object", ".env").strip() not in objects


def test_a_change_of_the_retry_to_other_lines_is_merged(repo):
    repo.write("a.txt", "ONE\ntwo\nthree\nfour\nfive\n")
    aside = repo.aside("stash", "r1")
    repo.write("a.txt", "one\ntwo\nthree\nfour\nFIVE\n")
    given = restore_changes(repo.tree, aside)
    assert given.merged == ("a.txt",)
    assert repo.read("a.txt") == "ONE\ntwo\nthree\nfour\nFIVE\n"
    overwritten = repo.git("rev-list", "--objects", "--all")
    newer = repo.git("hash-object", "--stdin", stdin="one\ntwo\nthree\nfour\nFIVE\n").strip()
    assert newer in overwritten  # both versions stay reachable


def test_a_conflict_touches_nothing_and_says_where_the_other_version_is(repo):
    repo.write("a.txt", "first attempt\n")
    repo.write("new.txt", "new\n")
    aside = repo.aside("stash", "r1")
    repo.write("a.txt", "second attempt\n")
    before = repo.state()
    given = restore_changes(repo.tree, aside)
    assert not given.is_whole
    assert repo.state() == before
    (conflict,) = given.conflicts
    assert (conflict.path, conflict.reason) == ("a.txt", "it was changed since")
    assert repo.git(*conflict.command.split()[1:]) == "first attempt\n"
    partial = restore_changes(repo.tree, aside, is_partial=True)
    assert partial.paths == ("new.txt",)
    assert repo.read("new.txt") == "new\n"
    assert repo.read("a.txt") == "second attempt\n"
    assert [each.state for each in git.load_all(repo.tree, "r1")] == ["partly"]


def test_a_rehearsal_says_it_and_touches_nothing(repo):
    repo.write("a.txt", "changed\n")
    aside = repo.aside("stash", "r1")
    before, refs = repo.state(), repo.git("for-each-ref")
    assert restore_changes(repo.tree, aside, is_rehearsal=True).paths == ("a.txt",)
    assert (repo.state(), repo.git("for-each-ref")) == (before, refs)


def test_everything_done_twice_is_done_once(repo):
    tree = repo.tree
    a_busy_agent(repo)
    before = repo.state()
    aside = repo.prepared("stash", "r1")
    assert repo.state() == before
    done = git.finish(tree, aside)
    clean = repo.state()
    git.recover(tree, "r1")
    assert repo.state() == clean
    restore_changes(tree, done)
    restore_changes(tree, done)
    git.recover(tree, "r1")
    assert repo.state() == before


def test_a_journal_that_is_behind_does_no_harm(repo):
    tree = repo.tree
    repo.write("a.txt", "changed\n")
    journaled = repo.prepared("stash", "r1")
    git.finish(tree, journaled)
    assert git.finish(tree, journaled).state == "aside"
    restore_changes(tree, journaled)
    assert git.finish(tree, journaled).state == "returned"
    assert repo.read("a.txt") == "changed\n"


def test_of_two_that_move_one_reference_one_loses(repo):
    tree = repo.tree
    repo.write("a.txt", "changed\n")
    stale = repo.prepared("stash", "r1")
    refs.set_state(tree, stale, "aside")
    with pytest.raises(GitError, match=r"^refs/mulligan/r1/1 was moved by another process"):
        refs.set_state(tree, stale, "aside")


def test_several_are_kept_apart_and_each_is_given_back_by_its_id(repo):
    """Others popped a sibling's stash, because it was on top."""
    tree = repo.tree
    repo.write("one.txt", "1")
    one = repo.aside("stash", "r1")
    repo.write("two.txt", "2")
    two = repo.aside("stash", "r2")
    repo.write("three.txt", "3")
    repo.aside("stash", "r1")
    repo.git("stash", "list")
    restore_changes(tree, one)
    assert repo.has("one.txt")
    assert not repo.has("two.txt")
    restore_changes(tree, two)
    assert repo.has("two.txt")
    assert not repo.has("three.txt")
    assert [(each.run, each.number, each.state) for each in git.load_all(tree)] == [
        ("r1", 1, "returned"),
        ("r1", 2, "aside"),
        ("r2", 1, "returned"),
    ]


def test_the_users_own_stash_is_not_touched(repo):
    repo.write("a.txt", "stashed by hand\n")
    repo.git("stash", "--quiet")
    mine = repo.git("rev-parse", "stash@{0}")
    repo.write("a.txt", "the agent's\n")
    restore_changes(repo.tree, repo.aside("stash", "r1"))
    assert repo.git("rev-parse", "stash@{0}") == mine
    assert repo.read("a.txt") == "the agent's\n"


def test_a_snapshot_puts_the_tree_back_and_keeps_what_the_run_did(repo):
    repo.write("mine.txt", "my change\n")
    tree = repo.tree
    record_baseline(tree, "r1")
    mine = repo.state()
    a_busy_agent(repo)
    agents = repo.state()
    aside = repo.aside("snapshot", "r1")
    assert repo.state() == mine
    assert repo.git("show", f"{aside.commit}:new/deep/file.txt") == "new\n"
    assert repo.git("diff", "--name-only", "HEAD", aside.ref, "--", "tool.sh") == "tool.sh\n"
    restore_changes(tree, aside)
    assert repo.state() == agents


def test_a_file_somebody_changes_while_it_is_set_aside_is_not_touched(repo):
    tree = repo.tree
    repo.write("a.txt", "the agent's\n")
    repo.write("b.txt", "the agent's\n")
    aside = repo.prepared("stash", "r1")
    repo.write("a.txt", "newer than what was prepared\n")
    done = git.finish(tree, aside)
    assert repo.read("a.txt") == "newer than what was prepared\n"
    assert not repo.has("b.txt")
    assert [(each.path, each.reason) for each in done.left] == [
        ("a.txt", "it was changed meanwhile")
    ]


def test_what_was_half_set_aside_can_be_undone(repo):
    tree = repo.tree
    a_busy_agent(repo)
    before = repo.state()
    repo.prepared("stash", "r1")
    (repo.folder / "tool.sh").unlink()  # as far as it came
    (repo.folder / "new/deep/file.txt").unlink()
    caught = git.recover(tree, "r1", is_undone=True)
    assert [given.is_whole for given in caught.returned] == [True]
    assert repo.state() == before


def test_worktree_is_no_way_to_set_a_shared_tree_aside(repo):
    with pytest.raises(SettingError, match=r"^mode worktree lends each agent a tree of its own"):
        repo.aside("worktree", "r1")


@pytest.mark.parametrize("run", ["", "../x", "a b", "-x", "a/b", "x" * 65, "a.lock", "baseline/1"])
def test_a_run_that_cannot_stand_in_a_reference_is_refused(repo, run):
    with pytest.raises(SettingError, match=r"^a run needs a name of letters, digits, - and _"):
        repo.aside("stash", run)


def test_dropping_a_run_leaves_no_reference(repo):
    repo.write("a.txt", "changed\n")
    tree = repo.tree
    record_baseline(tree, "r1")
    repo.write("b.txt", "changed\n")
    repo.aside("stash", "r1")
    git.drop(tree, "r1")
    assert repo.git("for-each-ref", "refs/mulligan") == ""


def test_a_rule_that_the_agent_committed_does_not_hide_what_was_ignored(repo):
    repo.commit(**{".gitignore": "*.sqlite\n:(glob)*\n"})
    repo.write("users.sqlite", "mine")
    repo.write(":(glob)x", "mine")
    tree = repo.tree
    record_baseline(tree, "r1")
    repo.write(".gitignore", "\n")
    repo.git("commit", "--quiet", "-m", "no rules", ".gitignore")
    repo.write("new.txt", "the agent's")
    repo.aside("stash", "r1")
    assert repo.read("users.sqlite") == repo.read(":(glob)x") == "mine"
    assert not repo.has("new.txt")


@pytest.mark.parametrize(
    "path",
    ["../out", "/etc/x", "a/../../out", ".git/hooks/pre-commit", "sub/.GIT/config", "a//b", ""],
)
def test_a_forged_record_cannot_write_outside_the_tree(repo, path):
    repo.write("a.txt", "the agent's\n")
    data = repo.aside("stash", "r1").to_json()
    data["moves"][0]["path"] = path
    with pytest.raises(GitError, match=r" in a record leads out of the tree; not touched$"):
        git.SetAside.from_json(data)


def test_a_record_that_is_none_is_an_error_that_names_it(repo):
    repo.git("update-ref", "refs/mulligan/r1/1", "HEAD")
    with pytest.raises(GitError, match=r"^refs/mulligan/r1/1 has no record that this mulligan"):
        git.load_all(repo.tree)


@pytest.mark.parametrize("mode", ["stash", "snapshot"])
def test_empty_folders_of_the_user_stay_and_come_back(repo, mode):
    """A retry that writes its log into `logs` needs that folder."""
    for name in ("logs", "gone", "a b/c/d"):
        (repo.folder / name).mkdir(parents=True)
    record_baseline(repo.tree, "r1")
    repo.write("logs/one", "log\n")
    repo.write("new/deep/x", "new\n")
    (repo.folder / "gone").rmdir()
    aside = repo.aside(mode, "r1")
    assert all((repo.folder / each).is_dir() for each in ("logs", "gone", "a b/c/d"))
    assert not repo.has("new")
    assert restore_changes(repo.tree, aside).is_whole
    assert repo.read("logs/one") == "log\n"


def test_a_file_where_the_user_had_a_folder_is_set_aside_for_it(repo):
    (repo.folder / "logs").mkdir()
    record_baseline(repo.tree, "r1")
    (repo.folder / "logs").rmdir()
    repo.write("logs", "a file\n")
    repo.aside("stash", "r1")
    assert (repo.folder / "logs").is_dir()
