"""Fast path of the gate, while much quota is left.

Parsing all limits of an answer and counting every call is expensive. As long as every dimension has
far more left than calls are under way, an answer changes nothing. So only the headers with the
remaining amounts are read, under the names in the last answer that was fully parsed. Any other
answer is fully parsed.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ...classify.quotas import Quota

__all__ = ("QuotaFastPath",)

# As many calls must be left for each one under way; see `_PLENTY` of `client`.
_PLENTY = 40

# Below so many, or a tenth of the limit, every call counts.
_LOW = 20


class QuotaFastPath:
    """The headers with remaining amounts, for the guards of one observer.

    Args:
        read: The user's: answer → headers.
        least: The gate's setting for "little left", if above the default.
    """

    __slots__ = ("_least", "begin", "end", "floors", "read")

    def __init__(self, read: Callable[[Any], Any], least: float = 0.0) -> None:
        self.read, self._least = read, max(_LOW, least)
        # Each header with the least that it may say; empty if answers cannot be glanced at.
        self.floors: tuple[tuple[str, float], ...] = ()
        # Two counters that are safe between threads; their difference is the calls under way.
        self.begin, self.end = count(1).__next__, count(1).__next__

    def learn(self, headers: Any, stated: Iterable[Quota]) -> None:
        """Remember where `headers`, which were read whole, say how much is left."""
        limits = [
            (each.remaining, each.limit or 0.0) for each in stated if each.remaining is not None
        ]
        floors = []
        for name in headers:
            said = headers[name] if "remaining" in name.lower() else ""
            if isinstance(said, str) and said.isdigit():
                fit = [limit for remaining, limit in limits if remaining == int(said)]
                floors += [(name, max(self._least, 0.1 * max(fit)))] if fit else []
        # If another header states it differently, the answer must be fully parsed.
        self.floors = tuple(floors) if len(floors) == len(limits) else ()

    def is_enough(self, answer: Any, under_way: int) -> bool:
        """Whether `answer` says of every dimension that plenty is left."""
        floors = self.floors
        try:
            headers = self.read(answer)
            for name, floor in floors:
                if int(headers[name]) <= floor + _PLENTY * under_way:
                    return False
        except Exception:  # noqa: BLE001 -- the full parse reports it
            return False
        return bool(floors)
