"""The end of an attempt, put into its step."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..core.failure import Failure
    from .reading import Reading
    from .state import RunState
    from .steps import Ended

__all__ = ("new_session", "with_reading", "without_session")


def with_reading(step: Ended, reading: Reading) -> tuple[Ended, Failure | None]:
    """`step` with what was read of the attempt, and the limit that others should know of."""
    verdict, message, source = reading
    failure = verdict.failure
    hint = None if failure is None else failure.hint
    step = step._replace(
        kind="" if failure is None else str(failure.kind),
        status=None if failure is None else failure.status,
        message=message,
        reading=source,
        reset_at=None if hint is None else step.at + hint.delay,
        then=verdict.then,
        until=verdict.until,
        exit=verdict.exit,
        because=verdict.because,
        advice=verdict.advice,
        is_probe=verdict.is_probe,
    )
    return step, None if verdict.is_probe else failure  # nobody else need believe it yet


def without_session(step: Ended, state: RunState) -> Ended:
    """What follows where the program knows nothing of the session it was to go on with.

    It was killed before it kept anything of it; or somebody removed the session, and with it all
    that was done.
    """
    message = "the program knows nothing of its session"
    was_lost = bool(state.ended) and state.ended[-1].is_lost
    if was_lost or any(each.is_work for each in state.ended):
        return step._replace(
            message=message,
            is_lost=True,
            then="stop",
            exit=step.code or 1,
            because="its session is gone, and starting it anew would do its work twice",
        )
    because = "nothing was kept of its session: it starts anew"
    return step._replace(
        message=message, is_lost=True, then="again", until=step.at, because=because
    )


def new_session() -> str:
    """An id for a session that nobody has used: a UUID, without the module that makes them."""
    raw = bytearray(os.urandom(16))
    raw[6], raw[8] = raw[6] & 0x0F | 0x40, raw[8] & 0x3F | 0x80
    text = raw.hex()
    return "-".join((text[:8], text[8:12], text[12:16], text[16:20], text[20:]))
