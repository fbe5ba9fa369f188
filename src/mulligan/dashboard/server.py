"""Starting the dashboard: a free port, uvicorn, and the browser."""

from __future__ import annotations

import os
import secrets
import socket
import webbrowser
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING

from ..errors import MissingExtra, SettingError
from .actions import TOKEN

if TYPE_CHECKING:
    from collections.abc import Callable

    import uvicorn

    from .app import CheckedApp
    from .sources import Sources

__all__ = ("listen", "make_server", "new_token", "serve")

# Ports that are tried, if none was asked for.
_PORTS = range(8765, 8775)

_SHORTEST = 16


def new_token() -> str:
    """The token of ``MULLIGAN_DASHBOARD_TOKEN``, else a random one.

    Raises:
        SettingError: It is too short, or not made for an address.
    """
    given = os.environ.get(TOKEN, "")
    if not given:
        return secrets.token_urlsafe(24)
    words = given.replace("-", "").replace("_", "")
    if len(given) < _SHORTEST or not (words.isascii() and words.isalnum()):
        raise SettingError(
            f"{TOKEN} needs {_SHORTEST} or more letters, digits, - and _; "
            f"got {len(given)} characters"
        )
    return given


def listen(host: str, port: int | None) -> socket.socket:
    """A socket that listens at `host`, on `port` or the first free one of ours.

    Raises:
        SettingError: It cannot.
    """
    why = ""
    for each in (port,) if port is not None else (*_PORTS, 0):
        try:
            family = socket.getaddrinfo(host, each, type=socket.SOCK_STREAM)[0][0]
            found = socket.socket(family, socket.SOCK_STREAM)
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind((host, each))
            found.listen(128)  # else a second dashboard could bind the same port
        except OSError as trouble:
            why = trouble.strerror or str(trouble)
            continue
        return found
    place = host if port is None else f"{host}, port {port}"
    raise SettingError(
        f"the dashboard cannot listen at {place}: {why.lower()}; give another --host or --port"
    )


def serve(
    sources: Sources,
    listening: socket.socket,
    *,
    token: str,
    store: str = "",
    app: str = "",
    names: tuple[str, ...] = (),
    is_read_only: bool = False,
    is_private: bool = False,
    is_opened: bool = False,
    started: Callable[[str], None] = lambda _url: None,
) -> None:
    """Serve the dashboard until it is interrupted; for its options see `Access` and `Actions`.

    `started` is told the address, with the token, once it listens; then the browser is opened if
    `is_opened`.

    Raises:
        MissingExtra: starlette or uvicorn is not installed.
    """
    try:
        from .app import make_app
    except ImportError:
        raise MissingExtra("mulligan dashboard", "dashboard") from None
    from .access import Access
    from .actions import Actions

    host, port = listening.getsockname()[:2]
    access = Access(
        token,
        host=host,
        port=port,
        names=names,
        is_read_only=is_read_only,
        is_private=is_private,
    )
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104 -- compared, not bound
    url = f"http://{shown}:{port}/?token={token}"
    server = make_server(make_app(sources, Actions(store, app), access))
    listening.listen(128)
    started(url)
    if is_opened:
        Thread(target=_open, args=(url,), daemon=True).start()
    with suppress(KeyboardInterrupt):
        server.run(sockets=[listening])


def make_server(app: CheckedApp) -> uvicorn.Server:
    """A server for `app` that ends without waiting for pages to be closed."""
    import uvicorn

    class Server(uvicorn.Server):
        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            app.close()
            await super().shutdown(sockets)

    return Server(
        uvicorn.Config(
            app,
            access_log=False,  # the first address has the token
            log_level="warning",
            timeout_graceful_shutdown=2,
            server_header=False,
            lifespan="off",
        )
    )


def _open(url: str) -> None:
    with suppress(webbrowser.Error):
        webbrowser.open(url)
