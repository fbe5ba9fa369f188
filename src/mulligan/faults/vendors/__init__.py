"""Formats of the vendors' APIs, one vendor per file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .anthropic import Anthropic
from .gemini import GeminiApi
from .openai import Chat, Responses

if TYPE_CHECKING:
    from .base import Vendor

__all__ = ("ANTHROPIC", "CHAT", "GEMINI", "VENDORS")

ANTHROPIC, CHAT, GEMINI = Anthropic(), Chat(), GeminiApi()
VENDORS: tuple[Vendor, ...] = (ANTHROPIC, Responses(), CHAT, GEMINI)
