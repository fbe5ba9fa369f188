from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.faults.vendors import VENDORS
from mulligan.faults.vendors.base import ClientRequest, Json, ToolCall, Vendor, VendorReply
from mulligan.faults.vendors.openai import go_duration

ENDS = {
    "anthropic": b"message_stop",
    "responses": b"response.completed",
    "chat": b'finish_reason": "',
    "gemini": b"finishReason",
}
texts = st.text(min_size=1, max_size=60).filter(lambda text: bool(text.strip()))
by_name = pytest.mark.parametrize("vendor", VENDORS, ids=lambda vendor: vendor.name)


def events(vendor: Vendor, reply: VendorReply, *, wants_usage: bool = False) -> list[Json]:
    asked = ClientRequest(model="m", is_stream=True, wants_usage=wants_usage)
    stream = vendor.stream(asked, reply)
    datas = [frame.decode().partition("data: ")[2] for frame in stream.frames]
    return [json.loads(data) for data in datas if data.strip() != "[DONE]"]


def said(vendor: Vendor, event: Json) -> Any:
    """The text that one event adds."""
    match vendor.name:
        case "anthropic":
            return event.get("delta", {}).get("text", "")
        case "responses":
            return event.get("delta", "")
        case "chat":
            return "".join(each["delta"].get("content") or "" for each in event["choices"])
        case _:
            parts = event["candidates"][0]["content"].get("parts", [])
            return "".join(part["text"] for part in parts)


@by_name
@given(text=texts)
def test_a_stream_says_the_whole_text_and_nothing_else(vendor, text):
    assert (
        "".join(said(vendor, event) for event in events(vendor, VendorReply(id="1", text=text)))
        == text
    )


@by_name
@given(text=texts)
def test_half_a_stream_has_no_end(vendor, text):
    stream = vendor.stream(ClientRequest(model="m", is_stream=True), VendorReply(id="1", text=text))
    assert 0 <= stream.middle < len(stream.frames)
    assert not any(ENDS[vendor.name] in frame for frame in stream.frames[: stream.middle])
    assert any(ENDS[vendor.name] in frame for frame in stream.frames)


@by_name
def test_half_a_stream_of_ordinary_words_has_some_of_them(vendor):
    reply = VendorReply(id="1", text="one two three four five six seven eight")
    stream = vendor.stream(ClientRequest(model="m", is_stream=True), reply)
    half = b"".join(stream.frames[: stream.middle])
    assert b"one two" in half
    assert b"seven" not in half


@by_name
@pytest.mark.parametrize(
    "reply", [VendorReply(id="1"), VendorReply(id="1", call=ToolCall(name="t", arguments={}))]
)
def test_an_empty_answer_and_a_tool_call_end_properly(vendor, reply):
    stream = vendor.stream(ClientRequest(model="m", is_stream=True), reply)
    assert ENDS[vendor.name] in b"".join(stream.frames)
    assert isinstance(vendor.page(ClientRequest(model="m"), reply), dict)


oddities = st.none() | st.integers() | st.text(max_size=3)
items = oddities | st.dictionaries(st.sampled_from(["type", "function", "tools"]), oddities)
bodies = st.dictionaries(
    st.sampled_from(["tools", "input", "messages", "model", "stream", "stream_options"]),
    oddities | st.lists(items),
)


@by_name
@given(body=bodies)
def test_no_body_breaks_the_reader(vendor, body):
    paths = ("/v1/messages", "/v1/responses", "/v1/chat/completions", "/v1/models/m:countTokens")
    assert sum(vendor.read("POST", path, "", body) is not None for path in paths) == 1


def test_gemini_without_events_is_one_json_array():
    gemini = VENDORS[3]
    stream = gemini.stream(
        ClientRequest(is_stream=True, wants_array=True), VendorReply(id="1", text="a b c d e")
    )
    assert len(json.loads(b"".join(stream.frames))) == 3
    assert stream.content_type == "application/json"


def test_chat_adds_its_usage_only_when_asked():
    chat = VENDORS[2]
    reply = VendorReply(id="1", text="hi")
    assert not any(event.get("usage") for event in events(chat, reply))
    assert events(chat, reply, wants_usage=True)[-1]["usage"]["completion_tokens"] == 1


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.017, "17ms"),
        (0.9996, "1s"),
        (1.0, "1s"),
        (1.5, "1.5s"),
        (360.0, "6m0s"),
        (3600.0, "1h0m0s"),
        (85656.648, "23h47m36.648s"),
    ],
)
def test_a_reset_is_stated_as_go_prints_durations(seconds, text):
    """E-A11."""
    assert go_duration(seconds) == text
