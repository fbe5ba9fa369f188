"""Every row of the table with real HTTP faults: the text, the requests, the effects."""

from __future__ import annotations

import json
import socket
from typing import Any

import httpx
import pytest

import mulligan

pytestmark = pytest.mark.real

TEXTS = {
    "fields": "next: It was rejected. Correct amount and call {tool} again.",
    "client": "next: It was rejected, and fails again if it is sent unchanged.",
    "auth": "next: Stop. The credentials are missing, expired or not allowed",
    "billing": "next: Stop. The account has no credit left",
    "limit": "next: The service limits its callers. Do not call {tool} before ",
    "server": "next: The service fails at present. Do not repeat the call now",
    "network": "next: The service could not be reached. Do not repeat the call now",
    "doubt": "next: It is unknown whether it was applied. Do not call {tool} again before you have "
    "checked with list_invoices that it was not.",
    "keyed": "next: It is unknown whether it was applied. Check with list_invoices. If it was not, "
    "call {tool} again with exactly the same arguments",
    "conflict": "next: The present state does not allow it. Read the state with list_invoices",
}


@pytest.fixture
def box(fault_server, virtual_clock, request):
    """Four tools, one of each class, and what they call."""
    tools = mulligan.Toolbox(repeats=100)
    # A second is real here: only what hangs is worth it.
    hangs = getattr(request.node, "callspec", None) and "hang" in request.node.name
    common: Any = {"target": "invoices", "timeout": "1s" if hangs else None}

    async def send(method, path, body=None) -> dict[str, object]:
        context = mulligan.current()
        key = context.key if context else ""
        headers = {"Idempotency-Key": key} if key else {}
        async with httpx.AsyncClient(base_url=fault_server.url) as client:
            answer = await client.request(method, path, json=body, headers=headers)
        answer.raise_for_status()
        return answer.json()  # type: ignore[no-any-return]

    @tools.tool(effects="read", **common)
    async def list_invoices() -> dict[str, object]:
        return await send("GET", "/invoices")

    @tools.tool(effects="idempotent", **common)
    async def set_amount(amount: int) -> dict[str, object]:
        return await send("PUT", "/invoices/1", {"amount": amount})

    @tools.tool(effects="keyed", **common)
    async def pay(amount: int) -> dict[str, object]:
        return await send("POST", "/invoices", {"amount": amount})

    @tools.tool(effects="unsafe", **common)
    async def charge(amount: int) -> dict[str, object]:
        # Its service knows no keys.
        async with httpx.AsyncClient(base_url=fault_server.url) as client:
            answer = await client.post("/invoices", json={"amount": amount})
        answer.raise_for_status()
        return answer.json()  # type: ignore[no-any-return]

    httpx.post(f"{fault_server.url}/invoices", json={"first": 1})
    fault_server.clear()
    return tools


ARGUMENTS = {
    "list_invoices": {},
    "set_amount": {"amount": 5},
    "pay": {"amount": 5},
    "charge": {"amount": 5},
}
WRITES = ("set_amount", "pay", "charge")


def ask(box, fault_server, tool, script):
    fault_server.set(script)
    result = box.run_sync(tool, ARGUMENTS[tool], call_id=f"{tool}-{script}")
    totals = fault_server.totals
    return result, totals.requests, totals.effects


def rows():
    for tool in ARGUMENTS:
        effect = int(tool != "list_invoices")
        safe = tool != "charge"
        doubt = {"pay": "keyed", "charge": "doubt"}.get(tool, "network")
        # A write that was answered with a server error may have been applied, too.
        server = {"pay": "keyed", "charge": "doubt"}.get(tool, "server")
        yield tool, "ok", "", 1, effect
        yield tool, "401", "auth", 1, 0
        yield tool, "403", "auth", 1, 0
        yield tool, "billing", "billing", 1, 0
        yield tool, "404", "client", 1, 0
        yield tool, "429x2,ok", "", 3, effect
        yield tool, "429", "limit", 3, 0
        yield tool, "429(retry-after=3600)", "limit", 1, 0
        yield tool, "503x2,ok", "" if safe else "doubt", 3 if safe else 1, effect if safe else 0
        yield tool, "503", server, 5 if safe else 1, 0
        yield tool, "500", server, 5 if safe else 1, 0
        yield tool, "503(retriable=no)", server, 1, 0
        yield tool, "reset,ok", "" if safe else "doubt", 2 if safe else 1, effect if safe else 0
        yield tool, "reset", doubt, 3 if safe else 1, 0
        yield tool, "close", doubt, 3 if safe else 1, 0
        yield tool, "hang", doubt, 3 if safe else 1, 0
        yield tool, "lost,ok", "" if safe else "doubt", 2 if safe else 1, effect


@pytest.mark.parametrize(("tool", "script", "row", "requests", "effects"), list(rows()))
def test_a_row_of_the_table(box, fault_server, tool, script, row, requests, effects):
    result, asked, made = ask(box, fault_server, tool, script)
    assert (asked, made) == (requests, effects)
    assert result.is_error == bool(row)
    assert len(result.text.encode()) <= 1024
    assert "Traceback" not in result.text
    if row:
        assert TEXTS[row].format(tool=tool) in result.text, result.text
        if effects == 0 and tool != "list_invoices":
            assert json.dumps(ARGUMENTS[tool]) in result.text


@pytest.mark.parametrize("tool", WRITES)
def test_a_422_hands_back_the_failing_fields(box, tool):
    body = {
        "title": "Unprocessable",
        "status": 422,
        "detail": "the order is not valid",
        "is_retriable": True,
        "errors": [{"loc": ["body", "amount"], "msg": "must be at least 10"}],
    }
    with _Once(422, body) as server:
        answer = mulligan.Toolbox()

        @answer.tool(effects=next(t.effects for t in box.tools if t.name == tool), name=tool)
        def send(amount: int) -> object:
            reply = httpx.post(server.url, json={"amount": amount})
            reply.raise_for_status()
            return reply.json()

        result = answer.run_sync(tool, {"amount": 5}, call_id="c")
    assert server.requests == 1
    assert result.action == "fix_arguments"
    assert "422 (client): the order is not valid" in result.text
    assert "must be at least 10" in result.text
    assert "amount and call" in result.text


class _Once:
    """A server that answers everything with one status and body."""

    def __init__(self, status, body):
        self._status, self._body, self.requests = status, json.dumps(body).encode(), 0

    def __enter__(self):
        from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
        from threading import Thread

        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                outer.requests += 1
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(outer._status)
                self.send_header("content-type", "application/problem+json")
                self.send_header("content-length", str(len(outer._body)))
                self.end_headers()
                self.wfile.write(outer._body)

            def log_message(self, *args): ...

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/orders"
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,))
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@pytest.mark.parametrize("tool", sorted(ARGUMENTS))
def test_a_closed_port_was_never_reached_and_is_repeated_whatever_the_effects(virtual_clock, tool):
    tools = mulligan.Toolbox()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    calls = []

    @tools.tool(effects="unsafe")
    def send() -> str:
        calls.append(1)
        return httpx.post(f"http://127.0.0.1:{port}/").text

    result = tools.run_sync("send", call_id="c")
    assert len(calls) == 3
    assert TEXTS["network"] in result.text


@pytest.mark.parametrize("applied", [True, False])
def test_verify_asks_the_server_whether_a_lost_write_was_applied(fault_server, applied):
    tools = mulligan.Toolbox()

    async def find(reference: str) -> object:
        async with httpx.AsyncClient() as client:
            found = (await client.get(f"{fault_server.url}/invoices")).json()["invoices"]
        return next((each for each in found if each["reference"] == reference), None) or (
            mulligan.NOT_APPLIED
        )

    @tools.tool(effects="unsafe", verify=find)
    async def charge(reference: str) -> object:
        async with httpx.AsyncClient() as client:
            return (
                await client.post(f"{fault_server.url}/invoices", json={"reference": reference})
            ).json()

    fault_server.set(f"POST /invoices -> {'lost' if applied else 'reset'},ok")
    result = tools.run_sync("charge", {"reference": "r-7"}, call_id="c")
    assert not result.is_error
    assert result.value == {"reference": "r-7", "id": 1}
    assert fault_server.totals.effects == 1
    posts = [entry for entry in fault_server.requests if entry.method == "POST"]
    assert len(posts) == (1 if applied else 2)


def test_a_conflict_is_told_to_read_first(box, fault_server):
    result, requests, effects = ask(box, fault_server, "charge", "409")
    assert (requests, effects) == (1, 0)
    assert TEXTS["conflict"] in result.text
