"""Which view a run gets.

what drives it ─▶ tells somebody ─▶ holds back ─▶ lines | status line | events
(if asked to)     (if asked to)
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..agents.catalogue import program_name
from ..attempt.options import policy_of, request_of
from .streams import Streams
from .views import PlainView

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from ..journal.state import RunState
    from ..journal.store import RunStore
    from ..process.stop import Stop
    from .json_events import JsonEvents
    from .views import RunView

__all__ = ("recording", "showing")

# The file in the folder of a run in which output is held back.
HELD = "held"


@contextmanager
def showing(
    runs: RunStore,
    id_: str,
    state: RunState,
    *,
    stop: Stop,
    environ: Mapping[str, str],
    is_json: bool = False,
) -> Iterator[tuple[RunView, Streams]]:
    """The view for whoever started the run, as long as it is driven, and what it writes to.

    Args:
        runs: Where runs are kept.
        id_: The run.
        state: Where it stands as it is taken up.
        stop: Set to interrupt it.
        environ: What says how to draw: ``TERM``, ``NO_COLOR``.
        is_json: Whether a program looks, and wants events.
    """
    streams, program = Streams(stop), program_name(runs.command(id_))
    view = _events(id_, streams) if is_json else _drawn(id_, program, state, streams, environ)
    wrapped: RunView = view
    kept = runs.files(id_) / HELD
    is_final_only = request_of(state.made.terms).is_final_only
    if is_final_only is None:
        # Events say which attempt they belong to.
        is_final_only = not is_json and not os.isatty(1)
    if is_final_only or kept.exists():  # what a supervisor that was killed held back may count
        from .final_only import FinalOnlyView

        is_whole = is_json or streams.is_ours("stdout")
        wrapped = FinalOnlyView(view, kept, is_whole=is_whole, is_answer_only=not is_json)
    try:
        yield _notifying(wrapped, runs, id_, state, stop=stop, environ=environ), streams
    finally:
        view.close()


@contextmanager
def recording(
    runs: RunStore, id_: str, state: RunState, *, stop: Stop, environ: Mapping[str, str]
) -> Iterator[RunView]:
    """The view for a worker's log, where several runs tell theirs, without the programs' text.

    A run that was driven has no attempt left whose end is not known. So what a command that was
    killed held back for its own stdout is of no use any more: the attempt's log has it.
    """
    lines = PlainView(
        id_,
        program_name(runs.command(id_)),
        streams=Streams(stop),
        label=f"{id_}:",
        is_output_shown=False,
    )
    yield _notifying(lines, runs, id_, state, stop=stop, environ=environ)
    (runs.files(id_) / HELD).unlink(missing_ok=True)


def _notifying(
    view: RunView,
    runs: RunStore,
    id_: str,
    state: RunState,
    *,
    stop: Stop,
    environ: Mapping[str, str],
) -> RunView:
    asked = request_of(state.made.terms)
    if not asked.is_notified:
        return view
    from .notify import NotifyingView, remembered

    return NotifyingView(
        view,
        remembered(runs.files(id_)),
        id_=id_,
        look=lambda: runs.look(id_),
        in_place=lambda: policy_of(asked).in_place,
        stop=stop,
        environ=environ,
    )


def _events(id_: str, streams: Streams) -> JsonEvents:
    from .json_events import JsonEvents

    return JsonEvents(id_, streams=streams)


def _drawn(
    id_: str, program: str, state: RunState, streams: Streams, environ: Mapping[str, str]
) -> PlainView:
    if os.isatty(2):
        from .status_line import StatusLine, can_draw

        if can_draw(2, environ):
            is_coloured = not environ.get("NO_COLOR")
            return StatusLine(id_, program, streams=streams, before=state, is_coloured=is_coloured)
    return PlainView(id_, program, streams=streams)
