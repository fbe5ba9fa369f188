"""Fast path of the gate, while much quota is left.

Parsing all limits of an answer and counting every call is expensive. As long as every dimension has
far more left than calls are under way, an answer changes nothing. So only the headers with the
remaining amounts are read, under the names in the last answer that was fully parsed. Any other
answer is fully parsed.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

from ...calls.callables import COROUTINE
from ...calls.context import endings, surroundings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from ...api.engine import Engine
    from ...classify.quotas import Quota
    from ..target import Target

__all__ = ("QuotaFastPath", "acall", "call")

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

    __slots__ = ("_begun", "_ended", "_least", "floors", "read")

    def __init__(self, read: Callable[[Any], Any], least: float = 0.0) -> None:
        self.read, self._least = read, max(_LOW, least)
        # Each header with the least that it may say; empty if answers cannot be glanced at.
        self.floors: tuple[tuple[str, float], ...] = ()
        # Two counters that are safe between threads; their difference is the calls under way.
        self._begun, self._ended = count(1), count(1)

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

    def begin(self) -> int:
        return next(self._begun)

    def end(self) -> int:
        return next(self._ended)

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


def _is_clear(here: Target) -> bool:
    return here.is_clear


def call(
    engine: Engine,
    fast_path: QuotaFastPath,
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """A plain call whose answer is read."""
    here = engine.around() if surroundings.exist else engine.place
    if not here.is_clear:
        return engine.run(function, args, kwargs)
    mark, begun = endings.count, fast_path.begin()
    try:
        answer = function(*args, **kwargs)
    except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
        error = caught
    except BaseException:
        fast_path.end()
        raise
    else:
        under_way = begun - fast_path.end()
        # If other calls have failed meanwhile, report this success normally.
        if _is_clear(here) and fast_path.is_enough(answer, under_way):
            return answer
        if answer.__class__ is COROUTINE:
            return engine.guard_coroutine(function, args, kwargs, mark, answer)
        engine.refuse(function, answer)
        return engine.observe_answer(function, answer, mark)
    try:
        fast_path.end()
        return engine.recover(function, args, kwargs, error, (mark,))
    finally:
        del error


async def acall(
    engine: Engine,
    fast_path: QuotaFastPath,
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    """A call of a coroutine function whose answer is read."""
    here = engine.around() if surroundings.exist else engine.place
    if not here.is_clear:
        return await engine.arun(function, args, kwargs)
    mark, begun = endings.count, fast_path.begin()
    try:
        answer = function(*args, **kwargs)
        if hasattr(answer, "__await__"):
            answer = await answer
    except Exception as caught:  # noqa: BLE001 -- classified, decided, raised
        error = caught
    except BaseException:
        fast_path.end()
        raise
    else:
        under_way = begun - fast_path.end()
        if _is_clear(here) and fast_path.is_enough(answer, under_way):
            return answer
        engine.refuse(function, answer)
        return engine.observe_answer(function, answer, mark)
    try:
        fast_path.end()
        return await engine.arecover(function, args, kwargs, error, (mark,))
    finally:
        del error
