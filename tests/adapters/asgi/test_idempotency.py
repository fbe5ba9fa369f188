"""What happens to a request with a key on a bad day."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

import pytest

from mulligan.adapters.asgi import IdempotencyMiddleware
from mulligan.errors import SettingError, StoreDown
from mulligan.stores.memory import Memory


def start(status=200, headers=(), **more):
    return {"type": "http.response.start", "status": status, "headers": list(headers), **more}


def piece(body, *, more=False):
    return {"type": "http.response.body", "body": body, "more_body": more}


def sends(*messages):
    """An application that sends these, and counts how often."""

    class App:
        runs = 0

        async def __call__(self, scope, receive, send):
            self.runs += 1
            await receive()
            for each in messages:
                if isinstance(each, BaseException):
                    raise each
                await send(each)

    return App()


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_pass_untouched(run, asgi, method):
    shop = asgi.Shop()

    async def story():
        app = asgi.guarded(shop, required=True)
        return [await asgi.ask(app, method=method) for _ in range(2)]

    assert not any(each.is_replayed for each in run(story))
    assert len(shop.executed) == 2
    assert "idempotency_key" not in shop.scopes[0]


@pytest.mark.parametrize("kind", ["websocket", "lifespan"])
def test_other_protocols_pass_untouched(run, asgi, kind):
    seen = []

    async def app(scope, receive, send):
        seen.append((scope, receive, send))

    async def nothing(*_):
        pass

    scope = {"type": kind}
    run(asgi.guarded(app), scope, nothing, nothing)
    assert seen[0][0] is scope
    assert seen[0][1:] == (nothing, nothing)


def test_a_request_without_a_key_is_executed_each_time(run, asgi):
    shop = asgi.Shop()

    async def story():
        app = asgi.guarded(shop)
        return [await asgi.ask(app, None) for _ in range(2)]

    assert [each.body for each in run(story)] == [b"order 1", b"order 2"]


def test_a_body_in_many_pieces_is_one_body(run, asgi):
    shop = asgi.Shop()

    async def story():
        app = asgi.guarded(shop)
        await asgi.ask(app, body=[b'{"am', b"", b'ount": ', b"25}"])
        return await asgi.ask(app, body=b'{"amount":25.0}')

    assert run(story).is_replayed
    assert shop.executed == [b'{"amount": 25}']


def test_a_caller_that_is_not_known_is_the_applications_affair(run, asgi):
    shop = asgi.Shop(401)

    async def story():
        app = asgi.guarded(shop)
        return [(await asgi.ask(app, caller="")).status for _ in range(2)]

    assert run(story) == [401, 401]
    assert len(shop.executed) == 2


def test_the_caller_may_be_found_out_by_a_coroutine(run, asgi):
    async def caller(scope):
        return "ada"

    async def story():
        app = asgi.guarded(asgi.Shop(), caller=caller)
        await asgi.ask(app, caller="x")
        return await asgi.ask(app, caller="y")

    assert run(story).is_replayed


def test_a_caller_without_a_name_executes_nothing(run, asgi):
    shop = asgi.Shop()
    app = asgi.guarded(shop, caller=lambda scope: "")
    with pytest.raises(SettingError, match=r"^caller needs to return a name, or None; got ''$"):
        run(asgi.ask, app)
    assert shop.executed == []


def test_a_client_that_leaves_before_its_body_is_complete_executes_nothing(run, asgi):
    shop = asgi.Shop()

    async def story():
        app = asgi.guarded(shop)
        assert (await asgi.ask(app, body=b'{"amo', gone=True)).messages == []
        return await asgi.ask(app)

    assert run(story).body == b"order 1"


def test_a_client_that_leaves_while_it_runs_finds_the_response_later(run, asgi):
    """The application hears of it from the client, not from us."""
    heard = []

    async def app(scope, receive, send):
        heard.append([(await receive())["type"], (await receive())["type"]])
        await asgi.Shop()(scope, _whole, send)

    async def _whole():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def gone(message):
        raise OSError("the client has left")

    async def story():
        guarded = asgi.guarded(app)
        with pytest.raises(OSError, match="the client has left"):
            await asgi.ask(guarded, send=gone)
        return await asgi.ask(guarded)

    answer = run(story)
    assert answer.is_replayed
    assert answer.body == b"order 1"
    assert heard == [["http.request", "http.disconnect"]]


@pytest.mark.parametrize(
    "messages",
    [
        [RuntimeError("a bug")],
        [start(), RuntimeError("a bug")],
        [start(), piece(b"half", more=True), RuntimeError("a bug")],
        [],
        [start()],
        [start(), piece(b"half", more=True)],
    ],
    ids=["raises", "start, raises", "half, raises", "nothing", "start", "half"],
)
def test_what_did_not_answer_whole_is_executed_again(run, asgi, messages):
    app = sends(*messages)

    async def story():
        guarded = asgi.guarded(app)
        for _ in range(2):
            try:
                await asgi.ask(guarded)
            except RuntimeError as error:
                assert str(error) == "a bug"  # noqa: PT017 -- the application's own
        # What failed may have been applied: the key is free for a repeat and nothing else.
        return await asgi.ask(guarded, body=b"{}")

    assert run(story).status == 422
    assert app.runs == 2


def test_a_key_that_was_refused_can_be_used_for_a_corrected_payload(run, asgi):
    shop = asgi.Shop(401)

    async def story():
        app = asgi.guarded(shop)
        await asgi.ask(app)
        shop.status = 201
        return await asgi.ask(app, body=b'{"amount": 26}')

    assert run(story).status == 201


def test_an_error_after_the_response_passes_and_the_response_is_kept(run, asgi):
    app = sends(start(), piece(b"done"), RuntimeError("a background task"))

    async def story():
        guarded = asgi.guarded(app)
        with pytest.raises(RuntimeError, match="a background task"):
            await asgi.ask(guarded)
        return await asgi.ask(guarded)

    assert run(story).is_replayed
    assert app.runs == 1


@pytest.mark.real
def test_a_cancelled_request_frees_its_key(asgi):
    async def story():
        begun = asyncio.Event()

        async def hangs(scope, receive, send):
            begun.set()
            await asyncio.sleep(30)

        store = Memory()
        request = asyncio.create_task(asgi.ask(asgi.guarded(hangs, store=store)))
        await begun.wait()
        request.cancel()
        with pytest.raises(asyncio.CancelledError):
            await request
        app = asgi.guarded(asgi.Shop(), store=store)
        while (answer := await asgi.ask(app)).status == 409:  # noqa: ASYNC110 -- a thread frees it
            await asyncio.sleep(0.05)
        return answer

    assert asyncio.run(story()).status == 201


# Streams


def test_a_stream_of_events_passes_as_it_comes_and_is_not_executed_again(run, asgi):
    seen: list[Any] = []
    events = [(b"content-type", b"text/event-stream; charset=utf-8")]

    async def app(scope, receive, send):
        await send(start(200, events))
        seen.append("start")
        for number in range(3):
            await send(piece(b"data: %d\n\n" % number, more=True))
            seen.append(number)
        await send(piece(b""))

    async def client(message):
        seen.append(message.get("body", message.get("status")))

    async def story():
        guarded = asgi.guarded(app)
        first = await asgi.ask(guarded, send=client)
        return first, await asgi.ask(guarded)

    first, second = run(story)
    assert first.body == b"data: 0\n\ndata: 1\n\ndata: 2\n\n"
    assert seen[:4] == [200, "start", b"data: 0\n\n", 0]
    assert second.status == 410
    assert second.document["is_retriable"] is False
    assert second.document["detail"] == (
        "the request was executed and is not executed again; "
        "its response was a stream of events, which is not kept"
    )


def test_a_response_in_pieces_passes_as_it_comes_and_is_kept(run, asgi):
    seen = []

    async def app(scope, receive, send):
        await send(start())
        for number in range(3):
            await send(piece(b"%d" % number, more=number < 2))
            seen.append(f"sent {number}")

    async def client(message):
        seen.append(message.get("body"))

    async def story():
        guarded = asgi.guarded(app)
        await asgi.ask(guarded, send=client)
        return await asgi.ask(guarded)

    answer = run(story)
    assert seen == [None, b"0", "sent 0", b"1", "sent 1", b"2", "sent 2"]
    assert answer.is_replayed
    assert answer.body == b"012"


def test_trailers_are_a_part_of_the_response(run, asgi):
    app = sends(
        start(200, trailers=True),
        piece(b"all"),
        {"type": "http.response.trailers", "headers": [(b"digest", b"1")], "more_trailers": False},
    )
    able: dict[str, Any] = {"http.response.trailers": {}}

    async def story():
        guarded = asgi.guarded(app)
        first = await asgi.ask(guarded, extensions=able)
        return first, await asgi.ask(guarded, extensions=able), await asgi.ask(guarded)

    first, second, third = run(story)
    assert [each["type"] for each in second.messages] == [each["type"] for each in first.messages]
    assert second.messages[-1]["headers"] == [(b"digest", b"1")]
    assert second.is_replayed
    # A server that cannot send trailers is not made to.
    assert [each["type"] for each in third.messages] == [
        "http.response.start",
        "http.response.body",
    ]
    assert app.runs == 1


def test_a_body_that_the_server_would_read_from_a_file_comes_as_bytes(run, asgi):
    shop = asgi.Shop()
    offered: dict[str, Any] = {
        "http.response.pathsend": {},
        "http.response.zerocopysend": {},
        "tls": {},
    }
    run(lambda: asgi.ask(asgi.guarded(shop), extensions=offered))
    assert shop.scopes[0]["extensions"] == {"tls": {}}


# Sizes


@pytest.mark.parametrize("length", [b"11", b"9" * 5000, b""], ids=["stated", "endless", "silent"])
def test_a_request_that_is_too_large_is_refused_and_nothing_is_executed(run, asgi, length):
    shop = asgi.Shop()
    stated = [(b"content-length", length)] if length else []
    app = asgi.guarded(shop, max_request=10)
    answer = run(lambda: asgi.ask(app, body=[b"12345", b"678901"], headers=stated))
    assert answer.status == 413
    assert answer.document["is_retriable"] is False
    assert shop.executed == []


def test_a_response_that_is_too_large_is_not_kept_and_not_made_again(run, asgi):
    app = sends(start(201), piece(b"x" * 8, more=True), piece(b"y" * 8))

    async def story():
        guarded = asgi.guarded(app, max_response=15)
        return await asgi.ask(guarded), await asgi.ask(guarded)

    first, second = run(story)
    assert first.body == b"x" * 8 + b"y" * 8
    assert second.status == 410
    assert second.document["detail"].endswith("was larger than 15 bytes and was not kept")
    assert app.runs == 1


# The store


class Down:
    """A store whose keys stop answering, when told."""

    def __init__(self, after=0):
        self.inner, self.left, self.keys = Memory(), after, self

    def scoped(self, scope):
        return scope

    def transact(self, key, operation):
        self.left -= 1
        if self.left < 0:
            raise StoreDown("redis://x", "no answer within 250ms")
        return self.inner.keys.transact(key, operation)

    async def atransact(self, key, operation):
        return self.transact(key, operation)


def test_without_the_store_nothing_is_executed(run, asgi):
    shop = asgi.Shop()
    answer = run(lambda: asgi.ask(asgi.guarded(shop, store=Down())))
    assert (answer.status, answer.header("retry-after")) == (503, "5")
    assert answer.document["is_retriable"] is True
    assert "redis" not in answer.body.decode()
    assert shop.executed == []


def test_a_store_that_goes_away_meanwhile_does_not_cost_the_response(run, asgi, caplog):
    shop, store = asgi.Shop(), Down(after=1)

    async def story():
        app = asgi.guarded(shop, store=store)
        first = await asgi.ask(app)
        return first, await asgi.ask(app)

    with caplog.at_level(logging.WARNING, "mulligan"):
        first, second = run(story)
    store.left = 10**9  # it is back: nothing is left to be offered when the tests end
    assert (first.status, first.body) == (201, b"order 1")
    assert second.is_replayed  # this process knows it
    assert "was executed, which could not be recorded yet" in caplog.text
    assert len(shop.executed) == 1


@pytest.mark.parametrize("successor", ["done", "running", "failed"])
def test_a_holder_that_lost_its_lease_does_not_overwrite_its_successor(
    run, asgi, caplog, successor
):
    from mulligan.core.moment import Moment

    now = [1000.0]
    store = Memory(lambda: Moment(now[0], now[0]))

    async def other(scope, receive, send):
        if successor == "failed":
            raise RuntimeError("a bug")
        if successor == "running":
            await finish()
        await send(start(201))
        await send(piece(b"the successor's"))

    async def finish():
        """What the first one sees when it wakes up."""
        await zombie.send(start(201))
        await zombie.send(piece(b"the zombie's"))

    class Zombie:
        async def __call__(self, scope, receive, send):
            self.send = send
            for _ in range(40):  # others ask while it sleeps, and its lease runs out
                now[0] += 2
                answer = await asgi.ask(asgi.guarded(asgi.Shop(500), store=store), body=b"{}")
                assert answer.status == 422
            with contextlib.suppress(RuntimeError):
                await asgi.ask(asgi.guarded(other, store=store))
            if successor != "running":
                await finish()

    zombie = Zombie()

    async def story():
        app = asgi.guarded(zombie, store=store)
        first = await asgi.ask(app)
        return first, await asgi.ask(app)

    with caplog.at_level(logging.WARNING, "mulligan"):
        first, second = run(story)
    assert "was overtaken by another server" in caplog.text
    assert second.is_replayed
    # If the key is free again, the result of the first one counts.
    seen = {"done": (201, "successor"), "running": (409, "successor"), "failed": (201, "zombie")}
    assert (first.status, second.body) == (
        seen[successor][0],
        f"the {seen[successor][1]}'s".encode(),
    )
    assert first.is_replayed == (successor == "done")


# Settings


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"caller": "x-account"}, r"^caller needs a function \(scope\) → who makes the request;"),
        ({"required": "yes"}, r"^required needs a bool or a function; got 'yes'$"),
        ({"methods": "POST"}, r"^methods needs a list of methods; got 'POST'$"),
        ({"max_request": -1}, r"^max_request needs a number of bytes >= 0; got -1$"),
        ({"max_response": "1 MB"}, r"^max_response needs a number of bytes >= 0; got '1 MB'$"),
        ({"ttl": "soon"}, r"^ttl needs a duration"),
        ({"lease": 0}, r"^lease needs at least 0.1 s"),
        ({"store": "mysql:"}, r"^a store needs an address"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused(asgi, options, message):
    with pytest.raises(SettingError, match=message):
        asgi.guarded(asgi.Shop(), **options)


def test_there_is_no_middleware_without_a_caller(asgi):
    with pytest.raises(TypeError, match="caller"):
        IdempotencyMiddleware(asgi.Shop())  # type: ignore[call-arg]
