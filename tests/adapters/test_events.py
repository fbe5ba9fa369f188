from __future__ import annotations

import gzip
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.adapters.events import SseReader, is_event_stream


def sse(*events: Any, named: bool = True) -> bytes:
    """Events as they stand on the wire."""
    lines = []
    for event in events:
        data = event if isinstance(event, str) else json.dumps(event)
        name = (
            f"event: {event['type']}\n"
            if named and isinstance(event, dict) and "type" in event
            else ""
        )
        lines.append(f"{name}data: {data}\n\n")
    return "".join(lines).encode()


def anthropic_delta(text: str) -> dict[str, Any]:
    return {
        "type": "content_block_delta",
        "index": 0,
        "delta": {"type": "text_delta", "text": text},
    }


START = {"type": "message_start", "message": {"id": "m", "content": []}}
PING = {"type": "ping"}
BLOCK = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
TOOL = {
    "type": "content_block_start",
    "index": 1,
    "content_block": {"type": "tool_use", "id": "t", "name": "search", "input": {}},
}
ANTHROPIC = sse(
    *(START, PING, BLOCK, anthropic_delta("hi"), {"type": "content_block_stop", "index": 0}),
    *(TOOL, {"type": "content_block_stop", "index": 1}),
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    {"type": "message_stop"},
)


def chat(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {
        "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
    }


def call(index: int, name: str | None, arguments: str) -> dict[str, Any]:
    return {"tool_calls": [{"index": index, "function": {"name": name, "arguments": arguments}}]}


CHAT = sse(
    *(chat({"role": "assistant", "content": ""}), chat({"content": "hi"})),
    *(chat(call(0, "read", "")), chat(call(0, None, "{}")), chat(call(1, "write", "{}"))),
    *(chat({}, "tool_calls"), "[DONE]"),
)
RESPONSES = sse(
    {"type": "response.created", "response": {"status": "in_progress"}},
    {"type": "response.in_progress", "response": {}},
    {"type": "response.output_item.added", "item": {"type": "function_call"}},
    {"type": "response.function_call_arguments.delta", "delta": "{"},
    {"type": "response.output_item.done", "item": {"type": "function_call", "name": "read"}},
    {"type": "response.completed", "response": {"status": "completed"}},
)


def gemini(*parts: Any, finish: str | None = None) -> dict[str, Any]:
    return {"candidates": [{"content": {"parts": list(parts)}, "finishReason": finish}]}


GEMINI = sse(gemini({"text": "hi"}), gemini({"functionCall": {"name": "read"}}, finish="STOP"))

WHOLE = {"anthropic": ANTHROPIC, "chat": CHAT, "responses": RESPONSES, "gemini": GEMINI}
TOOLS = {
    "anthropic": ["search"],
    "chat": ["read", "write"],
    "responses": ["read"],
    "gemini": ["read"],
}


def read(body: bytes, encoding: str | None = None) -> SseReader:
    reader = SseReader(encoding)
    reader.feed(body)
    return reader


@pytest.mark.parametrize("api", WHOLE)
def test_a_whole_stream_is_known_committed_and_complete(api):
    reader = read(WHOLE[api])
    assert (reader.is_known, reader.is_committed, reader.is_complete) == (True, True, True)
    assert reader.error is None
    assert reader.tool_calls == TOOLS[api]


@pytest.mark.parametrize("api", WHOLE)
@given(data=st.data())
def test_how_the_bytes_are_cut_makes_no_difference(api, data):
    body = WHOLE[api].replace(b"\n", data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"])))
    reader, at = SseReader(), 0
    while at < len(body):
        size = data.draw(st.integers(1, 60))
        reader.feed(body[at : at + size])
        at += size
    reader.feed(b"\n")  # a lone \r at the end could have been half of a \r\n
    whole = read(WHOLE[api])
    assert (reader.contents, reader.tool_calls) == (whole.contents, whole.tool_calls)
    assert (reader.is_complete, reader.is_committed) == (True, True)


@pytest.mark.parametrize("api", WHOLE)
@given(data=st.data())
def test_no_part_of_a_stream_is_taken_for_the_whole_of_it(api, data):
    """Whatever is missing after the cut, an answer is complete only once its end was sent."""
    ends = {
        "anthropic": b'"stop_reason"',
        "chat": b'"finish_reason": "tool_calls"',
        "responses": b"response.completed",
        "gemini": b'"finishReason": "STOP"',
    }
    body = WHOLE[api]
    reader = read(body[: data.draw(st.integers(0, body.index(ends[api])))])
    assert not reader.is_complete


@pytest.mark.parametrize(
    ("prelude", "content"),
    [
        (sse(START, PING, BLOCK), sse(anthropic_delta("hi"))),
        (sse(START, PING, BLOCK, TOOL), sse(anthropic_delta("{"))),
        (sse(chat({"role": "assistant", "content": ""})), sse(chat({"content": "h"}))),
        (
            sse({"type": "response.created"}, {"type": "response.in_progress"}),
            sse({"type": "response.output_text.delta", "delta": "h"}),
        ),
        (sse({"candidates": [{"content": {"role": "model"}}]}), sse(gemini({"text": "h"}))),
        (b": a comment\n\nretry: 3\n\n", sse(anthropic_delta("hi"))),
    ],
)
def test_what_comes_before_the_first_content_commits_to_nothing(prelude, content):
    reader = read(prelude)
    assert not reader.is_committed
    reader.feed(content)
    assert reader.is_committed


@pytest.mark.parametrize(
    "event",
    [
        {"type": "error", "error": {"type": "overloaded_error", "message": "busy"}},
        {"error": {"code": 503, "message": "busy"}},
        {"type": "response.failed", "response": {"error": {"code": "server_error"}}},
    ],
    ids=["anthropic", "chat and gemini", "responses"],
)
def test_an_error_event_is_found_before_and_after_content(event):
    for before in (b"", sse(START), ANTHROPIC):
        assert read(before + sse(event)).error is not None


def test_pings_are_no_news():
    reader = read(sse(START))
    assert not reader.feed(sse(PING))
    assert not reader.feed(b": keep-alive\n\n")
    assert reader.feed(sse(anthropic_delta("hi")))


@pytest.mark.parametrize("event", [{"kind": "tick"}, {"type": "tick"}, "hello", "[1, 2]"])
def test_unknown_events_are_content_and_may_end_anywhere(event):
    reader = read(sse(event))
    assert (reader.is_known, reader.is_committed) == (False, True)


def test_a_compressed_stream_is_read():
    assert read(gzip.compress(ANTHROPIC), "gzip").is_complete


def test_a_stream_in_an_encoding_that_is_not_known_here_is_left_alone():
    reader = read(b"\x00\x01", "br")
    assert (reader.is_known, reader.is_committed) == (False, True)


def test_bytes_that_only_claim_to_be_compressed_are_left_alone():
    reader = read(ANTHROPIC, "gzip")
    assert (reader.is_known, reader.is_committed) == (False, True)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "type",
                    "choices",
                    "candidates",
                    "delta",
                    "error",
                    "response",
                    "item",
                    "index",
                    "content",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
kinds = st.sampled_from(
    ["message_delta", "content_block_start", "response.failed", "error", "tick"]
)


@given(st.lists(st.tuples(kinds, json_values), max_size=4), st.binary(max_size=40))
def test_nothing_that_a_server_sends_raises(events, rest):
    reader = SseReader()
    for kind, value in events:
        reader.feed(f"event: {kind}\ndata: {json.dumps(value)}\n\n".encode())
    reader.feed(rest)
    assert isinstance(reader.delivered(), str)


def test_a_prelude_without_end_is_handed_on():
    reader = SseReader()
    for _ in range(200):
        reader.feed(sse({**START, "padding": "x" * 10_000}))
    assert reader.is_committed


@pytest.mark.parametrize(
    ("header", "is_stream"),
    [
        ("text/event-stream", True),
        ("Text/Event-Stream; charset=utf-8", True),
        ("application/json", False),
        ("", False),
        (None, False),
    ],
)
def test_event_streams_are_known_by_their_content_type(header, is_stream):
    assert is_event_stream(header) is is_stream
