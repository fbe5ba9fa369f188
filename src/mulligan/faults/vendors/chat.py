"""The OpenAI Chat Completions API.

The dialect that most compatible servers speak. A stream ends with ``[DONE]``; a client that was
not given a ``finish_reason`` before it has half an answer.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from .base import (
    ClientRequest,
    Json,
    Refusal,
    RefusalReason,
    ResponseStream,
    Tool,
    VendorReply,
    a_list,
    a_table,
    count_tokens,
    sse,
)
from .openai_errors import openai_headers, openai_refusal

if TYPE_CHECKING:
    from ..limits import LimitCheck

__all__ = ("Chat",)


class Chat:
    """OpenAI Chat Completions: ``POST /v1/chat/completions``."""

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
            message |= {"content": None, "tool_calls": [_call(reply)]}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _ending(reply)}
        opening = _opening(asked, reply, "chat.completion")
        return {**opening, "choices": [choice], "usage": _usage(asked, reply)}

    def stream(self, asked: ClientRequest, reply: VendorReply) -> ResponseStream:
        opening = _opening(asked, reply, "chat.completion.chunk")

        def chunk(delta: Json, ending: str | None = None) -> bytes:
            choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": ending}
            return sse({**opening, "choices": [choice]})

        frames = [chunk({"role": "assistant", "content": None if reply.call else ""})]
        if reply.call:
            frames.append(chunk({"tool_calls": [{"index": 0, **_call(reply)}]}))
        frames += [chunk({"content": piece}) for piece in reply.pieces]
        middle = 1 + max(1, len(reply.pieces) // 2)
        frames.append(chunk({}, _ending(reply)))
        middle = min(middle, len(frames) - 1)
        if asked.wants_usage:
            frames.append(sse({**opening, "choices": [], "usage": _usage(asked, reply)}))
        frames.append(b"data: [DONE]\n\n")
        return ResponseStream(frames=tuple(frames), middle=middle)

    def refusal(self, reason: RefusalReason) -> Refusal:
        return openai_refusal(reason)

    def error_event(self, reason: RefusalReason) -> bytes:
        words = reason.message or "The server is overloaded, try again later"
        code = "server_is_overloaded"
        return sse(
            {"error": {"message": words, "type": "server_error", "param": None, "code": code}}
        )

    def headers(self, id_: str, admission: LimitCheck | None, now: float) -> dict[str, str]:
        return openai_headers(id_, admission, now)


def _opening(asked: ClientRequest, reply: VendorReply, kind: str) -> Json:
    return {
        "id": f"chatcmpl-{reply.id}",
        "object": kind,
        "created": int(reply.now),
        "model": asked.model,
        "system_fingerprint": "fp_mulligan",
    }


def _call(reply: VendorReply) -> Json:
    assert reply.call is not None  # noqa: S101 -- callers look first
    function = {"name": reply.call.name, "arguments": reply.call.written}
    return {"id": f"call_{reply.id}", "type": "function", "function": function}


def _ending(reply: VendorReply) -> str:
    return "tool_calls" if reply.call else "stop"


def _usage(asked: ClientRequest, reply: VendorReply) -> Json:
    return {
        "prompt_tokens": asked.tokens,
        "completion_tokens": reply.tokens,
        "total_tokens": asked.tokens + reply.tokens,
    }
