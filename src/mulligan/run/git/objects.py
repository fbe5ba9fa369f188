"""Objects of a repository: content, trees, commits.

Everything is written with plumbing that touches neither the work tree nor the index. An object
that no reference reaches is swept by git after two weeks, so whoever writes one names it soon.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from ...errors import GitError
from .command import TIMEOUT, check_stop, watched
from .files import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from .command import Git

__all__ = (
    "build_tree",
    "commit_tree",
    "content_of",
    "entries_of",
    "index_lines",
    "reader",
    "write_blob",
    "write_files",
)

# Commits that nobody's history contains are signed by nobody.
_NOBODY = {
    "GIT_AUTHOR_NAME": "mulligan",
    "GIT_AUTHOR_EMAIL": "mulligan@localhost",
    "GIT_COMMITTER_NAME": "mulligan",
    "GIT_COMMITTER_EMAIL": "mulligan@localhost",
}


def write_files(git: Git, places: Sequence[str]) -> list[str]:
    """Store the bytes of files as they are, without filters; their ids, in order."""
    if not places:
        return []
    asked = b"".join(_quoted(os.fsencode(place)) + b"\n" for place in places)
    said = git.run("hash-object", "-w", "--no-filters", "--stdin-paths", stdin=asked)
    return said.decode().split()


def write_blob(git: Git, content: bytes) -> str:
    """Store `content`; its id."""
    return git.run("hash-object", "-w", "--stdin", stdin=content).decode().strip()


def build_tree(git: Git, base: str, changes: Mapping[str, Entry | None], scratch: str) -> str:
    """The tree `base` (empty for none) with other entries, None for an entry that goes."""
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        aside = git.having(GIT_INDEX_FILE=os.path.join(folder, "index"))
        aside.run("read-tree", *([base] if base else ["--empty"]))
        aside.run("update-index", "-z", "--index-info", stdin=index_lines(git, changes))
        return aside.line("write-tree", "--missing-ok")


def index_lines(git: Git, changes: Mapping[str, Entry | None]) -> bytes:
    """Changes as ``git update-index --index-info`` reads them: what goes stands first.

    A file that becomes a folder has to go before the files in that folder can come.
    """
    gone = [path for path, entry in changes.items() if entry is None]
    lines = [b"0 %s\t%s\0" % (git.nothing.encode(), os.fsencode(path)) for path in gone]
    lines += [
        b"%s %s\t%s\0" % (entry.mode.encode(), entry.oid.encode(), os.fsencode(path))
        for path, entry in changes.items()
        if entry is not None
    ]
    return b"".join(lines)


def commit_tree(git: Git, tree: str, parents: Iterable[str], message: str) -> str:
    """A commit that is on no branch; its id."""
    asked = [word for parent in parents for word in ("-p", parent)]
    said = git.having(**_NOBODY).run("commit-tree", tree, *asked, stdin=message.encode())
    return said.decode().strip()


def entries_of(git: Git, treeish: str) -> dict[str, Entry]:
    """Every file of a tree."""
    found = {}
    for line in git.fields("ls-tree", "-r", "-z", "--full-tree", treeish):
        about, _, path = line.partition("\t")
        mode, _, oid = about.split(" ")
        found[path] = Entry(mode, oid)
    return found


def content_of(git: Git, oid: str) -> bytes:
    """The content of one object, or of ``COMMIT:path``."""
    return git.run("cat-file", "blob", oid)


@contextmanager
def reader(git: Git) -> Iterator[Callable[[str], bytes]]:
    """A function from ids to contents, over one process.

    Raises:
        GitError: An object is not there, or git has ended.
        GitStopped: We were told to stop.
    """
    child = git.start("cat-file", "--batch")
    source, answers = child.stdin, child.stdout
    assert source is not None  # noqa: S101 -- a pipe
    assert answers is not None  # noqa: S101 -- a pipe

    def read(oid: str) -> bytes:
        with suppress(BrokenPipeError):  # a git that has ended answers nothing
            source.write(oid.encode() + b"\n")
            source.flush()
        head = answers.readline().split()
        if len(head) != 3:
            check_stop("git cat-file")
            said = b" ".join(head).decode() or "git has ended"
            raise GitError(f"object {oid} cannot be read: {said}")
        size = int(head[2])
        content = answers.read(size + 1)
        if len(content) != size + 1:
            check_stop("git cat-file")
            raise GitError(f"object {oid} ends after {len(content)} of {size} bytes")
        return content[:-1]

    try:
        with answers, watched(child, TIMEOUT):
            yield read
    finally:
        with suppress(BrokenPipeError):  # what it was asked and did not read
            source.close()


def _quoted(place: bytes) -> bytes:
    """A path in quotes, as git reads it where a newline would end it."""
    return b'"' + b"".join(_ESCAPED.get(byte, bytes([byte])) for byte in place) + b'"'


_ESCAPED = {
    **{byte: b"\\%03o" % byte for byte in (*range(32), 127)},
    ord('"'): b'\\"',
    ord("\\"): b"\\\\",
}
