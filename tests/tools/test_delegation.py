"""Tasks for sub-agents: timeouts that shrink, cancellation that reaches them, partial failures."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import trio

import mulligan
from mulligan.calls.async_time import asleep
from mulligan.testing import VirtualClock, status_error, virtual_time

AGENT = Path(__file__).parents[2] / "examples" / "scripted_agent.py"


@pytest.fixture(params=["asyncio", "trio"])
def run(request, virtual_clock):
    def drive(main):
        if request.param == "trio":
            return trio.run(main, clock=virtual_clock.trio())
        return virtual_clock.run(main())

    return drive


def test_a_sub_agent_that_answers(run):
    async def agent(task):
        await asleep(7)
        return f"{task}: done"

    async def main():
        return await mulligan.delegate(agent, "review")

    done = run(main)
    assert (done.status, done.result, done.attempts, done.elapsed) == ("ok", "review: done", 1, 7)
    assert done.is_ok
    assert str(done) == "ok after 1 attempt, 7s: attempt 1 succeeded"


def test_a_timeout_shrinks_and_the_last_result_says_timeout(run, virtual_clock):
    took = []

    async def agent(task):
        began = virtual_clock.now()
        try:
            await asleep(10_000)
        finally:
            took.append(virtual_clock.now() - began)

    async def main():
        return await mulligan.delegate(agent, "review")

    done = run(main)
    assert took == [300, 240, 192]
    assert (done.status, done.attempts) == ("timeout", 3)
    assert [each["kind"] for each in done.evidence] == ["timeout"] * 3
    assert [round(each["took"]) for each in done.evidence] == took
    assert 732 <= done.elapsed <= 760
    assert isinstance(done.error, TimeoutError)


def test_what_passes_by_itself_is_repeated_and_what_does_not_is_not(run):
    calls: list[str] = []

    async def flaky(task):
        calls.append(task)
        if len(calls) < 3:
            raise status_error(503, "busy")
        return "ok"

    async def denied(task):
        calls.append(task)
        raise status_error(401, "no")

    async def broken(task):
        calls.append(task)
        raise KeyError("bug")

    async def main():
        return [await mulligan.delegate(each, "t") for each in (flaky, denied, broken)]

    first, second, third = run(main)
    assert (first.status, first.attempts) == ("ok", 3)
    assert (second.status, second.attempts, third.status, third.attempts) == (
        *("failed", 1),
        *("failed", 1),
    )
    assert second.evidence[0]["message"] == "no"
    assert isinstance(third.error, KeyError)


def test_an_unsafe_agent_is_not_given_its_task_twice(run):
    calls = []

    async def agent(task):
        calls.append(task)
        raise ConnectionResetError("reset")

    async def main():
        return await mulligan.delegate(agent, "t", effects="unsafe")

    assert run(main).status == "failed"
    assert calls == ["t"]


def test_cancellation_reaches_the_sub_agent(virtual_clock):
    ended = []

    async def agent(task):
        try:
            await asyncio.sleep(1000)
        finally:
            ended.append(virtual_clock.now())

    async def main():
        work = asyncio.create_task(mulligan.delegate(agent, "t"))
        await asyncio.sleep(5)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    virtual_clock.run(main())
    assert ended == [5]


@pytest.mark.parametrize(
    ("options", "statuses", "passed", "elapsed", "because"),
    [
        ({}, ["ok", "failed", "failed"], False, 20, "1 of 3 succeeded, 3 had to"),
        ({"on_failure": "continue"}, ["ok", "failed", "ok"], True, 30, "2 of 3 succeeded"),
        (
            {"on_failure": "require_minimum", "minimum": 2},
            *(["ok", "failed", "ok"], True, 30, "2 of 3 succeeded, 2 had to"),
        ),
        (
            {"on_failure": "require_minimum", "minimum": 3},
            *(["ok", "failed", "ok"], False, 30, "2 of 3 succeeded, 3 had to"),
        ),
    ],
)
def test_three_ways_to_take_partial_failures(
    run, virtual_clock, options, statuses, passed, elapsed, because
):
    ended = []

    async def agent(task):
        try:
            await asleep(task)
        finally:
            ended.append(task)
        if task == 20:
            raise status_error(401)
        return task

    async def main():
        return await mulligan.delegate_all([(agent, 10), (agent, 20), (agent, 30)], **options)

    done = run(main)
    assert [each.status for each in done.results] == statuses
    assert (done.passed, done.because) == (passed, because)
    assert virtual_clock.now() == elapsed
    assert sorted(ended) == [10, 20, 30]
    if not options:
        assert done.results[2].because == "cancelled, because another task failed first"


def test_all_that_succeed_pass(run):
    async def agent(task):
        return task

    async def main():
        return await mulligan.delegate_all([(agent, n) for n in range(300)])

    done = run(main)
    assert done.passed
    assert [each.result for each in done.results] == list(range(300))


@pytest.mark.parametrize(
    ("work", "error"),
    [
        (lambda: mulligan.delegate(lambda task: 1, "t"), "an agent needs to be a coroutine"),
        (lambda: mulligan.delegate([], "t"), "a program needs a list of words"),
        (lambda: mulligan.delegate_all([], on_failure="never"), "on_failure needs fail_fast"),  # type: ignore[arg-type]
        (lambda: mulligan.delegate_all([], minimum=1), "minimum goes with on_failure"),
        (
            lambda: mulligan.delegate_all([], on_failure="require_minimum", minimum=1),
            "minimum needs a number from 1 to 0; got 1",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(work, error):
    with pytest.raises(mulligan.SettingError, match=f"^{error}"):
        asyncio.run(work())


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A scripted agent called claude, as `mulligan run` finds it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    wrapper = folder / "claude"
    wrapper.write_text(f'#!/bin/sh\nexec {sys.executable} {AGENT} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("SESSIONS", str(tmp_path / "sessions"))
    monkeypatch.setenv("ANTHROPIC_API_KEY", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def scripted(script, **options: Any):
        monkeypatch.setenv("SCRIPT", script)
        return asyncio.run(mulligan.delegate(["claude", "-p"], "Review", **options))

    return scripted


@pytest.mark.real
def test_an_agent_program_is_run_and_its_text_is_the_result(program):
    done = program("effect crash ok")
    assert (done.status, done.attempts) == ("ok", 2)
    assert "All done" in done.result
    assert [each["attempt"] for each in done.evidence] == [1]
    assert Path("effects.txt").read_text().count("\n") == 1


@pytest.mark.real
def test_a_program_that_takes_too_long_is_a_timeout(program):
    done = program("stall", timeout="300ms", attempts=1)
    assert (done.status, done.attempts, done.result) == ("timeout", 1, None)
    assert done.evidence[0]["kind"] == "timeout"


@pytest.mark.real
def test_a_program_that_cannot_log_in_failed(program):
    done = program("login")
    assert (done.status, done.attempts) == ("failed", 1)
    assert "401 (auth)" in done.because


@pytest.mark.real
def test_cancellation_ends_the_program(program, monkeypatch, tmp_path):
    monkeypatch.setenv("SCRIPT", "effect stall")

    async def main():
        work = asyncio.create_task(mulligan.delegate(["claude", "-p"], "Review"))
        while not Path("effects.txt").exists():  # noqa: ASYNC110, ASYNC240 -- another process writes it
            await asyncio.sleep(0.02)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(main())
    left = [each for each in Path("/proc").glob("[0-9]*/environ") if _has(each, str(tmp_path))]
    assert not left


def _has(environ, text):
    try:
        return f"SESSIONS={text}" in environ.read_bytes().decode(errors="replace")
    except OSError:
        return False


def test_delegates_share_the_budget_around_them():
    clock = VirtualClock()
    calls = []

    async def agent(task):
        calls.append(task)
        raise status_error(429, headers={"retry-after": "20"})

    async def main():
        with mulligan.task(budget=30):
            return [await mulligan.delegate(agent, n) for n in range(2)]

    with virtual_time(clock):
        first, second = clock.run(main())
    assert clock.now() <= 30
    assert calls == [0, 0, 1]
    assert first.status == second.status == "failed"
