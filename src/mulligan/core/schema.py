"""Markers that tell a validator how a field may be written in a file.

The core's dataclasses are also the schema of its configuration files, but the core does not
know the validator: a marker answers pydantic's protocol with plain dictionaries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from .duration import seconds

__all__ = ("Seconds", "tagged")


class _Duration:
    """Seconds as a number, or as text: ``90``, ``"90s"``, ``"1h30m"``."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:
        return {
            "type": "function-before",
            "function": {"type": "no-info", "function": seconds},
            "schema": handler(source),
        }


class _Tagged:
    """One of several dataclasses, told apart by the value of one field."""

    def __init__(self, field: str, choices: tuple[type, ...]) -> None:
        self.field, self.choices = field, choices

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> dict[str, Any]:
        return {
            "type": "tagged-union",
            "discriminator": self.field,
            "choices": {
                cls.__dataclass_fields__[self.field].default: handler.generate_schema(cls)  # type: ignore[attr-defined]
                for cls in self.choices
            },
        }


if TYPE_CHECKING:
    Seconds: TypeAlias = float
else:
    Seconds = Annotated[float, _Duration()]


def tagged(field: str, *choices: type) -> Any:
    """The union of `choices`, told apart by the default of `field` in each."""
    union = choices[0]
    for choice in choices[1:]:
        union = union | choice  # type: ignore[assignment]
    return Annotated[union, _Tagged(field, choices)]
