"""Limits that runs believe in.

A run met a limit of five hours. Its user knew better, bought more, and `mulligan resume --now`
went through; the next run still refused to start. A limit on Opus stopped runs of Sonnet. A limit
that Claude met was unknown to pi, which used the same key, and asked eleven times too early.

The user's own test: all defaults, real processes, a clock that jumps.
"""

from __future__ import annotations

import pytest

from mulligan.run.journal.entries import AttemptBegun, AttemptEnd, RunRescheduled

from ..run.scripted import Stage

pytestmark = pytest.mark.real

OPUS = ("claude", "-p", "Port the tests", "--model", "opus")
SONNET = ("claude", "-p", "Port the tests", "--model", "claude-sonnet-4-5")
PI = ("pi", "-p", "Port the tests")


class Desktop(Stage):
    """A machine with two programs, whose users have keys."""

    keys: dict[str, str]

    def __init__(self, folder) -> None:
        super().__init__(folder)
        self.keys = {"ANTHROPIC_API_KEY": "k1"}
        program = folder / "bin" / "pi"
        program.write_text('#!/bin/sh\necho "{\\"type\\":\\"agent_end\\"}"\n')
        program.chmod(0o755)

    def environ(self, script: str) -> dict[str, str]:
        return {**super().environ(script), **self.keys}

    def resume(self, run, script: str, **options):
        now = self.clock.wall()
        claimed = self.runs.claim(run.id, now)
        self.runs.write(claimed, RunRescheduled(now, now, "by hand"), "by-hand")
        return self.drive(claimed, script, **options)

    def new(self, script: str, *, command=("claude", "-p", "x"), **options):
        return self.drive(self.claimed(command, script), script, **options)


@pytest.fixture
def desktop(tmp_path):
    return Desktop(tmp_path)


def held(run):
    return [step for step in run.view.steps if isinstance(step, RunRescheduled)]


def test_a_success_lifts_the_limit_for_the_next_run(desktop):
    first = desktop.new("limit:18000 ok ok", park="exit")
    assert (first.code, first.state.status) == (75, "waiting")
    again = desktop.resume(first, "limit:18000 ok ok", is_now=True)
    assert again.code == 0
    second = desktop.new("limit:18000 ok ok", park="exit")
    assert (second.code, held(second), desktop.clock.now()) == (0, [], 0)


def test_a_new_run_can_ignore_what_is_believed_once(desktop):
    desktop.new("limit:18000 ok limit:18000 ok", park="exit")
    assert desktop.new("", park="exit").code == 75
    assert desktop.new("limit:18000 ok limit:18000 ok", is_now=True).code == 0
    # Once: whoever is refused again waits again.
    third = desktop.new("limit:18000 ok limit:18000 ok", is_now=True, park="exit")
    assert (third.code, third.state.attempts, desktop.clock.now()) == (75, 1, 0)


def test_an_opus_limit_does_not_stop_sonnet(desktop):
    script = "opus:18000 ok ok"
    first = desktop.new(script, command=OPUS, park="exit")
    assert (first.code, first.state.ended[-1].kind) == (75, "quota")
    sonnet = desktop.new(script, command=SONNET, park="exit")
    assert (sonnet.code, held(sonnet)) == (0, [])
    opus = desktop.new(script, command=OPUS, park="exit")
    assert (opus.code, opus.state.attempts) == (75, 0)
    assert "met a limit for opus" in held(opus)[0].because


def test_an_account_s_limit_stops_every_model(desktop):
    script = "limit:18000 ok"
    desktop.new(script, command=OPUS, park="exit")
    sonnet = desktop.new(script, command=SONNET, park="exit")
    assert (sonnet.code, sonnet.state.attempts) == (75, 0)


def test_two_programs_with_one_key_share_its_limit(desktop):
    desktop.new("limit:18000", park="exit")
    other = desktop.new("", command=PI, park="exit")
    assert (other.code, other.state.attempts) == (75, 0)
    desktop.keys = {"ANTHROPIC_API_KEY": "k2"}
    assert desktop.new("", command=PI, park="exit").state.attempts == 1


def test_who_waits_in_place_goes_on_when_the_limit_is_lifted(desktop):
    first = desktop.new("limit:18000 ok ok", park="exit")
    lifted: list[int] = []

    def lift(stop, seconds):
        desktop.clock.sleep(seconds)
        if desktop.clock.now() > 600 and not lifted:
            lifted.append(desktop.resume(first, "limit:18000 ok ok", is_now=True).code)
        return stop.is_set

    platform = desktop.platform()
    desktop.platform = lambda **_: platform._replace(wait=lift)
    second = desktop.new("limit:18000 ok ok")
    assert (second.code, lifted) == (0, [0])
    assert 600 < desktop.clock.now() < 700
    assert held(second)[-1].because == "the limit was lifted"


def test_one_run_tries_when_the_time_has_come(desktop):
    """Three runs wait for one reset: one of them asks, and is refused, and asks for all."""
    desktop.new("limit:600 limit:600", park="exit")
    desktop.clock.sleep(700)
    again = desktop.new("limit:600 limit:600", park="exit")
    assert [type(step) for step in again.view.steps] == [AttemptBegun, AttemptEnd]
    for _ in range(3):
        assert desktop.new("limit:600 limit:600", park="exit").state.attempts == 0
