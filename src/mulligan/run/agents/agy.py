"""Antigravity's ``agy``: known by its words alone.

It exits 0 even when its quota is used up, so those words are believed; nothing is added to it.
"""

from __future__ import annotations

from .program import Program

__all__ = ("PROGRAM", "Antigravity")


class Antigravity(Program):
    """Not measured: what is known of it was reported by its users."""

    name = "agy"
    can_resume = False
    idle = None
    is_exit_trusted = False
    keys = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    folder = ".gemini"


PROGRAM = Antigravity()
