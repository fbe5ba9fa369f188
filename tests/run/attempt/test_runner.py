"""A run with a real program, real journal and virtual time."""

from __future__ import annotations

import json

import pytest

from mulligan.run.agents.adapter import CommandRefused
from mulligan.run.attempt.account_limits import ACCOUNT
from mulligan.run.drive import drive_run
from mulligan.run.journal.entries import AttemptBegun, AttemptEnd, RunCancelled, RunRescheduled
from mulligan.run.journal.store import RunHeld
from mulligan.run.listeners import RunListener

from ..scripted import Stage

pytestmark = pytest.mark.real


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path)


def hows(run):
    return [step.how for step in run.view.steps if isinstance(step, AttemptBegun)]


def kinds(run):
    return [step.kind for step in run.view.steps if isinstance(step, AttemptEnd)]


def test_a_program_that_does_well_is_run_once_and_seen_as_without_us(stage):
    run = stage.run("ok")
    assert (run.code, run.state.status, hows(run)) == (0, "done", ["start"])
    assert run.view.shown["stdout"] == b"All done, after 1 step.\n"


def test_a_limit_five_hours_away_is_waited_for_and_the_session_resumed(stage):
    run = stage.run("effect limit:18000 ok")
    assert (run.code, hows(run), kinds(run)) == (0, ["start", "resume"], ["quota", ""])
    assert stage.effects == 1
    assert 18000 <= stage.clock.now() < 18000 + 40
    assert run.view.shown["stdout"].endswith(b"All done, after 3 steps.\n")


def test_a_limit_beyond_the_horizon_ends_with_75_and_the_time(stage):
    run = stage.run("limit:18000", horizon=3600.0)
    assert (run.code, run.state.status) == (75, "limited")
    assert run.state.until == pytest.approx(stage.clock.wall() + 18001, abs=3)
    assert stage.clock.now() == 0


def test_a_crash_resumes_the_session(stage):
    run = stage.run("work crash ok")
    assert (run.code, hows(run), kinds(run)) == (0, ["start", "resume"], ["server", ""])


def test_overload_and_lost_connections_are_tried_again(stage):  # "only rate limits retried"
    run = stage.run("overloaded reset ok")
    assert (run.code, kinds(run)) == (0, ["overloaded", "network", ""])


@pytest.mark.parametrize(
    ("word", "kind"), [("login", "auth"), ("billing", "billing"), ("toolong", "context_length")]
)
def test_what_waiting_does_not_mend_stops_at_once(stage, word, kind):
    run = stage.run(f"{word} ok")
    assert (run.code, run.state.status, kinds(run)) == (1, "failed", [kind])
    assert run.state.ended[-1].advice


def test_silence_ends_the_program_and_resumes_it(stage):
    run = stage.run("work stall:60 ok", idle=0.6)
    assert (run.code, hows(run), kinds(run)) == (0, ["start", "resume"], ["timeout", ""])


def test_failed_attempts_cost_money_too(stage):
    run = stage.run("overloaded overloaded ok")
    assert run.state.cost == pytest.approx(3 * 0.04)
    assert run.state.tokens == 3000


def test_the_child_s_own_code_is_kept(stage):
    run = stage.run("", command=("sh", "-c", "echo no such thing >&2; exit 7"))
    assert (run.code, run.state.status, kinds(run)) == (7, "failed", ["unknown"])


def test_an_interrupted_wait_is_still_a_wait(stage):
    claimed = stage.run("limit:9000 ok", horizon=60.0)  # parked beyond its horizon
    assert claimed.code == 75
    taken = stage.runs.claim(claimed.id, stage.clock.wall())
    stage.runs.write(
        taken, RunRescheduled(stage.clock.wall(), stage.clock.wall() + 9000, "hand"), "hand"
    )
    run = stage.drive(taken, "limit:9000 ok", interrupted_after=100.0)
    assert (run.code, run.state.status) == (130, "waiting")
    assert stage.clock.now() < 110  # within a second or so, not at the end of the wait
    again = stage.runs.claim(claimed.id, stage.clock.wall())
    assert stage.drive(again, "limit:9000 ok").code == 0


def test_parking_by_exit_waits_for_nobody(stage):
    claimed = stage.run("limit:3000", horizon=60.0)
    taken = stage.runs.claim(claimed.id, stage.clock.wall())
    stage.runs.write(
        taken, RunRescheduled(stage.clock.wall(), stage.clock.wall() + 3000, "hand"), "hand"
    )
    run = stage.drive(taken, "limit:3000 ok", park="exit")
    assert (run.code, run.state.status, stage.clock.now()) == (75, "waiting", 0)


def test_a_second_run_does_not_start_into_a_closed_window(stage):
    first = stage.run("limit:7200 ok ok", horizon=60.0)
    assert first.code == 75
    second = stage.run("ok", horizon=30000.0)
    assert second.code == 0
    moved = [step for step in second.view.steps if isinstance(step, RunRescheduled)]
    assert moved, "it started while the window was closed"
    assert stage.clock.now() >= 7200
    assert second.state.attempts == 1


def test_who_says_now_is_not_held_by_what_others_met(stage):
    first = stage.run("limit:7200 ok ok", horizon=60.0)
    taken = stage.runs.claim(first.id, stage.clock.wall())
    stage.runs.write(taken, RunRescheduled(stage.clock.wall(), stage.clock.wall(), "hand"), "hand")
    again = stage.drive(taken, "limit:7200 ok ok", is_now=True)
    assert (again.code, stage.clock.now()) == (0, 0)


def test_a_run_in_hand_is_nobody_else_s(stage):
    run = stage.run("limit:3000", horizon=60.0)
    taken = stage.runs.claim(run.id, stage.clock.wall())
    with pytest.raises(RunHeld):
        stage.runs.claim(run.id, stage.clock.wall())
    stage.runs.release(taken)
    stage.runs.claim(run.id, stage.clock.wall())


def test_a_cancelled_run_stays_cancelled(stage):
    run = stage.run("limit:3000", horizon=60.0)
    stage.runs.cancel(run.id, RunCancelled(stage.clock.wall(), "by hand"))
    taken = stage.runs.claim(run.id, stage.clock.wall())
    again = stage.drive(taken, "ok")
    assert (again.code, again.state.status, again.state.attempts) == (130, "cancelled", 1)


def test_an_interactive_command_is_refused_before_anything_is_written(stage):
    with pytest.raises(CommandRefused):
        stage.run("ok", command=("claude",))
    assert stage.runs.ids() == ()


def test_an_attempt_whose_log_has_its_success_is_not_run_again(stage):
    done = (
        b'{"type":"system","subtype":"init","session_id":"0d934841-1941-40fe-9930-4689fa253369"}\n'
        b'{"type":"result","subtype":"success","is_error":false,"result":"fine",'
        b'"session_id":"0d934841-1941-40fe-9930-4689fa253369","total_cost_usd":0.5}\n'
    )
    claimed = _torn(stage, output=done)
    run = stage.drive(claimed, "crash crash crash")
    assert (run.code, hows(run), run.state.cost) == (0, [], 0.5)


def test_a_cut_off_program_that_cannot_resume_is_not_started_twice(stage):
    claimed = _torn(stage, output=b"half of it", command=("sh", "-c", "echo again >> effects.txt"))
    run = stage.drive(claimed, "")
    assert (run.code, run.state.status, stage.effects) == (1, "failed", 0)
    assert "--restart" in run.state.ended[-1].advice


def events(*more):
    init = {"type": "system", "subtype": "init", "session_id": SESSION}
    lines = [init, {"type": "assistant", "message": {"content": []}, "session_id": SESSION}, *more]
    return "".join(json.dumps(each) + "\n" for each in lines)


SESSION = "0d934841-1941-40fe-9930-4689fa253369"
SUCCESS = {"type": "result", "is_error": False, "result": "fine", "session_id": SESSION}


def agent(stage, text, then):
    """A claude that prints `text`, notes that it ran, and does `then`."""
    (stage.folder / "says").write_text(text)
    program = stage.folder / "bin" / "claude"
    program.write_text(f"#!/bin/sh\necho ran >> effects.txt\ncat {stage.folder}/says\n{then}\n")
    return ("claude", "-p", "x")


@pytest.mark.parametrize("then", ["sleep 30", "kill -SEGV $$"])
def test_what_reported_its_success_is_not_asked_again(stage, then):
    run = stage.run("", command=agent(stage, events(SUCCESS), then), idle=0.4)
    assert (run.code, run.state.status, stage.effects) == (0, "done", 1)


def test_output_that_ends_without_its_report_is_in_doubt(stage):  # E-E7
    run = stage.run("", command=agent(stage, events(), "exit 0"))
    assert (run.code, hows(run)) == (1, ["start", "resume"])
    assert [each.is_doubt for each in run.state.ended] == [True, True]


WIDGET = "Migration aborted: the usage dashboard quota widget (refreshes in 5 hours) did not build."
SHARE = "the fair share is used up for today, back in 20 hours"


def accounts(stage):
    store = stage.runs.store()
    try:
        return store.state.known(ACCOUNT)
    finally:
        store.close()


def test_a_guessed_limit_holds_no_other_run_of_the_account(stage):
    first = stage.run("", command=agent(stage, WIDGET, "exit 1"))
    assert (first.code, stage.effects, first.state.ended[-1].is_guess) == (1, 1, True)
    assert not accounts(stage)
    second = stage.run("", command=agent(stage, "", "exit 0"))
    assert (second.state.attempts, stage.clock.now()) == (1, 0)


def test_a_guessed_limit_is_probed_once_and_then_waited_for_by_its_own_run_alone(stage):
    run = stage.run("", command=agent(stage, SHARE, "exit 1"), may_restart=True)
    assert (run.code, run.state.status, hows(run)) == (75, "limited", ["start", "restart"])
    assert 60 <= stage.clock.now() < 95
    assert run.state.until >= stage.clock.wall() + 20 * 3600
    assert not accounts(stage)


def test_a_session_that_the_user_named_and_nobody_knows_is_not_tried_for_ever(stage):
    lost = "echo 'No conversation found with session ID: x' >&2; exit 1"
    agent(stage, "", lost)
    run = stage.run("", command=("claude", "-p", "x", "--resume", SESSION))
    assert (run.code, run.state.status, stage.effects) == (1, "failed", 1)


def test_who_resumes_a_cut_off_program_is_asked_for_restart_again(stage):
    command = ("sh", "-c", "echo x >> effects.txt; kill -9 $$")
    first = stage.run("", command=command)
    assert (first.code, stage.effects) == (137, 1)
    for may_restart in (False, True):
        taken = stage.runs.claim(first.id, stage.clock.wall())
        stage.runs.write(
            taken, RunRescheduled(stage.clock.wall(), stage.clock.wall(), "hand"), "hand"
        )
        run = stage.drive(taken, "", may_restart=may_restart)
        assert (run.state.status, stage.effects > 1) == ("failed", may_restart)


def test_a_deadline_cuts_a_running_attempt(stage):  # E-D4
    run = stage.run("", command=("sleep", "30"), deadline=0.3)
    assert (run.code, run.state.status) == (1, "failed")


def test_a_signal_without_a_name_is_a_crash_like_any_other(stage):
    run = stage.run("", command=("sh", "-c", "kill -40 $$"))
    assert (run.code, run.state.status) == (168, "failed")


def test_a_limit_in_the_log_of_a_killed_supervisor_is_waited_for(stage):
    info = {"status": "rejected", "resetsAt": stage.clock.wall() + 3000}
    limit = {"type": "rate_limit_event", "rate_limit_info": info, "session_id": SESSION}
    claimed = _torn(stage, output=events(limit).encode())
    run = stage.drive(claimed, "ok")
    assert stage.clock.now() >= 3000
    assert run.state.ended[0].kind == "quota"


def test_a_name_means_its_run_whatever_begins_like_it(stage):
    first = stage.run("ok")
    named = stage.claimed(("true",), name=first.id[:2])
    assert stage.runs.find(first.id[:2]) == named.id


def _torn(stage, *, output, command=("claude", "-p", "x")):
    """A run whose supervisor died in its first attempt."""
    claimed = stage.claimed(command)
    stage.runs.write(claimed, AttemptBegun(stage.clock.wall(), 1, "start", "", ""), "begun-1")
    (stage.runs.files(claimed.id) / "attempt-1.out").write_bytes(output)
    stage.runs.release(claimed)
    return stage.runs.claim(claimed.id, stage.clock.wall())


def test_listeners_are_told_of_each_step_in_order_and_of_the_end_in_reverse(stage):
    told = []

    class Listener(RunListener):
        def __init__(self, name):
            self.name = name

        def step(self, step):
            told.append((self.name, type(step).__name__))

        def over(self, state):
            told.append((self.name, state.status))

    listeners = (Listener("first"), Listener("second"))
    context = stage.context("ok")._replace(listeners=listeners)
    assert drive_run(context, stage.claimed(("true",))) == 0
    context.stop.close()
    assert told == [
        *(("first", "AttemptBegun"), ("second", "AttemptBegun")),
        *(("first", "AttemptEnd"), ("second", "AttemptEnd")),
        *(("second", "done"), ("first", "done")),
    ]
