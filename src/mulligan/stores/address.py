"""Addresses of stores, as they may be shown."""

from __future__ import annotations

import re

__all__ = ("printable",)

_USER = re.compile(r"(?<=://)[^/?#]*@")
_QUERY = re.compile(r"(?i)([?&][^=&]*(?:pass|token|secret|key)[^=&]*=)[^&#]*")


def printable(url: str) -> str:
    """`url` without user, password and anything in its query that sounds like one."""
    return _QUERY.sub(r"\1[masked]", _USER.sub("", url))
