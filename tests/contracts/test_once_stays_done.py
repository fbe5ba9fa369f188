"""What a function has done under a key stays done, whatever becomes of its caller."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
import trio

from mulligan import Guard
from mulligan.testing import Scripted, status_error

pytestmark = pytest.mark.real


class Till:
    """Charges, and hangs up on its caller the moment it has."""

    def __init__(self) -> None:
        self.charged: list[str] = []
        self.hang_up: Callable[[], object] = lambda: None

    async def charge(self, order):
        self.charged.append(order)
        self.hang_up()
        return {"order": order}


def told(guard: Guard) -> Guard:
    """`guard`, once its target has failed: from then on a success is told to its store."""
    with pytest.raises(Exception, match="status 503"):
        guard.call(Scripted(status_error(503)))
    return guard


@pytest.mark.parametrize("world", ["asyncio", "trio"])
def test_a_caller_cancelled_after_the_function_returned_has_it_done_once(place, world):  # E-F5
    guard, till = told(Guard("bank", store=place.store, attempts=1)), Till()

    async def on_asyncio():
        task = asyncio.create_task(guard.aonce("order-17", till.charge, "a"))
        till.hang_up = task.cancel
        await asyncio.wait([task])
        till.hang_up = lambda: None
        return await guard.aonce("order-17", till.charge, "a")

    async def on_trio():
        with trio.CancelScope() as scope:
            till.hang_up = scope.cancel
            await guard.aonce("order-17", till.charge, "a")
        till.hang_up = lambda: None
        return await guard.aonce("order-17", till.charge, "a")

    answer = asyncio.run(on_asyncio()) if world == "asyncio" else trio.run(on_trio)
    assert answer == {"order": "a"}
    assert till.charged == ["a"]


def test_an_interrupt_while_a_success_is_told_leaves_it_done(place):
    def interrupt(event):
        if till:
            raise KeyboardInterrupt

    interrupt.successes = True  # type: ignore[attr-defined]
    till: list[str] = []

    def charge(order):
        till.append(order)
        return {"order": order}

    guard = Guard("bank", store=place.store, attempts=1, listeners=[interrupt])
    with pytest.raises(KeyboardInterrupt):
        guard.once("order-17", charge, "a")
    assert Guard("bank", store=place.store).once("order-17", charge, "a") == {"order": "a"}
    assert till == ["a"]
