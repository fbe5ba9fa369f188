"""Ways in which a retry could make things worse, each found once and closed."""

# Wrong types are the point of some of these.
# mypy: ignore-errors

from __future__ import annotations

import asyncio
import contextvars
import io
import itertools
import pickle
from unittest.mock import AsyncMock, Mock

import pytest

import mulligan
from mulligan import Failure, Kind, Policy, Rule, SettingError, Timeouts
from mulligan.core.admission import Admitted, Refused
from mulligan.testing import Scripted, VirtualClock, status_error, virtual_time


class Turnstile:
    def __init__(self, *answers) -> None:
        self.answers, self.left = list(answers), []

    def enter(self, attempt, *, now, wall):
        return self.answers.pop(0) if self.answers else Admitted()

    def leave(self, ticket, outcome, failure, *, now, wall):
        self.left.append(outcome)


@pytest.mark.parametrize("options", [{}, {"deadline": 60}, {"context": True}, {"timeout": 60}])
def test_a_task_that_is_being_cancelled_makes_no_further_attempt(options):
    clock, calls = VirtualClock(), []

    @mulligan.retry(**options)
    async def pay():
        calls.append(1)
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            raise ConnectionRefusedError from None

    async def main():
        with virtual_time(clock):
            task = asyncio.create_task(pay())
            await asyncio.sleep(1)
            task.cancel()
            with pytest.raises(ConnectionRefusedError) as caught:
                await task
        return mulligan.story(caught.value)

    story = clock.run(main())
    assert story is not None
    assert (story.ending, calls) == ("cancelled", [1])


def test_a_block_of_a_task_that_is_being_cancelled_is_not_tried_again():
    clock, calls = VirtualClock(), []

    async def work():
        async for attempt in mulligan.attempts():
            with attempt:
                calls.append(1)
                try:
                    await asyncio.sleep(1000)
                except asyncio.CancelledError:
                    raise ConnectionRefusedError from None

    async def main():
        with virtual_time(clock):
            task = asyncio.create_task(work())
            await asyncio.sleep(1)
            task.cancel()
            with pytest.raises(ConnectionRefusedError):
                await task

    clock.run(main())
    assert calls == [1]


def test_a_server_that_says_in_a_millisecond_again_and_again_is_no_hot_loop(virtual_clock):
    script = Scripted(status_error(429, headers={"retry-after-ms": "1"}))
    with pytest.raises(Exception, match="status 429"):
        mulligan.call(script)
    assert virtual_clock.sleeps[0] == pytest.approx(0.001)
    assert len(script.calls) < 30


@pytest.mark.parametrize(
    "body",
    [
        {"files": {"f": io.BytesIO(b"data")}},
        {"data": [("f", ("name", io.BytesIO(b"data")))]},
        {"data": io.StringIO("data")},
    ],
)
def test_a_body_is_not_sent_again_empty_wherever_it_stands(virtual_clock, body):
    sent = []

    def post(**parts):
        for value in parts.values():
            if isinstance(value, dict):
                sent.append(value["f"].read())
            elif isinstance(value, list):
                sent.append(value[0][1][1].read())
            else:
                sent.append(value.read())
        raise status_error(503)

    with pytest.raises(Exception, match="status 503"):
        mulligan.call(post, **body)
    assert len(sent) == 1


def test_what_never_ends_is_never_used_up(virtual_clock):
    assert mulligan.call(Scripted(status_error(503), "ok"), itertools.count()) == "ok"


def test_a_mock_is_a_function_like_any_other(virtual_clock):
    failing = Mock(side_effect=[ConnectionRefusedError(), "ok"])
    assert mulligan.call(failing) == "ok"
    assert mulligan.retry(Mock(return_value="plain"))() == "plain"
    assert asyncio.run(mulligan.retry(AsyncMock(return_value="awaited"))()) == "awaited"
    told = Mock()
    with pytest.raises(Exception, match="status 500"):
        mulligan.Guard(attempts=1, on_exhausted=told).call(Scripted(status_error(500)))
    told.assert_called_once()


def test_attempts_are_the_total_whatever_they_fail_with(virtual_clock):
    script = Scripted(
        ConnectionRefusedError(), status_error(500), TimeoutError(), status_error(429), "never"
    )
    with pytest.raises(Exception, match="status 500"):
        mulligan.Guard(attempts=2, effects="read").call(script)
    assert len(script.calls) == 2


def test_what_a_handler_did_before_it_raised_is_not_done_again(virtual_clock):
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


def test_layers_do_not_multiply_through_groups_that_were_taken_apart(virtual_clock):
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


def test_a_fallback_that_raises_the_error_again_makes_no_circle(virtual_clock):
    cause = KeyError("root")
    error = status_error(401)
    error.__cause__ = cause

    def again(seen):
        raise seen

    with pytest.raises(Exception, match="status 401") as caught:
        mulligan.Guard(fallback=again).call(Scripted(error))
    assert caught.value.__cause__ is cause


def test_a_fallbacks_own_cause_stands(virtual_clock):
    mine = OSError("disk")

    def cached(_):
        raise LookupError("cold") from mine

    with pytest.raises(LookupError) as caught:
        mulligan.Guard(fallback=cached).call(Scripted(status_error(401)))
    assert caught.value.__cause__ is mine


def test_a_block_that_is_refused_its_second_attempt_keeps_the_cause_of_its_error(virtual_clock):
    cause = KeyError("root")
    opened = Refused(mulligan.CircuitOpen("api", 5.0, "open"))

    def block():
        for attempt in mulligan.Guard(admissions=[Turnstile(Admitted(), opened)]).attempts():
            with attempt:
                raise status_error(503) from cause

    with pytest.raises(Exception, match="status 503") as caught:
        block()
    assert caught.value.__cause__ is cause


def test_a_task_that_is_left_in_another_context_does_not_replace_the_error():
    def dependency():
        with mulligan.task(budget=5):
            yield

    generator = dependency()
    contextvars.copy_context().run(next, generator)
    with pytest.raises(KeyError, match="mine"):
        generator.throw(KeyError("mine"))


def test_a_thousand_attempts_need_no_thousand_frames(virtual_clock):
    policy = Policy(rules={Kind.SERVER: Rule(attempts=1500)}, patience="30d")
    seen = []
    guard = mulligan.Guard(policy=policy, listeners=[lambda event: seen.append(event.request_id)])
    with pytest.raises(Exception, match="status 500"):
        guard.call(Scripted(status_error(500)))
    assert len(seen) == 1501
    assert len(set(seen)) == 1


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


def test_a_stream_that_cannot_be_closed_does_not_replace_its_error(virtual_clock):
    error = KeyError("mine")
    with pytest.raises(KeyError, match="mine"):
        list(mulligan.Guard().stream(lambda: BadClose(error)))
    assert mulligan.current() is None


def test_a_stop_iteration_of_the_function_is_no_empty_stream(virtual_clock):
    with pytest.raises(RuntimeError):
        list(mulligan.Guard().stream(lambda: next(iter([]))))


def test_an_error_that_a_fallback_hides_is_told_to_somebody(virtual_clock, caplog):
    assert mulligan.Guard(fallback="cached").call(Scripted(status_error(401))) == "cached"
    assert "auth 401" in caplog.text or "not retried" in caplog.text


def test_listeners_may_come_from_a_generator(virtual_clock):
    heard = []
    guard = mulligan.Guard(listeners=(each for each in [heard.append]))
    guard.call(Scripted(status_error(503), "ok"))
    assert len(heard) == 2


def test_patience_is_believed_where_it_is_given(virtual_clock):
    with pytest.raises(Exception, match="status 429"):
        mulligan.Guard(patience=10).call(
            Scripted(status_error(429, headers={"retry-after": "100"}), "late")
        )
    assert virtual_clock.sleeps == []


def test_an_attempt_that_succeeds_late_costs_the_task_its_time(virtual_clock):
    tries = []

    def slow():
        tries.append(1)
        if len(tries) == 1:
            raise ConnectionRefusedError
        virtual_clock.advance(25)

    with mulligan.task(budget=30) as task:
        mulligan.call(slow)
    assert task.spent == 25.25


def test_limits_that_nobody_would_keep_are_refused():
    with pytest.raises(SettingError, match=r"^timeout bounds whole attempts: .* give read to"):
        mulligan.Guard(timeout=Timeouts(read=1))


def test_a_deadline_counts_from_the_start_not_from_the_first_suspension():
    clock = VirtualClock()

    @mulligan.retry(deadline=5, effects="read")
    async def slow_to_start():
        clock.advance(4)
        await asyncio.sleep(1000)

    async def main():
        with virtual_time(clock):
            await slow_to_start()

    with pytest.raises(TimeoutError):
        clock.run(main())
    assert clock.now() == 5


def test_verify_is_cut_at_the_deadline():
    clock = VirtualClock()

    async def verify():
        await asyncio.sleep(1000)

    async def lost():
        raise ConnectionResetError("lost")

    async def main():
        with virtual_time(clock):
            await mulligan.Guard(verify=verify, deadline=10).acall(lost)

    with pytest.raises(ConnectionResetError):
        clock.run(main())
    assert clock.now() == 10


def test_a_block_that_is_never_entered_gives_its_permit_back():
    gate = Turnstile()
    for _ in mulligan.Guard(admissions=[gate]).attempts():
        break
    assert gate.left == ["cancelled"]


def test_every_word_of_a_users_failure_is_cleaned(virtual_clock):
    secret = "sk-ant-api03-Zq7Xw9Kv2Mj4Tb8Rn5Lc3Hd6"
    said = Failure(kind=Kind.AUTH, code=secret, because=secret, fields=(("token", secret),))
    with pytest.raises(mulligan.FailedAnswer) as judged:
        mulligan.Guard(judge=lambda _: said).call(Scripted("answer"))
    known = mulligan.classifier.adding(predicate=lambda _: said)
    with pytest.raises(KeyError) as predicted:
        mulligan.Guard(classifier=known).call(Scripted(KeyError("x")))
    for error in (judged.value, predicted.value):
        assert secret not in repr(mulligan.story(error))
    assert secret not in repr(judged.value.failure)


def test_a_guard_travels_in_a_pickle():
    guard = mulligan.Guard("api", attempts=2, effects="read")
    again = pickle.loads(pickle.dumps(guard))  # noqa: S301 -- our own
    assert again.target == "api"
    assert again.policy == guard.policy


def test_a_cancelled_wait_is_told_to_listeners():
    clock, heard = VirtualClock(), []

    @mulligan.Guard(listeners=[heard.append]).retry
    async def limited():
        raise status_error(429, headers={"retry-after": "100"})

    async def main():
        with virtual_time(clock):
            task = asyncio.create_task(limited())
            await asyncio.sleep(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    clock.run(main())
    assert [type(event).__name__ for event in heard] == ["Failed", "Cancelled"]
