"""The listening socket, which `refuse` closes and reopens.

A refused connection cannot be scripted request by request: no code reads the request. So ``refuse``
closes the port for a while. The address stays bound meanwhile, without listening, and without
SO_REUSEADDR: with it, any other server could take the port. If a program takes it between the two
sockets, the listener waits until it is free.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..errors import MulliganError
from .connection import Connection, Incoming

if TYPE_CHECKING:
    from collections.abc import Callable

    from .ledger import LedgerEntry
    from .service import Service

__all__ = ("PortListener",)

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# The kernel cuts it to its own limit (4096 on today's Linux).
_BACKLOG = 4096
# How long to leave a port alone that another program has taken.
_RETRY = 0.1
_LOG = logging.getLogger("mulligan.faults")


class PortListener:
    """Accepts connections for a service; see `FaultServer` for its arguments.

    Port 0 is a free one, which it then keeps.
    """

    def __init__(
        self,
        service: Service,
        *,
        host: str,
        port: int,
        allowed_hosts: tuple[str, ...] = (),
        hears: Callable[[LedgerEntry], None] | None = None,
    ) -> None:
        self._service, self._hears = service, hears
        self._hosts = {name.lower() for name in (*_LOOPBACK, host, *allowed_hosts)}
        self.host, self.port = host, port
        self._socket: socket.socket | None = None
        self._server: asyncio.Server | None = None
        self._connections: set[Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Accept connections; raises MulliganError if another program has the address."""
        loop = asyncio.get_running_loop()
        sock = self._bind()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._server = await loop.create_server(
                lambda: asyncio.StreamReaderProtocol(Incoming(), self._connected, loop=loop),
                sock=sock,
                backlog=_BACKLOG,
            )
        except OSError as error:  # two programs may bind an address, only one may listen
            raise _taken(self.host, self.port, error) from error

    async def stop(self) -> None:
        self._close()
        if self._socket is not None:
            self._socket.close()
            self._socket = None
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _close(self) -> None:
        """Accept no more connections, and reset those that exist."""
        if self._server is not None:
            self._server.close()
            self._server = None
        for connection in self._connections:
            connection.cut()

    def close_port(self, seconds: float) -> None:
        """Refuse connections for so long; those that exist are reset."""
        if self._server is None:
            return
        self._close()
        with contextlib.suppress(MulliganError):  # _reopen tries again, and says so
            self._bind().setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 0)
        task = asyncio.ensure_future(self._reopen(seconds))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _reopen(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        is_known = False
        while self._server is None:
            try:
                await self.start()
            except MulliganError:
                if not is_known:
                    words = "another program took port %s while refuse had it closed; trying on"
                    _LOG.error(words, self.port)
                is_known = True
                await asyncio.sleep(_RETRY)

    def _bind(self) -> socket.socket:
        """The address, bound; a socket that was closed is replaced."""
        if self._socket is None or self._socket.fileno() < 0:
            self._socket = _bound(self.host, self.port)
            self.host, self.port = self._socket.getsockname()[:2]
        return self._socket

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 -- a callback of asyncio.start_server is a task
        assert isinstance(reader, Incoming)  # noqa: S101 -- start() makes no other
        connection = Connection(
            self._service,
            reader,
            writer,
            admits=self._admits,
            closes_port=self.close_port,
            hears=self._hears,
        )
        self._tasks.add(task)
        self._connections.add(connection)
        try:
            await connection.run()
        except asyncio.CancelledError:
            pass  # the server stops; the result of this task is not awaited
        finally:
            self._connections.discard(connection)
            self._tasks.discard(task)

    def _admits(self, headers: dict[str, str]) -> bool:
        """Whether Host is one of ours, and Origin, if a browser sent one.

        Without this a web page in a browser could talk to the server through a name that
        resolves to loopback.
        """
        origin = headers.get("origin")
        if origin is not None and _name(origin) not in self._hosts:
            return False
        return _name(f"//{headers.get('host', '')}") in self._hosts


def _name(url: str) -> str | None:
    try:
        return urlsplit(url).hostname
    except ValueError:  # half an IPv6 address
        return None


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_STREAM)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise _taken(host, port, error) from error
    sock.setblocking(False)  # noqa: FBT003 -- the socket module's signature
    return sock


def _taken(host: str, port: int, error: OSError) -> MulliganError:
    reason = error.strerror or error
    return MulliganError(f"cannot listen on {host}:{port} ({reason}); port 0 takes a free one")
