"""What draft-ietf-httpapi-idempotency-key-header-07 asks of a server, row by row.

Each row is run, and the table on docs/idempotency-server.md is made of the rows and of what was
seen; MULLIGAN_WRITE_DOCS=1 writes it there.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import Any, NamedTuple

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "idempotency-server.md"
BEGIN, END = "<!-- conformance: made by the tests -->", "<!-- end of conformance -->"
GUIDE = "https://shop.example/idempotency"
UUID = '"8e03978e-40d5-43e8-bc93-6894a57f9324"'


class Row(NamedTuple):
    section: str
    asks: str
    does: str
    name: str


ROWS = [
    Row("2.1", "the value is a structured field String", '`"a\\\\"b"` is the key `a"b`', "quoted"),
    Row("2.1", "a client sends one key", "two headers: 400, nothing executed", "twice"),
    Row("2.1", "anything else is not a key", "400, nothing executed", "malformed"),
    Row("2.1", "(not in the draft)", "a bare key is accepted, 400 with `strict=True`", "bare"),
    Row("2.2", "MUST NOT be reused with another payload", "422, nothing executed", "reused"),
    Row(
        "2.3", "the server MAY let keys expire, and publishes when", "after `ttl`, 24 h", "expired"
    ),
    Row(
        "2.4",
        "a fingerprint of the payload MAY be used",
        "JSON by meaning, else bytes",
        "canonical",
    ),
    Row("2.6", "first request: processed normally", "executed, answered as is", "first"),
    Row("2.6", "retry: the result of the first, success", "replayed, marked", "replayed"),
    Row("2.6", "retry: the result of the first, error", "400, 404, 422 replayed", "error"),
    Row("2.6", "concurrent request: MUST get a conflict", "409, nothing executed", "concurrent"),
    Row("2.7", "missing where required SHOULD get 400", "400 with `required=`", "missing"),
    Row("2.7", "400, 409, 422 are problem documents", "RFC 9457, English", "documents"),
    Row(
        "2.7", "… with a link to documentation", "`type` and `Link` with `documentation=`", "linked"
    ),
    Row("2.7", "409 needs no correction by the client", "`is_retriable`, Retry-After", "retriable"),
    Row(
        "2.7",
        "other errors follow the server's documentation",
        "5xx, 401, 429 … free the key",
        "others",
    ),
    Row("5", "lookup by a composite of key and caller", "caller, method, path, key", "composite"),
    Row("5", "validate the key before processing", "1 to 255 printable characters", "validated"),
]


class Checks:
    """One method a row."""

    def __init__(self, tools: Any) -> None:
        self.ask, self.Shop, self.guarded = tools.ask, tools.Shop, tools.guarded

    async def quoted(self) -> None:
        shop = self.Shop()
        await self.ask(self.guarded(shop), '"a\\"b"')
        assert shop.scopes[0]["idempotency_key"] == 'a"b'

    async def twice(self) -> None:
        shop = self.Shop()
        two = [(b"idempotency-key", b'"k-1"')]
        answer = await self.ask(self.guarded(shop), headers=two)
        assert (answer.status, shop.executed) == (400, [])

    async def malformed(self) -> None:
        shop = self.Shop()
        app = self.guarded(shop)
        for key in ("", '""', '"open', "a, b", '"a";p=1', 'a"b', "two words", '"\\x"', "é"):
            assert (await self.ask(app, key)).status == 400, key
        assert shop.executed == []

    async def bare(self) -> None:
        shop = self.Shop()
        app = self.guarded(shop)
        assert (await self.ask(app, UUID)).status == 201
        assert (await self.ask(app, UUID.strip('"'))).is_replayed
        assert (await self.ask(self.guarded(shop, strict=True), "k-1")).status == 400
        assert len(shop.executed) == 1

    async def reused(self) -> None:
        shop = self.Shop()
        app = self.guarded(shop)
        await self.ask(app)
        for other in ({"body": b'{"amount": 26}'}, {"query": b"dry=1"}, {"content_type": "a/b"}):
            assert (await self.ask(app, **other)).status == 422
        assert len(shop.executed) == 1

    async def expired(self) -> None:
        from mulligan.core.moment import Moment
        from mulligan.stores.memory import Memory

        shop, now = self.Shop(), [1e9]
        app = self.guarded(shop, store=Memory(lambda: Moment(now[0], now[0])))
        await self.ask(app)
        now[0] += 86_399
        assert (await self.ask(app)).is_replayed
        now[0] += 2
        assert not (await self.ask(app)).is_replayed
        assert len(shop.executed) == 2

    async def canonical(self) -> None:
        shop = self.Shop()
        app = self.guarded(shop)
        await self.ask(app, body=b'{"a": 1, "b": "\xc3\xa9"}')
        assert (await self.ask(app, body=b'{"b":"e\xcc\x81","a":1.0}')).is_replayed
        await self.ask(app, '"k-2"', b"a=1&b=2", content_type="text/plain")
        assert (await self.ask(app, '"k-2"', b"a=1&b=2 ", content_type="text/plain")).status == 422

    async def first(self) -> None:
        answer = await self.ask(self.guarded(self.Shop()))
        assert (answer.status, answer.body, answer.is_replayed) == (201, b"order 1", False)

    async def replayed(self) -> None:
        app = self.guarded(self.Shop(headers=[(b"location", b"/orders/1")]))
        first, second = await self.ask(app), await self.ask(app)
        assert (second.status, second.body) == (first.status, first.body)
        assert second.headers == [*first.headers, ("idempotent-replayed", "true")]

    async def error(self) -> None:
        for status in (400, 404, 422):
            shop = self.Shop(status)
            app = self.guarded(shop)
            assert [(await self.ask(app)).status for _ in range(2)] == [status] * 2
            assert len(shop.executed) == 1

    async def concurrent(self) -> None:
        answers = []

        async def slow(scope: Any, receive: Any, send: Any) -> None:
            answers.append(await self.ask(app))
            await self.Shop()(scope, receive, send)

        app = self.guarded(slow)
        assert (await self.ask(app)).status == 201
        assert [each.status for each in answers] == [409]

    async def missing(self) -> None:
        shop = self.Shop()
        assert (await self.ask(self.guarded(shop, required=True), None)).status == 400
        assert shop.executed == []
        only = self.guarded(shop, required=lambda scope: scope["path"] == "/payments")
        assert (await self.ask(only, None)).status == 201
        assert (await self.ask(only, None, path="/payments")).status == 400

    async def _refused(self, **options: Any) -> list[Any]:
        answers = [await self.ask(self.guarded(self.Shop(), required=True, **options), None)]

        async def slow(scope: Any, receive: Any, send: Any) -> None:
            answers.append(await self.ask(app))
            await self.Shop()(scope, receive, send)

        app = self.guarded(slow, **options)
        await self.ask(app)
        answers.append(await self.ask(app, body=b"{}"))
        return answers

    async def documents(self) -> None:
        answers = await self._refused()
        assert [each.status for each in answers] == [400, 409, 422]
        for each in answers:
            assert each.header("content-language") == "en"
            assert {"type", "title", "detail", "status"} <= each.document.keys()

    async def linked(self) -> None:
        for each in await self._refused(documentation=GUIDE):
            assert each.document["type"].startswith(f"{GUIDE}#")
            assert each.header("link") == f'<{GUIDE}>; rel="describedby"; type="text/html"'

    async def retriable(self) -> None:
        missing, busy, reused = await self._refused()
        assert busy.document["is_retriable"] is True
        assert (busy.header("retry-after"), busy.document["retry_after_ms"]) == ("1", 1000)
        for each in (missing, reused):
            assert each.document["is_retriable"] is False
            assert each.header("retry-after") is None

    async def others(self) -> None:
        for status in (401, 403, 408, 409, 425, 429, 500, 502, 503, 504):
            shop = self.Shop(status)
            app = self.guarded(shop)
            answers = [await self.ask(app) for _ in range(2)]
            assert [each.status for each in answers] == [status] * 2
            assert not answers[1].is_replayed
            assert len(shop.executed) == 2

    async def composite(self) -> None:
        shop = self.Shop()
        app = self.guarded(shop)
        for other in ({}, {"caller": "bob"}, {"method": "PATCH"}, {"path": "/payments"}):
            assert not (await self.ask(app, **other)).is_replayed
        assert len(shop.executed) == 4

    async def validated(self) -> None:
        shop = self.Shop()
        app = self.guarded(shop)
        assert (await self.ask(app, f'"{"k" * 255}"')).status == 201
        assert (await self.ask(app, f'"{"k" * 256}"')).status == 400


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_middleware_does_what_the_draft_asks(row, asgi):
    asyncio.run(getattr(Checks(asgi), row.name)())


def test_the_page_has_the_table():
    lines = ["| section | the draft | here |", "|---|---|---|"]
    lines += [f"| {each.section} | {each.asks} | {each.does} |" for each in ROWS]
    table = "\n".join([BEGIN, "", *lines, "", END])
    page = PAGE.read_text(encoding="utf-8")
    before, _, rest = page.partition(BEGIN)
    after = rest.partition(END)[2]
    if os.environ.get("MULLIGAN_WRITE_DOCS"):
        PAGE.write_text(before + table + after, encoding="utf-8")
        return
    assert table in page, "MULLIGAN_WRITE_DOCS=1 writes it"
