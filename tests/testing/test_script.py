"""Calls that fail as told."""

from __future__ import annotations

import pytest

import mulligan
from mulligan.testing import Scripted, status_error, virtual_time


def test_outcomes_come_in_turn_and_the_last_one_repeats():
    script = Scripted(1, 2, 3)
    assert [script() for _ in range(5)] == [1, 2, 3, 3, 3]


def test_exceptions_are_raised_and_values_returned():
    script = Scripted(ValueError("first"), None)
    with pytest.raises(ValueError, match=r"^first$"):
        script()
    assert script() is None


def test_the_arguments_of_every_call_are_kept():
    script = Scripted("ok")
    script(1, two=2)
    script()
    assert script.calls == [((1,), {"two": 2}), ((), {})]


def test_a_script_is_a_coroutine_function_too(adrive):
    script = Scripted(ConnectionRefusedError(), "ok")

    async def main():
        guard = mulligan.Guard(clock=adrive.clock)
        return await guard.acall(script.acall, 7)

    assert adrive.arun(main) == "ok"
    assert script.calls == [((7,), {})] * 2


def test_a_script_can_be_decorated():
    script = Scripted(ConnectionRefusedError(), "ok")
    with virtual_time():
        assert mulligan.retry(script)() == "ok"


def test_a_status_error_looks_like_an_sdks():
    error = status_error(429, "slow down", headers={"retry-after": "3"}, body={"error": {}})
    failure = mulligan.classifier.classify(error, now=0)
    assert (failure.kind, failure.status) == ("rate_limit", 429)
    assert failure.hint is not None
    assert failure.hint.delay == 3


def test_a_status_error_without_words_says_its_status():
    assert str(status_error(503)) == "status 503"
