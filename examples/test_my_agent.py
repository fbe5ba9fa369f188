"""How to test an agent that uses Mulligan: no waiting, no luck, no network.

Run it with ``pytest examples/test_my_agent.py``. The fixture `virtual_clock` is there as soon as
Mulligan is installed.
"""

# ruff: noqa: S101 -- assert is how a test speaks
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

import mulligan
from mulligan.testing import Scripted, status_error

if TYPE_CHECKING:
    from mulligan.testing import VirtualClock


# The agent: asks a model, in its users' production code.

model = mulligan.Guard("acme", effects="idempotent", in_place="10m")


def ask(complete: Any, question: str) -> str:
    with mulligan.task(budget="8m"):
        return str(model.call(complete, question))


# Its tests.


def test_the_agent_sleeps_through_a_limit_of_five_minutes(virtual_clock: VirtualClock) -> None:
    limited = status_error(429, headers={"retry-after": "300"})
    assert ask(Scripted(limited, "forty-two"), "what is it?") == "forty-two"
    assert virtual_clock.sleeps == [300]


def test_the_agent_does_not_spend_more_than_its_budget(virtual_clock: VirtualClock) -> None:
    limited = status_error(429, headers={"retry-after": "300"})
    with pytest.raises(Exception, match="status 429") as caught:
        ask(Scripted(limited, limited, "never reached"), "what is it?")
    story = mulligan.story(caught.value)
    assert story is not None
    assert story.ending == "budget"
    assert virtual_clock.now() == 300


def test_a_wrong_key_costs_one_request(virtual_clock: VirtualClock) -> None:
    complete = Scripted(status_error(401))
    with pytest.raises(Exception, match="status 401"):
        ask(complete, "what is it?")
    assert len(complete.calls) == 1
    assert virtual_clock.sleeps == []
