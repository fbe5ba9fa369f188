"""Which view a run gets.

what drives it ─▶ tells somebody ─▶ holds back ─▶ lines | status line | events
(if asked to)     (if asked to)
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from .begin import asked_of, policy_of
from .streams import Streams
from .view import Lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .desk import Desk
    from .events import Events
    from .state import RunState
    from .stop import Stop
    from .view import View

__all__ = ("recording", "showing")


@contextmanager
def showing(
    desk: Desk,
    id_: str,
    state: RunState,
    *,
    stop: Stop,
    environ: Mapping[str, str],
    is_json: bool = False,
) -> Iterator[View]:
    """The view for whoever started the run, as long as it is driven.

    Args:
        desk: Where runs are kept.
        id_: The run.
        state: Where it stands as it is taken up.
        stop: Set to interrupt it.
        environ: What says how to draw: ``TERM``, ``NO_COLOR``.
        is_json: Whether a program looks, and wants events.
    """
    streams, program = Streams(stop), desk.program(id_)
    view = _events(id_, streams) if is_json else _drawn(id_, program, state, streams, environ)
    wrapped: View = view
    if asked_of(state.made.terms).is_final_only:
        from .held import Held

        wrapped = Held(view, desk.files(id_) / "held")
    try:
        yield _notifying(wrapped, desk, id_, state, stop=stop, environ=environ)
    finally:
        view.close()


def recording(
    desk: Desk, id_: str, state: RunState, *, stop: Stop, environ: Mapping[str, str]
) -> View:
    """The view for a worker's log, where several runs tell theirs, without the programs' text."""
    lines = Lines(
        id_, desk.program(id_), streams=Streams(stop), label=f"{id_}:", is_output_shown=False
    )
    return _notifying(lines, desk, id_, state, stop=stop, environ=environ)


def _notifying(
    view: View, desk: Desk, id_: str, state: RunState, *, stop: Stop, environ: Mapping[str, str]
) -> View:
    asked = asked_of(state.made.terms)
    if not asked.is_notified:
        return view
    from .notice import Notifying, remembered

    return Notifying(
        view,
        remembered(desk.files(id_)),
        id_=id_,
        look=lambda: desk.look(id_),
        in_place=lambda: policy_of(asked).in_place,
        stop=stop,
        environ=environ,
    )


def _events(id_: str, streams: Streams) -> Events:
    from .events import Events

    return Events(id_, streams=streams)


def _drawn(
    id_: str, program: str, state: RunState, streams: Streams, environ: Mapping[str, str]
) -> Lines:
    if os.isatty(2):
        from .status import Status, can_draw

        if can_draw(2, environ):
            is_coloured = not environ.get("NO_COLOR")
            return Status(id_, program, streams=streams, before=state, is_coloured=is_coloured)
    return Lines(id_, program, streams=streams)
