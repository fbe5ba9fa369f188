"""What programs ask besides: models, token counts, whether anybody is there.

None of it takes a step of the script or is counted, unless a rule names it: a client that looks
for its model before each prompt would otherwise use up the faults meant for the prompts.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from .delivery import Answer
from .rest import Rest
from .vendors import ANTHROPIC, CHAT, GEMINI, Asked, Json, Vendor, Voice

if TYPE_CHECKING:
    from .script import Rule
    from .wire import Head

__all__ = ("aside", "names_asides", "voice_of")

_REST = Rest()
_MODEL = re.compile(r".*/models/([^/:]+)")
# Where prompts go. A rule that covers one of these was not written for what is asked besides.
_PROMPTS = (
    "/v1/messages",
    "/v1/responses",
    "/v1/chat/completions",
    "/v1beta/models/m:generateContent",
)


def names_asides(rule: Rule) -> bool:
    """Whether the rule has a path that is nobody's prompt: ``/v1/models``, not ``/v1/*``."""
    client = "" if rule.client == "*" else rule.client
    prompts = (rule.covers(method="POST", path=path, client=client) for path in _PROMPTS)
    return bool(rule.path) and not any(prompts)


def voice_of(head: Head) -> Voice:
    """Whose words a refusal takes where the path belongs to no API of ours."""
    if "anthropic-version" in head.headers:
        return ANTHROPIC
    if head.path.startswith("/v1beta/"):
        return GEMINI
    return CHAT if head.path.startswith("/v1/") else _REST


def aside(head: Head, vendor: Vendor | None, asked: Asked) -> Answer:
    """The good answer, or that there is none."""
    status, body = 200, _body(head, vendor, asked)
    if body is None:
        status, body = 404, {"error": {"message": f"the fault server has no {head.path}"}}
    return Answer(
        status=status,
        headers={"content-type": "application/json"},
        body=json.dumps(body).encode(),
    )


def _body(head: Head, vendor: Vendor | None, asked: Asked) -> Json | None:
    if vendor is not None:
        return vendor.count(asked)
    if head.path.endswith("/models"):
        return {"object": "list", "data": [], "models": []}
    if head.method == "GET" and (found := _MODEL.fullmatch(head.path)):
        return _model(found[1], is_gemini=voice_of(head) is GEMINI)
    return {} if head.path == "/" else None


def _model(name: str, *, is_gemini: bool) -> Json:
    """Any model exists: which one fails is the script's business."""
    if is_gemini:
        return {"name": f"models/{name}", "displayName": name, "inputTokenLimit": 1_048_576}
    openai = {"id": name, "object": "model", "created": 0, "owned_by": "mulligan"}
    # Anthropic's answer has other fields and the same id.
    born = "1970-01-01T00:00:00Z"
    return {**openai, "type": "model", "display_name": name, "created_at": born}
