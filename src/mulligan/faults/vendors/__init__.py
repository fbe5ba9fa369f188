"""Formats of the vendors' APIs, one file each."""

from __future__ import annotations

from .anthropic import Anthropic
from .base import (
    ClientRequest,
    Json,
    Page,
    Refusal,
    ResponseStream,
    Tool,
    ToolCall,
    Trouble,
    Vendor,
    VendorErrors,
    VendorReply,
    a_list,
    a_table,
    sse,
)
from .chat import Chat
from .gemini import GeminiApi
from .responses import Responses

__all__ = (
    "ANTHROPIC",
    "CHAT",
    "GEMINI",
    "VENDORS",
    "ClientRequest",
    "Json",
    "Page",
    "Refusal",
    "ResponseStream",
    "Tool",
    "ToolCall",
    "Trouble",
    "Vendor",
    "VendorErrors",
    "VendorReply",
    "a_list",
    "a_table",
    "sse",
)

ANTHROPIC, CHAT, GEMINI = Anthropic(), Chat(), GeminiApi()
VENDORS: tuple[Vendor, ...] = (ANTHROPIC, Responses(), CHAT, GEMINI)
