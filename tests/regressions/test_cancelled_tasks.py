"""A cancelled task went on retrying, or ended unseen.

An attempt that turns CancelledError into another error was retried, against the cancellation.
"""

# Wrong types are the point of some of these.
# mypy: ignore-errors

from __future__ import annotations

import asyncio

import pytest

import mulligan
from mulligan.testing import VirtualClock, status_error, virtual_time


@pytest.mark.parametrize("options", [{}, {"deadline": 60}, {"context": True}, {"timeout": 60}])
def test_a_task_that_is_being_cancelled_makes_no_further_attempt(options):
    """The payment was attempted again after `task.cancel()`."""
    clock, calls = VirtualClock(), []

    @mulligan.retry(**options)
    async def pay():
        calls.append(1)
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            raise ConnectionRefusedError from None

    async def main():
        with virtual_time(clock):
            task = asyncio.create_task(pay())
            await asyncio.sleep(1)
            task.cancel()
            with pytest.raises(ConnectionRefusedError) as caught:
                await task
        return mulligan.story(caught.value)

    story = clock.run(main())
    assert story is not None
    assert (story.ending, calls) == ("cancelled", [1])


def test_a_block_of_a_task_that_is_being_cancelled_is_not_tried_again():
    """The same, in a block."""
    clock, calls = VirtualClock(), []

    async def work():
        async for attempt in mulligan.attempts():
            with attempt:
                calls.append(1)
                try:
                    await asyncio.sleep(1000)
                except asyncio.CancelledError:
                    raise ConnectionRefusedError from None

    async def main():
        with virtual_time(clock):
            task = asyncio.create_task(work())
            await asyncio.sleep(1)
            task.cancel()
            with pytest.raises(ConnectionRefusedError):
                await task

    clock.run(main())
    assert calls == [1]


def test_a_cancelled_wait_is_told_to_listeners():
    """A call that was cancelled while it waited had no ending in the log."""
    clock, heard = VirtualClock(), []

    @mulligan.Guard(listeners=[heard.append]).retry
    async def limited():
        raise status_error(429, headers={"retry-after": "100"})

    async def main():
        with virtual_time(clock):
            task = asyncio.create_task(limited())
            await asyncio.sleep(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    clock.run(main())
    assert [type(event).__name__ for event in heard] == ["Failed", "Cancelled"]
