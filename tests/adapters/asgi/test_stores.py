"""Many requests with one key, on every store."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

pytestmark = pytest.mark.real

MANY = 50


def test_fifty_requests_with_one_key_execute_once(place, asgi):
    shop = asgi.Shop()

    async def slow(scope, receive, send):
        await asyncio.sleep(0.05)
        await shop(scope, receive, send)

    async def story():
        # Each on a handle of its own, as fifty servers would have it.
        handles = [place.another() for _ in range(5)]
        apps = [asgi.guarded(slow, store=handles[n % 5]) for n in range(MANY)]
        answers = await asyncio.gather(*(asgi.ask(app) for app in apps))
        return answers, await asgi.ask(apps[0])

    answers, later = asyncio.run(story())
    statuses = Counter(each.status for each in answers)
    assert len(shop.executed) == 1
    assert statuses[201] >= 1
    assert statuses[201] + statuses[409] == MANY
    assert {each.body for each in [*answers, later] if each.status == 201} == {b"order 1"}
    assert later.is_replayed


@pytest.mark.parametrize("callers", [10])
def test_one_key_of_many_callers_is_many_keys(place, asgi, callers):
    shop = asgi.Shop()

    async def story():
        app = asgi.guarded(shop, store=place.store)
        asked = [asgi.ask(app, caller=f"caller {n}") for n in range(callers)]
        first = await asyncio.gather(*asked)
        again = await asyncio.gather(*(asgi.ask(app, caller=f"caller {n}") for n in range(callers)))
        return first, again

    first, again = asyncio.run(story())
    assert len(shop.executed) == callers
    assert [each.body for each in first] == [each.body for each in again]
    assert len({each.body for each in first}) == callers
