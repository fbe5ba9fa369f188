"""An order that is placed once, though the server that was placing it is killed.

Two servers share one store. The first one is killed in the middle of an order; its client asks the
second one, with the same key, until the order is placed. Needs `pip install uvicorn`.
How it works is in docs/idempotency-server.md.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import mulligan
from mulligan.adapters.asgi import IdempotencyMiddleware

FOLDER = Path(os.environ.get("SHOP") or tempfile.mkdtemp())
ORDERS = FOLDER / "orders"
LEASE = 0.6  # so that the example is short; the default is 30 s


async def shop(_scope: Any, receive: Any, send: Any) -> None:
    """Place an order, slowly on the first server."""
    order = json.loads((await receive())["body"])
    await asyncio.sleep(float(os.environ["SECONDS"]))
    with ORDERS.open("a", encoding="utf-8") as placed:
        placed.write(f"{order['item']}\n")
    headers = [(b"content-type", b"application/json")]
    await send({"type": "http.response.start", "status": 201, "headers": headers})
    await send({"type": "http.response.body", "body": json.dumps({"placed": order}).encode()})


def account(scope: Any) -> str | None:
    """Who asks. A real server takes the account that it has authenticated."""
    return dict(scope["headers"]).get(b"x-account", b"").decode() or None


def serve(port: int) -> None:
    import uvicorn

    store = f"sqlite:{FOLDER / 'keys.db'}"
    app = IdempotencyMiddleware(shop, caller=account, store=store, lease=LEASE, required=True)
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", lifespan="off")


def started(seconds: float) -> tuple[subprocess.Popen[bytes], int]:
    """A server process that takes `seconds` for an order, and its port."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "SHOP": str(FOLDER), "SECONDS": str(seconds)}
    program = [sys.executable, __file__, "serve", str(port)]
    server = subprocess.Popen(program, env=environment)  # noqa: S603 -- this file
    for _ in range(200):
        with socket.socket() as knock:
            if knock.connect_ex(("127.0.0.1", port)) == 0:
                return server, port
        time.sleep(0.05)
    sys.exit("error: the server did not start\n\nhint: pip install uvicorn")


def sent(port: int, key: str) -> HTTPConnection:
    client = HTTPConnection("127.0.0.1", port, timeout=10)
    headers = {"Idempotency-Key": f'"{key}"', "X-Account": "ada"}
    client.request("POST", "/orders", json.dumps({"item": "a bicycle"}), headers)
    return client


def main() -> None:
    (first, first_port), (second, second_port) = started(5), started(0)
    key = mulligan.new_key()
    try:
        client = sent(first_port, key)
        time.sleep(0.5)
        first.kill()
        client.close()
        print("the first server was killed in the middle of the order")
        said: list[int] = []
        while said.count(201) < 2:
            client = sent(second_port, key)
            answer = client.getresponse()
            answer.read()
            client.close()
            if answer.status not in said:
                print("the second server says", answer.status, answer.reason)
            elif answer.getheader("Idempotent-Replayed"):
                print("asked again, it says the same:", answer.status, "replayed")
            said.append(answer.status)
            time.sleep(0.1)  # a client with time obeys Retry-After: 1
    finally:
        for server in (first, second):
            server.kill()
            server.wait(10)
    print(ORDERS.read_text(encoding="utf-8").split("\n").count("a bicycle"), "order was placed")


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(int(sys.argv[2]))
    else:
        main()
