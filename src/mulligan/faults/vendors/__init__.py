"""The vendors' APIs, one file each, spelled as they spell them."""

from __future__ import annotations

from .anthropic import Anthropic
from .chat import Chat
from .gemini import Gemini
from .responses import Responses
from .shapes import (
    Asked,
    Json,
    Page,
    Refusal,
    Reply,
    Stream,
    Tool,
    ToolCall,
    Trouble,
    Vendor,
    Voice,
    a_list,
    a_table,
    sse,
)

__all__ = (
    "ANTHROPIC",
    "CHAT",
    "GEMINI",
    "VENDORS",
    "Asked",
    "Json",
    "Page",
    "Refusal",
    "Reply",
    "Stream",
    "Tool",
    "ToolCall",
    "Trouble",
    "Vendor",
    "Voice",
    "a_list",
    "a_table",
    "sse",
)

ANTHROPIC, CHAT, GEMINI = Anthropic(), Chat(), Gemini()
VENDORS: tuple[Vendor, ...] = (ANTHROPIC, Responses(), CHAT, GEMINI)
