"""JsonLinesListener: events as lines of a file, one JSON object each."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import SettingError
from .background import QueuedListener
from .logging import fields

if TYPE_CHECKING:
    from ..core.events import Event

__all__ = ("JsonLinesListener",)


class JsonLinesListener(QueuedListener):
    """A listener that appends every event to a file, as JSON, one line each.

    A thread of its own writes, so that a slow disk holds up no call. Several processes may write to
    one file: a line is written in one piece. A file that was moved away or deleted, as logrotate
    does it, is made again with the next event. It is readable for its owner alone.

    Args:
        path: The file. Its folder must exist.
        capacity: How many events may wait for the disk; more are dropped and counted in `dropped`.
        successes: Whether to report calls that succeed at once, too.

    Raises:
        SettingError: The file cannot be written.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        capacity: int = 10_000,
        successes: bool = False,
    ) -> None:
        self.path, self.successes = Path(path).expanduser().absolute(), successes
        try:
            os.close(self._open())
        except OSError as trouble:
            raise SettingError(
                f"JsonLinesListener cannot write to {self.path}: {trouble.strerror}; "
                f"give a file in a folder that exists and is yours"
            ) from None
        super().__init__("JsonLinesListener", capacity=capacity)

    def _open(self) -> int:
        return os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)

    def deliver(self, events: list[Event]) -> None:
        """Append the events to the file."""
        # In ASCII: U+2028 and U+0085 end a line for half the programs that read one.
        lines = [f"{json.dumps(fields(event), separators=(',', ':'))}\n" for event in events]
        file = self._open()  # opened for each batch: the file may have been rotated
        try:
            for line in lines:
                data = line.encode("ascii")
                if os.write(file, data) != len(data):  # the rest of it would be another line
                    raise OSError("the disk is full")
        finally:
            os.close(file)
