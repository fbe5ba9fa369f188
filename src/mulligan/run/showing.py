"""Which view a run gets.

what drives it ─▶ tells somebody ─▶ holds back ─▶ lines | status line | events
(if asked to)     (if asked to)
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Literal

from .begin import asked_of, policy_of
from .streams import Streams
from .view import Lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .desk import Desk
    from .events import Events
    from .state import RunState
    from .status import Status
    from .stop import Stop
    from .view import View

__all__ = ("Show", "showing")

# person: whoever sits there, or reads the log later. events: a program. record: a worker's log,
# where several runs tell theirs, without the programs' text.
Show = Literal["person", "events", "record"]


@contextmanager
def showing(
    desk: Desk,
    id_: str,
    state: RunState,
    *,
    stop: Stop,
    environ: Mapping[str, str],
    show: Show = "person",
) -> Iterator[View]:
    """The view of a run, as long as it is driven.

    Args:
        desk: Where runs are kept.
        id_: The run.
        state: Where it stands as it is taken up.
        stop: Set to interrupt it.
        environ: What says how to draw: ``TERM``, ``NO_COLOR``.
        show: Who looks.
    """
    folder = desk.files(id_)
    asked = asked_of(state.made.terms)
    base = _plain(id_, desk.program(id_), state, Streams(stop), environ=environ, show=show)
    view: View = base
    if asked.is_final_only:
        from .held import Held

        view = Held(view, folder / "held")
    if asked.is_notified:
        from .notice import Notifying, remembered

        view = Notifying(
            view,
            remembered(folder),
            id_=id_,
            look=lambda: desk.look(id_),
            in_place=lambda: policy_of(asked).in_place,
            stop=stop,
            environ=environ,
        )
    try:
        yield view
    finally:
        base.close()


def _plain(
    id_: str,
    program: str,
    state: RunState,
    streams: Streams,
    *,
    environ: Mapping[str, str],
    show: Show,
) -> Lines | Status | Events:
    if show == "events":
        from .events import Events

        return Events(id_, streams=streams)
    if show == "record":
        return Lines(id_, program, streams=streams, label=id_, is_output_shown=False)
    if os.isatty(2):
        from .status import Status, can_draw

        if can_draw(2, environ):
            is_coloured = not environ.get("NO_COLOR")
            return Status(id_, program, streams=streams, before=state, is_coloured=is_coloured)
    return Lines(id_, program, streams=streams)
