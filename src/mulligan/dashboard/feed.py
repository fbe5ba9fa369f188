"""The feed of server-sent events: one look at the stores a second, told to every open page."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from .sources import Sources

__all__ = ("Feed",)

# Seconds between two looks, and looks between two at the targets.
_EVERY, _TARGETS_EVERY = 1.0, 2

# Seconds after which a page is told that the server is there, so that proxies keep the connection.
_PING = 15.0

# Messages that wait for a page; one that reads more slowly is told to load everything again.
_WAITING = 50


class Feed:
    """Tells pages what has changed.

    Nothing is read while no page is open. However many are open, stores are read once, and a
    message is written once.
    """

    def __init__(self, sources: Sources) -> None:
        self._sources = sources
        self._pages: set[asyncio.Queue[str | None]] = set()
        self._looking: asyncio.Task[None] | None = None
        self._targets: dict[str, Any] = {}

    async def pages(self) -> AsyncIterator[str]:
        """The events for one page, until it goes away."""
        queue: asyncio.Queue[str | None] = asyncio.Queue(_WAITING)
        self._pages.add(queue)
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            yield "retry: 2000\n\n" + _message("hello", {"now": self._sources.now()})
            while True:
                try:
                    async with asyncio.timeout(_PING):
                        told = await queue.get()
                except TimeoutError:
                    yield ": still here\n\n"
                    continue
                if told is None:
                    return
                yield told
        finally:
            self._pages.discard(queue)

    async def _look(self) -> None:
        look = 0
        while self._pages:
            # What goes wrong once must not end the feed; the requests of a page say what it is.
            with suppress(Exception):
                changed = await asyncio.to_thread(self._sources.refresh)
                if changed is not None:
                    self.tell("runs", changed)
                if look % _TARGETS_EVERY == 0:
                    targets = await asyncio.to_thread(self._sources.targets)
                    if targets != self._targets:
                        self._targets = targets
                        self.tell("targets", targets)
            look += 1
            await asyncio.sleep(_EVERY)

    def tell(self, event: str, data: Any) -> None:
        """Tell every page."""
        message = _message(event, data)
        for queue in list(self._pages):
            try:
                queue.put_nowait(message)
            except asyncio.QueueFull:
                while not queue.empty():
                    queue.get_nowait()
                queue.put_nowait(_message("reload", {}))

    def close(self) -> None:
        """End the connections of all pages."""
        for queue in list(self._pages):
            with suppress(asyncio.QueueFull):
                queue.put_nowait(None)


def _message(event: str, data: Any) -> str:
    # JSON in ASCII has no line end in it, so it is one `data` line.
    return f"event: {event}\ndata: {json.dumps(data)}\n\n"
