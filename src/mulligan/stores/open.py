"""Stores by address: ``memory:``, ``sqlite:PATH``, ``redis://…``."""

from __future__ import annotations

import atexit
import re
from threading import Lock
from typing import TYPE_CHECKING

from ..errors import SettingError
from .forks import reset_after_fork

if TYPE_CHECKING:
    from ..core.ports import Store

__all__ = ("open_store", "printable", "sqlite_path")

_USER = re.compile(r"(?<=://)[^/?#]*@")
_QUERY = re.compile(r"(?i)([?&][^=&]*(?:pass|token|secret|key)[^=&]*=)[^&#]*")


class _Opened:
    """Every store that was opened by its address."""

    def __init__(self) -> None:
        self.lock = Lock()
        self._stores: dict[str, Store] = {}
        reset_after_fork(self)

    def after_fork(self) -> None:
        self.lock = Lock()

    def at(self, url: str) -> Store:
        with self.lock:
            store = self._stores.get(url)
            if store is None:
                if not self._stores:
                    # Before the interpreter shuts down: at its very end even `close` is gone.
                    atexit.register(self._close)
                store = self._stores[url] = _new(url)
            return store

    def _close(self) -> None:
        for store in self._stores.values():
            store.close()


_opened = _Opened()


def open_store(url: str) -> Store:
    """The store at `url`; the same one for the same address in one process.

    Raises:
        SettingError: No store has such an address.
        MissingExtra: Its client is not installed.
        StoreError: It cannot be used safely.
    """
    return _opened.at(url)


def sqlite_path(url: str) -> str:
    """The path in ``sqlite:PATH`` or ``sqlite:///PATH``; empty for every other address."""
    scheme, _, rest = url.partition(":")
    if scheme != "sqlite":
        return ""
    return rest.removeprefix("//") if rest.startswith("///") else rest


def _new(url: str) -> Store:
    scheme, colon, rest = url.partition(":")
    if colon and scheme == "memory" and not rest:
        from .memory import Memory

        return Memory()
    if path := sqlite_path(url):
        from .sqlite.store import Sqlite

        return Sqlite(path)
    if scheme in {"redis", "rediss", "unix"} and rest.startswith("//"):
        from .redis.store import Redis

        return Redis(url)
    raise SettingError(
        f"a store needs an address such as memory:, sqlite:PATH or redis://HOST; "
        f"got {printable(url)!r}"
    )


def printable(url: str) -> str:
    """`url` without user, password and anything in its query that sounds like one."""
    return _QUERY.sub(r"\1[masked]", _USER.sub("", url))
