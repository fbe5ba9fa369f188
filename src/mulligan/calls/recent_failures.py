"""What a guard has seen fail lately, for a policy that adapts."""

from __future__ import annotations

from _thread import allocate_lock
from collections import Counter, deque
from typing import TYPE_CHECKING

from ..core.adaptive import LATELY, adapted

if TYPE_CHECKING:
    from ..core.failure import Kind
    from ..core.policy import Policy

__all__ = ("RecentFailures",)

# More than any rule asks for, and few enough that a storm costs no memory.
_MOST = 100


class RecentFailures:
    """The failures of one guard in the last minutes, in this process.

    Args:
        policy: The policy that is adapted.
    """

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._recent: deque[tuple[float, Kind]] = deque(maxlen=_MOST)
        self._lock = allocate_lock()

    def note(self, kind: Kind, now: float) -> None:
        """Remember a failure."""
        with self._lock:
            self._recent.append((now, kind))

    def policy(self, now: float) -> Policy:
        """The policy as it stands after what was seen."""
        with self._lock:
            seen = Counter(kind for at, kind in self._recent if now - at <= LATELY)
        return adapted(self._policy, seen) if seen else self._policy
