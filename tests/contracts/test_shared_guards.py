"""Guards of one target: what they share, on every driver."""

from __future__ import annotations

import asyncio
import traceback
from contextlib import nullcontext
from dataclasses import replace

import pytest
import trio

import mulligan
from mulligan import Breaker, Event, Gate, Tokens
from mulligan.testing import Scripted, status_error, virtual_time

SERVER = status_error(503, "starting up")

# What is shared, with the numbers that published tables have.
STRICT = replace(
    mulligan.preset("default").but(when_open="fail", in_place=120),
    rules={
        kind: rule if rule.attempts is None else replace(rule, attempts=min(rule.attempts, 5))
        for kind, rule in mulligan.preset("default").rules.items()
    },
    breaker=Breaker(failures=5, open_for=60, open_at_least=60),
)


class Answer:
    """An answer with headers."""

    def __init__(self, remaining, limit=50, reset=20) -> None:
        self.headers = {
            "x-ratelimit-limit": str(limit),
            "x-ratelimit-remaining": str(remaining),
            "x-ratelimit-reset": str(reset),
        }


class Run:
    """One world in which several calls are made, on one driver."""

    def __init__(self, drive) -> None:
        self.drive, self.clock = drive, drive.clock
        self.heard: list[Event] = []

    def guard(self, target="api", **options):
        """A guard that fails at once while its breaker is open, after five failures in a row."""
        options.setdefault("effects", "read")
        if "policy" not in options:
            options.setdefault("policy", STRICT)
        return mulligan.Guard(target, listeners=[self.heard.append], **options)

    def call(self, guard, function, *args):
        if self.drive.name == "sync":
            return guard.call(function, *args)

        async def main():
            if isinstance(function, Scripted):
                return await guard.acall(function.acall, *args)
            return await guard.acall(function, *args)

        return self.drive.arun(main)

    def fails(self, guard, function, *args):
        try:
            self.call(guard, function, *args)
        except Exception as error:  # noqa: BLE001 -- whatever it is, the test looks at it
            return error
        return pytest.fail("nothing was raised")

    def silent(self):
        """A function whose target says nothing until its time is over."""

        def slow(timeout):
            self.clock.advance(timeout)
            raise TimeoutError("timed out")

        async def hang(timeout):  # noqa: ASYNC109 -- the guard's own limit, passed in
            await self.clock.asleep(timeout + 60)

        return slow if self.drive.name == "sync" else hang

    def events(self, kind):
        return [event for event in self.heard if isinstance(event, kind)]


@pytest.fixture
def run(drive):
    with virtual_time(drive.clock):
        yield Run(drive)


# Breaker


def test_an_open_breaker_costs_no_request_and_no_attempt_and_says_when(run):  # R-K1, R-K6, E-B13
    down = Scripted(SERVER)
    assert run.fails(run.guard(), down) is SERVER
    assert len(down.calls) == 5
    (opened,) = run.events(mulligan.BreakerChanged)
    assert (opened.target, opened.is_open, opened.retry_in) == ("api", True, 60.0)
    run.clock.advance(20)
    began = run.clock.now()
    error = run.fails(run.guard(), down)
    assert isinstance(error, mulligan.CircuitOpen)
    assert error.retry_in == 40.0
    story = mulligan.story(error)
    assert story is not None
    assert (story.ending, story.attempts, story.waited) == ("refused", 0, 0.0)
    assert story.retry_at == run.clock.wall() + 40
    assert (len(down.calls), run.clock.now()) == (5, began)


def test_a_probe_that_succeeds_closes_it_and_all_is_calm_again(run):
    guard = run.guard(tokens=False)
    run.fails(guard, Scripted(SERVER))
    run.clock.advance(60)
    assert run.call(guard, Scripted("well")) == "well"
    assert [event.is_open for event in run.events(mulligan.BreakerChanged)] == [True, False]
    assert guard._engine.here().is_calm


def test_a_probe_that_fails_opens_it_again(run):  # R-K5
    guard = run.guard(attempts=1)
    for _ in range(5):
        run.fails(guard, Scripted(SERVER))
    run.clock.advance(60)
    assert run.fails(guard, Scripted(SERVER)) is SERVER
    assert isinstance(run.fails(guard, Scripted("well")), mulligan.CircuitOpen)


@pytest.mark.parametrize("status", [400, 401, 404, 422])
def test_a_probe_that_is_told_of_a_mistake_closes_it_since_the_target_answers(run, status):
    guard = run.guard(tokens=False)
    run.fails(guard, Scripted(SERVER))
    run.clock.advance(60)
    run.fails(guard, Scripted(status_error(status)))
    assert [event.is_open for event in run.events(mulligan.BreakerChanged)] == [True, False]
    assert guard._engine.here().is_calm


def test_refused_calls_do_not_grow_a_chain_of_exceptions(run):  # E-B11
    guard = run.guard()
    run.fails(guard, Scripted(SERVER))
    depths = set()
    for _ in range(20):
        error = run.fails(guard, Scripted(SERVER))
        assert isinstance(error, mulligan.CircuitOpen)
        assert error.__cause__ is error.__context__ is None
        depths.add(len(traceback.extract_tb(error.__traceback__)))
    assert len(depths) == 1


def test_a_call_whose_breaker_opens_on_the_way_ends_with_its_own_error(run):
    error = run.fails(run.guard(attempts=9), Scripted(SERVER))
    assert error is SERVER
    story = mulligan.story(error)
    assert story is not None
    assert (story.ending, story.attempts) == ("refused", 5)


def test_a_permanent_401_costs_one_request_a_task_and_opens_nothing(run):  # R-C9
    wrong = Scripted(status_error(401, "wrong key"))
    guard = run.guard()
    for _ in range(20):
        with mulligan.task(budget=30):
            run.fails(guard, wrong)
    assert len(wrong.calls) == 20
    assert run.events(mulligan.BreakerChanged) == []


@pytest.mark.parametrize("bound", ["deadline", "task"])
def test_a_deadline_of_the_callers_own_counts_against_nobody(run, bound):
    deadline = 3 if bound == "deadline" else None
    guard = run.guard(deadline=deadline, timeout=5, timeout_to="timeout", tokens=False)

    for _ in range(20):
        with mulligan.task(deadline=3) if bound == "task" else nullcontext():
            error = run.fails(guard, run.silent())
        assert isinstance(error, TimeoutError)
    assert run.events(mulligan.BreakerChanged) == []


def test_a_timeout_of_the_guards_own_counts_against_the_target(run):
    guard = run.guard(timeout=5, deadline=300, timeout_to="timeout", tokens=False, attempts=1)

    for _ in range(5):
        run.fails(guard, run.silent())
    (opened,) = run.events(mulligan.BreakerChanged)
    assert opened.is_open


def test_a_probe_cut_at_its_callers_deadline_gives_its_permit_back(run):  # E-B2
    patient, hasty = (
        run.guard(tokens=False),
        run.guard(tokens=False, deadline=3, timeout_to="timeout"),
    )
    run.fails(patient, Scripted(SERVER))
    run.clock.advance(60)

    run.fails(hasty, run.silent())
    assert run.call(patient, Scripted("well")) == "well"


def test_scopes_do_not_share(run):
    run.fails(run.guard(scope="one"), Scripted(SERVER))
    assert isinstance(run.fails(run.guard(scope="one"), Scripted("x")), mulligan.CircuitOpen)
    assert run.call(run.guard(scope="two"), Scripted("well")) == "well"
    assert run.call(run.guard("other"), Scripted("well")) == "well"


@pytest.mark.parametrize(
    ("policy", "target", "failures", "open_for"),
    [
        ("skill", "api", 5, 60),
        ("skill", "anthropic", 5, 60),
        ("surface", "api", 5, 30),
    ],
)
def test_presets_open_as_their_tables_say(run, policy, target, failures, open_for):  # R-K1, R-K2
    guard = run.guard(target, policy=policy, attempts=1)
    for _ in range(failures):
        assert run.fails(guard, Scripted(SERVER)) is SERVER
    error = run.fails(guard, Scripted(SERVER))
    assert isinstance(error, mulligan.CircuitOpen)
    assert error.retry_in == open_for


def test_pattern_closes_after_two_successes(run):  # R-K4
    guard = run.guard(policy="pattern", attempts=1)
    for _ in range(5):
        run.fails(guard, Scripted(SERVER))
    run.clock.advance(60)
    run.call(guard, Scripted("well"))
    assert len(run.events(mulligan.BreakerChanged)) == 1
    run.call(guard, Scripted("well"))
    assert len(run.events(mulligan.BreakerChanged)) == 2


def test_pipelines_have_no_breaker(run):  # R-K9
    guard = run.guard(policy="pipeline", attempts=1)
    for _ in range(10):
        assert run.fails(guard, Scripted(SERVER)) is SERVER


def test_cancellation_is_neither_success_nor_failure(run):  # E-B2, E-B5
    guard = run.guard(attempts=1)
    for _ in range(5):
        run.fails(guard, Scripted(SERVER))
    run.clock.advance(60)

    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        guard.call(interrupted)
    assert run.call(guard, Scripted("well")) == "well"


# Gate


def test_one_calls_rejection_holds_the_next_one_and_says_so(run):
    limited = status_error(429, "slow down", headers={"retry-after": "7"})
    run.fails(run.guard(attempts=1), Scripted(limited))
    assert [event.delay for event in run.events(mulligan.GateShut)] == [7.0]
    run.clock.advance(2)
    assert run.call(run.guard(), Scripted("well")) == "well"
    (held,) = run.events(mulligan.Held)
    assert 5 <= held.delay <= 5.25
    assert run.clock.sleeps == [held.delay]
    assert held.attempt == 1


def test_a_gate_shut_for_long_ends_a_call_before_anything_is_sent(run):
    limited = status_error(429, "daily limit", headers={"retry-after": "3600"})
    run.fails(run.guard(), Scripted(limited))
    script = Scripted("never")
    error = run.fails(run.guard(), script)
    assert isinstance(error, mulligan.LimitReached)
    assert error.until >= run.clock.wall() + 3600
    assert "daily limit" in error.because
    assert script.calls == run.clock.sleeps == []
    assert run.call(run.guard(in_place="2h"), Scripted("well")) == "well"


def test_a_hold_counts_against_the_deadline_and_not_against_attempts(run):
    limited = status_error(429, headers={"retry-after": "60"})
    run.fails(run.guard(attempts=1), Scripted(limited))
    assert isinstance(run.fails(run.guard(deadline=30), Scripted("x")), mulligan.LimitReached)
    assert run.call(run.guard(attempts=1, deadline=90), Scripted("well")) == "well"


def test_a_hold_ends_no_later_than_patience_allows(run):
    def limits_meanwhile():
        # While this attempt fails, somebody else is told to wait for longer than we may.
        limited = status_error(429, headers={"retry-after": "90"})
        with pytest.raises(Exception, match="429"):
            mulligan.Guard("api", policy=STRICT, effects="read", attempts=1).call(Scripted(limited))
        raise SERVER

    guard = run.guard(patience=60)
    with pytest.raises(Exception, match="starting up") as caught:
        guard.call(limits_meanwhile)
    story = mulligan.story(caught.value)
    assert story is not None
    assert (story.ending, story.attempts) == ("refused", 1)
    assert run.clock.now() < 60
    assert story.retry_at is not None


def test_what_an_answer_states_is_known_to_the_next_call(run):
    guard = run.guard(observe=mulligan.headers_of)
    run.call(guard, Scripted(Answer(remaining=1)))
    run.call(guard, Scripted(Answer(remaining=0)))
    assert run.clock.sleeps == []
    run.call(guard, Scripted(Answer(remaining=49)))
    assert 20 <= run.clock.now() <= 21


def test_what_a_failure_states_is_known_without_an_observer(run):
    headers = Answer(remaining=0, reset=30).headers
    run.fails(run.guard(attempts=1, breaker=False), Scripted(status_error(500, headers=headers)))
    run.call(run.guard(), Scripted("well"))
    assert 30 <= run.clock.now() <= 31.5


def test_below_five_left_it_waits_for_the_reset(run):  # R-L7
    guard = run.guard(policy="surface", observe=mulligan.headers_of)
    run.call(guard, Scripted(Answer(remaining=5)))
    run.call(guard, Scripted(Answer(remaining=4)))
    assert run.clock.sleeps == []
    run.call(guard, Scripted(Answer(remaining=49)))
    assert 20 <= run.clock.now() <= 21


def test_below_ten_left_calls_are_spaced_out(run):  # R-L8
    guard = run.guard(gate=Gate(low=10, high=20), observe=mulligan.headers_of)
    run.call(guard, Scripted(Answer(remaining=9, limit=60, reset=50)))
    run.call(guard, Scripted(Answer(remaining=8, limit=60, reset=50)))
    run.call(guard, Scripted(Answer(remaining=7, limit=60, reset=49)))
    assert run.clock.now() == pytest.approx(1.1, rel=0.1)  # 60 / 60 · 1.1


def test_an_observer_that_raises_costs_no_answer(run, caplog):
    def reads(_answer):
        raise KeyError("headers")

    assert run.call(run.guard(observe=reads), Scripted("well")) == "well"
    assert "the observer reads raised KeyError" in caplog.text


@pytest.mark.parametrize("seconds", [600, 5 * 86_400])
def test_without_a_gate_a_stated_limit_opens_the_breaker_until_then(run, seconds):
    limited = status_error(429, headers={"retry-after": str(seconds)})
    run.fails(run.guard(gate=False), Scripted(limited))
    run.clock.advance(seconds - 10)
    error = run.fails(run.guard(gate=False), Scripted("x"))
    assert isinstance(error, mulligan.CircuitOpen)
    assert error.retry_in == 10
    run.clock.advance(10)
    assert run.call(run.guard(gate=False), Scripted("well")) == "well"


@pytest.mark.parametrize("options", [{}, {"gate": False}])
def test_a_limit_that_one_guard_met_without_a_gate_stops_those_with_one_as_well(run, options):
    limited = status_error(429, headers={"retry-after": "600"})
    run.call(run.guard(), Scripted("well"))  # a guard with a gate is there, too
    run.fails(run.guard(gate=False), Scripted(limited))
    error = run.fails(run.guard(**options), Scripted("x"))
    assert isinstance(error, mulligan.CircuitOpen)
    assert error.retry_in == 600


def test_a_gate_is_shut_exactly_until_the_reset_that_was_stated_be_it_in_days(run):
    days, month = 5 * 86_400, Gate(horizon=31 * 86_400)
    run.fails(
        run.guard(gate=month), Scripted(status_error(429, headers={"retry-after": str(days)}))
    )
    run.clock.advance(86_400)
    error = run.fails(run.guard(gate=month), Scripted("x"))
    assert isinstance(error, mulligan.LimitReached)
    assert 0 <= error.until - run.clock.wall() - 4 * 86_400 < 1  # the spread of those who wait
    run.clock.advance(4 * 86_400)
    assert run.call(run.guard(gate=month), Scripted("well")) == "well"


# Tokens


def test_tokens_run_out_while_most_calls_fail(run):  # E-C1, E-C2
    guard = run.guard(breaker=False)
    down = Scripted(SERVER)
    for _ in range(30):
        run.fails(guard, down)
    # 500 tokens at 14 a retry are 35 retries; three may always be under way.
    endings = [event.ending for event in run.events(mulligan.Ended)]
    assert endings.count(mulligan.Ending.TOKENS) == 0  # the floor: one caller is never three
    strict = run.guard("strict", breaker=False, tokens=Tokens(floor=0))
    down = Scripted(SERVER)
    errors = [run.fails(strict, down) for _ in range(30)]
    assert len(down.calls) == 30 + 500 // 14
    story = mulligan.story(errors[-1])
    assert story is not None
    assert (story.ending, story.attempts) == ("tokens", 1)
    assert story.because == "the retry tokens are used up: too many calls to the target fail"


def test_out_of_tokens_a_polling_loop_still_sleeps(run):  # E-C9
    guard = run.guard(breaker=False, tokens=Tokens(capacity=0, floor=0))
    for _ in range(10):
        run.fails(guard, Scripted(SERVER))
    assert 0 < run.clock.now() <= 10
    assert len(run.clock.sleeps) == 10


def test_a_retry_that_succeeds_gives_its_tokens_back_and_successes_fund_the_rest(run):
    guard = run.guard(tokens=Tokens(capacity=20, floor=0))
    for _ in range(30):
        assert run.call(guard, Scripted(SERVER, "well")) == "well"
    run.fails(run.guard(attempts=2, tokens=Tokens(capacity=20, floor=0)), Scripted(SERVER))
    poor = run.guard(tokens=Tokens(capacity=20, floor=0), attempts=2)
    assert mulligan.story(run.fails(poor, Scripted(SERVER))).ending == "tokens"  # type: ignore[union-attr]
    for _ in range(14):
        run.call(guard, Scripted("well"))
    assert run.call(poor, Scripted(SERVER, "well")) == "well"


def test_a_call_that_was_never_sent_is_retried_for_free_and_bounded(run):  # E-C5
    guard = run.guard(breaker=False, tokens=Tokens(capacity=0, floor=0))
    refused = Scripted(ConnectionRefusedError("refused"))
    error = run.fails(guard, refused)
    assert len(refused.calls) == 5
    assert mulligan.story(error).ending == "exhausted"  # type: ignore[union-attr]


def test_tokens_can_be_changed_at_run_time(run):  # E-C4
    guard = run.guard(breaker=False, tokens=Tokens(floor=0))
    assert run.call(guard, Scripted(SERVER, "well")) == "well"
    guard.adjust(tokens=Tokens(capacity=0, floor=0))
    assert mulligan.story(run.fails(guard, Scripted(SERVER, "well"))).ending == "tokens"  # type: ignore[union-attr]
    # What was agreed on still is: whoever comes later need not know of the change.
    run.guard(breaker=False, tokens=Tokens(floor=0))
    guard.adjust(tokens=Tokens(capacity=14, floor=0))
    assert run.call(guard, Scripted(SERVER, "well")) == "well"


# Settings


def test_two_settings_for_one_target_are_an_error_that_names_both(run):
    run.guard(breaker=Breaker(failures=2))
    with pytest.raises(
        mulligan.SettingError,
        match=r"^'api' has one breaker for all its guards; this one wants Breaker\(failures=3\), "
        r"another has Breaker\(failures=2\): give both the same, or another scope$",
    ):
        run.guard(breaker=Breaker(failures=3))
    run.guard(breaker=False)
    run.guard(breaker=Breaker(failures=3), scope="other")


def test_a_guard_without_settings_has_the_usual_ones(run):
    mulligan.Guard("api")
    with pytest.raises(mulligan.SettingError, match="another has Tokens"):
        run.guard(policy="default", tokens=Tokens(capacity=1))
    run.guard("billing", policy="default", gate=Gate(keep=5))
    with pytest.raises(mulligan.SettingError, match=r"wants Gate\(\), another has Gate\(keep=5\)"):
        mulligan.Guard("billing")


@pytest.mark.parametrize("option", ["breaker", "gate", "tokens", "store", "scope", "observe"])
def test_what_is_shared_needs_a_target(option):
    with pytest.raises(mulligan.SettingError, match=rf"^{option} belongs to a target"):
        mulligan.Guard(**{option: "x"})  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["breaker", "gate", "tokens"])
def test_what_is_no_setting_is_refused(option):
    with pytest.raises(mulligan.SettingError, match=rf"^{option} needs True, False or .* got 5$"):
        mulligan.Guard("api", **{option: 5})  # type: ignore[arg-type]


def test_a_guard_that_shares_nothing_has_nothing_to_adjust():
    with pytest.raises(mulligan.SettingError, match="shares nothing"):
        mulligan.Guard().adjust(tokens=Tokens())


def test_what_began_before_the_breaker_changed_says_nothing_about_it_now(run):  # E-B4
    guard = run.guard(attempts=1, tokens=False)

    def slow():
        # Meanwhile others open the breaker, and one of them closes it again.
        other = mulligan.Guard("api", policy=STRICT, effects="read", attempts=1, tokens=False)
        for _ in range(5):
            with pytest.raises(Exception, match="starting up"):
                other.call(Scripted(SERVER))
        run.clock.advance(60)
        other.call(Scripted("well"))
        raise SERVER

    with pytest.raises(Exception, match="starting up"):
        guard.call(slow)
    assert guard._engine.here().is_calm


def test_guards_in_one_world_do_not_meet_those_in_another(run):
    guard = mulligan.Guard("api", policy=STRICT, effects="read")
    run.fails(guard, Scripted(SERVER))
    assert isinstance(run.fails(guard, Scripted("x")), mulligan.CircuitOpen)
    with virtual_time():
        assert guard.call(Scripted("well")) == "well"


def test_a_stream_that_breaks_tells_who_admitted_it(run):
    guard = run.guard(attempts=1, tokens=False)

    def words():
        yield "one"
        raise ConnectionResetError("lost in the middle")

    async def awords():
        yield "one"
        raise ConnectionResetError("lost in the middle")

    async def read():
        return [word async for word in guard.astream(awords)]

    for _ in range(5):
        with pytest.raises(ConnectionResetError):
            list(guard.stream(words)) if run.drive.name == "sync" else run.drive.arun(read)
    with pytest.raises(mulligan.CircuitOpen):
        list(guard.stream(words)) if run.drive.name == "sync" else run.drive.arun(read)
    assert len(run.events(mulligan.BreakerChanged)) == 1
    run.clock.advance(60)
    with pytest.raises(ConnectionResetError):  # the probe, which opens it again at once
        list(guard.stream(words)) if run.drive.name == "sync" else run.drive.arun(read)
    assert len(run.events(mulligan.BreakerChanged)) == 2


def test_a_waiter_at_the_gate_can_be_cancelled(adrive):
    limited = status_error(429, headers={"retry-after": "60"})
    script = Scripted("never")
    with virtual_time(adrive.clock):
        guard = mulligan.Guard("api", policy=STRICT, effects="read")
        with pytest.raises(Exception, match="429"):
            mulligan.Guard("api", policy=STRICT, effects="read", attempts=1).call(Scripted(limited))

        async def main():
            if adrive.name == "trio":
                with trio.move_on_after(5) as scope:
                    await guard.acall(script.acall)
                return scope.cancelled_caught
            try:
                await asyncio.wait_for(guard.acall(script.acall), 5)
            except TimeoutError:
                return True
            return False

        assert adrive.arun(main) is True
        assert adrive.clock.now() == 5
        assert guard.call(Scripted("well")) == "well"
    assert script.calls == []


@pytest.mark.parametrize("count", [1, 30])
def test_a_block_is_admitted_and_told_like_a_call(run, count):
    guard = run.guard(attempts=1, breaker=Breaker(failures=count), tokens=False)

    def block():
        for attempt in guard.attempts():
            with attempt:
                raise TimeoutError("slow")

    for _ in range(count):
        with pytest.raises(TimeoutError):
            block()
    with pytest.raises(mulligan.CircuitOpen):
        next(iter(guard.attempts()))
