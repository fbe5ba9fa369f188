"""Chooses the listeners of a run: lines, a status line or events; held output; notifications."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from ..agents.catalogue import program_name
from ..attempt.options import RunOptions
from .plain_view import PlainView
from .standard_streams import StandardStreams, can_draw

if TYPE_CHECKING:
    from ..context import RunContext
    from ..journal.state import RunState
    from ..journal.store import ClaimedRun
    from ..listeners import RunListener
    from .json_events import JsonEvents
    from .notify import Notifier

__all__ = ("HELD", "recording", "showing")

# The file in the folder of a run in which output is held back.
HELD = "held"


def showing(
    context: RunContext,
    claimed: ClaimedRun,
    state: RunState,
    streams: StandardStreams,
    *,
    is_json: bool,
) -> tuple[RunContext, PlainView | JsonEvents]:
    """A context that shows the run to the user who started it, and its view, to be closed.

    ``TERM`` and ``NO_COLOR`` of the context's environment say how to draw.
    """
    view: PlainView | JsonEvents
    listeners: tuple[RunListener, ...]
    id_, environ = claimed.id, context.environ
    program = program_name(context.runs.command(id_))
    if is_json:
        from .json_events import JsonEvents

        view = JsonEvents(id_, streams=streams)
    elif streams.terminal is not None and can_draw(2, environ):
        from .status_line import StatusLine

        is_coloured = not environ.get("NO_COLOR")
        view = StatusLine(id_, program, streams=streams, before=state, is_coloured=is_coloured)
    else:
        view = PlainView(id_, program, streams=streams)
    output, listeners, terms = view.output, (view,), state.made.terms
    if terms.get("is_notified"):
        listeners = (view, _notifier(context, claimed, terms, view))
    kept, is_final_only = claimed.folder / HELD, terms.get("is_final_only")
    if is_final_only is None:
        # Events name their attempt, so they need not be held back.
        is_final_only = not is_json and not os.isatty(1)
    if is_final_only or kept.exists():  # output held by a killed supervisor may be final
        from .final_only import FinalOnlyOutput

        is_whole = is_json or streams.is_one_place
        held = FinalOnlyOutput(output, kept, is_whole=is_whole, is_answer_only=not is_json)
        listeners, output = (held, *listeners), held.output
    return context._replace(listeners=listeners, output=output), view


def recording(context: RunContext, claimed: ClaimedRun, state: RunState) -> RunContext:
    """A context that reports the run in a worker's log, without the program's output."""
    program, streams = program_name(context.runs.command(claimed.id)), StandardStreams(context.stop)
    lines = PlainView(claimed.id, program, streams=streams, label=f"{claimed.id}:")
    terms = state.made.terms
    listeners: tuple[RunListener, ...] = (lines,)
    if terms.get("is_notified"):
        listeners = (lines, _notifier(context, claimed, terms, lines))
    return context._replace(listeners=listeners)


def _notifier(
    context: RunContext,
    claimed: ClaimedRun,
    terms: dict[str, Any],
    view: PlainView | JsonEvents,
) -> Notifier:
    from .notify import Notifier, remembered

    argv, options = remembered(claimed.folder), RunOptions.from_journal(terms)

    def in_place() -> float:
        return options.load_policy().in_place

    return Notifier(context, claimed.id, argv, told=view.notified, in_place=in_place)
