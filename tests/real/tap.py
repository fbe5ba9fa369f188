"""A tap on the wire between a program and the fault server."""

from __future__ import annotations

import contextlib
import socket
import socketserver
import threading
from typing import Self


class Tap(socketserver.ThreadingTCPServer):
    """Passes everything on to the server, and keeps what the program sent."""

    daemon_threads = True

    def __init__(self, port: int) -> None:
        self.behind, self.heard = port, bytearray()
        super().__init__(("127.0.0.1", 0), Passing)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.shutdown()
        self.server_close()


class Passing(socketserver.BaseRequestHandler):
    server: Tap

    def handle(self) -> None:
        with socket.create_connection(("127.0.0.1", self.server.behind)) as behind:
            back = threading.Thread(target=self.pour, args=(behind, self.request), daemon=True)
            back.start()
            self.pour(self.request, behind, self.server.heard)
            back.join()

    @staticmethod
    def pour(source: socket.socket, sink: socket.socket, heard: bytearray | None = None) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if heard is not None:
                    heard += data
                sink.sendall(data)
        with contextlib.suppress(OSError):
            sink.shutdown(socket.SHUT_WR)
