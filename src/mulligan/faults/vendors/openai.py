"""OpenAI: the Responses API and Chat Completions, the dialect that most compatible servers speak.

Both have the same error object and quota headers, which state a reset as a Go duration (``6m0s``,
``17ms``). The plan's limit of a subscription comes in the body, as ``resets_at`` in epoch seconds.
"""

from __future__ import annotations

import json
from math import ceil
from typing import TYPE_CHECKING

from ..limits import whole_seconds
from .base import (
    ClientRequest,
    Json,
    JsonResponse,
    RefusalReason,
    ResponseStream,
    Tool,
    VendorReply,
    a_list,
    a_table,
    count_tokens,
    sse,
    status_words,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..limits import LimitCheck

__all__ = ("Chat", "Responses", "go_duration")

# Type and code of an error, by status.
_TYPES: dict[int, tuple[str, str | None]] = {
    401: ("invalid_request_error", "invalid_api_key"),
    403: ("invalid_request_error", "unsupported_country_region_territory"),
    404: ("invalid_request_error", "not_found"),
    429: ("requests", "rate_limit_exceeded"),
    503: ("service_unavailable_error", "server_is_overloaded"),
}
_WORDS = {
    401: "Incorrect API key provided",
    403: "This request is not permitted for your organization",
    404: "The requested resource was not found",
    429: "Rate limit reached for requests",
    500: "The server had an error while processing your request",
    503: "The server is overloaded or not ready yet",
}
# Status, type, code and words of a fault that has a name.
_REFUSALS: dict[str, tuple[int, str, str | None, str]] = {
    "overloaded": (503, *_TYPES[503], _WORDS[503]),
    "plan": (429, "usage_limit_reached", None, "The usage limit has been reached"),
    "billing": (
        *(429, "insufficient_quota", "insufficient_quota"),
        "You exceeded your current quota, check your plan and billing details",
    ),
    "context": (
        *(400, "invalid_request_error", "context_length_exceeded"),
        "This model's maximum context length is 128000 tokens; your input is longer",
    ),
    "model": (
        *(404, "invalid_request_error", "model_not_found"),
        "The model `{model}` does not exist or you do not have access to it",
    ),
    "policy": (
        *(400, "invalid_request_error", "content_policy_violation"),
        "The request was rejected by the safety system",
    ),
    "auth": (401, *_TYPES[401], _WORDS[401]),
}
_OVERLOADED = "The server is overloaded, try again later"


class _OpenAI:
    """What the two APIs share: errors and headers."""

    def refusal(self, reason: RefusalReason) -> JsonResponse:
        status, kind, code, words = _status_type_code_words(reason)
        error: Json = {
            "message": reason.message or words,
            "type": kind,
            "param": "messages" if reason.name == "context" else None,
            "code": reason.code or code,
        }
        headers: dict[str, str] = {}
        if reason.name == "plan" and reason.reset_at is not None:
            wait = max(0, ceil(reason.reset_at - reason.now))
            resets_at = int(reason.reset_at)
            error |= {"plan_type": "plus", "resets_at": resets_at, "resets_in_seconds": wait}
            headers = {
                "x-codex-primary-used-percent": "100",
                "x-codex-primary-window-minutes": str(max(1, round(reason.lasts / 60))),
                "x-codex-primary-reset-at": str(resets_at),
            }
        elif reason.wait is not None and reason.retry_after is None:
            headers = {
                "retry-after": str(whole_seconds(reason.wait)),
                "retry-after-ms": str(max(1, ceil(reason.wait * 1000 - 1e-6))),
            }
        return JsonResponse(status=status, body={"error": error}, headers=headers)

    def headers(self, id_: str, admission: LimitCheck | None, now: float) -> dict[str, str]:
        found = {"x-request-id": f"req_{id_}", "openai-processing-ms": "12"}
        for name, (limit, said) in (admission.verdicts if admission else {}).items():
            found |= {
                f"x-ratelimit-limit-{name}": str(limit.capacity),
                f"x-ratelimit-remaining-{name}": str(said.remaining),
                f"x-ratelimit-reset-{name}": go_duration(max(0.0, said.reset_at - now)),
            }
        return found


def _status_type_code_words(reason: RefusalReason) -> tuple[int, str, str | None, str]:
    model = reason.asked.model
    if reason.name == "limit":
        words = f"Request too large for {model} on {reason.refused_by}"
        if reason.wait is not None:
            wait = go_duration(reason.wait)
            words = f"Rate limit reached for {model} on {reason.refused_by}. "
            words += f"Please try again in {wait}."
        return 429, reason.refused_by, "rate_limit_exceeded", words
    if reason.name in _REFUSALS:
        status, kind, code, words = _REFUSALS[reason.name]
        return status, kind, code, words.format(model=model)
    status = reason.status or 500
    default = ("invalid_request_error" if status < 500 else "server_error", None)
    return status, *_TYPES.get(status, default), status_words(_WORDS, status)


def go_duration(seconds: float) -> str:
    """`seconds` as Go prints a duration: ``17ms``, ``1.5s``, ``6m0s``, ``1h0m30s``."""
    # Up, never down: a client that comes back then must find it open.
    millis = ceil(seconds * 1000 - 1e-6)
    if millis < 1000:
        return f"{millis}ms"
    hours, minutes, rest = millis // 3_600_000, millis // 60_000 % 60, millis % 60_000 / 1000
    text = f"{rest:.3f}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{hours}h{minutes}m{text}"
    return f"{minutes}m{text}" if minutes else text


class Chat(_OpenAI):
    """OpenAI Chat Completions: ``POST /v1/chat/completions``.

    A stream ends with ``[DONE]``; a client that was not given a ``finish_reason`` before it has
    half an answer.
    """

    name = "chat"

    def read(self, method: str, path: str, query: str, body: Json) -> ClientRequest | None:  # noqa: ARG002 -- one signature for all vendors
        if method != "POST" or not path.endswith("/chat/completions"):
            return None
        tools = a_list(body.get("tools"))
        functions = [a_table(a_table(each).get("function")) for each in tools]
        options = a_table(body.get("stream_options"))
        return ClientRequest(
            model=str(body.get("model", "")),
            is_stream=body.get("stream") is True,
            tools=tuple(
                Tool(name=str(each.get("name")), schema=a_table(each.get("parameters")))
                for each in functions
                if each
            ),
            tokens=count_tokens(json.dumps([body.get("messages"), tools])),
            wants_usage=options.get("include_usage") is True,
        )

    def count(self, asked: ClientRequest) -> Json:
        return {"input_tokens": asked.tokens}

    def page(self, asked: ClientRequest, reply: VendorReply) -> Json:
        message: Json = {"role": "assistant", "content": reply.text, "refusal": None}
        if reply.call:
            message |= {"content": None, "tool_calls": [_chat_call(reply)]}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _ending(reply)}
        opening = _chat_opening(asked, reply, "chat.completion")
        return {**opening, "choices": [choice], "usage": _chat_usage(asked, reply)}

    def stream(self, asked: ClientRequest, reply: VendorReply) -> ResponseStream:
        opening = _chat_opening(asked, reply, "chat.completion.chunk")

        def chunk(delta: Json, ending: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": ending}
            return sse({**opening, "choices": [choice]})

        frames = [chunk({"role": "assistant", "content": None if reply.call else ""})]
        if reply.call:
            frames.append(chunk({"tool_calls": [{"index": 0, **_chat_call(reply)}]}))
        frames += [chunk({"content": piece}) for piece in reply.pieces]
        middle = 1 + max(1, len(reply.pieces) // 2)
        frames.append(chunk({}, _ending(reply)))
        middle = min(middle, len(frames) - 1)
        if asked.wants_usage:
            frames.append(sse({**opening, "choices": [], "usage": _chat_usage(asked, reply)}))
        frames.append(b"data: [DONE]\n\n")
        return ResponseStream(frames=tuple(frames), middle=middle)

    def error_event(self, reason: RefusalReason) -> bytes:
        error = {"message": reason.message or _OVERLOADED, "type": "server_error", "param": None}
        return sse({"error": {**error, "code": "server_is_overloaded"}})


def _chat_opening(asked: ClientRequest, reply: VendorReply, kind: str) -> Json:
    return {
        "id": f"chatcmpl-{reply.id}",
        "object": kind,
        "created": int(reply.now),
        "model": asked.model,
        "system_fingerprint": "fp_mulligan",
    }


def _chat_call(reply: VendorReply) -> Json:
    assert reply.call is not None  # noqa: S101 -- callers look first
    function = {"name": reply.call.name, "arguments": reply.call.written}
    return {"id": f"call_{reply.id}", "type": "function", "function": function}


def _ending(reply: VendorReply) -> str:
    return "tool_calls" if reply.call else "stop"


def _chat_usage(asked: ClientRequest, reply: VendorReply) -> Json:
    return {
        "prompt_tokens": asked.tokens,
        "completion_tokens": reply.tokens,
        "total_tokens": asked.tokens + reply.tokens,
    }


class Responses(_OpenAI):
    """OpenAI Responses: ``POST /v1/responses`` and ``/v1/responses/input_tokens``.

    Everything streams as numbered events, each with its type in the data as well; a failure inside
    a stream is ``response.failed``, which the SDK hands on without raising anything.
    """

    name = "responses"

    def read(self, method: str, path: str, query: str, body: Json) -> ClientRequest | None:  # noqa: ARG002 -- one signature for all vendors
        is_count = path.endswith("/responses/input_tokens")
        if method != "POST" or not (is_count or path.endswith("/responses")):
            return None
        tools, items = body.get("tools"), body.get("input")
        # Codex sends its tools among the items for models that expect them there.
        more = [
            item.get("tools")
            for item in map(a_table, a_list(items))
            if item.get("type") == "additional_tools"
        ]
        return ClientRequest(
            model=str(body.get("model", "")),
            is_stream=body.get("stream") is True,
            is_count=is_count,
            tools=tuple(found for group in (tools, *more) for found in _tools(group)),
            tokens=count_tokens(json.dumps([body.get("instructions"), items, tools])),
        )

    def count(self, asked: ClientRequest) -> Json:
        return {"object": "response.input_tokens", "input_tokens": asked.tokens}

    def page(self, asked: ClientRequest, reply: VendorReply) -> Json:
        usage = {
            "input_tokens": asked.tokens,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": reply.tokens,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": asked.tokens + reply.tokens,
        }
        output = [item] if (item := _item(reply, "completed")) else []
        return {**_opening(asked, reply), "status": "completed", "output": output, "usage": usage}

    def stream(self, asked: ClientRequest, reply: VendorReply) -> ResponseStream:
        opening = _opening(asked, reply)
        events: list[Json] = [
            {"type": "response.created", "response": opening},
            {"type": "response.in_progress", "response": opening},
        ]
        item = _item(reply, "completed")
        if item is not None:
            body = _call_events(item) if reply.call else _text_events(reply, item)
            blank = _item(reply, "in_progress")
            events += [
                {"type": "response.output_item.added", "output_index": 0, "item": blank},
                *body,
                {"type": "response.output_item.done", "output_index": 0, "item": item},
            ]
        events.append({"type": "response.completed", "response": self.page(asked, reply)})
        frames = tuple(
            sse({**event, "sequence_number": number}, event=event["type"])
            for number, event in enumerate(events)
        )
        middle = 4 + max(1, len(reply.pieces) // 2)
        return ResponseStream(frames=frames, middle=min(middle, len(frames) - 1))

    def error_event(self, reason: RefusalReason) -> bytes:
        words = reason.message or _OVERLOADED
        response = {
            "id": f"resp_{reason.id}",
            "object": "response",
            "created_at": int(reason.now),
            "status": "failed",
            "model": reason.asked.model,
            "output": [],
            "error": {"code": "server_is_overloaded", "message": words},
        }
        event = {"type": "response.failed", "sequence_number": 99, "response": response}
        return sse(event, event="response.failed")


def _tools(group: object) -> Iterator[Tool]:
    for each in map(a_table, a_list(group)):
        kind = each.get("type")
        if kind == "namespace":
            yield from _tools(each.get("tools"))
        elif kind in ("function", "custom"):
            is_free = kind == "custom"
            schema = a_table(each.get("parameters"))
            yield Tool(name=str(each.get("name")), schema=schema, is_free=is_free)


def _opening(asked: ClientRequest, reply: VendorReply) -> Json:
    return {
        "id": f"resp_{reply.id}",
        "object": "response",
        "created_at": int(reply.now),
        "status": "in_progress",
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "model": asked.model,
        "output": [],
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
        "usage": None,
    }


def _item(reply: VendorReply, status: str) -> Json | None:
    is_done = status == "completed"
    if reply.call is not None and reply.call.text is not None:
        call = {"id": f"ctc_{reply.id}", "type": "custom_tool_call", "call_id": f"call_{reply.id}"}
        text = reply.call.text if is_done else ""
        return {**call, "name": reply.call.name, "input": text, "status": status}
    if reply.call is not None:
        call = {"id": f"fc_{reply.id}", "type": "function_call", "call_id": f"call_{reply.id}"}
        arguments = reply.call.written if is_done else ""
        return {**call, "name": reply.call.name, "arguments": arguments, "status": status}
    if not reply.text:
        return None
    content = [_part(reply.text)] if is_done else []
    message = {"id": f"msg_{reply.id}", "type": "message", "role": "assistant"}
    return {**message, "status": status, "content": content}


def _part(text: str) -> Json:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}


def _text_events(reply: VendorReply, item: Json) -> list[Json]:
    place = {"item_id": item["id"], "output_index": 0, "content_index": 0}
    return [
        {"type": "response.content_part.added", **place, "part": _part("")},
        *(
            {"type": "response.output_text.delta", **place, "delta": piece, "logprobs": []}
            for piece in reply.pieces
        ),
        {"type": "response.output_text.done", **place, "text": reply.text, "logprobs": []},
        {"type": "response.content_part.done", **place, "part": _part(reply.text)},
    ]


def _call_events(item: Json) -> list[Json]:
    place = {"item_id": item["id"], "output_index": 0}
    if item["type"] == "custom_tool_call":
        stem = "response.custom_tool_call_input"
        return [
            {"type": f"{stem}.delta", **place, "delta": item["input"]},
            {"type": f"{stem}.done", **place, "input": item["input"]},
        ]
    stem = "response.function_call_arguments"
    return [
        {"type": f"{stem}.delta", **place, "delta": item["arguments"]},
        {"type": f"{stem}.done", **place, "name": item["name"], "arguments": item["arguments"]},
    ]
