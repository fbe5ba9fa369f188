"""The front door: what can be decorated, what is refused, what stays as it was."""

from __future__ import annotations

import asyncio
import functools
import inspect

import pytest

import mulligan
from mulligan.testing import Scripted, VirtualClock, status_error, virtual_time


def test_a_decorated_function_keeps_its_name_signature_and_docs():
    @mulligan.retry(effects="read")
    def fetch(url: str, *, limit: int = 5) -> str:
        """Fetch it."""
        return url * limit

    assert fetch.__name__ == "fetch"
    assert fetch.__doc__ == "Fetch it."
    assert str(inspect.signature(fetch)) == "(url: 'str', *, limit: 'int' = 5) -> 'str'"
    assert fetch("a", limit=2) == "aa"


def test_methods_are_bound_as_usual(virtual_clock):
    class Client:
        def __init__(self) -> None:
            self.calls = 0

        @mulligan.retry
        def get(self):
            self.calls += 1
            if self.calls < 3:
                raise ConnectionRefusedError
            return self.calls

        @staticmethod
        @mulligan.retry
        def static():
            return "static"

        @classmethod
        @mulligan.retry
        def named(cls):
            return cls.__name__

    assert Client().get() == 3
    assert (Client.static(), Client.named()) == ("static", "Client")


def test_coroutine_functions_stay_coroutine_functions():
    async def fetch(): ...

    assert inspect.iscoroutinefunction(mulligan.retry(fetch))
    assert inspect.iscoroutinefunction(mulligan.retry(deadline=5)(fetch))
    assert inspect.iscoroutinefunction(mulligan.retry(functools.partial(fetch)))


@pytest.mark.parametrize("options", [{}, {"deadline": 60}, {"context": True}, {"attempts": 4}])
def test_a_lambda_that_returns_a_coroutine_is_driven(virtual_clock, options):
    script = Scripted(ConnectionRefusedError(), ConnectionRefusedError(), "ok")
    fetch = mulligan.retry(**options)(lambda: script.acall())  # noqa: PLW0108 -- the point

    async def main():
        return await fetch()

    assert asyncio.run(main()) == "ok"
    assert len(script.calls) == 3


def test_a_coroutine_from_a_lambda_is_cut_at_the_deadline_and_knows_its_context():
    clock, seen = VirtualClock(), []

    async def hang():
        here = mulligan.current()
        seen.append(here and here.attempt)
        await asyncio.sleep(1000)

    async def main():
        await mulligan.retry(deadline=30, context=True, effects="read")(lambda: hang())()  # noqa: PLW0108

    with virtual_time(clock), pytest.raises(TimeoutError):
        clock.run(main())
    assert clock.now() == 30
    assert seen == [1]


def test_a_stream_refuses_what_means_nothing_for_it():
    def items():
        yield 1

    with pytest.raises(mulligan.SettingError, match=r"^judge looks at an answer, and the stream"):
        mulligan.retry(judge=lambda _: None)(items)
    with pytest.raises(mulligan.SettingError, match=r"^the fallback of the stream items\(\) needs"):
        mulligan.retry(fallback=None)(items)


def test_call_and_acall_drive_coroutines_too(virtual_clock):
    script = Scripted(ConnectionRefusedError(), "ok")
    other = Scripted(ConnectionRefusedError(), "ok")

    async def main():
        return await mulligan.call(script.acall), await mulligan.acall(other.acall)

    assert asyncio.run(main()) == ("ok", "ok")


def test_acall_takes_a_plain_function_as_well(virtual_clock):
    script = Scripted(ConnectionRefusedError(), "ok")

    async def main():
        return await mulligan.acall(script)

    assert asyncio.run(main()) == "ok"


def test_a_callable_object_is_guarded_by_its_call(virtual_clock):
    class Fetch:
        def __init__(self) -> None:
            self.calls = 0

        async def __call__(self):
            self.calls += 1
            if self.calls == 1:
                raise ConnectionRefusedError
            return "ok"

    assert asyncio.run(mulligan.retry(Fetch())()) == "ok"


def test_blocks_are_tried_again(virtual_clock):
    seen = []
    for attempt in mulligan.attempts(effects="read"):
        with attempt:
            seen.append(attempt.number)
            if len(seen) < 3:
                raise ConnectionResetError
    assert seen == [1, 2, 3]
    assert virtual_clock.sleeps == [0.25, 0.5]


def test_blocks_are_tried_again_in_coroutines(adrive):
    seen = []

    async def main():
        with virtual_time(adrive.clock):
            async for attempt in mulligan.attempts(effects="read"):
                with attempt:
                    seen.append(attempt.number)
                    if len(seen) < 3:
                        raise ConnectionResetError

    adrive.arun(main)
    assert seen == [1, 2, 3]


def test_the_error_of_a_block_that_gives_up_leaves_it_as_itself(virtual_clock):
    error = status_error(503)

    def deploy():
        for attempt in mulligan.attempts("deploy", attempts=2, effects="read"):
            with attempt:
                raise error

    with pytest.raises(Exception, match="status 503") as caught:
        deploy()
    assert caught.value is error
    story = mulligan.story(error)
    assert story is not None
    assert (story.name, story.attempts, story.ending) == ("deploy", 2, "exhausted")


def test_a_loop_without_its_with_is_refused_rather_than_endless():
    with pytest.raises(mulligan.SettingError, match=r"^the loop needs `with attempt:`"):
        for _ in mulligan.attempts():
            pass


def test_breaking_out_of_the_loop_is_allowed():
    for attempt in mulligan.attempts():
        with attempt:
            break


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"policy": "defualt"}, "no preset 'defualt'; there are .*; did you mean 'default'"),
        ({"policy": 5}, "policy needs a Policy or the name of a preset; got 5"),
        ({"effects": "reads"}, "effects needs one of read, idempotent, keyed, unsafe; got 'reads'"),
        ({"attempts": 0}, r"attempts needs a whole number >= 1; got 0 \(the total"),
        ({"attempts": True}, "attempts needs a whole number >= 1; got True"),
        ({"deadline": -1}, "deadline needs a finite number of seconds, not negative; got -1"),
        ({"deadline": "soon"}, 'deadline needs a duration such as 90, "90s"'),
        ({"deadline": 0}, "deadline needs more than 0 s; got 0"),
        ({"retries": 3}, "no option 'retries'"),
        ({"attempt": 3}, "no option 'attempt'; did you mean 'attempts'?"),
        ({"on": ValueError()}, r"on needs exception classes; got ValueError\(\)"),
        ({"listeners": [5]}, "listeners needs callables that take an event; got \\[5\\]"),
        ({"classifier": len}, "classifier needs a Classifier"),
        ({"timeout": 0}, "Timeouts.total needs more than 0 s; got 0"),
    ],
)
def test_a_wrong_option_is_refused_where_it_is_written(options, message):
    with pytest.raises(mulligan.SettingError, match=f"^{message}"):
        mulligan.retry(**options)


def test_what_cannot_be_decorated_is_refused():
    with pytest.raises(mulligan.SettingError, match=r"^retry needs a function; got <class"):
        mulligan.retry(int)
    with pytest.raises(mulligan.SettingError, match=r"^retry goes under @staticmethod"):
        mulligan.retry(staticmethod(len))
    with pytest.raises(mulligan.SettingError, match=r"^a guard needs the name of its target"):
        mulligan.Guard(len)  # type: ignore[arg-type]


@pytest.mark.parametrize("option", ["judge", "verify", "fallback"])
def test_blocks_refuse_what_they_cannot_keep(option):
    with pytest.raises(mulligan.SettingError, match=rf"^attempts\(\) takes no {option}"):
        mulligan.Guard(**{option: lambda _: None}).attempts()  # type: ignore[arg-type]


def test_listeners_hear_every_event_in_order():
    heard: list[mulligan.Event] = []
    guard = mulligan.Guard("api", clock=VirtualClock(), listeners=[heard.append])
    guard.call(Scripted(status_error(529), "ok"))
    with pytest.raises(Exception, match="status 401"):
        guard.call(Scripted(status_error(401)))
    guard.call(Scripted("ok"))
    assert [type(each).__name__ for each in heard] == ["Failed", "Recovered", "Failed", "Ended"]
    assert {each.target for each in heard} == {"api"}
    assert heard[0].request_id == heard[1].request_id != heard[2].request_id


def test_successes_are_told_to_those_who_ask():
    heard: list[str] = []
    quiet: list[mulligan.Event] = []

    class Listener:
        successes = True

        def __call__(self, event):
            heard.append(type(event).__name__)

    guard = mulligan.Guard(clock=VirtualClock(), listeners=[Listener(), quiet.append])
    guard.call(Scripted("ok"))
    assert (heard, quiet) == (["Succeeded"], [])


def test_judge_response_reads_an_answer_by_its_shape(virtual_clock):
    class Response:
        def __init__(self, status, headers=()) -> None:
            self.status_code, self.headers = status, dict(headers)

    answers = [Response(529), Response(429, {"retry-after": "9"}), Response(200)]
    guard = mulligan.Guard(judge=mulligan.judge_response)
    assert guard.call(Scripted(*answers)) is answers[-1]
    assert virtual_clock.sleeps == [0.25, 9]


def test_a_guard_can_be_used_from_many_threads_at_once():
    import threading

    guard = mulligan.Guard("api", effects="read", clock=VirtualClock(), breaker=False)
    done = []

    def work():
        for _ in range(50):
            done.append(guard.call(Scripted(ConnectionResetError(), "ok")))  # noqa: PERF401

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert done == ["ok"] * 400


def test_a_policy_file_is_loaded_by_its_path(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text('preset = "skill"\nattempts = 2\n')
    policy = mulligan.load_policy(path)
    assert mulligan.Guard(policy=policy).policy.rules[mulligan.Kind.SERVER].attempts == 2
