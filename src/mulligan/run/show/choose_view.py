"""Chooses the listeners of a run: lines, a status line or events; held output; notifications."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..agents.catalogue import program_name
from ..attempt.options import RunOptions
from .plain_view import PlainView
from .standard_streams import StandardStreams

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ..context import RunContext
    from ..journal.state import RunState
    from ..listeners import RunListener
    from .json_events import JsonEvents
    from .notify import Notifier

__all__ = ("recording", "showing")

# The file in the folder of a run in which output is held back.
HELD = "held"


@contextmanager
def showing(
    context: RunContext, id_: str, state: RunState, *, is_json: bool = False
) -> Iterator[tuple[RunContext, StandardStreams]]:
    """A context that shows the run to the user who started it, and the streams that it writes to.

    Args:
        context: What drives the run; ``TERM`` and ``NO_COLOR`` of its environment say how to draw.
        id_: The run.
        state: Its state.
        is_json: Whether to print events as JSON, for a program.
    """
    streams, kept = StandardStreams(context.stop), context.runs.files(id_) / HELD
    view = _events(id_, streams) if is_json else _drawn(context, id_, state, streams)
    options = RunOptions.from_journal(state.made.terms)
    listeners: list[RunListener] = [view, *_notifiers(context, id_, options, view)]
    output, is_final_only = view.output, options.is_final_only
    if is_final_only is None:
        # Events name their attempt, so they need not be held back.
        is_final_only = not is_json and not os.isatty(1)
    if is_final_only or kept.exists():  # output held by a killed supervisor may be final
        from .final_only import FinalOnlyOutput

        is_whole = is_json or streams.is_ours("stdout")
        held = FinalOnlyOutput(view.output, kept, is_whole=is_whole, is_answer_only=not is_json)
        listeners, output = [held, *listeners], held.output
    try:
        yield context._replace(listeners=tuple(listeners), output=output), streams
    finally:
        view.close()


@contextmanager
def recording(context: RunContext, id_: str, state: RunState) -> Iterator[RunContext]:
    """A context that reports the run in a worker's log, without the program's output.

    Output that a killed `mulligan run` held back for its own stdout is removed: the attempt's log
    has it.
    """
    runs = context.runs
    program = program_name(runs.command(id_))
    lines = PlainView(id_, program, streams=StandardStreams(context.stop), label=f"{id_}:")
    options = RunOptions.from_journal(state.made.terms)
    yield context._replace(listeners=(lines, *_notifiers(context, id_, options, lines)))
    (runs.files(id_) / HELD).unlink(missing_ok=True)


def _notifiers(
    context: RunContext, id_: str, options: RunOptions, view: PlainView | JsonEvents
) -> list[Notifier]:
    if not options.is_notified:
        return []
    from .notify import Notifier, remembered

    argv = remembered(context.runs.files(id_))

    def in_place() -> float:
        return options.load_policy().in_place

    return [Notifier(context, id_, argv, told=view.notified, in_place=in_place)]


def _events(id_: str, streams: StandardStreams) -> JsonEvents:
    from .json_events import JsonEvents

    return JsonEvents(id_, streams=streams)


def _drawn(context: RunContext, id_: str, state: RunState, streams: StandardStreams) -> PlainView:
    program, environ = program_name(context.runs.command(id_)), context.environ
    if os.isatty(2):
        from .status_line import StatusLine, can_draw

        if can_draw(2, environ):
            is_coloured = not environ.get("NO_COLOR")
            return StatusLine(id_, program, streams=streams, before=state, is_coloured=is_coloured)
    return PlainView(id_, program, streams=streams)
