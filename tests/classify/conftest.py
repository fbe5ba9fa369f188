"""A small real server on the loopback interface that answers as it is told."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest


@dataclass
class Told:
    """What the server answers until it is told otherwise."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    silence: threading.Event = field(default_factory=threading.Event)
    how: str = "answer"  # answer | hang | reset | close | short
    url: str = ""

    def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.how, self.status, self.body = "answer", status, body
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


@pytest.fixture
def server() -> Iterator[Told]:
    told = Told()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            if told.how == "hang":
                told.silence.wait(5)  # ended by the fixture, long before
                self.close_connection = True
            elif told.how in ("reset", "close"):
                if told.how == "reset":
                    linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"  # on, 0 s: RST instead of FIN
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.close_connection = True
                self.connection.close()
            else:
                self.send_response(told.status)
                missing = 10 if told.how == "short" else 0
                for name, value in {"content-type": "application/json", **told.headers}.items():
                    self.send_header(name, value)
                self.send_header("content-length", str(len(told.body) + missing))
                self.end_headers()
                self.wfile.write(told.body)
                self.close_connection = bool(missing)

        do_POST = do_GET  # noqa: N815 -- the names that http.server calls

        def log_message(self, *args: object) -> None:
            pass

    class Quiet(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            pass  # connections that we cut on purpose

    running = Quiet(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    told.url = f"http://127.0.0.1:{running.server_address[1]}"
    yield told
    told.silence.set()
    running.shutdown()
    running.server_close()
    thread.join(2)


@pytest.fixture
def nobody() -> str:
    """The address of a port where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return f"http://127.0.0.1:{port}"
