"""One connection: read a request, carry out its delivery, read the next.

Reading ──request──▶ Answering ──all sent──▶ Reading
│                     ├──reset──▶ gone
└──end of file──▶ gone└──close──▶ gone
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import socket
import struct
import time
from math import isfinite
from typing import TYPE_CHECKING

from .control import control
from .delivery import Act, Close, ClosePort, DeliveryPause, Hang, Reset, Send
from .wire import BODY_LIMIT, BadRequest, HttpRequest, read_head, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import SupportsIndex

    from .ledger import LedgerEntry
    from .service import Handled, Service

__all__ = ("Connection", "Incoming")

# Real headers are smaller than this.
_HEAD_LIMIT = 64 * 1024
# The first bytes of a TLS client.
_TLS = b"\x16"
# A client that sends within these seconds of connecting connected for this request.
_AT_ONCE = 0.1
# How long a client that was turned away may go on sending.
_LINGER = 0.5
_LOG = logging.getLogger("mulligan.faults")
_SIZE = re.compile(rb"[0-9A-Fa-f]{1,16}")


class Incoming(asyncio.StreamReader):
    """What the client sends, when it began to, and whether it has left.

    Reading on would notice that, too, but consume the next request of a pipelining client. Times
    are taken here because the reading task may run late, after another task's answer.
    """

    def __init__(self) -> None:
        super().__init__(limit=_HEAD_LIMIT)
        self.left = asyncio.Event()
        # Until the first bytes: when the client connected.
        self._fed_at = time.time()
        self._began_at: float | None = None
        self._is_fresh = True

    def feed_data(self, data: Iterable[SupportsIndex]) -> None:
        now = time.time()
        if self._began_at is None:
            is_prompt = self._is_fresh and now - self._fed_at < _AT_ONCE
            self._began_at = self._fed_at if is_prompt else now
        self._fed_at, self._is_fresh = now, False
        super().feed_data(data)

    def begun(self) -> float:
        """When the request began that has just been read; the next bytes begin another."""
        # None where it came with the bytes of the one before.
        began_at = self._fed_at if self._began_at is None else self._began_at
        self._began_at = None
        return began_at

    def feed_eof(self) -> None:
        super().feed_eof()
        self.left.set()

    def set_exception(self, exc: Exception) -> None:
        super().set_exception(exc)
        self.left.set()


class Connection:
    """One client's connection.

    `admits` says whether a request with these headers may be answered, `closes_port` closes the
    port for some seconds, `hears` is told of each request once its answer is decided.
    """

    def __init__(
        self,
        service: Service,
        reader: Incoming,
        writer: asyncio.StreamWriter,
        *,
        admits: Callable[[dict[str, str]], bool],
        closes_port: Callable[[float], None],
        hears: Callable[[LedgerEntry], None] | None,
    ) -> None:
        self._service, self._reader, self._writer = service, reader, writer
        self._admits, self._closes_port, self._hears = admits, closes_port, hears
        self._is_cut = False

    def cut(self) -> None:
        """Break off, whatever is being answered: the client sees a reset."""
        self._is_cut = True
        _reset(self._writer)

    async def run(self) -> None:
        try:
            while await self._turn():
                pass
        except (ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            pass  # the client disconnected
        except BadRequest as error:
            self._send(error.status, str(error))
            await self._linger()
        except asyncio.LimitOverrunError:
            self._send(431, "the headers are too long")
            await self._linger()
        except Exception as error:
            # A bug of ours must not look like a scripted fault.
            self._send(500, f"the fault server itself failed: {error!r}")
            raise
        finally:
            self._writer.close()

    async def _turn(self) -> bool:
        """Answer one request; whether there may be another."""
        data = await self._head()
        if not data:
            return False
        head = read_head(data)
        if not self._admits(head.headers):
            raise BadRequest(421, "this Host or Origin may not talk to the fault server")
        if head.headers.get("expect", "").lower() == "100-continue" and not head.is_old:
            self._writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request = HttpRequest(head=head, body=await self._body(head.length))
        # The wall clock: resets and dates are stated in it.
        began_at, now = self._reader.begun(), time.time()
        own = control(self._service, request, now)
        if own is not None:
            self._writer.write(own)
            await self._writer.drain()
            return head.keeps_alive
        handled = self._service.handle(request, now, began_at=began_at)
        return await self._answer(handled) and head.keeps_alive

    async def _head(self) -> bytes:
        """The head without its blank line; empty if the client speaks no HTTP, or no more."""
        data = b""
        try:
            first = await self._reader.readexactly(1)
            if first == _TLS:
                return b""
            while not data.endswith(b"\r\n\r\n"):
                line = first + await self._reader.readuntil(b"\n")
                first = b""
                if not line.endswith(b"\r\n"):
                    raise BadRequest(400, f"a line ends with CR LF; got {line[:80]!r}")
                if data or line != b"\r\n":  # RFC 9112: a blank line before a request is nothing
                    data += line
                if len(data) > _HEAD_LIMIT:
                    raise BadRequest(431, "the headers are too long")
        except asyncio.IncompleteReadError:
            return b""
        return data[:-4]

    async def _body(self, length: int | None) -> bytes:
        if length is not None:
            if length > BODY_LIMIT:
                raise BadRequest(413, f"the body has {length} bytes; {BODY_LIMIT} are the most")
            return await self._reader.readexactly(length)
        body = bytearray()
        while True:
            written = (await self._reader.readuntil(b"\r\n")).split(b";")[0].strip()
            # Not all that int() takes: -5 and 0x2 are not sizes.
            if not _SIZE.fullmatch(written):
                raise BadRequest(400, f"not the size of a chunk: {written[:20]!r}")
            size = int(written, 16)
            if len(body) + size > BODY_LIMIT:
                raise BadRequest(413, f"the body has more than {BODY_LIMIT} bytes")
            if size == 0:
                await self._trailers()
                return bytes(body)
            piece = await self._reader.readexactly(size + 2)
            if not piece.endswith(b"\r\n"):
                raise BadRequest(400, f"a chunk of {size} bytes does not end behind them")
            body += piece[:-2]

    async def _trailers(self) -> None:
        """Read trailers after the last chunk, or the next request would begin with them."""
        left = _HEAD_LIMIT
        while (line := await self._reader.readuntil(b"\r\n")) != b"\r\n":
            left -= len(line)
            if left < 0:
                raise BadRequest(431, "the trailers are too long")

    async def _answer(self, handled: Handled) -> bool:
        number, ledger = handled.entry.number, self._service.ledger
        self._tell(handled.entry)
        ending = "left"
        try:
            for act in handled.acts:
                ended = await self._act(act)
                if ended is not None:
                    ending = ended
                    return False
            ending = "done"
        finally:
            ledger.finish(number, "reset" if self._is_cut and ending == "left" else ending)
        return True

    def _tell(self, entry: LedgerEntry) -> None:
        if self._hears is None:
            return
        try:
            self._hears(entry)
        except Exception:  # noqa: BLE001 -- logged
            # A bug of the callback must not affect the client.
            _LOG.exception("hears failed for request %s", entry.number)

    async def _act(self, act: Act) -> str | None:
        """Carry it out; None if the connection stays open, else how it ended."""
        match act:
            case Send(data):
                self._writer.write(data)
                await self._writer.drain()
                # A connection that the client reset is noticed while writing only by its state.
                if self._writer.transport.is_closing():
                    raise ConnectionResetError
                # drain() does not yield while there is room: without this one long stream would
                # hold up five hundred others.
                await asyncio.sleep(0)
                return None
            case DeliveryPause(seconds):
                return "left" if await self._is_left_in(seconds) else None
            case Hang(seconds):
                return "left" if await self._is_left_in(seconds, reads=True) else None
            case ClosePort(seconds):
                self._closes_port(seconds)
                return None
            case Reset():
                _reset(self._writer)
                return "done"
            case Close():
                return "done"

    async def _is_left_in(self, seconds: float, *, reads: bool = False) -> bool:
        """Wait until the client leaves or the time has passed; whether it left.

        With `reads`, further input is discarded: it is not answered, and unread it could hide the
        end of the connection.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds if isfinite(seconds) else None):
                while reads and await self._reader.read(1024):
                    pass
                await self._reader.left.wait()
                return True
        return False

    async def _linger(self) -> None:
        """Discard further input: closing with unread bytes would reset, and lose the answer."""
        with contextlib.suppress(OSError):
            self._writer.write_eof()
            await self._is_left_in(_LINGER, reads=True)

    def _send(self, status: int, message: str) -> None:
        body = json.dumps({"error": {"message": message}}).encode()
        headers = {"content-type": "application/json", "connection": "close"}
        self._writer.write(whole(status, headers, body, time.time()))


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close so that the client sees a reset instead of an end."""
    sock = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        # Lingering for zero seconds makes close() send RST and drop what is unsent.
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
