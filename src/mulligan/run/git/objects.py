"""Writes objects of a repository (blobs, trees, commits), and lists the files of a commit.

One git process writes them as a pack, and touches neither the work tree nor the index. Git deletes
unreachable objects after two weeks, so the caller gives each a reference soon.
"""

from __future__ import annotations

import hashlib
import os
import struct
import subprocess
import time
import zlib
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType
from typing import IO, TYPE_CHECKING

from ...core.redaction import presentable
from ...errors import GitError
from .command import TIMEOUT, CommandTimer, Git, check_stop
from .files import TreeEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .tree import Tree

__all__ = ("Objects", "edited_tree", "entries_of", "index_lines")

# The author of commits that are on no branch.
_AUTHOR = "mulligan <mulligan@localhost>"

# Up to this many objects are unpacked into loose files; git's own limit for fetches.
_LOOSE = 100
_CHUNK = 1 << 20
_TYPES = {"commit": 1, "tree": 2, "blob": 3}
_TREE = "40000"


@dataclass(slots=True)
class Objects:
    """Objects to be written. Their ids are known before."""

    git: Git
    _made: dict[str, tuple[str, bytes]] = field(default_factory=dict, repr=False)
    _files: dict[str, str] = field(default_factory=dict, repr=False)

    def file(self, place: str, oid: str) -> None:
        """Add a file whose bytes have this id; it is read when the objects are written."""
        self._files[oid] = place

    def blob(self, content: bytes) -> str:
        """Add content; its id."""
        return self._add("blob", content)

    def tree(self, entries: Mapping[str, TreeEntry]) -> str:
        """Add one folder; its id."""
        lines = []
        for name, each in entries.items():
            raw = os.fsencode(name)
            line = b"%s %s\0%s" % (each.mode.encode(), raw, bytes.fromhex(each.oid))
            lines.append((raw + b"/" if each.mode == _TREE else raw, line))
        return self._add("tree", b"".join(line for _, line in sorted(lines)))

    def commit(self, tree: str, parents: Sequence[str], message: str) -> str:
        """Add a commit that is on no branch; its id."""
        lines = [f"tree {tree}", *(f"parent {each}" for each in dict.fromkeys(parents) if each)]
        lines += [f"{role} {_AUTHOR} {time.time():.0f} +0000" for role in ("author", "committer")]
        return self._add("commit", "\n".join([*lines, "", message]).encode())

    def write(self) -> None:
        """Write everything that was added; raises `GitError` if a file has changed since then."""
        if len(self._made) + len(self._files) > _LOOSE:
            self._drop_known()
        count = len(self._made) + len(self._files)
        if not count:
            return
        command = ["unpack-objects", "-q"] if count <= _LOOSE else ["index-pack", "--stdin"]
        child = self.git.start(
            *command, streams=(subprocess.PIPE, subprocess.DEVNULL, subprocess.PIPE)
        )
        source, said = child.stdin, child.stderr
        assert source is not None  # noqa: S101 -- a pipe
        assert said is not None  # noqa: S101 -- a pipe
        try:
            with said, CommandTimer(child) as timer:
                with suppress(BrokenPipeError):  # a git that has ended says why
                    self._send(source, count)
                    source.close()
                words = said.read()
                code = child.wait()
        finally:
            with suppress(BrokenPipeError):
                source.close()
        if timer.is_late:
            raise GitError(f"git {command[0]} took longer than {TIMEOUT:g} s and was stopped")
        if code:
            check_stop(f"git {command[0]}")
            shown = presentable(words.decode("utf-8", "replace"))
            raise GitError(f"git {command[0]} failed with exit code {code}: {shown}", shown)
        self._made.clear()
        self._files.clear()

    def _add(self, kind: str, content: bytes) -> str:
        digest = self._digest(b"%s %d\0" % (kind.encode(), len(content)))
        digest.update(content)
        oid = digest.hexdigest()
        self._made[oid] = (kind, content)
        return oid

    def _digest(self, start: bytes = b"") -> hashlib._Hash:
        name = "sha256" if len(self.git.null_id) == 64 else "sha1"
        return hashlib.new(name, start, usedforsecurity=False)

    def _drop_known(self) -> None:
        """Drop objects that the repository already has."""
        asked = [*self._made, *self._files]
        listed = "".join(f"{oid}\n" for oid in asked).encode()
        said = self.git.run("cat-file", "--batch-check=%(objectname)", stdin=listed)
        for oid, line in zip(asked, said.decode().splitlines(), strict=True):
            if line == oid:
                self._made.pop(oid, None)
                self._files.pop(oid, None)

    def _send(self, pipe: IO[bytes], count: int) -> None:
        whole = self._digest()

        def send(part: bytes) -> None:
            whole.update(part)
            pipe.write(part)

        send(struct.pack(">4sII", b"PACK", 2, count))
        for kind, content in self._made.values():
            send(_header(kind, len(content)) + zlib.compress(content, 1))
        for oid, place in self._files.items():
            self._send_file(send, place, oid)
        pipe.write(whole.digest())

    def _send_file(self, send: Callable[[bytes], None], place: str, oid: str) -> None:
        with open(place, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            digest, packed = self._digest(b"blob %d\0" % size), zlib.compressobj(1)
            send(_header("blob", size))
            while chunk := file.read(_CHUNK):
                digest.update(chunk)
                send(packed.compress(chunk))
            send(packed.flush())
        if digest.hexdigest() != oid:
            raise GitError(f"{presentable(place, 200)} is being written to; try again later")


def _header(kind: str, size: int) -> bytes:
    """The type and size of an object in a pack: 4 bits, then 7 a byte."""
    first, size = _TYPES[kind] << 4 | size & 15, size >> 4
    found = bytearray()
    while size:
        found.append(first | 128)
        first, size = size & 127, size >> 7
    found.append(first)
    return bytes(found)


def edited_tree(
    objects: Objects,
    read: Callable[[str], bytes] | None,
    base: str,
    changes: Mapping[str, TreeEntry | None],
) -> str:
    """The tree `base` (empty for none) with other entries, None for an entry that goes.

    Only the folders on the way to a change are read, with `read`, and written again.
    """

    def edited(base: str, changes: Mapping[str, TreeEntry | None]) -> dict[str, TreeEntry]:
        entries = _folder(read(base), len(objects.git.null_id) // 2) if base and read else {}
        for name, inner in _by_folder(changes).items():
            there = entries.get(name)
            folder = there if there is not None and there.mode == _TREE else None
            if found := edited("" if folder is None else folder.oid, inner):
                entries[name] = TreeEntry(_TREE, objects.tree(found))
            elif folder is not None:
                del entries[name]
        for name, entry in changes.items():
            if "/" in name:
                continue
            if entry is not None:
                entries[name] = entry
            elif name in entries and entries[name].mode != _TREE:
                del entries[name]  # a folder that replaced it stays
        return entries

    return objects.tree(edited(base, changes))


def _by_folder(changes: Mapping[str, TreeEntry | None]) -> dict[str, dict[str, TreeEntry | None]]:
    found: dict[str, dict[str, TreeEntry | None]] = {}
    for path, entry in changes.items():
        name, slash, rest = path.partition("/")
        if slash:
            found.setdefault(name, {})[rest] = entry
    return found


def _folder(content: bytes, size: int) -> dict[str, TreeEntry]:
    found, at = {}, 0
    while at < len(content):
        end = content.index(b"\0", at)
        mode, _, name = content[at:end].partition(b" ")
        at = end + 1 + size
        found[os.fsdecode(name)] = TreeEntry(mode.decode(), content[end + 1 : at].hex())
    return found


def index_lines(git: Git, changes: Mapping[str, TreeEntry | None]) -> bytes:
    """Changes in the format of ``git update-index --index-info``, removals first.

    A file that becomes a folder must be removed before files in that folder are added.
    """
    lines = []
    for path, entry in sorted(changes.items(), key=lambda each: each[1] is not None):
        about = f"0 {git.null_id}" if entry is None else f"{entry.mode} {entry.oid}"
        lines.append(b"%s\t%s\0" % (about.encode(), os.fsencode(path)))
    return b"".join(lines)


def entries_of(tree: Tree, commit: str) -> Mapping[str, TreeEntry]:
    """Every file of a commit, by its id."""
    return _entries(tree.store, commit)


@lru_cache(maxsize=4)  # what has an id never changes
def _entries(git: Git, commit: str) -> Mapping[str, TreeEntry]:
    found = {}
    for line in git.fields("ls-tree", "-r", "-z", "--full-tree", commit):
        about, _, path = line.partition("\t")
        mode, _, oid = about.split(" ")
        found[path] = TreeEntry(mode, oid)
    return MappingProxyType(found)
