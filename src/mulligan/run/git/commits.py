"""Commits what a run has changed, nothing else.

The commit is made from an index of its own: the last commit plus the run's files. What the user has
staged is not in it, and if a hook refuses it nothing has to be undone. Hooks run as they would for
the user; if one fails, the error has its output.
"""

from __future__ import annotations

import os
import tempfile
import textwrap
from typing import TYPE_CHECKING

from ...core.redaction import presentable
from ...errors import GitError, GitRefused, HookFailed
from .apply import PathStep, stage
from .command import null_terminated
from .objects import entries_of
from .record import FileState
from .refs import set_state

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .command import Git
    from .record import SetAside
    from .tree import Tree

__all__ = ("PREFIX", "TRAILER", "commit_changes", "identity", "made_before", "message_of")

PREFIX = "mulligan: "
TRAILER = "Mulligan-Run"

# What git log and most web pages show of a subject.
_SUBJECT = 72

# Hooks run tests and linters; longer than this is a hook that waits for a user.
HOOK_SECONDS = 900.0

_ROLES = ("AUTHOR", "COMMITTER")


def commit_changes(tree: Tree, aside: SetAside) -> SetAside:
    """Commit what was prepared, on the current HEAD. Idempotent.

    Raises:
        HookFailed: A hook refused it.
        GitError: Git did.
    """
    made = made_before(tree, aside) or _commit(tree, aside)
    # Update the real index to the commit; what the user has staged stays.
    head = tree.head
    entries = entries_of(tree, head) if head else {}
    steps = []
    for move in aside.moves:
        staged = move.aside, FileState(index=entries.get(move.path))
        steps.append(PathStep(path=move.path, before=None, after=None, staged=staged))
    stage(tree, steps)
    return set_state(tree, aside, "committed", made=made)


def _commit(tree: Tree, aside: SetAside) -> str:
    git = _with_identity(tree.git, aside.author)
    paths = [move.path for move in aside.moves]
    with tempfile.TemporaryDirectory(dir=tree.scratch) as folder:
        git = git.with_variables(GIT_INDEX_FILE=os.path.join(folder, "index"))
        head = tree.head
        git.run("read-tree", *([head] if head else ["--empty"]))
        options = ("--add", "--remove", "--replace", "-z", "--stdin")
        git.run("update-index", *options, stdin=null_terminated(paths))
        if head and git.ask("diff-index", "--cached", "--quiet", head, "--").code == 0:
            return ""  # no difference to the last commit
        name = f"{aside.run}/{aside.number}"
        message = os.path.join(folder, "message")
        with open(message, "w", encoding="utf-8") as file:
            file.write(message_of(aside.words, paths, name=name, prefix=aside.prefix))
        done = git.ask(
            *("commit", "--quiet", "--no-gpg-sign", "--cleanup=whitespace", "--file", message),
            timeout=HOOK_SECONDS,
            has_hooks=True,
        )
    if done.code == 0:
        return tree.head
    if made := made_before(tree, aside):
        return made  # a post-commit hook failed, or another process made it
    # Exit code 1: a hook failed. 128: git itself did, for example without an author's mail.
    kind = HookFailed if done.code == 1 else GitError
    raise kind(
        f"the commit was refused with exit code {done.code}: {done.text}; nothing is "
        f"committed, and the files are kept at {aside.ref}",
        done.text,
    )


def identity(git: Git, author: str = "") -> str:
    """The author as ``Name <mail>``: the configured one, else `author`; refused without either."""
    if who := _known(git) or author:
        return who
    raise GitRefused(
        "git does not know who commits; set user.name and user.email with git config, or "
        "GIT_AUTHOR_NAME, GIT_AUTHOR_EMAIL, GIT_COMMITTER_NAME and GIT_COMMITTER_EMAIL, or "
        "use another mode than commit"
    )


def _known(git: Git) -> str:
    """The author that git knows, if it knows the committer as well; empty if not."""
    author, committer = (git.ask("var", f"GIT_{role}_IDENT") for role in _ROLES)
    if author.code or committer.code:
        return ""
    return author.out.decode("utf-8", "replace").rpartition(">")[0] + ">"


def _with_identity(git: Git, author: str) -> Git:
    """Git with `author` as its identity, unless it has one configured."""
    if _known(git) or not author:
        return git
    name, _, mail = author.partition("<")
    facts = {"NAME": name.strip(), "EMAIL": mail.rstrip("> ")}
    return git.with_variables(
        **{f"GIT_{role}_{k}": each for role in _ROLES for k, each in facts.items()}
    )


def made_before(tree: Tree, aside: SetAside) -> str:
    """The commit, if it was made by a process that died before recording it."""
    head = tree.head
    if not head or head == aside.head:
        return ""
    since = [head] if not aside.head else [head, f"^{aside.head}"]
    trailer = f"^{TRAILER}: {aside.run}/{aside.number}$"
    said = tree.git.run("log", "--format=%H", f"--grep={trailer}", *since, "--")
    return said.decode().partition("\n")[0]


def message_of(words: str, paths: Sequence[str], *, name: str, prefix: str = PREFIX) -> str:
    """The message of a commit: a subject, the rest of the words, a trailer that names the run.

    The words come from an agent, so they are data: one line, no control or direction characters,
    no secrets, cut. Without words the message names `paths`. `name` is ``RUN/NUMBER``.
    """
    said = presentable(words) or _files(paths)
    room = max(20, _SUBJECT - len(prefix))
    subject, rest = said, ""
    if len(said) > room:
        cut = said.rfind(" ", 0, room)
        cut = cut if cut > 0 else room - 1
        subject, rest = said[:cut].rstrip() + "…", "…" + said[cut:].lstrip()
    parts = [presentable(prefix, 60) + " " * prefix.endswith(" ") + subject]
    if rest:
        parts.append(textwrap.fill(rest, _SUBJECT, break_on_hyphens=False))
    parts.append(f"{TRAILER}: {name}")
    return "\n\n".join(parts) + "\n"


def _files(paths: Sequence[str]) -> str:
    names = ", ".join(presentable(path, 60) for path in paths[:3])
    if len(paths) == 1:
        return f"unfinished changes to {names}"
    return f"unfinished changes to {len(paths)} files: {names}" + ", …" * (len(paths) > 3)
