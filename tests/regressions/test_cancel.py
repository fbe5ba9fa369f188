"""A cancel that was lost.

``mulligan cancel`` said "cancelled", and the run went on: its holder had looked at the journal a
moment before, and its ``begun`` landed behind the ``over`` and revived the run. Seen in 7 of 60
cancels within a window of 12 ms around the start of an attempt. A cancel now begins a new epoch, so
that the journal refuses what the holder writes after it, and nothing follows an ``over``.

The process that drove a cancelled program without a session then advised ``mulligan resume
--restart``, which refuses: a cancelled run does not go on.
"""

from __future__ import annotations

import json
import random
import threading
import time

import pytest

from mulligan.errors import Fenced
from mulligan.run.drive import drive_run
from mulligan.run.journal.entries import AttemptBegun, AttemptEnd, RunCancelled, RunRescheduled
from mulligan.run.process.stop import Stop
from mulligan.run.process.supervise import ProcessExit as Exited
from mulligan.run.show.messages import summary
from tests.run.scripted import Recorder, Stage


@pytest.fixture
def stage(tmp_path):
    stage = Stage(tmp_path)
    yield stage
    stage.runs.close()


def made(stage):
    return stage.claimed(("tool",))


def driven(stage, claimed, supervise, cleaner=None):
    view, stop = Recorder(), Stop()
    context = stage.context(stop=stop, supervise=supervise)._replace(listeners=(view,))
    try:
        code = drive_run(context, claimed, cleaner=cleaner)
    finally:
        stop.close()
    return code, view


class CancelsInBetween:
    """A tree that is made clean just when somebody cancels the run."""

    always_restarts = False

    def __init__(self, stage, claimed):
        self.stage, self.claimed = stage, claimed

    def before(self, state, log, stop, *, is_restart):
        self.stage.runs.cancel(self.claimed.id, RunCancelled(1.0, "cancelled by the user"))
        return []

    def after(self, stop):
        return []


def test_a_cancel_between_the_look_and_the_start_keeps_the_program_from_starting(stage):
    claimed, started = made(stage), []

    def supervise(argv, **options):
        started.append(argv)
        return Exited(code=0)

    code, view = driven(stage, claimed, supervise, CancelsInBetween(stage, claimed))
    state = stage.runs.look(claimed.id)
    assert (code, started, state.status) == (130, [], "cancelled")
    assert [end.status for end in view.ends] == ["cancelled"]


def test_the_holder_of_a_cancelled_run_can_begin_nothing_and_what_it_cost_counts(stage):
    claimed = made(stage)
    runs = stage.runs
    runs.write(claimed, AttemptBegun(1.0, 1, "start", "", ""), "begun-1")
    runs.cancel(claimed.id, RunCancelled(2.0, "cancelled by the user"))
    runs.write(claimed, AttemptEnd(3.0, 1, 1.0, cost=0.5, then="again", until=4.0), "ended-1")
    for step in (AttemptBegun(4.0, 2, "start", "", ""), RunRescheduled(4.0, 5.0, "later")):
        with pytest.raises(Fenced):
            runs.write(claimed, step, "late")
    state = runs.look(claimed.id)
    assert (state.status, state.cost, state.attempts, state.until) == ("cancelled", 0.5, 1, None)


def test_a_cancelled_run_is_not_advised_to_be_resumed(stage):
    claimed = made(stage)
    runs = stage.runs
    runs.write(claimed, AttemptBegun(1.0, 1, "start", "", ""), "begun-1")
    runs.cancel(claimed.id, RunCancelled(2.0, "cancelled by the user"))
    interrupted = AttemptEnd(3.0, 1, 1.0, signal=2, stopped="cancelled", then="pause", exit=130)
    runs.write(claimed, interrupted, "ended-1")
    said = [each.text for each in summary(claimed.id, runs.look(claimed.id))]
    assert said == ["cancelled: 1 attempt in 0s"]


def test_whoever_takes_a_run_while_it_is_cancelled_is_fenced_as_well(stage):
    claimed = made(stage)
    stage.runs.release(claimed)
    taken = stage.runs.claim(claimed.id, 2.0)
    stage.runs.cancel(claimed.id, RunCancelled(3.0, "cancelled by the user"))
    with pytest.raises(Fenced):
        stage.runs.write(taken, AttemptBegun(4.0, 1, "start", "", ""), "begun-1")


@pytest.mark.real
def test_sixty_cancels_race_with_sixty_starts_and_none_is_lost(stage):
    """What has begun when the cancel lands may end; nothing begins behind it."""
    dice = random.Random(12)
    lost: list[object] = []
    for number in range(60):
        claimed = made(stage)

        def supervise(argv, **options):
            return Exited(code=0)

        runner = threading.Thread(target=driven, args=(stage, claimed, supervise))
        runner.start()
        time.sleep(dice.uniform(0, 0.012))
        stage.runs.cancel(claimed.id, RunCancelled(1.0, "cancelled by the user"))
        runner.join(30)
        journal = stage.runs.store().journal.read(f"run/{claimed.id}")
        steps = [json.loads(entry.body)["step"] for entry in journal]
        state = stage.runs.look(claimed.id)
        is_done_first = "ended" in steps and steps.index("ended") < steps.index("over")
        if "begun" in steps[steps.index("over") :]:
            lost.append((number, steps))
        if state.status != ("done" if is_done_first else "cancelled"):
            lost.append((number, state.status, steps))
    assert lost == []
