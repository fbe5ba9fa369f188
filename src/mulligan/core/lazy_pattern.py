"""Regular expressions that are compiled when they are first used.

Compiling takes longer than everything else that loading a module does, and the first failure of a
process needs few of the patterns that some failure needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

if TYPE_CHECKING:
    import re

__all__ = ("lazy",)


class _LazyPattern:
    """Stands for a compiled pattern; its methods are those of the pattern from then on."""

    def __init__(self, text: str, flags: int) -> None:
        self._source = text, flags

    def __getattr__(self, name: str) -> Any:
        import re

        method = getattr(re.compile(*self._source), name)  # `re` remembers the pattern
        setattr(self, name, method)
        return method


def lazy(text: str, flags: int = 0) -> re.Pattern[str]:
    """``re.compile(text, flags)``, when it is first used."""
    return cast("re.Pattern[str]", _LazyPattern(text, flags))
