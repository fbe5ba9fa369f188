"""How an attempt is started, and what is known of that afterwards: left over from issue 12.

An attempt without a log was taken for one that had never been started. Where the log could not be
made (a full disk, a folder that cannot be written to) and the supervisor was then killed, a program
without a session was started a second time: two effects. A start that this machine refused for a
moment, for want of descriptors or memory, ended the run as if the program could not be executed.
"""

from __future__ import annotations

import errno
import os
import resource
import subprocess
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen

import pytest

from mulligan.run.context import REAL_PLATFORM
from mulligan.run.drive import drive_run
from mulligan.run.journal.entries import AttemptEnd
from mulligan.run.process.stop import Stop
from mulligan.run.show.messages import step_messages

from ..run.scripted import Stage

pytestmark = pytest.mark.real

EFFECT = ("sh", "-c", "echo ran >> effects.txt")


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path)


class Killed(BaseException):
    """Stands for kill -9: nothing of ours runs after it."""


def made(stage, command):
    return stage.claimed(command, "ok")


def killed(stage, claimed, supervise):
    """Drive the run with a supervisor that is killed inside `supervise`; it is free afterwards."""
    stop = Stop()
    try:
        with pytest.raises(Killed):
            drive_run(stage.context("ok", stop=stop, supervise=supervise), claimed)
    finally:
        stop.close()
    assert stage.runs.look(claimed.id).is_torn
    stage.runs.release(claimed)
    return stage.runs.claim(claimed.id, stage.clock.wall())


class TestKilledWithoutLog:
    """The journal says that an attempt was begun; whether there is a log says nothing."""

    def test_a_program_without_a_session_is_not_started_twice(self, stage):
        claimed = made(stage, EFFECT)
        for suffix in ("out", "err"):  # a log that cannot be made: links are not followed
            (stage.runs.files(claimed.id) / f"attempt-1.{suffix}").symlink_to("nowhere")

        def supervise(argv, **more):
            REAL_PLATFORM.supervise(argv, **more)
            raise Killed

        run = stage.drive(killed(stage, claimed, supervise), "ok")
        assert (run.code, run.state.status, stage.effects) == (1, "failed", 1)
        assert "--restart" in run.state.ended[-1].advice

    def test_a_program_with_a_session_is_resumed_or_found_to_have_none(self, stage):
        claimed = made(stage, ("claude", "-p", "Port the tests"))

        def supervise(_argv, **_more):
            raise Killed

        run = stage.drive(killed(stage, claimed, supervise), "effect ok")
        assert (run.code, run.state.status, stage.effects) == (0, "done", 1)
        assert [each.how for each in run.state.begun] == ["start", "resume", "restart"]


class TestRefusedForTheMoment:
    """Nothing was started, so nothing can be done twice: it is tried again, with growing waits."""

    @pytest.mark.parametrize("number", [errno.EMFILE, errno.ENOMEM, errno.EAGAIN])
    def test_a_machine_that_lacks_something_for_a_moment_is_asked_again(
        self, stage, monkeypatch, number
    ):
        monkeypatch.setattr(subprocess, "Popen", refusing(*[number] * 3))
        run = stage.run("", command=EFFECT)
        assert (run.code, run.state.status, stage.effects) == (0, "done", 1)
        assert [each.is_unstarted for each in run.state.ended] == [True, True, True, False]
        assert 8 < stage.clock.now() < 60  # 4, 8 and 16 s, half of each by the dice
        assert run.state.ended[0].message == f"cannot start sh: {os.strerror(number)}"

    def test_descriptors_that_are_used_up_are_waited_for(self, stage):
        """No mock: the limit of this process is as many descriptors as it has open."""
        claimed, opened = made(stage, EFFECT), []

        def supervise(argv, **more):
            if stage.clock.now() == 0:
                opened.extend(_all_descriptors())
            try:
                return REAL_PLATFORM.supervise(argv, **more)
            finally:
                while opened:
                    os.close(opened.pop())

        stop = Stop()
        context = stage.context("ok", stop=stop, supervise=supervise)
        with _few_descriptors():
            code = drive_run(context, claimed)
        stop.close()
        ended = stage.runs.look(claimed.id).ended
        assert (code, stage.effects, len(ended)) == (0, 1, 2)
        assert "Too many open files" in ended[0].message

    def test_a_session_that_was_to_go_on_still_goes_on(self, stage, monkeypatch):
        monkeypatch.setattr(subprocess, "Popen", refusing(None, errno.EAGAIN))
        run = stage.run("effect crash ok")
        assert (run.code, stage.effects) == (0, 1)
        assert [each.how for each in run.state.begun] == ["start", "resume", "resume"]

    def test_what_stays_refused_ends_with_126_and_can_be_resumed(self, stage, monkeypatch):
        monkeypatch.setattr(subprocess, "Popen", refusing(*[errno.EAGAIN] * 3))
        run = stage.run("", command=EFFECT, attempts=3)
        assert (run.code, run.state.status, len(run.state.ended)) == (126, "failed", 3)
        assert not run.state.needs_restart

    def test_a_program_that_cannot_be_executed_is_not_asked_for_again(self, stage):
        (stage.folder / "bin" / "broken").write_text("not executable")
        run = stage.run("", command=("broken",))
        assert (run.code, len(run.state.ended)) == (126, 1)

    def test_it_is_told_in_two_lines(self):
        step = AttemptEnd(
            0.0,
            1,
            0.0,
            126,
            kind="overloaded",
            message="cannot start sh: Too many open files",
            then="again",
            until=4.0,
            because="waiting 4.0s, by backoff",
            is_unstarted=True,
        )
        assert [said.text for said in step_messages(step, "sh")] == [
            "attempt 1: cannot start sh: Too many open files",
            "retry in 4s, by backoff",
        ]


def refusing(*numbers):
    """A system that refuses to start programs, with these errors one after the other."""
    refusals = iter(numbers)

    def popen(*args, **more):
        if (refusal := next(refusals, None)) is not None:
            raise OSError(refusal, os.strerror(refusal))
        return Popen(*args, **more)

    return popen


def _all_descriptors():
    """Every descriptor that this process may still open."""
    while True:
        try:
            yield os.open(os.devnull, os.O_RDONLY)
        except OSError:
            return


@contextmanager
def _few_descriptors():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(int(each.name) for each in Path("/dev/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (used + 20, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
