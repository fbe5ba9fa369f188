"""Facts about guards that are gone, each checked in a process of its own."""

from __future__ import annotations

import gc
import sys
from typing import Any

import pytest

import mulligan
from mulligan.testing import Scripted, status_error


def _part(guard: Any, name: str) -> Any:
    return guard._engine.shared.state.part(name)


def _limited(name):
    guard = mulligan.Guard(name, effects="read", attempts=1)
    with pytest.raises(Exception, match="status 429"):
        guard.call(Scripted(status_error(429, headers={"retry-after": "3600"})))


def failures_of_guards_that_are_made_for_each_call_open_the_breaker():
    for _ in range(3):
        guard = mulligan.Guard(
            "acme", effects="read", attempts=1, breaker=mulligan.Breaker(failures=3)
        )
        with pytest.raises(Exception, match="status 503"):
            guard.call(Scripted(status_error(503)))
        del guard
        gc.collect()
    assert _part(mulligan.Guard("acme"), "breaker").view.state.streak == 3


def settings_may_be_others_once_nobody_uses_the_old_ones():
    first = mulligan.Guard("acme", breaker=mulligan.Breaker(failures=3))
    with pytest.raises(mulligan.errors.SettingError, match="one breaker for all its guards"):
        mulligan.Guard("acme", breaker=mulligan.Breaker(failures=4))
    del first
    mulligan.Guard("acme", breaker=mulligan.Breaker(failures=4))


def new_settings_go_with_what_is_known_already():
    _limited("acme")
    gc.collect()  # the exception that was raised has seen the guard
    guard = mulligan.Guard("acme", gate=mulligan.Gate(keep=7), effects="read")
    assert _part(guard, "gate").settings.keep == 7
    assert _part(guard, "gate").view.state.shut is not None
    with pytest.raises(mulligan.errors.SettingError, match="one gate for all its guards"):
        mulligan.Guard("acme", gate=mulligan.Gate(keep=8))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
