"""Streams that ``resume=`` continues after they broke: nothing twice, one story, one policy."""

from __future__ import annotations

import pytest

import mulligan
from mulligan.stores.memory import Memory
from mulligan.testing import status_error

LETTERS = "abcdefgh"


class Model:
    """Says the letters from a start, and breaks where it is told: one list of errors an opening."""

    def __init__(self, *breaks) -> None:
        self.breaks = list(breaks)
        self.asked: list[tuple[tuple[str, ...], str]] = []

    def say(self, prompt):
        yield from self.rest((), prompt)

    def rest(self, delivered, prompt):
        self.asked.append((delivered, prompt))
        after, error = self.breaks.pop(0) if self.breaks else (len(LETTERS), None)
        yield from LETTERS[len(delivered) :][:after]
        if error is not None:
            raise error

    async def asay(self, prompt):
        for each in self.say(prompt):
            yield each

    async def arest(self, delivered, prompt):
        for each in self.rest(delivered, prompt):
            yield each

    async def behind_a_coroutine(self, delivered, prompt):
        return self.arest(delivered, prompt)


@pytest.fixture
def collect(drive):
    """Read a guarded stream to its end: the items, what ended it, and the events."""

    def run(model, how="stream", **options):
        seen: list[str] = []
        events: list[mulligan.Event] = []
        is_plain = drive.name == "sync"
        options = {
            "effects": "idempotent",
            "resume": model.rest if is_plain else model.arest,
            "clock": drive.clock,
            "listeners": [events.append],
            **options,
        }
        guard = mulligan.Guard("model", **options)

        def read():
            decorated = guard.retry(model.say)
            seen.extend(decorated("hi") if how == "decorated" else guard.stream(model.say, "hi"))

        async def aread():
            decorated = guard.retry(model.asay)
            stream = decorated("hi") if how == "decorated" else guard.astream(model.asay, "hi")
            async for each in stream:
                seen.append(each)  # noqa: PERF401 -- kept if the stream breaks

        error = None
        try:
            read() if is_plain else drive.arun(aread)
        except Exception as caught:  # noqa: BLE001 -- looked at by the test
            error = caught
        return "".join(seen), error, events

    return run


def names(events):
    return [type(event).__name__ for event in events]


@pytest.mark.parametrize("how", ["decorated", "stream"])
def test_a_broken_stream_goes_on_where_it_broke(collect, how):
    model = Model((2, ConnectionResetError("one")), (3, ConnectionResetError("two")))
    seen, error, events = collect(model, how)
    assert (seen, error) == (LETTERS, None)
    assert model.asked == [((), "hi"), (("a", "b"), "hi"), (tuple("abcde"), "hi")]
    assert names(events) == ["Failed", "Failed", "Recovered"]


def test_a_stream_that_has_delivered_nothing_is_restarted_not_resumed(collect):
    model = Model((0, ConnectionResetError()), (2, ConnectionResetError()), (0, TimeoutError()))
    assert collect(model)[:2] == (LETTERS, None)
    assert [delivered for delivered, _ in model.asked] == [(), (), ("a", "b"), ("a", "b")]


def test_without_it_a_broken_stream_is_broken_off(collect):
    model = Model((2, broken := ConnectionResetError()))
    seen, error, _ = collect(model, resume=None)
    assert (seen, error) == ("ab", broken)
    assert len(model.asked) == 1


def test_the_policy_bounds_all_attempts_together(collect):
    errors = [ConnectionResetError(str(number)) for number in range(4)]
    model = Model((0, errors[0]), (2, errors[1]), (1, errors[2]), (1, errors[3]))
    seen, error, events = collect(model, attempts=3, fallback=["never"])
    assert (seen, error) == ("abc", errors[2])
    story = mulligan.story(errors[2])
    assert story is not None
    assert (story.ending, story.delivered, story.attempts) == ("committed", 3, 3)
    assert story.because.startswith("the stream had delivered 3 items; not resumed: attempt 3 of 3")
    assert [each.message for each in story.tries] == ["0", "1", "2"]
    assert names(events) == ["Failed", "Failed", "Failed", "Ended"]
    ended = events[-1]
    assert isinstance(ended, mulligan.Ended)
    assert not ended.is_answered


@pytest.mark.parametrize("error", [status_error(401), KeyError("a bug")], ids=["401", "bug"])
def test_what_is_not_retried_is_not_resumed(collect, error):
    model = Model((2, error))
    assert collect(model)[:2] == ("ab", error)
    story = mulligan.story(error)
    assert story is not None
    assert (story.ending, story.delivered) == ("committed", 2)
    assert len(model.asked) == 1


def test_a_server_that_names_a_time_is_waited_for(collect, drive):
    model = Model((2, status_error(429, headers={"retry-after": "7"})))
    before = drive.clock.now()
    assert collect(model)[:2] == (LETTERS, None)
    assert 7 <= drive.clock.now() - before < 10


def test_a_deadline_bounds_it(collect):
    model = Model((2, error := status_error(429, headers={"retry-after": "7"})))
    assert collect(model, deadline="5s")[:2] == ("ab", error)
    story = mulligan.story(error)
    assert story is not None
    assert story.ending == "committed"
    assert "deadline" in story.because


def test_an_error_of_the_function_itself_names_the_one_before(collect):
    broken = ConnectionResetError("mid-stream")
    seen, error, _ = collect(Model((2, broken)), resume=lambda delivered: delivered)
    assert seen == "ab"
    assert isinstance(error, TypeError)
    assert error.__cause__ is broken


def test_a_stream_behind_a_coroutine_continues_one(adrive):
    model = Model((2, ConnectionResetError()))
    guard = mulligan.Guard(
        "model", effects="read", resume=model.behind_a_coroutine, clock=adrive.clock
    )

    async def main():
        async with guard.astream(model.asay, "hi") as stream:
            return "".join([each async for each in stream])

    assert adrive.arun(main) == LETTERS


def test_a_guard_inside_that_could_not_go_on_is_no_reason_to_stop(collect):
    model = Model((2, ConnectionResetError()))
    inner = mulligan.Guard("inner", effects="idempotent")
    plain, coroutine = model.say, model.asay
    model.say = lambda prompt: inner.stream(plain, prompt)  # type: ignore[method-assign]
    model.asay = lambda prompt: inner.astream(coroutine, prompt)  # type: ignore[method-assign]
    assert collect(model)[:2] == (LETTERS, None)
    assert len(model.asked) == 2


def test_what_the_consumer_throws_is_not_resumed():
    model = Model()
    guard = mulligan.Guard("model", effects="read", resume=model.rest)
    with guard.stream(model.say, "hi") as stream:
        next(stream)
        with pytest.raises(ConnectionResetError):
            stream.throw(ConnectionResetError("of the consumer"))
    assert len(model.asked) == 1


def test_nothing_is_written_to_be_replayed(collect):
    store = Memory()
    model = Model(*[(1, ConnectionResetError())] * 2)
    assert collect(model, attempts=2, dead_letters=store)[0] == "ab"
    assert not list(mulligan.DeadLetters(store).all())


def test_unsafe_effects_are_refused_where_they_are_written():
    with pytest.raises(mulligan.SettingError, match="the effects of this guard are unsafe"):
        mulligan.Guard("model", resume=Model().rest)


def test_an_async_function_is_refused_for_a_plain_stream():
    model = Model()
    guard = mulligan.Guard("model", effects="read", resume=model.arest)
    with pytest.raises(
        mulligan.SettingError, match=r"resume is async, and the stream say\(\) is not"
    ):
        guard.stream(model.say, "hi")


def test_what_is_no_function_is_refused():
    with pytest.raises(mulligan.SettingError, match="resume needs a function; got 'yes'"):
        mulligan.Guard("model", effects="read", resume="yes")  # type: ignore[arg-type]
