"""Server-sent events of model APIs: what has been delivered, and whether the answer is complete.

Reads the streams of Anthropic, OpenAI Responses, OpenAI Chat Completions and Gemini as they pass,
and changes nothing in them. The API is recognised by the events, not by the address: many servers
speak OpenAI's dialects. A stream of unknown events counts as content from its first event on, and
may end anywhere.

    opened ──prelude──▶ opened ──content──▶ committed ──terminal event──▶ complete
       └──────────────error event──────────────┴────────▶ failed
"""

from __future__ import annotations

import json
import re
import zlib
from typing import Any

__all__ = ("SseReader", "is_event_stream")

_LINE_END = re.compile(rb"\r\n|\n|\r")

# A prelude that long is none: from here on the stream counts as committed.
_LONGEST_PRELUDE = 1 << 20

# Responses: events that announce what will come. Everything else is content.
_ANNOUNCEMENTS = frozenset(
    f"response.{name}"
    for name in ("created", "in_progress", "queued", "output_item.added", "content_part.added")
)
_PREPARATIONS = frozenset(("message_start", "content_block_start"))


def is_event_stream(content_type: str | None) -> bool:
    """Whether a response with this content type carries events."""
    return (content_type or "").partition(";")[0].strip().lower() == "text/event-stream"


class SseReader:
    """One stream, as far as it has been read.

    Args:
        encoding: The response's ``Content-Encoding``. What cannot be decoded here (br, zstd) is not
            read: such a stream counts as one of unknown events.

    Attributes:
        is_committed: Whether content has been seen; a restart would show it twice.
        is_complete: Whether the event has been seen that ends an answer.
        is_known: Whether the API was recognised; only then is a missing end a failure.
        error: The body of an error event; None if there was none.
        contents: How many events with content have been seen.
        tool_calls: The names of the tool calls that are complete, in order.
    """

    def __init__(self, encoding: str | None = None) -> None:
        self.is_committed = self.is_complete = self.is_known = False
        self.error: dict[str, Any] | None = None
        self.contents = 0
        self.tool_calls: list[str] = []
        self._inflate: Any = None
        self._pending = b""
        self._data: list[bytes] = []
        self._event = b""
        self._seen = 0
        self._open: dict[Any, str] = {}  # tool calls under way: index → name
        encoding = (encoding or "identity").strip().lower()
        if encoding in ("gzip", "x-gzip", "deflate"):
            self._inflate = zlib.decompressobj(wbits=47)
        elif encoding != "identity":
            self.is_committed = True

    def feed(self, chunk: bytes) -> bool:
        """Read on; whether there was more than pings."""
        if self.is_committed and not self.is_known:
            return True
        self._seen += len(chunk)
        if self._inflate is not None:
            try:
                chunk = self._inflate.decompress(chunk)
            except zlib.error:
                self.is_committed, self.is_known = True, False
                return True
        # A chunk may end between \r and \n: the rest waits for the next one.
        text = self._pending + chunk
        if text.endswith(b"\r"):
            text, self._pending = text[:-1], b"\r"
        else:
            self._pending = b""
        lines = _LINE_END.split(text)
        self._pending = lines.pop() + self._pending
        is_news = False
        for line in lines:
            is_news |= self._line(line)
        if self._seen > _LONGEST_PRELUDE and not self.is_committed:
            self.is_committed = True
        return is_news

    def _line(self, line: bytes) -> bool:
        if not line:
            data, event = b"\n".join(self._data), self._event
            self._data, self._event = [], b""
            if not data:
                return False
            try:
                return self._dispatch(event.decode("utf-8", "replace"), data)
            except Exception:
                self.is_committed, self.is_known = True, False
                return True
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value
        return False

    def _dispatch(self, event: str, data: bytes) -> bool:  # noqa: C901 -- one line an API
        """Read one event; False for a ping."""
        if data.strip() == b"[DONE]":
            self.is_complete = True
            return True
        try:
            body = json.loads(data)
        except ValueError:
            body = None
        if not isinstance(body, dict):
            # Not JSON where JSON was spoken so far: the SDK will say so.
            self.is_committed = True
            return True
        kind: str = body["type"] if isinstance(body.get("type"), str) else event
        if kind in ("ping", "keepalive"):
            return False
        if "choices" in body:
            self._chat(body)
        elif "candidates" in body or "promptFeedback" in body:
            self._gemini(body)
        elif kind == "error" or isinstance(body.get("error"), dict):
            self.is_known, self.error = True, body
        elif kind.startswith("response."):
            self._responses(kind, body)
        elif kind.startswith(("message_", "content_block_")):
            self._anthropic(kind, body)
        elif not self.is_known:
            self.is_committed = True
        return True

    def _content(self) -> None:
        self.is_committed = True
        self.contents += 1

    def _anthropic(self, kind: str, body: dict[str, Any]) -> None:
        self.is_known = True
        if kind not in _PREPARATIONS:
            self._content()
        if kind == "content_block_start":
            block = _dict(body.get("content_block"))
            if "tool_use" in str(block.get("type")):
                self._open[body.get("index")] = str(block.get("name"))
        elif kind == "content_block_stop":
            self._close(body.get("index"))
        elif kind == "message_stop" or _dict(body.get("delta")).get("stop_reason"):
            self.is_complete = True

    def _responses(self, kind: str, body: dict[str, Any]) -> None:
        self.is_known = True
        response, item = _dict(body.get("response")), _dict(body.get("item"))
        if kind == "response.failed":
            self.error = {"error": response.get("error")}
        elif kind not in _ANNOUNCEMENTS:
            self._content()
        if kind in ("response.completed", "response.incomplete"):
            self.is_complete = True
        elif kind == "response.output_item.done" and str(item.get("type")).endswith("_call"):
            self.tool_calls.append(str(item.get("name") or item.get("type")))

    def _chat(self, body: dict[str, Any]) -> None:
        self.is_known = True
        for choice in body["choices"] or ():
            delta = _dict(choice.get("delta") or choice.get("message"))
            if choice.get("finish_reason"):
                self.is_complete = True
                for index in list(self._open):
                    self._close(index)
            for call in delta.get("tool_calls") or ():
                at, name = (choice.get("index"), call.get("index")), _dict(call.get("function"))
                for index in [each for each in self._open if each[0] == at[0] and each != at]:
                    self._close(index)
                if name.get("name"):
                    self._open[at] = str(name["name"])
            said = (value for key, value in delta.items() if key != "role")
            if any(said) or choice.get("text") or choice.get("finish_reason"):
                self._content()

    def _gemini(self, body: dict[str, Any]) -> None:
        self.is_known = True
        if _dict(body.get("promptFeedback")).get("blockReason"):
            self.is_complete = True
            self._content()
        for candidate in body.get("candidates") or ():
            parts = _dict(candidate.get("content")).get("parts") or ()
            for part in parts:
                if "functionCall" in part:
                    self.tool_calls.append(str(_dict(part["functionCall"]).get("name")))
            if parts or candidate.get("finishReason"):
                self._content()
            if candidate.get("finishReason"):
                self.is_complete = True

    def _close(self, index: Any) -> None:
        name = self._open.pop(index, None)
        if name is not None:
            self.tool_calls.append(name)

    def delivered(self) -> str:
        """What has been handed over, in a clause."""
        count = "1 content event" if self.contents == 1 else f"{self.contents} content events"
        if not self.tool_calls:
            return count
        return f"{count}; complete tool calls: {', '.join(self.tool_calls)}"


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
