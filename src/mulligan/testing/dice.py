"""LoadedDice: a random generator with fixed results."""

from __future__ import annotations

from ..errors import SettingError

__all__ = ("LoadedDice",)


class LoadedDice:
    """Dice that give these rolls in turn, then the last one for ever.

    Args:
        *rolls: Numbers in [0, 1); by default 0.5, the median of every jitter.
    """

    def __init__(self, *rolls: float) -> None:
        for roll in rolls:
            if not 0 <= roll < 1:
                raise SettingError(f"LoadedDice needs rolls in [0, 1); got {roll!r}")
        self._rolls = list(rolls or (0.5,))

    def roll(self) -> float:
        return self._rolls.pop(0) if len(self._rolls) > 1 else self._rolls[0]
