"""Guards inside guards multiplied their attempts, or reported one ending twice."""

# Wrong types are the point of some of these.
# mypy: ignore-errors

from __future__ import annotations

from typing import Any

import pytest

import mulligan
from mulligan.testing import Scripted, status_error


def test_layers_do_not_multiply_through_a_wrapper_that_forgot_its_from(virtual_clock):
    """`raise` without `from` hid that the inner guard had given up: 100 requests, not 10."""
    script = Scripted(status_error(503))
    inner = mulligan.retry(effects="read")(script)

    @mulligan.retry(effects="read")
    def outer():
        try:
            inner()
        except Exception:  # noqa: BLE001 -- as wrappers do
            raise RuntimeError("tool failed")  # noqa: B904 -- the point

    with pytest.raises(RuntimeError):
        outer()
    assert len(script.calls) == 10


def test_layers_do_not_multiply_through_groups_that_were_taken_apart(virtual_clock):
    """`except*` makes a new group, without the mark of the inner guard."""
    script = Scripted(ExceptionGroup("both", [status_error(503), KeyError("x")]))
    guard = mulligan.Guard(attempts=3, effects="read")

    def handled():
        try:
            guard.call(script)
        except* KeyError:
            pass

    with pytest.raises(ExceptionGroup):
        guard.call(handled)
    assert len(script.calls) <= 3


def test_an_outer_guard_may_wait_for_what_an_inner_one_parked(virtual_clock):
    """The outer guard gave up although its `in_place` was longer."""
    script = Scripted(status_error(429, headers={"retry-after": "3600"}), "ok")
    assert mulligan.Guard(in_place="6h").call(mulligan.Guard().call, script) == "ok"
    assert virtual_clock.sleeps == [3600]


def test_one_exhaustion_is_counted_once_however_many_guards_it_passes(virtual_clock, caplog):
    """Each guard on the way counted and logged it."""
    counters = mulligan.Counters()
    log = mulligan.LogListener()
    options: dict[str, Any] = {"attempts": 2, "effects": "read", "listeners": [counters, log]}
    inner, outer = mulligan.Guard("inner", **options), mulligan.Guard("outer", **options)
    with pytest.raises(Exception, match="status 503"):
        outer.call(inner.call, Scripted(status_error(503)))
    assert counters.total("retry_exhausted_total") == 1
    assert [record.levelname for record in caplog.records] == ["WARNING"]
