"""Callables that are not plain functions were refused or misread."""

# Wrong types are the point of some of these.
# mypy: ignore-errors

from __future__ import annotations

import asyncio
from unittest.mock import AsyncMock, Mock

import pytest

import mulligan
from mulligan.testing import Scripted, status_error


def test_a_mock_is_a_function_like_any_other(virtual_clock):
    """A Mock has every attribute, so it looked like a coroutine function."""
    failing = Mock(side_effect=[ConnectionRefusedError(), "ok"])
    assert mulligan.call(failing) == "ok"
    assert mulligan.retry(Mock(return_value="plain"))() == "plain"
    assert asyncio.run(mulligan.retry(AsyncMock(return_value="awaited"))()) == "awaited"
    told = Mock()
    guard = mulligan.Guard(attempts=1, effects="read", on_exhausted=told)
    with pytest.raises(Exception, match="status 500"):
        guard.call(Scripted(status_error(500)))
    told.assert_called_once()


def test_listeners_may_come_from_a_generator(virtual_clock):
    """The check of the listeners used the generator up: no event was delivered."""
    heard = []
    guard = mulligan.Guard(listeners=(each for each in [heard.append]))
    guard.call(Scripted(status_error(529), "ok"))
    assert len(heard) == 2


def test_what_a_handler_did_before_it_raised_is_not_done_again(virtual_clock):
    """The refused connection behind the error was judged, not the error of the handler:
    paid twice.
    """
    effects, refuse = [], Scripted(ConnectionRefusedError())

    def pay():
        try:
            refuse()
        except ConnectionRefusedError as error:
            effects.append("paid by the other provider")
            raise RuntimeError("but the receipt is lost") from error

    with pytest.raises(RuntimeError):
        mulligan.call(pay)
    assert len(effects) == 1
