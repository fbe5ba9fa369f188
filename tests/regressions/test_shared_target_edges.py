"""What a simpler target must still do: collect garbage, count time, let waiters go, bear new units.

Seen in a review: one lock where there had been two was taken twice by one thread when garbage was
collected under it; `took` included the question for admission; each waiter that was cancelled had
the first in line ask again; a limit in an unknown unit raised.
"""

from __future__ import annotations

import asyncio
import gc
import threading
from collections import Counter
from typing import Any

import mulligan
from mulligan.core.admission import Admitted
from mulligan.core.moment import Moment
from mulligan.shared import guard_target
from mulligan.shared.gate import client
from mulligan.shared.gate.limits import BelievedLimit
from mulligan.shared.gate.state import GateState
from mulligan.shared.targets import TargetState
from mulligan.testing import Scripted, status_error, virtual_time


class Box:
    """Something in a cycle, so that only a collection ends what it holds."""

    itself: Any
    stream: Any


def test_a_stream_may_be_collected_while_a_target_is_made(tmp_path, monkeypatch):
    store = f"sqlite:{tmp_path / 'state.db'}"
    guard = mulligan.Guard("first", store=store)

    def abandon():
        box = Box()
        box.itself = box
        box.stream = guard.stream(lambda: iter(range(9)))
        next(box.stream)

    made = TargetState

    def collecting(*args):
        state = made(*args)
        gc.collect()
        return state

    abandon()
    monkeypatch.setattr(guard_target, "TargetState", collecting)
    second = mulligan.Guard("second", store=store)
    worker = threading.Thread(target=second.call, args=(lambda: 1,), daemon=True)
    worker.start()
    worker.join(30)
    assert not worker.is_alive()


class Slow:
    """An admission that takes three seconds to answer."""

    def __init__(self, clock):
        self._clock = clock

    def enter(self, attempt, *, now, wall):
        self._clock.sleep(3)
        return Admitted(None)

    def leave(self, *args, **kwargs):
        return None


def test_an_attempt_takes_no_time_before_it_is_admitted():
    heard: list[Any] = []
    with virtual_time() as clock:
        guard = mulligan.Guard(
            "acme", admissions=(Slow(clock),), listeners=[heard.append], effects="read"
        )
        guard.call(Scripted(status_error(503, "busy"), "answer"))
    taken = [each.took for each in heard if type(each).__name__ in ("Failed", "Recovered")]
    assert taken
    assert max(taken) < 1


def test_a_waiter_that_is_cancelled_does_not_have_the_others_ask():
    heard: Counter[str] = Counter()

    async def main():
        breaker = mulligan.Breaker(failures=1, open_for=30, open_at_least=30)
        guard = mulligan.Guard(
            "acme",
            breaker=breaker,
            tokens=False,
            listeners=[lambda event: heard.update([type(event).__name__])],
        )

        async def down():
            raise ConnectionError("down")

        calls = [asyncio.create_task(guard.acall(down))]
        await asyncio.sleep(0)
        calls += [asyncio.create_task(guard.acall(down)) for _ in range(20)]
        for _ in range(50):
            await asyncio.sleep(0)
        before = heard["Held"]
        for call in calls[5:]:
            call.cancel()
            await asyncio.sleep(0)
        for _ in range(50):
            await asyncio.sleep(0)
        after = heard["Held"]
        for call in calls:
            call.cancel()
        await asyncio.gather(*calls, return_exceptions=True)
        return before, after

    before, after = asyncio.run(main())
    assert before >= 20
    assert after == before


def test_a_limit_in_an_unknown_unit_is_heard():
    now = Moment(0.0, 0.0)
    belief = BelievedLimit(
        *("credits", "credits", 100.0, 3.0, None, None, 3.0, 3.0, 0.0, 0.0, 0.0), now.lease(60), 0
    )
    (found,) = client._heard(GateState(beliefs=(belief,)), now)
    assert str(found.unit) == "credits"
