"""Six calls that fail: what becomes of each.

A flaky function and a flaky server recover. The other four must not be repeated, and are not.
The server is real, on loopback, on a free port, and ends with the demo; so are the waits.
"""

from __future__ import annotations

import sys
import threading
from contextlib import contextmanager
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

from rich.console import Console
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

import mulligan
from mulligan import Ended, Failed, Recovered, RetryAfter, Verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.status import Status

    from mulligan.core.events import Event

console = Console(highlight=False)


def mark(fancy: str, plain: str) -> str:
    """`fancy` where the terminal can show it."""
    try:
        fancy.encode(console.encoding)
    except UnicodeEncodeError:
        return plain
    return fancy


NO, YES, AGAIN, STOP = mark("✗", "x"), mark("✓", "+"), mark("↻", "~"), mark("■", "#")


# A server that misbehaves


class Shop(BaseHTTPRequestHandler):
    """Short of everything: capacity, patience, manners."""

    requests: dict[str, int] = {}  # noqa: RUF012 -- the demo looks at it afterwards

    def do_GET(self) -> None:
        seen = self._count()
        if self.path == "/prices" and seen == 1:
            self._answer(503, '{"error": {"message": "the price service is starting"}}')
        elif self.path == "/prices" and seen == 2:
            self._answer(429, '{"error": {"message": "one request a second"}}', wait="1")
        elif self.path == "/report":
            self._answer(429, '{"error": {"message": "daily limit reached"}}', wait="3600")
        elif self.path == "/invoices":
            self._answer(401, '{"error": {"message": "api_key=sk-demo-0123456789abc expired"}}')
        else:
            self._answer(200, '{"tea": 4.2}')

    def do_POST(self) -> None:
        """Take the order, then hang up without a word: was it applied?"""
        self._count()
        self.close_connection = True

    def _count(self) -> int:
        self.requests[self.path] = self.requests.get(self.path, 0) + 1
        return self.requests[self.path]

    def _answer(self, status: int, body: str, *, wait: str = "") -> None:
        self.send_response(status)
        if wait:
            self.send_header("Retry-After", wait)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 -- the base's name
        """The listener tells the story; the server keeps quiet."""


@contextmanager
def shop() -> Iterator[str]:
    """The server's address, while it runs."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Shop)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


# A listener that shows what happens


class Narrator:
    """Any callable that takes an event is a listener."""

    def __init__(self) -> None:
        self.waiting: Status | None = None
        self.is_verified = False

    def __call__(self, event: Event, /) -> None:
        self.stop()
        match event:
            case Failed(decision=RetryAfter()):
                self._say(f"attempt {event.attempt}", f"{NO} {event.failure}", "red")
                self._say("", f"{AGAIN} {event.decision.because}", "yellow")
                if console.is_terminal:
                    self.waiting = console.status(f"waiting to make attempt {event.attempt + 1}")
                    self.waiting.start()
            case Failed():
                self._say(f"attempt {event.attempt}", f"{NO} {event.failure}", "red")
                self.is_verified = isinstance(event.decision, Verify)
                if self.is_verified:
                    self._say("", f"{AGAIN} verify first: {event.decision.because}", "yellow")
            case Recovered():
                label, words = f"attempt {event.attempt}", "answered"
                if self.is_verified:
                    label, words = "verified", "it was applied, so it is not repeated"
                self._say(label, f"{YES} {words}", "green")
                self.is_verified = False
            case Ended():
                self._say("", f"{STOP} {event.story.because}", "magenta")
            case _:
                pass

    def stop(self) -> None:
        if self.waiting is not None:
            self.waiting.stop()
            self.waiting = None

    def _say(self, label: str, words: str, style: str) -> None:
        row = Table.grid(padding=(0, 2, 0, 0))
        row.add_column(width=9)
        row.add_column()
        row.add_row(Text(label, style="dim"), Text(words, style=style))
        console.print(Padding(row, (0, 0, 0, 3), expand=False))


# A client in the shape that SDKs have: the error carries status, headers and body


class ShopError(Exception):
    """What the shop answered when it did not answer well."""

    def __init__(self, status_code: int, headers: object, body: str) -> None:
        super().__init__(f"status {status_code}")
        self.status_code, self.headers, self.body = status_code, headers, body


opener = build_opener(ProxyHandler({}))  # loopback needs no proxy, whatever the environment says


def send(address: str, data: bytes | None = None) -> str:
    try:
        with opener.open(Request(address, data), timeout=5) as answer:
            return str(answer.read().decode())
    except HTTPError as error:
        with error:
            raise ShopError(error.code, error.headers, error.read().decode()) from None


answers = iter((ConnectionRefusedError("connection refused"), TimeoutError("no reply in 30 s")))


def look_up() -> str:
    Shop.requests["look_up"] = Shop.requests.get("look_up", 0) + 1
    failure = next(answers, None)
    if failure is not None:
        raise failure
    return "kettle on"


def find_order(path: str) -> str:
    return f"found at {path}"


def main() -> None:
    narrator = Narrator()
    reading = mulligan.Guard("shop", effects="read", listeners=[narrator])
    ordering = mulligan.Guard("shop", listeners=[narrator])
    careful = mulligan.Guard("shop", listeners=[narrator], verify=find_order)
    summary = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for column in ("call", "requests", "outcome"):
        summary.add_column(column, justify="right" if column == "requests" else "left")

    def act(title: str, about: str, call: Callable[[], object], path: str) -> None:
        console.print()
        console.print(Text(title, style="bold"))
        console.print(Padding(Text(about, style="dim"), (0, 0, 0, 3), expand=False))
        console.print()
        try:
            outcome = f"{YES} {call()}"
        except Exception as error:  # noqa: BLE001 -- whatever the call raised is what it raised
            outcome = f"{STOP} {ending(error)}"
        finally:
            narrator.stop()
        summary.add_row(title, str(Shop.requests[path]), outcome)

    console.print(Text("Mulligan: the right second chance", style="bold"))
    with shop() as address:

        def get(path: str) -> str:
            return send(address + path)

        def place_order(path: str) -> str:
            return send(address + path, b'{"tea": 1}')

        act(
            "A flaky function",
            'refused, then silent, then well; effects="read": repeating is harmless',
            lambda: reading.call(look_up),
            "look_up",
        )
        act(
            "A flaky server",
            "503, then 429 with Retry-After: 1, then an answer",
            lambda: reading.call(get, "/prices"),
            "/prices",
        )
        act(
            "An order whose answer was lost",
            "it may have been taken, and ordering twice is not declared harmless",
            lambda: ordering.call(place_order, "/orders/1"),
            "/orders/1",
        )
        act(
            "The same, with a way to look it up",
            "verify= finds out whether the order is there, before anything is sent again",
            lambda: careful.call(place_order, "/orders/2"),
            "/orders/2",
        )
        act(
            "A key that has expired",
            "401 cannot be fixed by waiting; and the key in the message is masked",
            lambda: reading.call(get, "/invoices"),
            "/invoices",
        )
        act(
            "A limit that ends in an hour",
            "too long to sleep through: the call ends at once and says when to come back",
            lambda: reading.call(get, "/report"),
            "/report",
        )
    console.print()
    console.print(summary)
    console.print(NEXT)


def ending(error: Exception) -> str:
    """How the call ended, read from the story on the caller's own exception."""
    story = mulligan.story(error)
    if story is None:
        return type(error).__name__
    if story.retry_at is not None:
        when = datetime.fromtimestamp(story.retry_at).astimezone()
        return f"{story.ending} until {when:%H:%M:%S}"
    return f"raised: {story.ending.replace('_', ' ')}"


NEXT = """
Try next:
  .venv/bin/mulligan explain              the default policy and its waits
  .venv/bin/mulligan explain --list       the other policies
  .venv/bin/python examples/streaming.py  streams, broken early and late
  docs/retry.md                           the decorator and its options
"""


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
