"""Effects of an HTTP request: what happens if it is sent twice.

What the caller states with `effects` comes first. Then the request decides: its method (RFC 9110,
9.2), its ``Idempotency-Key``, and for a POST whether it asks a model for an answer, which is
harmless to ask again. Every other POST is unsafe.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from ..core.failure import Effects

if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Literal

__all__ = ("asks_a_model", "effects", "effects_of", "stated_effects")

_override: ContextVar[Effects | None] = ContextVar("mulligan.effects", default=None)

_BY_METHOD = {
    **dict.fromkeys(("GET", "HEAD", "OPTIONS", "QUERY", "TRACE"), Effects.READ),
    **dict.fromkeys(("PUT", "DELETE"), Effects.IDEMPOTENT),
}

# Paths of Gemini, Vertex and Bedrock say by themselves that they ask a model.
_MODEL_PATH = re.compile(
    r"/models/[^/]+:(?:generateContent|streamGenerateContent|countTokens|embedContent"
    r"|batchEmbedContents|rawPredict|streamRawPredict)$"
    r"|/model/[^/]+/(?:invoke|invoke-with-response-stream|converse|converse-stream)$"
)
# Other services have these paths, too (a chat's /messages, a survey's /responses): the body must
# name a model.
_MODEL_PATH_WITH_BODY = re.compile(
    r"/(?:chat/completions|completions|embeddings|moderations|rerank|responses"
    r"|responses/input_tokens|v1/messages|messages/count_tokens"
    r"|api/(?:chat|generate|embed))$"
)
_MODEL = re.compile(rb'"model"\s*:')
# What the provider does besides answering: it appends to a conversation, calls other servers.
_SIDE_EFFECTS = re.compile(rb'"(?:conversation|mcp_servers|server_url)"\s*:')


@contextmanager
def effects(given: Effects | Literal["read", "idempotent", "keyed", "unsafe"]) -> Iterator[None]:
    """Say what repeating does, for all requests that guarded clients send inside the block.

        with mulligan.effects("idempotent"):
            client.post("/search", json=query)

    Raises:
        SettingError: `given` is none of the four.
    """
    token = _override.set(Effects.of(given))
    try:
        yield
    finally:
        _override.reset(token)


def stated_effects() -> Effects | None:
    """What the caller said with `effects`, if anything."""
    return _override.get()


def effects_of(method: str, path: str, key: str | None, body: bytes) -> Effects:
    """What happens if this request is sent twice, by the request alone.

    `path` is without host and query, `body` empty for streams.
    """
    by_method = _BY_METHOD.get(method.upper())
    if by_method is not None:
        return by_method
    if key:
        return Effects.KEYED
    if asks_a_model(method, path, body) and _SIDE_EFFECTS.search(body) is None:
        return Effects.IDEMPOTENT
    return Effects.UNSAFE


def asks_a_model(method: str, path: str, body: bytes) -> bool:
    """Whether the request asks a model of a known API for an answer."""
    if method.upper() != "POST":
        return False
    if _MODEL_PATH.search(path) is not None:
        return True
    return _MODEL_PATH_WITH_BODY.search(path) is not None and _MODEL.search(body) is not None
