"""Formats of the vendors' APIs, one file each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .anthropic import Anthropic
from .chat import Chat
from .gemini import GeminiApi
from .responses import Responses

if TYPE_CHECKING:
    from .base import Vendor

__all__ = ("ANTHROPIC", "CHAT", "GEMINI", "VENDORS")

ANTHROPIC, CHAT, GEMINI = Anthropic(), Chat(), GeminiApi()
VENDORS: tuple[Vendor, ...] = (ANTHROPIC, Responses(), CHAT, GEMINI)
