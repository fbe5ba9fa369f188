"""Answers to side requests of programs: models, token counts, telemetry, health.

None of it takes a step of the script or is counted, unless a rule names it: a client that looks
for its model before each prompt would otherwise use up the faults meant for the prompts. Any other
path belongs to no API, and gets what the script says: a client of any API can be tried here.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from .delivery import PlannedResponse
from .rest import Rest
from .vendors import ANTHROPIC, CHAT, GEMINI

if TYPE_CHECKING:
    from .script import ScriptRule
    from .vendors.base import ClientRequest, Json, Vendor
    from .wire import Head

__all__ = ("anything", "api_of_refusals", "is_side_request", "names_side_requests", "side_answer")

_REST = Rest()
# Agent programs post telemetry and look for updates at paths of their own, which change often.
_PROGRAMS = re.compile(
    r"(?i)claude-cli|codex|gemini-?cli|opencode|qwen-?code|copilot|cline|\bpi/|aider|continue"
)
_TELEMETRY = re.compile(r".*(?:event_logging|telemetry|statsig|analytics).*")
_MODEL = re.compile(r".*/models/([^/:]+)")
# Paths of prompts. A rule that matches one of these does not apply to side requests.
_PROMPTS = (
    "/v1/messages",
    "/v1/responses",
    "/v1/chat/completions",
    "/v1beta/models/m:generateContent",
)


def names_side_requests(rule: ScriptRule) -> bool:
    """Whether the rule has a path that no API uses for prompts: ``/v1/models``, not ``/v1/*``."""
    client = "" if rule.client == "*" else rule.client
    prompts = (rule.covers(method="POST", path=path, client=client) for path in _PROMPTS)
    return bool(rule.path) and not any(prompts)


def is_side_request(head: Head, vendor: Vendor | None, asked: ClientRequest) -> bool:
    """Whether it is a side request, which the script does not cover."""
    if vendor is not None:
        return asked.is_count
    if api_of_refusals(head) is not _REST or _body(head, None, asked) is not None:
        return True
    if not head.path.startswith("/") or _TELEMETRY.fullmatch(head.path):  # OPTIONS *
        return True
    return _PROGRAMS.search(head.headers.get("user-agent", "")) is not None


def anything(head: Head) -> PlannedResponse:
    """The good answer to a path that belongs to no API."""
    return _answer(200, {"ok": True, "method": head.method, "path": head.path})


def api_of_refusals(head: Head) -> Vendor | Rest:
    """The API whose format a refusal has if the path belongs to no known API."""
    if "anthropic-version" in head.headers:
        return ANTHROPIC
    if head.path.startswith("/v1beta/"):
        return GEMINI
    return CHAT if head.path.startswith("/v1/") else _REST


def side_answer(head: Head, vendor: Vendor | None, asked: ClientRequest) -> PlannedResponse:
    """The good answer, or that there is none."""
    status, body = 200, _body(head, vendor, asked)
    if body is None:
        status, body = 404, {"error": {"message": f"the fault server has no {head.path}"}}
    return _answer(status, body)


def _answer(status: int, body: Json) -> PlannedResponse:
    content = json.dumps(body).encode()
    return PlannedResponse(
        status=status, headers={"content-type": "application/json"}, body=content
    )


def _body(head: Head, vendor: Vendor | None, asked: ClientRequest) -> Json | None:
    if vendor is not None:
        return vendor.count(asked)
    if head.path.endswith("/models"):
        return {"object": "list", "data": [], "models": []}
    if head.method == "GET" and (found := _MODEL.fullmatch(head.path)):
        return _model(found[1], is_gemini=api_of_refusals(head) is GEMINI)
    return {} if head.path == "/" else None


def _model(name: str, *, is_gemini: bool) -> Json:
    """Every model exists; the script decides which fails."""
    if is_gemini:
        return {"name": f"models/{name}", "displayName": name, "inputTokenLimit": 1_048_576}
    openai = {"id": name, "object": "model", "created": 0, "owned_by": "mulligan"}
    # Anthropic's answer has other fields and the same id.
    born = "1970-01-01T00:00:00Z"
    return {**openai, "type": "model", "display_name": name, "created_at": born}
