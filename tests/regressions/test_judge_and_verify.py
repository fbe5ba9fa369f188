"""What `judge`, `verify` and `fallback` returned or raised was taken for something else."""

# Wrong types are the point of some of these.
# mypy: ignore-errors

from __future__ import annotations

import asyncio

import pytest

import mulligan
from mulligan.testing import Scripted, VirtualClock, status_error, virtual_time


def test_a_coroutine_from_verify_is_never_taken_for_the_answer(virtual_clock):
    """The coroutine object was returned as the verified answer."""

    async def verify():
        return "found"

    error = ConnectionResetError("lost")
    with pytest.raises(ConnectionResetError):
        mulligan.Guard(verify=verify).call(Scripted(error))
    story = mulligan.story(error)
    assert story is not None
    assert story.because.endswith("a plain call cannot await verify=")


def test_a_coroutine_from_a_fallback_is_never_taken_for_the_answer(virtual_clock):
    """The coroutine object was returned as the answer."""

    async def cached(_):
        return "cached"

    with pytest.raises(Exception, match="status 401"):
        mulligan.Guard(fallback=cached).call(Scripted(status_error(401)))


@pytest.mark.parametrize("found", [True, "server", 5])
def test_an_answer_is_not_lost_to_a_judge_that_talks_nonsense(virtual_clock, caplog, found):
    """A judge that returned True made the call fail."""
    guard = mulligan.Guard(judge=lambda _: found)
    assert guard.call(Scripted("answer")) == "answer"
    assert "a judge returns a Failure or None" in caplog.text


def test_an_answer_is_not_lost_to_a_judge_that_raises(virtual_clock, caplog):
    """The exception of the judge replaced the answer."""
    guard = mulligan.Guard(judge=lambda answer: answer["missing"])
    assert guard.call(Scripted({"id": 7})) == {"id": 7}
    assert "the judge <lambda> raised KeyError" in caplog.text


def test_none_from_verify_means_that_nobody_knows(virtual_clock):
    """None meant "not applied", and the call was repeated."""
    error = ConnectionResetError("lost")
    with pytest.raises(ConnectionResetError):
        mulligan.Guard(verify=lambda: None).call(Scripted(error, "repeated"))
    assert mulligan.Guard(verify=lambda: mulligan.APPLIED).call(Scripted(error)) is None


def test_a_verified_attempt_fails_once_and_is_verified_once(virtual_clock):
    """The failure was reported twice, before and after `verify`."""
    events: list[mulligan.Event] = []
    guard = mulligan.Guard(verify=lambda: mulligan.NOT_APPLIED, listeners=[events.append])
    guard.call(Scripted(ConnectionResetError(), "ok"))
    assert [type(each).__name__ for each in events] == ["Failed", "Verified", "Recovered"]


def test_verify_is_cut_at_the_deadline():
    """`verify` ran on after the deadline of the call."""
    clock = VirtualClock()

    async def verify():
        await asyncio.sleep(1000)

    async def lost():
        raise ConnectionResetError("lost")

    async def main():
        with virtual_time(clock):
            await mulligan.Guard(verify=verify, deadline=10).acall(lost)

    with pytest.raises(ConnectionResetError):
        clock.run(main())
    assert clock.now() == 10
