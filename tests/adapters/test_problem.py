from __future__ import annotations

import asyncio
import json
import logging
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mulligan
from mulligan.adapters.asgi import Health, ProblemMiddleware, problem_handler
from mulligan.errors import (
    CircuitOpen,
    DeadlinePassed,
    KeyBusy,
    KeyReused,
    LimitReached,
    NotKept,
    SettingError,
    StoreDown,
)
from mulligan.testing import Scripted, status_error, virtual_time


def document(made):
    return json.loads(made.body)


def test_a_problem_says_whether_and_when_to_try_again():
    made = mulligan.problem(
        503,
        "the warehouse is closed",
        type="https://shop.example/problems/closed",
        retry_after="1m30s",
        suggestions=["order tomorrow"],
        warehouse="north",
    )
    assert document(made) == {
        "type": "https://shop.example/problems/closed",
        "title": "Service Unavailable",
        "status": 503,
        "detail": "the warehouse is closed",
        "is_retriable": True,
        "retry_after_ms": 90_000,
        "suggestions": ["order tomorrow"],
        "warehouse": "north",
    }
    assert made.headers == [
        ("content-type", "application/problem+json"),
        ("content-language", "en"),
        ("retry-after", "90"),
    ]


@pytest.mark.parametrize("status", range(400, 600))
def test_every_status_has_a_problem(status):
    said = document(mulligan.problem(status)).get("is_retriable")
    assert said is (None if status == 500 else status in {408, 425, 429, 502, 503, 504})


@given(st.floats(0, 1e12))
def test_a_client_is_never_told_to_come_too_early(wait):
    made = mulligan.problem(503, retry_after=wait)
    stated = float(dict(made.headers)["retry-after"])
    assert stated >= min(wait, 10 * 365 * 86_400)
    assert stated >= 1
    assert stated < max(wait, 1) + 1
    assert document(made)["retry_after_ms"] >= min(wait * 1000, 1)


def test_a_guard_on_the_other_side_does_what_the_problem_says():
    """R-C11: the statement counts, not the status."""
    for is_retriable, attempts in ((False, 1), (True, 2)):
        said = mulligan.problem(503, is_retriable=is_retriable, retry_after=7)
        error = status_error(503, headers=dict(said.headers), body=said.body)
        call = Scripted(error, "ok")
        with virtual_time() as clock:
            if is_retriable:
                began = clock.now()
                assert mulligan.Guard(effects="read").call(call) == "ok"
                assert clock.now() - began == 7
            else:
                with pytest.raises(type(error)):
                    mulligan.Guard(effects="read").call(call)
        assert len(call.calls) == attempts


@pytest.mark.parametrize(
    ("error", "status", "is_retriable", "retry_after"),
    [
        (CircuitOpen("bank", 12.5, "10 failures in a row"), 503, True, "13"),
        (CircuitOpen("bank", math.inf, "blocked"), 503, True, None),
        (LimitReached("bank", 0, "100 a day"), 503, True, "1"),
        (DeadlinePassed("bank", "no time left"), 504, True, None),
        (KeyBusy("bank", 30, "'k' is being done"), 409, True, "1"),
        (KeyReused("k", "other arguments"), 422, False, None),
        (NotKept("k", "not JSON"), 410, False, None),
        (StoreDown("redis://cache", "no answer"), 503, True, "5"),
        (ValueError("sk-ant-secret"), 500, None, None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Exception) else None,
)
def test_an_error_has_its_status(error, status, is_retriable, retry_after):
    made = mulligan.problem(error)
    assert (made.status, document(made).get("is_retriable")) == (status, is_retriable)
    assert dict(made.headers).get("retry-after") == retry_after
    for word in ("sk-ant", "redis", "bank"):
        assert word not in made.body.decode()


def given_up(*script, **options):
    """The error that a guarded call ended with."""
    call = Scripted(*script)
    with virtual_time(), pytest.raises(Exception) as caught:  # noqa: PT011 -- whatever it is
        mulligan.Guard("bank", breaker=False, **options).call(call)
    return caught.value


def test_a_dependency_that_failed_is_a_bad_gateway():
    made = mulligan.problem(given_up(*[status_error(503)] * 9, effects="read"))
    assert (made.status, document(made)["is_retriable"]) == (502, True)
    made = mulligan.problem(given_up(status_error(401)))
    assert (made.status, document(made)["is_retriable"]) == (502, False)
    made = mulligan.problem(given_up(*[TimeoutError()] * 9, effects="read"))
    assert (made.status, document(made)["is_retriable"]) == (504, True)


def test_what_may_have_been_applied_is_not_to_be_sent_again():
    made = mulligan.problem(given_up(TimeoutError()))
    assert document(made)["is_retriable"] is False
    assert document(made)["detail"] == "it is unknown whether the operation was applied"


def test_a_limit_of_a_dependency_says_when_it_ends():
    with virtual_time():
        error = given_up(status_error(429, headers={"retry-after": "7200"}), effects="read")
        made = mulligan.problem(error)
    assert made.status == 503
    assert dict(made.headers)["retry-after"] == "7200"


@pytest.mark.parametrize(
    ("arguments", "members", "message"),
    [
        ((200,), {}, r"^a problem needs a status from 400 to 599, or an error; got 200$"),
        ((True,), {}, r"^a problem needs a status"),
        ((503,), {"retry_after": -1}, r"^retry_after needs"),
        ((503,), {"when": object()}, r"^the members of a problem need to be JSON; "),
        ((503,), {"status": 1}, r"^'status' is a member of every problem; give it another name$"),
    ],
)
def test_what_cannot_be_meant_is_refused(arguments, members, message):
    with pytest.raises(SettingError, match=message):
        mulligan.problem(*arguments, **members)


# As ASGI applications


async def answered(app, scope_type="http"):
    sent = []

    async def send(message):
        sent.append(message)

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    await app({"type": scope_type, "method": "GET", "path": "/", "headers": []}, receive, send)
    return sent


def test_the_middleware_answers_what_mulligan_gave_up_on(caplog):
    error = CircuitOpen("bank", 12, "10 failures in a row, password=hunter2")

    async def app(scope, receive, send):
        raise error

    with caplog.at_level(logging.WARNING, "mulligan"):
        start, body = asyncio.run(answered(ProblemMiddleware(app)))
    assert start["status"] == 503
    assert (b"retry-after", b"12") in start["headers"]
    assert json.loads(body["body"])["is_retriable"] is True
    assert "10 failures in a row" in caplog.text  # in the log, not in the answer
    assert "hunter2" not in caplog.text


@pytest.mark.parametrize("is_begun", [True, False])
def test_the_middleware_lets_other_errors_pass(is_begun):
    async def app(scope, receive, send):
        if is_begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            raise CircuitOpen("bank", 12, "10 failures in a row")
        raise ValueError("a bug")

    with pytest.raises(CircuitOpen if is_begun else ValueError):
        asyncio.run(answered(ProblemMiddleware(app)))


def test_a_bug_under_a_guard_stays_a_bug():
    async def app(scope, receive, send):
        mulligan.Guard("bank").call(Scripted(KeyError("a bug")))

    with pytest.raises(KeyError):
        asyncio.run(answered(ProblemMiddleware(app)))


def test_starlette_answers_with_the_handler():
    from starlette.applications import Starlette
    from starlette.routing import Route

    async def broken(request):
        raise CircuitOpen("bank", 12, "10 failures in a row")

    app = Starlette(
        routes=[Route("/", broken)],
        exception_handlers={mulligan.MulliganError: problem_handler},  # type: ignore[dict-item]
    )
    assert asyncio.run(answered(app))[0]["status"] == 503


def test_health_is_unavailable_while_it_drains():
    health = Health()
    assert asyncio.run(answered(health))[0]["status"] == 200
    health.drain("45s")
    assert health.is_draining
    start, body = asyncio.run(answered(health))
    assert start["status"] == 503
    assert (b"retry-after", b"45") in start["headers"]
    assert json.loads(body["body"])["title"] == "Draining"
    health.resume()
    assert asyncio.run(answered(health))[0]["status"] == 200
    with pytest.raises(
        RuntimeError, match=r"^Health answers http requests; got a scope of type ws$"
    ):
        asyncio.run(answered(health, "ws"))
