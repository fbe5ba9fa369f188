"""Antigravity's ``agy``: recognised only by the text that it prints.

It exits with 0 even when its quota is used up, so its text outranks the exit code. No options are
added.
"""

from __future__ import annotations

from .program import KnownProgram

__all__ = ("PROGRAM", "AntigravityAdapter")


class AntigravityAdapter(KnownProgram):
    """Not measured: what is known of it was reported by its users."""

    name = "agy"
    can_resume = False
    idle = 1800.0
    is_exit_trusted = False
    keys = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    provider = "google"
    folder = ".gemini"


PROGRAM = AntigravityAdapter()
