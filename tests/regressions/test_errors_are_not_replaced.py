"""The caller's own error was replaced by one of ours, or lost.

Reading an exception, telling listeners about it and closing its stream run code that can raise.
Each of these raised in place of the error that the caller was waiting for.
"""

# Wrong types are the point of some of these.
# mypy: ignore-errors

from __future__ import annotations

import contextvars

import pytest

import mulligan
from mulligan import Timeouts
from mulligan.testing import Scripted, status_error, virtual_time


class BadClose:
    def __init__(self, *items) -> None:
        self.items = iter(items)

    def __iter__(self):
        return self

    def __next__(self):
        item = next(self.items)
        if isinstance(item, BaseException):
            raise item
        return item

    def close(self):
        raise RuntimeError("close failed")


def test_a_story_from_another_version_never_replaces_the_error():
    """A story pickled by an older version lacked fields, and reading it raised."""
    error = ConnectionRefusedError("the caller's own")
    error.__dict__["__mulligan__"] = {
        "target": "",
        "name": "",
        "ending": "tokens",
        "because": "b",
        "attempts": 1,
        "waited": 0.0,
        "tries": [],
    }
    with virtual_time(), pytest.raises(ConnectionRefusedError):
        mulligan.Guard("acme", attempts=2).call(Scripted(error))


def test_an_exception_with_a_will_of_its_own_is_never_replaced():
    """A `__cause__` that raises ended the walk along the causes."""

    class Strange(ConnectionRefusedError):
        @property
        def __cause__(self):
            raise RuntimeError("do not look")

    with virtual_time(), pytest.raises(Strange):
        mulligan.Guard("acme", attempts=2).call(Scripted(Strange()))


def test_limits_that_shrink_to_nothing_do_not_replace_the_error():
    """A timeout that had shrunk to zero was refused as a setting, in mid-call."""
    assert Timeouts(total=1, shrink=1e-200).after(2).total is not None


def test_a_listener_whose_error_cannot_be_told_never_replaces_the_callers():
    """`str()` of the listener's error raised while it was being logged."""

    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("mute")

    def listener(event):
        raise Mute

    with virtual_time(), pytest.raises(ConnectionRefusedError):
        mulligan.Guard("acme", attempts=2, listeners=[listener]).call(
            Scripted(ConnectionRefusedError())
        )


def test_a_fallback_that_raises_the_error_again_makes_no_circle(virtual_clock):
    """The error became its own cause, and its real cause was lost."""
    cause = KeyError("root")
    error = status_error(401)
    error.__cause__ = cause

    def again(seen):
        raise seen

    with pytest.raises(Exception, match="status 401") as caught:
        mulligan.Guard(fallback=again).call(Scripted(error))
    assert caught.value.__cause__ is cause


def test_a_fallbacks_own_cause_stands(virtual_clock):
    """The cause that the fallback had set was overwritten with the failed call."""
    mine = OSError("disk")

    def cached(_):
        raise LookupError("cold") from mine

    with pytest.raises(LookupError) as caught:
        mulligan.Guard(fallback=cached).call(Scripted(status_error(401)))
    assert caught.value.__cause__ is mine


def test_a_task_that_is_left_in_another_context_does_not_replace_the_error():
    """Leaving the task reset a context variable of another context: ValueError."""

    def dependency():
        with mulligan.task(budget=5):
            yield

    generator = dependency()
    contextvars.copy_context().run(next, generator)
    with pytest.raises(KeyError, match="mine"):
        generator.throw(KeyError("mine"))


def test_a_stream_that_cannot_be_closed_does_not_replace_its_error(virtual_clock):
    """An exception in `close()` hid the error, and the context stayed set."""
    error = KeyError("mine")
    with pytest.raises(KeyError, match="mine"):
        list(mulligan.Guard().stream(lambda: BadClose(error)))
    assert mulligan.current() is None


def test_a_stop_iteration_of_the_function_is_no_empty_stream(virtual_clock):
    """StopIteration from the function looked like a stream without items."""
    with pytest.raises(RuntimeError):
        list(mulligan.Guard().stream(lambda: next(iter([]))))


def test_an_error_that_a_fallback_hides_is_told_to_somebody(virtual_clock, caplog):
    """Without listeners a wrong key was invisible behind its fallback: not even logged."""
    assert mulligan.Guard(fallback="cached").call(Scripted(status_error(401))) == "cached"
    assert "401 (auth)" in caplog.text or "not retried" in caplog.text
