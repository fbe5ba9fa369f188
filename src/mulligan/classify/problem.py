"""What a body says about the caller's own part: may it be repeated, which fields are wrong.

``is_retriable`` is an extension of RFC 9457 (R-C11): only a boolean counts, both ways. Field
errors have no standard; the shapes that frameworks send are listed at `failing_fields`.
"""

from __future__ import annotations

from typing import Any

from ..core.text import MASK, mask, presentable

__all__ = ("failing_fields", "stated_retriable")

_MOST_FIELDS = 20
_MOST_WORDS = 200


def stated_retriable(data: Any) -> bool | None:
    """The boolean ``is_retriable`` of a problem, or of the error inside it; else None."""
    if not isinstance(data, dict):
        return None
    error = data.get("error")
    for place in (data, error, data.get("extensions")):
        if isinstance(place, dict):
            stated = place.get("is_retriable")
            if isinstance(stated, bool):
                return stated
    return None


def failing_fields(data: Any) -> tuple[tuple[str, str], ...]:
    """The failing fields of a rejected request, each with what is wrong about it (R-C12).

    - RFC 9457: ``errors`` of ``{"detail", "pointer"}``; RFC 7807: ``invalid-params``
    - pydantic, FastAPI: ``detail`` of ``{"loc", "msg"}``
    - Rails, Laravel, Django: ``errors`` as ``{"email": ["is taken"]}``
    - GitHub: ``errors`` of ``{"field", "code"}``; Google: ``fieldViolations``
    - OpenAI: ``param`` beside the message
    """
    if not isinstance(data, dict):
        return ()
    found: list[tuple[str, str]] = []
    error = data.get("error")
    for place in (data, error):
        if isinstance(place, dict):
            for key in ("errors", "detail", "details", "invalid-params", "invalid_params"):
                _collect(place.get(key), found)
    if not found and isinstance(error, dict):
        parameter = error.get("param")
        if isinstance(parameter, str):
            _add(found, parameter, error.get("message"))
    return tuple(dict.fromkeys(found))


def _collect(errors: Any, found: list[tuple[str, str]]) -> None:
    if isinstance(errors, dict):
        for name, wrong in list(errors.items())[:_MOST_FIELDS]:
            words = wrong[:3] if isinstance(wrong, list) else [wrong]
            text = "; ".join(word for word in words if isinstance(word, str))
            if isinstance(name, str) and text:
                _add(found, name, text)
    elif isinstance(errors, list):
        for one in errors[:_MOST_FIELDS]:
            if isinstance(one, dict):
                _collect_one(one, found)


def _collect_one(one: dict[Any, Any], found: list[tuple[str, str]]) -> None:
    violations = one.get("fieldViolations") or one.get("field_violations")
    if isinstance(violations, list):
        _collect(violations, found)
        return
    name = next(
        (
            path
            for key in ("pointer", "loc", "field", "name", "path", "parameter", "param", "source")
            if (path := _path(one.get(key)))
        ),
        "",
    )
    words = next(
        (
            one[key]
            for key in ("detail", "msg", "message", "description", "reason", "code")
            if isinstance(one.get(key), str)
        ),
        "",
    )
    if name:
        _add(found, name, words)


def _path(place: object) -> str:
    """``#/user/age``, ``["body", "user", "age"]`` or ``user.age``, all as ``user.age``."""
    if isinstance(place, dict):
        place = place.get("pointer") or place.get("parameter")
    if isinstance(place, list):
        parts = [str(part) for part in place[:16] if isinstance(part, str | int)]
        return ".".join(parts[1:] if len(parts) > 1 and parts[0] == "body" else parts)
    if not isinstance(place, str):
        return ""
    if place.startswith(("#/", "/")):
        return ".".join(part for part in place.lstrip("#").split("/") if part)
    return place


def _add(found: list[tuple[str, str]], name: str, words: object) -> None:
    if len(found) < _MOST_FIELDS:
        said = words if isinstance(words, str) else ""
        # What is wrong with a password quotes the password.
        is_secret = mask(f"{name}=x") != f"{name}=x"
        said = MASK if is_secret and said else presentable(said, _MOST_WORDS)
        found.append((presentable(name, _MOST_WORDS), said))
