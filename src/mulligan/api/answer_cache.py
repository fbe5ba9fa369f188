"""AnswerCache: remembers good answers of calls, to give them again when the call fails.

Not a cache in front of a call: it is asked only after retrying has failed (R-A5).
"""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Any

from ..calls.callables import ASYNC, function_kind
from ..calls.clock import world
from ..core.duration import Duration, seconds
from ..core.record import record
from ..errors import SettingError
from ..once.fingerprint import canonical, digest

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ("AnswerCache", "CachedAnswer")


@record()
class CachedAnswer:
    """An answer of before.

    Args:
        value: What the call returned then.
        age: Seconds since then.
    """

    value: Any
    age: float


@record()
class _Entry:
    value: Any
    now: float
    wall: float


class AnswerCache:
    """The latest good answer for each set of arguments, in this process.

    Args:
        max_age: Older answers are not given.
        size: Answers at most; the one that was used least recently goes first.
        key: Called with the call's arguments: a string that is equal for calls with equal
            answers. Default: a hash of the targets, functions and arguments, by what they mean.
            Whatever the answer depends on and is not an argument, such as the user, must be in it.

    Raises:
        SettingError: One of them is invalid.
    """

    def __init__(
        self,
        max_age: Duration,
        *,
        size: int = 1000,
        key: Callable[..., str] | None = None,
    ) -> None:
        self.max_age = seconds(max_age, name="max_age")
        given: Any = size
        if not isinstance(given, int) or isinstance(given, bool) or given < 1:
            raise SettingError(f"size needs a whole number >= 1; got {size!r}")
        given = key
        if given is not None and (not callable(given) or function_kind(given) == ASYNC):
            raise SettingError(f"key needs a plain function of the call's arguments; got {key!r}")
        self._size, self._key = size, key
        self._entries: OrderedDict[str, _Entry] = OrderedDict()
        self._lock = Lock()

    def key_of(self, calls: list[list[str]], args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
        """The key of a call of `calls`: switches that share a cache call different functions.

        Raises:
            SettingError: They cannot be compared.
        """
        if self._key is not None:
            return self._key(*args, **kwargs)
        form = [[name, canonical(value, name=name)] for name, value in sorted(kwargs.items())]
        numbered = [canonical(value, name=f"argument {n}") for n, value in enumerate(args, 1)]
        return digest([calls, numbered, form])

    def put(self, key: str, value: Any) -> None:
        """Remember `value` as the latest answer."""
        clock = world().clock
        with self._lock:
            self._entries[key] = _Entry(value, clock.now(), clock.wall())
            self._entries.move_to_end(key)
            if len(self._entries) > self._size:
                self._entries.popitem(last=False)

    def get(self, key: str) -> CachedAnswer | None:
        """The latest answer, unless it is too old."""
        clock = world().clock
        with self._lock:
            found = self._entries.get(key)
            if found is None:
                return None
            # One clock stands still while the machine sleeps, the other may be set back.
            age = max(clock.now() - found.now, clock.wall() - found.wall, 0.0)
            if age > self.max_age:
                del self._entries[key]
                return None
            self._entries.move_to_end(key)
            return CachedAnswer(found.value, age)
