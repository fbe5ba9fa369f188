"""`mulligan git`: what a run has set aside is listed, and given back."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

from mulligan.cli import main
from mulligan.run import git
from mulligan.run.journal.entries import RunMade
from mulligan.run.journal.store import RunStore

pytestmark = pytest.mark.real


@pytest.fixture
def mulligan(capsys):
    """Run the command; its exit code, stdout and stderr."""

    def mulligan(*argv: str) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as caught:
            main(["git", *argv])
        said = capsys.readouterr()
        return caught.value.code, said.out, said.err

    return mulligan


@pytest.fixture
def folder(tmp_path: Path, monkeypatch) -> Path:
    """A repository with one commit, and the current folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "mulligan"))
    place = tmp_path / "repo"
    place.mkdir()
    monkeypatch.chdir(place)
    (place / "a.txt").write_text("one\n")
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
    for line in (("init", "-q", "-b", "main"), ("add", "."), (*who, "commit", "-qm", "one")):
        subprocess.run(["git", *line], check=True, timeout=60)  # noqa: S607
    return place


def set_aside(folder, content="first attempt\n", mode="stash", run="night-1"):
    (folder / "a.txt").write_text(content)
    aside = git.set_aside(git.Tree.find(folder), mode, run, author="Ada <ada@example.com>")
    assert aside is not None
    return aside


def test_an_empty_list_says_so(mulligan, folder):
    assert mulligan("list") == (0, "", "nothing has been set aside here\n")
    assert mulligan("list", "--json") == (0, "[]\n", "")


def test_the_list_has_a_line_for_each(mulligan, folder):
    set_aside(folder)
    set_aside(folder, "second\n", "commit")
    code, out, _ = mulligan("list")
    assert code == 0
    heads, first, second = (line.split() for line in out.splitlines())
    assert heads == ["RUN", "N", "MODE", "STATE", "FILES", "WHEN", "WHERE"]
    assert first[:5] == ["night-1", "1", "stash", "aside", "1"]
    assert first[-1] == "refs/mulligan/night-1/1"
    assert second[:4] == ["night-1", "2", "commit", "committed"]


def test_the_list_is_json_for_programs(mulligan, folder):
    aside = set_aside(folder)
    (listed,) = json.loads(mulligan("list", "--json")[1])
    assert listed["commit"] == aside.commit
    assert listed["ref"] == "refs/mulligan/night-1/1"
    assert listed["moves"] == ["a.txt"]


def test_restore_gives_it_back(mulligan, folder):
    set_aside(folder)
    rehearsed = (0, "night-1/1: 1 file would be restored\n", "")
    assert mulligan("restore", "night-1", "--dry-run") == rehearsed
    assert (folder / "a.txt").read_text() == "one\n"
    assert mulligan("restore", "night-1") == (0, "night-1/1: 1 file restored\n", "")
    assert (folder / "a.txt").read_text() == "first attempt\n"
    assert mulligan("restore", "night-1") == (0, "night-1/1: was restored before\n", "")


def test_restore_works_from_anywhere(mulligan, folder, tmp_path, monkeypatch):
    set_aside(folder)
    monkeypatch.chdir(tmp_path)
    assert mulligan("restore", "night-1", "-C", str(folder))[0] == 0
    assert (folder / "a.txt").read_text() == "first attempt\n"


def test_a_conflict_says_where_the_other_version_is(mulligan, folder):
    aside = set_aside(folder)
    (folder / "a.txt").write_text("mine\n")
    assert mulligan("restore", "night-1") == (
        1,
        "night-1/1: 0 files restored\n",
        (
            f"error: a.txt: it was changed since\n\nhint: git show {aside.commit}:a.txt prints the "
            "other version; --partly restores the others\n"
        ),
    )
    assert (folder / "a.txt").read_text() == "mine\n"
    code, out, _ = mulligan("restore", "night-1", "--json")
    (result,) = json.loads(out)
    assert (code, result["is_whole"]) == (1, False)
    assert result["conflicts"][0]["path"] == "a.txt"


def test_one_of_several_can_be_chosen(mulligan, folder):
    set_aside(folder, "first\n")
    set_aside(folder, "second\n")
    assert mulligan("restore", "night-1", "-n", "1")[0] == 0
    assert (folder / "a.txt").read_text() == "first\n"


def test_of_several_the_newest_comes_first(mulligan, folder):
    set_aside(folder, "first\n")
    set_aside(folder, "second\n")
    code, out, _ = mulligan("restore", "night-1")
    assert code == 1
    assert out.splitlines()[0] == "night-1/2: 1 file restored"
    assert (folder / "a.txt").read_text() == "second\n"


def test_what_was_half_set_aside_comes_back(mulligan, folder):
    (folder / "a.txt").write_text("first attempt\n")
    git.prepare(git.Tree.find(folder), "stash", "night-1")
    (folder / "a.txt").write_text("one\n")  # as far as it came
    assert mulligan("restore", "night-1")[0] == 0
    assert (folder / "a.txt").read_text() == "first attempt\n"


def test_an_unknown_run_is_answered_with_the_nearest(mulligan, folder):
    set_aside(folder)
    assert mulligan("restore", "nigth-1") == (
        2,
        "",
        "error: nothing was set aside here by a run 'nigth-1'\n\nhint: did you mean 'night-1'?\n",
    )


def test_what_is_not_given_back_is_not_dropped(mulligan, folder):
    set_aside(folder)
    assert mulligan("drop", "night-1") == (
        2,
        "",
        (
            "error: 1 file of 'night-1' is not restored\n\n"
            "hint: mulligan git restore night-1 restores it, --force drops it\n"
        ),
    )
    mulligan("restore", "night-1")
    assert mulligan("drop", "night-1") == (0, "dropped 1 set aside by night-1\n", "")
    assert mulligan("list", "--json")[1] == "[]\n"


def test_the_run_of_a_plan_stands_for_all_of_its_agents(mulligan, folder):
    set_aside(folder, run="k3fqzz/agents/1-1-one")
    (folder / "b.txt").write_text("by two\n")
    git.set_aside(git.Tree.find(folder), "snapshot", "k3fqzz/agents/2-1-two")
    code, out, _ = mulligan("restore", "k3fqzz")
    assert (code, sorted(out.splitlines())) == (
        0,
        [
            "k3fqzz/agents/1-1-one/1: 1 file restored",
            "k3fqzz/agents/2-1-two/1: 1 file restored",
        ],
    )
    assert (folder / "a.txt").read_text() == "first attempt\n"
    assert (folder / "b.txt").read_text() == "by two\n"
    assert mulligan("drop", "k3fqzz")[:2] == (0, "dropped 2 set aside by k3fqzz\n")


@pytest.fixture
def lent(folder):
    """The tree of an agent that failed, with half of its work in it."""
    lent = git.add_worktree(git.Tree.find(folder), "k3fqzz", "1-1-one")
    Path(lent.folder, "a.txt").write_text("by one\n")
    return lent


def test_the_tree_of_an_agent_that_failed_is_listed(mulligan, lent):
    _, out, _ = mulligan("list")
    row = out.splitlines()[1].split()
    assert row[:4] == ["k3fqzz/agents/1-1-one", "worktree", "lent", "1"]
    assert row[-1] == lent.folder
    (listed,) = json.loads(mulligan("list", "--json")[1])
    assert (listed["state"], listed["folder"], listed["moves"]) == ("lent", lent.folder, ["a.txt"])
    assert mulligan("restore", "k3fqzz")[:2] == (
        0,
        (
            f"k3fqzz/agents/1-1-one: is in its own work tree, {lent.folder}; "
            "mulligan git restore k3fqzz/agents/1-1-one\n"
        ),
    )


def test_the_tree_of_an_agent_that_failed_is_taken_back_by_its_name(mulligan, folder, lent):
    name = "k3fqzz/agents/1-1-one"
    rehearsed = f"{name}: 1 file would come from {lent.folder}\n"
    assert mulligan("restore", name, "--dry-run")[:2] == (0, rehearsed)
    assert mulligan("restore", name)[:2] == (0, f"{name}: 1 file were taken from its work tree\n")
    assert (folder / "a.txt").read_text() == "by one\n"
    assert not Path(lent.folder).exists()


def test_the_tree_of_an_agent_that_failed_is_dropped_by_force(mulligan, folder, lent):
    code, _, err = mulligan("drop", "k3fqzz")
    assert (code, err.splitlines()[0]) == (2, "error: 1 file of 'k3fqzz' is not restored")
    said = "dropped 0 set aside by k3fqzz, and removed 1 of its trees\n"
    assert mulligan("drop", "k3fqzz", "--force")[:2] == (0, said)
    assert not Path(lent.folder).exists()
    assert (folder / "a.txt").read_text() == "one\n"
    assert mulligan("list", "--json")[1] == "[]\n"


def test_a_tree_that_was_taken_back_holds_only_its_secrets(mulligan, folder, lent):
    Path(lent.folder, ".env").write_text("KEY=1\n")
    git.merge_worktree(lent)
    row = mulligan("list")[1].splitlines()[-1].split()
    assert row[:4] == ["k3fqzz/agents/1-1-one", "worktree", "lent", "1"]
    assert mulligan("restore", "k3fqzz")[1].splitlines()[-1] == (
        "k3fqzz/agents/1-1-one: was taken back; what git does not hold is left in " + lent.folder
    )
    assert mulligan("drop", "k3fqzz") == (
        2,
        "",
        (
            f"error: 1 file that git must not store would be lost with {lent.folder}\n\n"
            "hint: take .env out of it, or write --force\n"
        ),
    )
    assert Path(lent.folder, ".env").exists()


def test_nothing_is_taken_from_an_agent_that_may_be_at_work(mulligan, folder, lent):
    runs = RunStore()
    made = RunMade(0.0, "plan", "plan p", str(folder), "host", 0, "nightly", {}, [])
    runs.files("k3fqzz")
    claimed, _ = runs.make("k3fqzz", made)
    refused = "error: run k3fqzz is being run by process"
    for first in (refused, "error: run k3fqzz has not ended"):
        code, _, err = mulligan("restore", "k3fqzz/agents/1-1-one")
        assert (code, err.startswith(first)) == (2, True)
        code, _, err = mulligan("drop", "nightly", "--force")
        assert (code, "run k3fqzz has not ended" in err) == (2, True)
        runs.release(claimed)
    assert Path(lent.folder, "a.txt").read_text() == "by one\n"


def test_restore_does_not_come_between_a_run_and_its_tree(mulligan, folder):
    set_aside(folder, run="k3fqzz/agents/1-1-one")
    runs = RunStore()
    runs.files("k3fqzz")
    claimed, _ = runs.make(
        "k3fqzz", RunMade(0.0, "plan", "plan p", str(folder), "h", 0, "", {}, [])
    )
    driven = f"run k3fqzz is being run by process {os.getpid()}, and restores by itself what it has"
    hint = "wait until it ends, or cancel it first: mulligan cancel k3fqzz"
    said = f"error: {driven} set aside\n\nhint: {hint}\n"
    assert mulligan("restore", "k3fqzz") == (2, "", said)
    assert mulligan("restore", "k3fqzz", "--dry-run")[0] == 0
    runs.release(claimed)
    with git.leased(git.Tree.find(folder), "other"):
        code, _, err = mulligan("restore", "k3fqzz")
    assert (code, "run other works in this tree" in err) == (1, True)
    assert (folder / "a.txt").read_text() == "one\n"
    assert mulligan("restore", "k3fqzz") == (
        0,
        "k3fqzz/agents/1-1-one/1: 1 file restored\n",
        "note: run k3fqzz has not ended, and will continue with what is in the tree then\n",
    )


def test_no_repository_is_an_error(mulligan, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code, _, err = mulligan("list")
    assert code == 1
    assert "not a git repository" in err


def test_help_says_what_each_state_means(mulligan):
    code, out, _ = mulligan("list", "--help")
    assert code == 0
    for state in (
        "prepared",
        "aside",
        "returning",
        "partly",
        "returned",
        "committed",
        "kept",
        "lent",
    ):
        assert f"  {state} " in out


def test_a_run_with_only_a_baseline_can_be_dropped(mulligan, folder):
    git.record_baseline(git.Tree.find(folder), "night-1")
    assert mulligan("drop", "night-1") == (0, "dropped 0 set aside by night-1\n", "")
    assert not git.has_baseline(git.Tree.find(folder), "night-1")
