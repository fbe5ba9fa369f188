"""What all tests share: drivers by name, a home, default signals, a watch on real waiting."""

from __future__ import annotations

import itertools
import os
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any

import pytest
import trio
from hypothesis import HealthCheck, settings

import mulligan
from mulligan.testing import LoadedDice, Scripted, VirtualClock, virtual_time

# No test is timed: a busy machine must not turn a property into a failure.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# `nohup make test &` and some CI systems start us with signals ignored or blocked, and everything
# that a test starts would inherit that. SIGPIPE is Python's own.
for _each in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP):
    if signal.getsignal(_each) is signal.SIG_IGN:
        signal.signal(
            _each, signal.default_int_handler if _each == signal.SIGINT else signal.SIG_DFL
        )
signal.pthread_sigmask(signal.SIG_SETMASK, ())

_real: list[tuple[float, float]] = []  # how long each real test took, and slept of it
_real_sleep = time.sleep
_NAP = 0.005
_homes = itertools.count(1)


@pytest.fixture(autouse=True)
def _own_home(tmp_path_factory, monkeypatch):
    """No test sees or touches what this user's runs and guards keep, or who this user is to git."""
    place = tmp_path_factory.getbasetemp() / "homes" / str(next(_homes))
    monkeypatch.setenv("MULLIGAN_HOME", str(place))
    for name in ("MULLIGAN_STORE", *(each for each in os.environ if each.startswith("GIT_"))):
        if name != "GIT_CONFIG_NOSYSTEM":
            monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def _watch_real_waiting(request, monkeypatch):
    """Only tests marked `real` may wait, each wait a second at most; their sum is printed."""
    is_real = request.node.get_closest_marker("real") is not None
    slept = 0.0

    def sleep(seconds: float) -> None:
        if not is_real:
            pytest.fail(f"waits {seconds} s for real; mark the test `real` or use virtual time")
        assert seconds <= 1, f"a real wait of {seconds} s; a second at most"
        nonlocal slept
        slept += seconds
        _real_sleep(seconds)

    monkeypatch.setattr(time, "sleep", sleep)
    began = time.monotonic()
    yield
    if is_real:
        request.node.user_properties.append(("real", (time.monotonic() - began, slept)))


@pytest.fixture(name="mulligan")
def _command(capsys):
    """Run the command in this process; its exit code, stdout and stderr."""
    from mulligan.cli import main

    def run(*argv: str) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as caught:
            main(list(argv))
        said = capsys.readouterr()
        return caught.value.code, said.out, said.err

    return run


@pytest.fixture
def within():
    """So many seconds, on a machine that has time: `with within(0.25): …`.

    A thread beside the timed code naps. If its naps take twice as long as they should, so may the
    timed code.
    """

    @contextmanager
    def timed(seconds: float) -> Iterator[None]:
        naps: list[float] = []
        is_over = Event()

        def nap() -> None:
            while not is_over.is_set():
                began = time.monotonic()
                _real_sleep(_NAP)
                naps.append(time.monotonic() - began)

        sleeper = Thread(target=nap)
        sleeper.start()
        began = time.monotonic()
        try:
            yield
        finally:
            took = time.monotonic() - began
            is_over.set()
            sleeper.join()
        slowness = max(1.0, sum(naps) / (_NAP * len(naps)))
        assert took < seconds * slowness, f"{took:.2f} s, naps {slowness:.1f} times as long"

    return timed


def pytest_runtest_logreport(report):
    # Tests run in several processes; reports all come to one.
    if report.when == "teardown":
        _real.extend(value for name, value in report.user_properties if name == "real")


def pytest_terminal_summary(terminalreporter):
    if _real:
        took, slept = (sum(column) for column in zip(*_real, strict=True))
        terminalreporter.write_line(
            f"real: {len(_real)} tests took {took:.1f} s, {slept:.1f} s of it asleep"
        )


class Driver:
    """One way to run a guarded call: sync, asyncio or trio, in virtual time."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.clock = VirtualClock()

    def run(self, function, *args: Any, **options: Any) -> Any:
        """Call `function` under a guard; a coroutine function on the async drivers."""
        dice = options.pop("dice", None) or LoadedDice()
        with virtual_time(self.clock, dice):
            guard = mulligan.Guard(options.pop("target", ""), **options)
            if self.name == "sync":
                return guard.call(function, *args)

            async def main():
                return await guard.acall(_as_coroutine(function), *args)

            return self.arun(main)

    def arun(self, main) -> Any:
        """Run a coroutine function on this driver's loop; asyncio for the sync one."""
        if self.name == "trio":
            return trio.run(main, clock=self.clock.trio())
        return self.clock.run(main())

    def __call__(self, outcomes, policy="default", **options: Any) -> tuple[Any, list[float]]:
        """The result of a scripted call, and the waits on the way."""
        result = self.run(Scripted(*outcomes), policy=policy, **options)
        return result, self.clock.sleeps


def _as_coroutine(function):
    if isinstance(function, Scripted):
        return function.acall

    async def acall(*args):
        return function(*args)

    acall.__name__ = function.__name__
    return acall


@pytest.fixture(params=["sync", "asyncio", "trio"])
def drive(request) -> Driver:
    return Driver(request.param)


@pytest.fixture(params=["asyncio", "trio"])
def adrive(request) -> Driver:
    return Driver(request.param)
