"""Whatever was done to a tree: set aside it is as it was, given back it is to the byte.

MULLIGAN_SOAK=N multiplies the number of examples; `make test` plays a handful.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mulligan.errors import GitRefused
from mulligan.run import git
from mulligan.run.git import record_baseline, restore_changes, set_aside

pytestmark = pytest.mark.real

EXAMPLES = 8 * int(os.environ.get("MULLIGAN_SOAK", "1"))

PATHS = (
    *("a.txt", "b.bin", "dir/c.txt", "dir/sub/d", "run.sh"),
    *("new", "new/x", "dir", "dir/new.txt", "sp ace", "né\nw", "-dash", ":!magic", "dir/sub"),
)
CONTENTS = (b"", b"x\n", b"one\r\ntwo\r\n", b"mixed\r\nend\n", bytes(range(256)), b"no newline")

write = st.tuples(st.just("write"), st.sampled_from(PATHS), st.sampled_from(CONTENTS))
other = st.tuples(
    st.sampled_from(["delete", "chmod", "link", "stage", "unstage", "intend", "forget"]),
    st.sampled_from(PATHS),
    st.just(b""),
)
rename = st.tuples(st.just("rename"), st.sampled_from(PATHS), st.sampled_from(PATHS))
edits = st.lists(st.one_of(write, other, rename), max_size=8)


@pytest.fixture(scope="module")
def template(tmp_path_factory):
    return tmp_path_factory.mktemp("template") / "repo"


@pytest.fixture
def fresh(template, new_repo, tmp_path_factory):
    """A function that gives a new copy of one repository, filters and all."""
    made = new_repo()
    if not template.exists():
        made.commit(
            **{
                ".gitattributes": "*.txt text eol=crlf\n*.bin -text\n",
                "a.txt": "one\r\ntwo\r\nthree\r\n",
                "b.bin": bytes(range(256)),
                "dir/c.txt": "c\r\n",
                "dir/sub/d": "d\n",
                "run.sh": "#!/bin/sh\n",
            }
        )
        shutil.copytree(made.folder, template, symlinks=True)

    def copy():
        folder = tmp_path_factory.mktemp("copy") / "repo"
        shutil.copytree(template, folder, symlinks=True)
        return type(made)(folder)

    return copy


STAGING = {
    "stage": ("add", "--all"),
    "unstage": ("reset", "--quiet"),
    "intend": ("add", "--intent-to-add"),
    "forget": ("rm", "--quiet", "--cached"),
}


def play(repo, todo):
    """Edits as an agent would make them; what makes no sense is skipped."""
    for what, path, more in todo:
        if what in STAGING:
            repo.git("--literal-pathspecs", *STAGING[what], "--", path, check=False)
            continue
        with suppress(OSError):  # a folder where a file should go, a file where a folder should
            edit(repo.folder / path, what, repo.folder / more if what == "rename" else more)


def edit(place: Path, what: str, more: Any) -> None:
    is_file = place.is_symlink() or place.is_file()
    match what:
        case "write":
            place.parent.mkdir(parents=True, exist_ok=True)
            place.unlink(missing_ok=True)
            place.write_bytes(more)
        case "delete" if is_file:
            place.unlink()
        case "chmod" if is_file and not place.is_symlink():
            place.chmod(place.stat().st_mode ^ 0o111)
        case "link":
            place.symlink_to("run.sh")
        case "rename" if is_file:
            place.rename(more)
        case _:
            pass


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(mine=edits, agents=edits)
def test_the_tree_is_as_it_was_and_then_as_the_agent_left_it(fresh, mine, agents):
    repo = fresh()
    play(repo, mine)
    tree = repo.tree
    record_baseline(tree, "r1")
    before = repo.state()
    play(repo, agents)
    after = repo.state()
    aside = set_aside(tree, "stash", "r1")
    if aside is None:
        assert after == before
        return
    assert aside.left == ()
    assert repo.state() == before
    assert repo.is_clean("r1")
    given_back = restore_changes(tree, aside)
    assert given_back.is_whole
    assert given_back.unstaged == ()
    assert repo.state() == after


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(mine=edits, agents=edits, words=st.text(max_size=100))
def test_a_commit_takes_what_is_the_runs_and_leaves_the_rest(fresh, mine, agents, words):
    repo = fresh()
    play(repo, mine)
    tree = repo.tree
    baseline = record_baseline(tree, "r1")
    play(repo, agents)
    files, head = repo.seen(), repo.git("rev-parse", "HEAD")
    try:
        set_aside(tree, "commit", "r1", words=words)
    except GitRefused:  # both have changed a file: nothing is committed
        assert repo.git("rev-parse", "HEAD") == head
        assert {move.path for move in git.changes(tree, baseline).moves} & {*baseline.states}
        assert repo.seen() == files
        return
    assert repo.seen() == files  # no file was touched
    dirty = git.changes(tree, baseline)
    assert {move.path for move in dirty.moves} <= {*baseline.states}
    names = repo.git("diff", "--name-only", "--no-renames", "-z", baseline.head, "HEAD")
    assert not {*names.split("\0")} & {*baseline.states}


@settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
@given(first=edits, second=edits)
def test_whatever_the_retry_did_nothing_is_lost(fresh, first, second):
    repo = fresh()
    tree = repo.tree
    play(repo, first)
    attempted = blobs(repo)
    aside = set_aside(tree, "stash", "r1")
    if aside is None:
        return
    changed = {attempted[move.path] for move in aside.moves if move.path in attempted}
    play(repo, second)
    retried = {*blobs(repo).values()}
    restore_changes(tree, aside, is_partial=True)
    objects = repo.git("rev-list", "--objects", "--all").splitlines()
    found = {line.split()[0] for line in objects} | {*blobs(repo).values()}
    assert changed <= found
    assert retried <= found


def blobs(repo):
    """The content of every file, by the name that git has for it."""
    files = repo.tree.files
    return {
        path: files.oid_of((repo.folder / path).read_bytes())
        for path in repo.seen()
        if not (repo.folder / path).is_symlink()
    }
