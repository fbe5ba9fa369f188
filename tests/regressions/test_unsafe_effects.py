"""An unsafe call is repeated only after a failure which proves that nothing was done.

What happened: a server that had sent the mail and then crashed answered 500. A 500 counted as an
answer, so the default guard asked again, and two mails went out. Seen with a server that applies
every POST and answers 500. In the same way a function that made several requests was repeated from
its start because its last request had met a 429: an agent's tools ran twice.
"""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import httpx
import pytest

import mulligan
from mulligan.testing import FaultServer, Scripted, VirtualClock, status_error, virtual_time

PAGE = (Path(__file__).parents[2] / "docs" / "classification.md").read_text(encoding="utf-8")
TABLE = re.findall(
    r"^\| ([^|]+) \| ([^|]+) \| (repeats|does not repeat|raises at once) \|$", PAGE, re.MULTILINE
)
BY_STATUS = [
    (int(status), said)
    for what, _, said in TABLE
    if "503" not in what
    for status in re.findall(r"[0-9]{3}", what)
]
CAPACITY = status_error(503, "The model is overloaded. Please try again later.")


def calls_made(drive, *outcomes, **options):
    script = Scripted(*outcomes, "ok")
    try:
        drive.run(script, **options)
    except Exception as error:  # noqa: BLE001 -- whichever it is
        return len(script.calls), mulligan.story(error)
    return len(script.calls), None


def test_the_page_has_the_table():
    assert len(TABLE) == 13
    assert len(BY_STATUS) == 18


@pytest.mark.parametrize(("status", "said"), BY_STATUS)
def test_each_status_of_the_table_is_answered_as_it_says(drive, status, said):
    calls, story = calls_made(drive, status_error(status))
    if said == "repeats":
        assert (calls, story) == (2, None)
        return
    assert calls == 1
    assert story is not None
    assert story.ending == ("maybe_applied" if said == "does not repeat" else "final")


@pytest.mark.parametrize(
    ("error", "calls"),
    [
        (status_error(503), 1),
        (status_error(503, headers={"retry-after": "3"}), 2),
        (CAPACITY, 2),
        (status_error(503, body={"error": {"status": "UNAVAILABLE", "message": "gone"}}), 1),
        (status_error(500, "rate limit of a backend"), 1),
        (status_error(500, headers={"retry-after": "3"}), 1),
        (status_error(500, headers={"x-should-retry": "true"}), 1),
        (status_error(502, "overloaded"), 1),
        (ConnectionRefusedError("refused"), 2),
        (httpx.ConnectTimeout("connect"), 2),
        (ConnectionResetError("reset"), 1),
        (httpx.ReadTimeout("read"), 1),
        (ExceptionGroup("several", [status_error(429)]), 1),
    ],
    ids=repr,
)
def test_evidence_beyond_the_status(drive, error, calls):
    assert calls_made(drive, error)[0] == calls


@pytest.mark.parametrize("effects", ["read", "idempotent", "keyed"])
@pytest.mark.parametrize("status", [500, 502, 503, 504])
def test_calls_that_are_safe_to_repeat_are_repeated_as_before(drive, effects, status):
    assert calls_made(drive, status_error(status), effects=effects) == (2, None)


@pytest.mark.parametrize("preset", ["skill", "pattern", "surface"])
def test_presets_that_say_idempotent_are_not_changed(drive, preset):
    assert calls_made(drive, status_error(503), policy=preset) == (2, None)


def test_the_note_says_what_to_write(drive):
    error = status_error(500)
    with pytest.raises(type(error)) as caught:
        drive.run(Scripted(error))
    assert caught.value.__notes__[0].endswith(
        '() may have been applied; if repeating is harmless, set effects="read" '
        'or effects="idempotent"'
    )


def test_verify_is_asked_after_a_500(drive):
    assert drive.run(Scripted(status_error(500)), verify=lambda: "sent") == "sent"


@pytest.mark.real
def test_a_server_that_applies_and_crashes_is_asked_once():
    with FaultServer("POST /invoices -> 500(applied=yes), ok") as server:
        guard = mulligan.Guard("mail", clock=VirtualClock())

        def send():
            httpx.post(f"{server.url}/invoices", json={"eur": 700}).raise_for_status()

        with pytest.raises(httpx.HTTPStatusError) as caught:
            guard.call(send)
        assert (server.totals.requests, server.totals.effects) == (1, 1)
    story = mulligan.story(caught.value)
    assert story is not None
    assert (story.attempts, story.ending) == (1, "maybe_applied")


# Several requests in one function

LIMITED = {"retry-after": "1"}


def test_a_batch_that_meets_a_limit_in_the_middle_is_not_sent_again(virtual_clock):
    sent: list[str] = []

    def send(address):
        if len(sent) == 2:
            raise status_error(429, headers=LIMITED)
        sent.append(address)

    @mulligan.retry
    def batch(addresses):
        for address in addresses:
            send(address)

    @mulligan.retry
    def in_a_comprehension(addresses):
        return [send(address) for address in addresses]

    @mulligan.retry
    def with_while(addresses):
        while addresses:
            send(addresses.pop())

    for function in (batch, in_a_comprehension, with_while):
        sent.clear()
        with pytest.raises(Exception, match="status 429") as caught:
            function(["ada", "bob", "cy"])
        assert len(sent) == 2
        story = mulligan.story(caught.value)
        assert story is not None
        assert story.ending == "maybe_applied"
        assert "made in a loop" in story.because


def test_an_agents_run_with_a_tool_call_inside_is_not_repeated(adrive):
    tools = []

    async def model(turn):
        await asyncio.sleep(0) if adrive.name == "asyncio" else None
        if turn == 2:
            raise status_error(429, headers=LIMITED)
        return "call the tool"

    async def agent():
        turn = 0
        while True:
            turn += 1
            if await model(turn) == "call the tool":
                tools.append(turn)

    async def main():
        await mulligan.Guard("agent").acall(agent)

    with virtual_time(adrive.clock), pytest.raises(Exception, match="status 429"):
        adrive.arun(main)
    assert tools == [1]


def test_awaiting_is_no_loop(adrive):
    seen = []

    async def post():
        seen.append(1)
        if len(seen) == 1:
            raise status_error(429, headers=LIMITED)
        return "ok"

    async def send():
        for _ in range(3):
            pass
        async with asyncio.Lock() if adrive.name == "asyncio" else _nothing():
            return await post()

    async def main():
        return await mulligan.Guard("mail").acall(send)

    with virtual_time(adrive.clock):
        assert adrive.arun(main) == "ok"


class _nothing:  # noqa: N801
    async def __aenter__(self):
        return self

    async def __aexit__(self, *_):
        return None


def test_a_block_stands_in_a_loop_of_its_own(virtual_clock):
    numbers = []
    for attempt in mulligan.attempts():
        with attempt:
            numbers.append(attempt.number)
            if attempt.number < 3:
                raise status_error(429, headers=LIMITED)
    assert numbers == [1, 2, 3]


@pytest.mark.real
def test_the_retries_of_a_client_are_no_loop_of_the_caller():
    """`openai` sends in a loop over its own retries; the guarded method is one request."""
    from openai import OpenAI

    with FaultServer("429(retry-after=1), ok") as server:
        client = OpenAI(api_key="k", base_url=f"{server.url}/v1", max_retries=0)
        guard = mulligan.Guard("openai", clock=VirtualClock())
        create: Any = client.chat.completions.create
        answer = guard.call(create, model="m", messages=[{"role": "user", "content": "hi"}])
    assert answer.choices


def test_a_limit_inside_is_not_waited_for_around_a_function_that_did_more(virtual_clock):
    tools = []
    hour = status_error(429, headers={"retry-after": "3600"})
    model, inner = Scripted(hour, "ok"), mulligan.Guard("model")

    @mulligan.retry(in_place="2h")
    def agent():
        tools.append("ran")
        return inner.call(model)

    with pytest.raises(type(hour)) as caught:
        agent()
    assert tools == ["ran"]
    story = mulligan.story(caught.value)
    assert story is not None
    assert (story.ending, story.retry_at) == ("parked", virtual_clock.wall() + 3600)


def test_a_limit_inside_is_waited_for_around_the_call_itself(virtual_clock):
    hour = status_error(429, headers={"retry-after": "3600"})
    outer = mulligan.Guard("outer", in_place="2h")
    assert outer.call(mulligan.Guard("inner").call, Scripted(hour, "ok")) == "ok"
