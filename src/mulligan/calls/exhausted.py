"""Calls that ran out of something, handed to whoever writes them down."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core.decisions import ending_of
from .async_time import on_trio
from .emit import announce, report
from .notes import story

if TYPE_CHECKING:
    from ..core.dead_letter import ExhaustedCall
    from ..core.decisions import GiveUp, Park
    from ..errors import StoreError
    from .session import Session

__all__ = ("abury", "bury")


def bury(session: Session, error: BaseException, decision: Park | GiveUp) -> None:
    """Have the call written down, if it ran out of something and somebody writes."""
    letters = session.settings.letters
    lost = None if letters is None else _lost(session, error, decision, "")
    if letters is not None and lost is not None:
        try:
            _tell(session, letters.write(lost))
        except Exception as trouble:  # noqa: BLE001 -- reported
            report("dead letters", letters, trouble)


async def abury(session: Session, error: BaseException, decision: Park | GiveUp) -> None:
    """Like `bury`, without holding up the loop."""
    letters = session.settings.letters
    if letters is None:
        return
    lost = _lost(session, error, decision, "trio" if on_trio() else "asyncio")
    if lost is not None:
        try:
            _tell(session, await letters.awrite(lost))
        except Exception as trouble:  # noqa: BLE001 -- reported
            report("dead letters", letters, trouble)


def _tell(session: Session, trouble: StoreError | None) -> None:
    """Say that the letter is not where it should be."""
    if trouble is not None and session.settings.listeners:
        because = f"a dead letter waits in a file of this machine ({trouble.because})"
        announce(session, "StoreLost", url=trouble.url, because=because)


def _lost(
    session: Session, error: BaseException, decision: Park | GiveUp, loop: str
) -> ExhaustedCall | None:
    tale = story(error)
    if not ending_of(decision)[0].is_exhaustion or session.work is None or tale is None:
        return None
    assert session.failure is not None  # noqa: S101 -- a call that ended has failed
    from ..core.dead_letter import ExhaustedCall  # loaded late: most calls never end here

    function, args, kwargs = session.work
    return ExhaustedCall(
        function=function,
        args=args,
        kwargs=kwargs,
        error=error,
        story=tale,
        failure=session.failure,
        effects=str(session.settings.effects),
        under=session.under,
        loop=loop,
        at=session.clock.wall(),
        since=session.mark,
    )
