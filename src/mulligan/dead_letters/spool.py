"""Spool files for letters that could not be written to their store.

One file per letter, readable by its owner alone, written whole or not at all. A folder that other
users can write to is refused.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING

from ..stores.home import home, private_folder

if TYPE_CHECKING:
    from pathlib import Path

__all__ = ("LetterSpool",)

_LONGEST = 4 * 1024 * 1024


class LetterSpool:
    """The folder of letters that wait for their store.

    Args:
        folder: Where; by default in the folder for state.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder

    @property
    def folder(self) -> Path:
        """Where they are; made if it does not exist.

        Raises:
            StoreError: It cannot be made, or belongs to another user.
        """
        return private_folder(self._folder or home() / "dead")

    def put(self, name: str, text: str) -> Path:
        """Write `text` to a file; returns its path.

        Raises:
            OSError: It cannot be written, or is there already.
            StoreError: There is no folder for it.
        """
        path = self.folder / f"{name}.json"
        draft = path.with_name(f".{name}.{os.getpid()}")
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(draft, flags, 0o600)
        try:
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            os.link(draft, path)  # unlike a rename it fails where there is one already
        finally:
            with suppress(OSError):
                draft.unlink()
        return path

    def all(self) -> dict[str, str]:
        """Every text by its name, in order; what cannot be read is left out."""
        found: dict[str, str] = {}
        for path in sorted(self.folder.glob("[!.]*.json")):
            with suppress(OSError, UnicodeDecodeError):
                descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
                with os.fdopen(descriptor, encoding="utf-8") as file:
                    if os.fstat(file.fileno()).st_uid == os.geteuid():
                        found[path.stem] = file.read(_LONGEST)
        return found

    def remove(self, name: str) -> None:
        """Forget the text called `name`; a missing one is not an error."""
        with suppress(FileNotFoundError):
            (self.folder / f"{name}.json").unlink()
