"""Parked runs slept on when the limit that they waited for was lifted: left over from issue 12.

A run that waits in the foreground looks every 15 s whether its limit still holds. A parked one is a
few lines in a journal, and its worker looked at nothing but the time: after `mulligan reset` or
`allow`, or once a model had answered another run of the account, it stayed parked for hours.
"""

from __future__ import annotations

import pytest

from mulligan.core.moment import Moment
from mulligan.errors import StoreDown
from mulligan.run.agents.catalogue import recognise
from mulligan.run.attempt.account_limits import ACCOUNT, ForgetLimits, LimitMet, OverrideLimit
from mulligan.run.attempt.account_limits_client import PART, limits_of
from mulligan.run.attempt.runner import LIFTED
from mulligan.run.journal.entries import RunRescheduled
from mulligan.run.process.stop import Stop
from mulligan.run.worker import Worker
from mulligan.stores.state_machine import Key

from ..run.scripted import Stage

pytestmark = pytest.mark.real

GLANCE, LIFT_AT, LOOK_UNTIL = 5.0, 600.0, 900.0


@pytest.fixture
def stage(tmp_path):
    stage = Stage(tmp_path)
    yield stage
    stage.runs.close()


def account(stage):
    (key,) = stage.runs.store().state.known(ACCOUNT)
    return key


def reset(stage):
    stage.runs.store().state.transact(account(stage), ForgetLimits())


def allow(stage):
    stage.runs.store().state.transact(account(stage), OverrideLimit(move="allowed"))


def allow_by_name(stage):
    stage.runs.store().state.transact(Key("claude", PART), OverrideLimit(move="allowed"))


def worked(stage, id_, *, is_limited=None, meanwhile=lambda _stage: None):
    """A worker for 900 s, with something that happens after 600; what it woke, and when."""
    began, stop = stage.clock.now(), Stop()
    woken: list[tuple[str, float]] = []
    happened: list[float] = []

    def limited(run, state):
        command = stage.runs.command(run)
        limits = limits_of(context, run, command, recognise(command, state.made.agent))
        assert limits is not None
        return limits.is_limited()

    def drive(claimed, _state):
        woken.append((claimed.id, stage.clock.now() - began))
        stage.drive(claimed, "limit:7200 ok ok ok", park="exit")

    def wait(stop, seconds):
        stage.clock.sleep(seconds)
        passed = stage.clock.now() - began
        if passed >= LIFT_AT and not happened:
            happened.append(passed)
            meanwhile(stage)
        if passed >= LOOK_UNTIL:
            stop.set("terminate")
        return stop.is_set

    context = stage.context("ok", stop=stop, wait=wait)
    worker = Worker(
        context,
        drive=drive,
        jobs=2,
        failed=lambda _id, error: pytest.fail(str(error)),
        is_limited=is_limited or limited,
    )
    worker.work(is_once=False, glance=GLANCE)
    stop.close()
    return [at for each, at in woken if each == id_]


def limited(stage):
    run = stage.run("limit:7200 ok ok ok", horizon=60.0)
    assert (run.code, run.state.status) == (75, "limited")
    return run.id


@pytest.mark.parametrize("lift", [reset, allow, allow_by_name])
def test_a_parked_run_is_woken_when_its_limit_is_lifted(stage, lift):
    id_ = limited(stage)
    (woken,) = worked(stage, id_, meanwhile=lift)
    assert LIFT_AT < woken < LIFT_AT + 60
    state = stage.runs.look(id_)
    assert (state.status, state.attempts) == ("done", 2)


def test_a_model_s_answer_to_another_run_wakes_those_that_wait(stage):
    id_ = limited(stage)
    other = stage.run("ok", command=("claude", "-p", "y"), horizon=60.0)
    assert other.code == 75  # held by the same limit

    def answered(stage):
        taken = stage.runs.claim(other.id, stage.clock.wall())
        stage.runs.write(
            taken, RunRescheduled(stage.clock.wall(), stage.clock.wall(), "hand"), "hand"
        )
        assert stage.drive(taken, "ok ok", is_now=True).code == 0

    (woken,) = worked(stage, id_, meanwhile=answered)
    assert LIFT_AT < woken < LIFT_AT + 60


def test_a_limit_that_holds_wakes_nobody(stage):
    id_ = limited(stage)
    assert worked(stage, id_) == []
    assert stage.runs.look(id_).status == "limited"


def test_a_limit_that_this_worker_never_saw_was_not_lifted(stage):
    """It may be one that is about another model, and shared with no run like this."""
    id_ = limited(stage)
    reset(stage)
    assert worked(stage, id_) == []


def test_a_store_that_is_down_does_not_say_that_a_limit_was_lifted(stage, monkeypatch):
    id_ = limited(stage)

    def down(_wanted):
        raise StoreDown("test:", "gone")

    def lose(stage):
        monkeypatch.setattr(stage.runs.store().state, "peek_all", down)

    assert worked(stage, id_, meanwhile=lose) == []


def test_the_journal_says_why_it_went_on(stage):
    id_ = limited(stage)
    claims = []
    look = stage.runs.look

    def looked(run, *before):
        state = look(run, *before)
        claims.append(state.because if run == id_ else "")
        return state

    stage.runs.look = looked
    worked(stage, id_, meanwhile=reset)
    assert LIFTED in claims


def test_a_stated_time_is_known_until_it_has_come():
    """The store could forget it after seven hours, which looks as if it was lifted."""
    met = LimitMet(
        run="r1",
        program="claude",
        label="KEY",
        model="",
        is_default=True,
        seconds=100_000.0,
        is_sure=True,
        because="limit",
    )
    moment = Moment(0.0, 1_794_000_000.0)
    state, _ = met(ACCOUNT.start, moment)
    assert ACCOUNT.keep(state, moment) >= 100_000
