"""Click types of options: durations."""

from __future__ import annotations

import click

from ...errors import SettingError

__all__ = ("DURATION", "DurationType")


class DurationType(click.ParamType[float]):
    """A duration: ``90``, ``90s``, ``1h30m``; also ``off`` for 0, where that is offered."""

    name = "duration"

    def __init__(self, *, is_off_offered: bool = False, is_zero_refused: bool = False) -> None:
        self._is_off_offered, self._is_zero_refused = is_off_offered, is_zero_refused

    def convert(
        self, value: str | float, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        if not isinstance(value, str):
            return float(value)
        if value == "off" and self._is_off_offered:
            return 0.0
        from ...core.duration import seconds

        try:
            found = seconds(float(value) if value.replace(".", "", 1).isdigit() else value)
        except SettingError:
            or_off = ", or off" if self._is_off_offered else ""
            self.fail(f"{value!r} is not a duration such as 90s, 15m or 1h30m{or_off}", param, ctx)
        if self._is_zero_refused and not found:
            self.fail(f"{value!r} is zero; leave it out for no limit", param, ctx)
        return found


DURATION = DurationType()
