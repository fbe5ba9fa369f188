"""Headers of any client, folded into one plain dictionary.

Every HTTP library has its own header type; names differ in case, some are bytes, some repeat.
Whatever cannot be read is left out: a strange header never hides the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ("fold", "text_of")

# A server that sends more than this is not telling us about limits.
_MOST = 512


def fold(headers: object) -> dict[str, str]:
    """`headers` with lower-case names; values of a repeated name are joined by a comma.

    Args:
        headers: A mapping (httpx, requests, aiohttp, a plain dict) or pairs; names and values
            str or bytes. Anything else has no headers.
    """
    if headers is None:
        return {}
    folded: dict[str, str] = {}
    try:
        for count, (name, value) in enumerate(_pairs(headers)):
            if count == _MOST:
                break
            key = name.lower() if type(name) is str else text_of(name).lower()
            said = value if type(value) is str else text_of(value)
            if key in folded:
                folded[key] += ", " + said
            elif key:
                folded[key] = said
    except Exception:  # noqa: BLE001 -- an object that only looks like headers: keep what was read
        return folded
    return folded


def _pairs(headers: object) -> Iterable[tuple[Any, Any]]:
    items: Callable[[], Iterable[tuple[Any, Any]]] | None = getattr(headers, "items", None)
    return items() if callable(items) else headers  # type: ignore[return-value]


def text_of(value: object) -> str:
    """A header's name or value as text; empty where it is none."""
    if isinstance(value, str):
        return value
    if isinstance(value, bytes | bytearray):
        return value.decode("latin-1")  # every byte is a character there: it cannot fail
    if isinstance(value, list | tuple):
        return ", ".join(text_of(one) for one in value)
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    return ""
