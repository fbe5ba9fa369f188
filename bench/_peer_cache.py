"""Kept measurements of peers, in a file outside of the repository.

What a peer does in a scenario under a seed changes with its package, its adapter, the simulator or
the interpreter, and with nothing else: all of these are part of the key. Mulligan itself is
measured anew in every run.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mulligan.sim

if TYPE_CHECKING:
    from _peers import Peer

__all__ = ("PeerCache",)


# What a measurement of a peer goes through.
_MODULES = (
    *("engine", "ledger", "limiters", "metrics", "oracle", "randomness", "scenario"),
    *("scenario_file", "server"),
)


def _default_file() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "mulligan-bench" / "recovery-peers.json"


def _digest() -> str:
    """What the simulator and the adapters are made of."""
    folder = Path(mulligan.sim.__file__).parent
    sources = [folder / f"{name}.py" for name in _MODULES]
    sources += sorted(folder.rglob("*.toml"))
    sources.append(Path(__file__).with_name("_peers.py"))
    whole = hashlib.sha256()
    for file in sources:
        whole.update(file.name.encode())
        whole.update(file.read_bytes())
    return whole.hexdigest()[:16]


class PeerCache:
    """Measurements of earlier runs.

    Args:
        file: Where they are kept; in the user's cache folder by default.
    """

    def __init__(self, file: Path | None = None) -> None:
        self._file = file or _default_file()
        self._base = f"{platform.python_version()} {_digest()}"
        self._kept: dict[str, dict[str, Any]] = {}
        try:
            kept = json.loads(self._file.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return  # there is none yet, or it was cut short
        # What was measured with another simulator or adapter is not kept any longer.
        self._kept = {key: each for key, each in kept.items() if key.startswith(self._base)}

    def _key(self, peer: Peer, scenario: str, seed: int) -> str:
        version = metadata.version(peer.package)
        return f"{self._base} {peer.name} {version} {scenario} {seed}"

    def get(self, peer: Peer, scenario: str, seed: int) -> dict[str, Any] | None:
        return self._kept.get(self._key(peer, scenario, seed))

    def put(self, peer: Peer, found: dict[str, Any]) -> None:
        self._kept[self._key(peer, found["scenario"], found["seed"])] = found

    def write(self) -> None:
        self._file.parent.mkdir(parents=True, exist_ok=True)
        part = self._file.with_suffix(f".{os.getpid()}")
        part.write_text(json.dumps(self._kept), encoding="utf-8")
        part.replace(self._file)
