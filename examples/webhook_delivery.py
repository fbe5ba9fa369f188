"""Webhooks that arrive, are applied once, and are never lost without a trace.

A receiver on loopback is unwell, then away, then back. Each event is delivered under its own key:
the first one after two failures, the second one from its dead letter. How it fits together is in
docs/webhook-delivery.md.
"""

from __future__ import annotations

import json
import os
import tempfile
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from urllib.request import Request, urlopen

import mulligan

STORE = os.environ.get("HOOKS_STORE") or f"sqlite:{Path(tempfile.mkdtemp()) / 'hooks.db'}"

hooks = mulligan.Guard("customer hooks", store=STORE, dead_letters=True, attempts=3)


def credentials() -> dict[str, str]:
    """What letters do not store, from where this program keeps its secrets."""
    return {"token": os.environ.get("HOOKS_TOKEN", "of today")}


@hooks.once_per("event", "url")
@mulligan.replayable("deliver", secrets=("token",), supply=credentials)
def deliver(event: str, url: str, body: dict[str, object], token: str) -> int:
    """POST an event to a customer; its key goes along, so that the customer can tell repeats."""
    here = mulligan.current()
    key = here.key if here is not None else ""
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Idempotency-Key": f'"{key}"',
    }
    request = Request(url, json.dumps({"event": event, **body}).encode(), headers)
    with urlopen(request, timeout=10) as answer:
        return int(answer.status)


class Receiver(BaseHTTPRequestHandler):
    """A customer's endpoint: fails on command, applies each key once."""

    answers: list[int] = []  # noqa: RUF012 -- one receiver, one script
    requests: list[str] = []  # noqa: RUF012 -- one receiver, one log
    applied: dict[str, str] = {}  # noqa: RUF012 -- one receiver, one book

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status = self.answers.pop(0) if self.answers else 200
        self.requests.append(f"{body['event']} -> {status}")
        if status == 200:
            self.applied.setdefault(self.headers["Idempotency-Key"], body["event"])
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing: the example says itself what happens."""


def main() -> None:
    server = HTTPServer(("127.0.0.1", 0), Receiver)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}/hook"

    Receiver.answers[:] = [503, 503]
    old, new = "of yesterday", "of today"
    paid = {"order": 17, "state": "paid"}
    print("evt-1:", deliver("evt-1", url, paid, token=old))
    print("evt-1 again:", deliver("evt-1", url, paid, token=old))

    Receiver.answers[:] = [503] * 3
    shipped = {"order": 17, "state": "shipped"}
    try:
        deliver("evt-2", url, shipped, token=old)
    except OSError as error:
        print("evt-2:", error)
        print("      ", mulligan.story(error).summary)  # type: ignore[union-attr]

    letters = mulligan.DeadLetters(STORE)
    for record in letters.all():
        print(f"letter: {record.letter.name} {record.letter.arguments['event']} {record.state}")  # type: ignore[index]
        mark = letters.replay(record)
        print("replay:", mark.state if mark else "another replay is running")
    print("evt-2 again:", deliver("evt-2", url, shipped, token=new))

    print("requests:", ", ".join(Receiver.requests))
    print("applied:", ", ".join(Receiver.applied.values()))
    server.shutdown()
    server.server_close()


if __name__ == "__main__":
    main()
