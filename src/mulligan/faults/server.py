"""FaultServer: the server in a thread, for tests.

It runs in a thread with an event loop of its own, so that a synchronous test, an asyncio test, a
trio test and a program in another process all see the same thing: a real server.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Self, TypeVar

from ..errors import MulliganError
from .client_settings import direct, environment, pointer_of, settings
from .limits import ClientLimits
from .listener import PortListener
from .rest import Resource
from .script import Script
from .service import Service

if TYPE_CHECKING:
    from collections.abc import Callable

    from .ledger import LedgerEntry, RequestLedger, Totals

__all__ = ("FaultServer",)

T = TypeVar("T")

# Seconds to wait for the server to start.
_START = 10.0


class FaultServer:
    """A provider that fails on command; a context manager.

        with FaultServer("429x2,ok") as server:
            client = anthropic.Anthropic(base_url=server.url, api_key=server.key())
            client.messages.create(...)
            assert server.totals.requests == 3

    Args:
        script: What it does with which request; see `mulligan.faults.script`.
        limits: What each client may use; None for no limits.
        seed: The same seed gives the same random choices.
        text: What a good answer says.
        host: The address to bind; loopback unless you say otherwise.
        port: The port; 0 for a free one.
        allowed_hosts: Names besides the loopback ones that a Host header may carry.
        resources: The REST collections.
        honours_keys: Whether they honour ``Idempotency-Key``.
        hears: Told of each request, in the server's thread.
    """

    def __init__(
        self,
        script: str | Script = "ok",
        *,
        limits: ClientLimits | None = None,
        seed: int = 0,
        text: str | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
        allowed_hosts: tuple[str, ...] = (),
        resources: tuple[str, ...] = ("invoices",),
        honours_keys: bool = True,
        hears: Callable[[LedgerEntry], None] | None = None,
    ) -> None:
        given = {} if text is None else {"text": text}
        self._service = Service(
            script=_script(script),
            limits=limits or ClientLimits(),
            resource=Resource(resources, honours_keys=honours_keys),
            now=time.time(),
            seed=seed,
            **given,
        )
        self._listener = PortListener(
            self._service, host=host, port=port, allowed_hosts=allowed_hosts, hears=hears
        )
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._homes = ExitStack()

    def start(self) -> Self:
        """Listen; returns once connections are accepted.

        A server that was stopped starts again at the same address, with the same ledger.
        """
        if self._loop is not None:
            raise MulliganError(f"the fault server runs already, on {self.url}")
        loop = asyncio.new_event_loop()
        started: Future[None] = Future()

        def serve() -> None:
            asyncio.set_event_loop(loop)
            try:
                loop.run_until_complete(self._listener.start())
            except BaseException as error:  # noqa: BLE001 -- it is raised where start() was called
                loop.close()
                started.set_exception(error)
                return
            started.set_result(None)
            loop.run_forever()

        thread = threading.Thread(target=serve, name="mulligan-faults", daemon=True)
        thread.start()
        try:
            started.result(_START)
        except TimeoutError:
            raise MulliganError(f"the fault server did not start within {_START:g} s") from None
        self._loop, self._thread = loop, thread
        return self

    def stop(self) -> None:
        """Reset what is open, give the port back."""
        self._homes.close()
        if self._loop is None or self._thread is None:
            return
        loop, self._loop = self._loop, None
        asyncio.run_coroutine_threadsafe(self._listener.stop(), loop).result(_START)
        loop.call_soon_threadsafe(loop.stop)
        self._thread.join(_START)
        loop.close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    @property
    def url(self) -> str:
        """Where it listens, ``http://127.0.0.1:41327``; OpenAI's base URL is this plus ``/v1``."""
        bound = self._listener.host
        # A server that listens on all addresses is reached at loopback.
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(bound)  # noqa: S104 -- only compared
        host = host or (f"[{bound}]" if ":" in bound else bound)
        return f"http://{host}:{self.port}"

    @property
    def script(self) -> Script:
        return self._ask(lambda: self._service.script)

    @property
    def port(self) -> int:
        """The port; one that was left to chance is known once the server has started."""
        if self._listener.port == 0:
            raise MulliganError("the fault server takes a free port when it starts; start it first")
        return int(self._listener.port)

    def key(self, client: str = "test") -> str:
        """A key that makes its bearer the client of that name."""
        return f"mulligan-{client}"

    def env(self, program: str, client: str = "test") -> dict[str, str]:
        """The environment that points a program or an SDK at this server, to add to your own.

        A program that wants settings in a file gets a folder for them, until the server stops.
        """
        pointer = pointer_of(program)
        found = environment(program, url=self.url, key=self.key(client))
        found |= dict.fromkeys(pointer.without, "")  # as good as unset to the programs
        for name in ("NO_PROXY", "no_proxy"):
            found[name] = direct(self.url, os.environ.get(name, ""))
        if pointer.home:
            home = self._homes.enter_context(TemporaryDirectory(prefix="mulligan-"))
            found[pointer.home] = home
            file = Path(home, pointer.file)
            file.parent.mkdir(exist_ok=True)
            file.write_text(settings(program, self.url), encoding="utf-8")
        return found

    def set(self, script: str | Script, limits: ClientLimits | None = None) -> None:
        """Begin another script, from the next request on."""
        parsed = _script(script)
        self._ask(lambda: self._service.set(parsed, limits))

    def clear(self) -> None:
        """Begin another ledger."""
        self._ask(lambda: self._service.clear(time.time()))

    @property
    def ledger(self) -> RequestLedger:
        # Runs in the server's thread, so all earlier answers are recorded.
        return self._ask(lambda: self._service.ledger)

    @property
    def requests(self) -> tuple[LedgerEntry, ...]:
        """The requests to a vendor's API or a resource, in order of arrival."""
        return tuple(entry for entry in self.ledger.entries if entry.vendor != "other")

    @property
    def totals(self) -> Totals:
        return self.ledger.totals

    def _ask(self, question: Callable[[], T]) -> T:
        # Called in the server's own thread, from `hears`: waiting for that thread would deadlock.
        if self._loop is None or threading.current_thread() is self._thread:
            return question()

        async def answer() -> T:
            return question()

        return asyncio.run_coroutine_threadsafe(answer(), self._loop).result(_START)


def _script(script: str | Script) -> Script:
    return Script.parse(script) if isinstance(script, str) else script
