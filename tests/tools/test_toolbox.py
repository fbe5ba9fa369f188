"""What a toolbox does with calls of a model, in virtual time."""

from __future__ import annotations

import asyncio
import datetime as dt
import ipaddress
import json
import signal
import sys
import threading
from typing import Annotated, Literal

import pydantic
import pytest
import trio

import mulligan
from mulligan.testing import Scripted, status_error
from mulligan.tools.repeats import Repeats

LOST = ConnectionResetError("reset by peer")


class Item(pydantic.BaseModel):
    sku: str
    count: int = 1


def broken(value: int) -> int:
    raise KeyError("password=hunter2hunter2")


def scripted(tools, *outcomes, **options):
    """A tool called `act` with these outcomes, and its calls."""
    script = Scripted(*outcomes)

    async def act(order_id: str = "7", amount: int = 5) -> object:
        """Act on an order."""
        context = mulligan.current()
        return script(order_id=order_id, amount=amount, key=context and context.key)

    tools.tool(**options)(act)
    return script


@pytest.fixture
def tools(virtual_clock):
    return mulligan.Toolbox()


def test_a_tool_has_a_schema_from_its_signature(tools):
    @tools.tool(effects="read")
    def search(
        query: Annotated[str, pydantic.Field(description="words")],
        items: list[Item],
        mode: Literal["fast", "deep"] = "fast",
        since: dt.date | None = None,
    ) -> list[str]:
        """Search the catalogue."""
        return [f"{query} {items[0].sku} {mode} {since and since.year}"]

    (tool,) = tools.tools
    assert tool.description == "Search the catalogue."
    assert tool.schema["required"] == ["query", "items"]
    assert tool.schema["properties"]["query"]["description"] == "words"
    assert tool.schema["properties"]["mode"]["enum"] == ["fast", "deep"]
    assert tool.schema["additionalProperties"] is False
    result = tools.run_sync(
        "search", '{"query": "q", "items": [{"sku": "a"}], "since": "2026-01-02"}'
    )
    assert result.text == '["q a fast 2026"]'
    assert result.value == ["q a fast 2026"]
    assert not result.is_error


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        (None, "done"),
        ({"a": dt.date(2026, 1, 2)}, '{"a": "2026-01-02"}'),
        (Item(sku="é"), '{"sku": "é", "count": 1}'),
        ({3}, "[3]"),
    ],
)
def test_a_result_is_text_or_json(tools, value, text):
    scripted(tools, value, effects="read")
    assert tools.run_sync("act").text == text


def test_an_unknown_tool_is_a_result_with_the_tools_that_exist(tools):
    scripted(tools, "ok")
    result = tools.run_sync("actt", {"x": 1}, call_id="c1")
    assert result.is_error
    assert result.action == "use_another_tool"
    assert result.text == (
        "actt failed: there is no such tool\n"
        'arguments: {"x": 1}\n'
        "next: Use one of the tools that exist: act."
    )


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ('{"order_id": ', "the arguments are not JSON: "),
        ("[1]", "the arguments need to be a JSON object; got a list"),
        ("7", "the arguments need to be a JSON object; got a int"),
        ({1: 2}, "the arguments need to be a JSON object; got a dict"),
        ({"order": "7"}, "order: is unknown; act takes order_id, amount"),
        ({"amount": "many"}, "amount: Input should be a valid integer"),
        ("[" * 100_000, "the arguments are not JSON: "),
    ],
)
def test_arguments_that_do_not_fit_are_a_result_and_nothing_is_called(tools, args, said):
    script = scripted(tools, "ok")
    result = tools.run_sync("act", args)
    assert result.is_error
    assert result.action == "fix_arguments"
    assert said in result.text
    assert "Nothing was called" in result.text
    assert not script.calls


def test_an_object_that_cannot_be_shown_says_that_it_was_done(tools):
    script = scripted(tools, threading.Lock(), effects="unsafe")
    result = tools.run_sync("act")
    assert result.is_error
    assert result.action == "verify"
    assert "The call itself succeeded: do not repeat it." in result.text
    assert len(script.calls) == 1


@pytest.mark.parametrize("effects", ["read", "keyed"])
@pytest.mark.parametrize("value", [float("nan"), threading.Lock()])
def test_no_result_is_an_exception(tools, effects, value):
    scripted(tools, value, effects=effects)
    assert tools.run_sync("act", call_id="c").is_error


@pytest.mark.parametrize("value", ["a\udc80b", ["a\udc80b"]])
def test_a_text_can_be_sent_whatever_is_in_it(tools, value):
    @tools.tool(effects="read")
    def names() -> object:
        return value

    assert tools.run_sync("names").text.encode()


def test_a_validator_that_breaks_is_a_result(tools):
    @tools.tool(effects="read")
    def act(order: Annotated[int, pydantic.AfterValidator(broken)]) -> int:
        return order

    result = tools.run_sync("act", {"order": 1})
    assert result.action == "fix_arguments"
    assert "could not be checked: KeyError" in result.text
    assert "hunter2" not in result.text


def test_a_keyed_result_that_was_not_kept_is_not_made_again(tools):
    script = scripted(tools, threading.Lock(), effects="keyed", key="order_id")
    for _ in range(3):
        assert tools.run_sync("act").action == "verify"
    assert len(script.calls) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(3), asyncio.CancelledError()])
def test_what_is_no_exception_passes(tools, error):
    scripted(tools, error, effects="read")
    with pytest.raises(type(error)):
        tools.run_sync("act")


def test_a_failure_names_the_status_the_message_the_arguments_and_what_to_do(tools):
    scripted(tools, status_error(404, "no order 7"), effects="read")
    result = tools.run_sync("act", {"order_id": "7"}, call_id="c1")
    assert result.text == (
        "act failed: 404 (client): no order 7\n"
        'arguments: {"order_id": "7"}\n'
        "tried: 1 attempt\n"
        "next: It was rejected, and fails again if it is sent unchanged. Correct the arguments, "
        "or use another tool."
    )
    assert (result.action, result.attempts, result.call_id) == ("fix_arguments", 1, "c1")
    assert result.story is not None
    assert result.failure is not None
    assert result.failure.status == 404


def test_secrets_in_arguments_and_messages_are_masked(tools):
    secret = "sk-ant-api03-" + "a1B2" * 20

    @tools.tool(effects="read")
    def fetch(url: str, api_key: str) -> str:
        raise status_error(401, f"invalid x-api-key {api_key}")

    result = tools.run_sync("fetch", {"url": "https://u:p4ss@host/", "api_key": secret})
    assert secret not in result.text
    assert "p4ss" not in result.text
    assert result.action == "stop"


def test_a_model_never_reads_a_stack_trace_or_more_than_a_kilobyte(tools):
    @tools.tool(effects="read")
    def broken(text: str) -> str:
        raise KeyError(text)

    for text in ("x" * 100_000, "ü" * 100_000, "\x1b[31m" * 1000, "🎲" * 5000, "\n" * 5000):
        result = tools.run_sync("broken", {"text": text})
        assert "Traceback" not in result.text
        assert "File " not in result.text
        assert len(result.text.encode()) <= 1024
        assert "next: The tool itself is broken" in result.text
        shown = [line for line in result.text.splitlines() if line.startswith("arguments: ")]
        assert all(len(line) <= len("arguments: ") + 300 for line in shown)


def test_a_plain_function_does_not_block_the_loop(tools):
    begun, go_on = threading.Event(), threading.Event()

    @tools.tool(effects="read")
    def slow() -> str:
        begun.set()
        assert go_on.wait(5)
        return "ok"

    async def main():
        work = asyncio.create_task(tools.run("slow"))
        await asyncio.to_thread(begun.wait, 5)
        go_on.set()
        return await work

    assert asyncio.run(main()).text == "ok"


def test_ctrl_c_ends_a_plain_function_under_run_sync(tools):
    went_on = []

    @tools.tool(effects="read")
    def slow() -> str:
        signal.raise_signal(signal.SIGINT)
        went_on.append(1)
        return "done"

    with pytest.raises(KeyboardInterrupt):
        tools.run_sync("slow")
    assert went_on == []


def test_a_plain_function_under_run_sync_may_use_asyncio(tools):
    @tools.tool
    def fetch() -> str:
        return asyncio.run(asyncio.sleep(0, "fetched"))

    assert tools.run_sync("fetch").text == "fetched"


def test_an_error_of_mulligan_inside_of_a_tool_does_not_say_that_nothing_was_called(tools):
    sent = []

    @tools.tool
    def act() -> str:
        sent.append(1)
        raise mulligan.StoreDown("sqlite:x", "locked")

    result = tools.run_sync("act", call_id="a")
    assert result.action == "use_another_tool"
    assert "Nothing was called" not in result.text


@pytest.mark.parametrize("library", ["asyncio", "trio"])
def test_plain_functions_do_not_wait_for_each_other(library):
    tools, count = mulligan.Toolbox(), 60
    together = threading.Barrier(count)

    @tools.tool(effects="read")
    def meet(number: int) -> int:
        together.wait(30)
        return number

    async def on_asyncio():
        return await asyncio.gather(*(tools.run("meet", {"number": n}) for n in range(count)))

    async def on_trio():
        results = []

        async def one(number):
            results.append(await tools.run("meet", {"number": number}))

        async with trio.open_nursery() as nursery:
            for number in range(count):
                nursery.start_soon(one, number)
        return results

    results = asyncio.run(on_asyncio()) if library == "asyncio" else trio.run(on_trio)
    assert sorted(result.value for result in results) == [*range(count)]


def test_a_plain_function_that_raises_stop_iteration_does_not_hang(tools):
    @tools.tool(effects="read")
    def empty() -> str:
        return next(iter(()))

    assert asyncio.run(tools.run("empty")).is_error
    assert tools.run_sync("empty").is_error


def test_run_works_on_trio_and_run_sync_inside_of_a_loop(tools, adrive):
    script = scripted(tools, status_error(503), "ok", effects="read")

    async def main():
        inner = tools.run_sync("act")
        return inner, await tools.run("act")

    assert [result.text for result in adrive.arun(main)] == ["ok", "ok"]
    assert len(script.calls) == 3


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"effects": "safe"}, r"effects needs .*; got 'safe'"),
        ({"timeout": "5s"}, r"plain\(\) is a plain function, which cannot be cut"),
        ({"key": ("order",)}, r"key names 'order', which plain\(\) does not take; it takes order_"),
        ({"verify": lambda order: order}, r"verify needs 'order', which plain\(\) does not take"),
        ({"name": "a b"}, r"a tool needs a name of 1 to 64 letters, digits, _ and -; got 'a b'"),
    ],
)
def test_options_that_cannot_be_meant_are_refused_where_they_are_written(tools, options, error):
    def plain(order_id: str) -> str:
        return order_id

    with pytest.raises(mulligan.SettingError, match=error):
        tools.tool(**options)(plain)


def test_functions_that_cannot_be_tools_are_refused(tools):
    def by_position(x: int, /) -> int:
        return x

    def stream():
        yield 1

    def odd(x: threading.Event) -> None: ...

    for function, error in [
        (by_position, "takes 'x' by position"),
        (stream, "is a generator"),
        (odd, "has no JSON schema"),
    ]:
        with pytest.raises(mulligan.SettingError, match=error):
            tools.tool(function)
    tools.tool(name="one")(lambda: 1)
    with pytest.raises(mulligan.SettingError, match="there is a tool 'one' already"):
        tools.tool(name="one")(lambda: 2)


def test_a_timeout_shrinks_and_ends_as_the_last_error(virtual_clock):
    tools, limits = mulligan.Toolbox(budget="500s"), []

    @tools.tool(effects="read", timeout="100s")
    async def slow() -> str:
        began = virtual_clock.now()
        try:
            await asyncio.sleep(1000)
        finally:
            limits.append(round(virtual_clock.now() - began))
        return "never"

    result = virtual_clock.run(tools.run("slow"))
    assert limits == [100, 80, 64]
    assert result.text.startswith("slow failed: timeout: slow was cut at its timeout, 1m4s into")


def test_a_plain_function_takes_its_timeout_as_a_parameter_that_the_model_does_not_see(tools):
    seen = []

    @tools.tool(effects="read", timeout="10s", timeout_to="timeout")
    def fetch(url: str, timeout: float = 1) -> str:
        seen.append(timeout)
        raise TimeoutError

    assert "timeout" not in tools.tools[0].schema["properties"]
    tools.run_sync("fetch", {"url": "x"})
    assert [round(each, 1) for each in seen] == [10, 8, 6.4]


# Keys


def test_a_key_is_the_same_on_every_attempt_and_for_the_same_run_and_call_id(virtual_clock):
    keys = []
    for _ in range(2):  # the second toolbox stands for the program after a crash
        tools = mulligan.Toolbox(run="night-7", store="memory:")
        script = scripted(tools, LOST, LOST, "ok", effects="keyed")
        assert tools.run_sync("act", call_id="toolu_1").text == "ok"
        keys.append({call[1]["key"] for call in script.calls})
        break
    other = mulligan.Toolbox(run="night-7", scope="another customer")
    script = scripted(other, "ok", effects="keyed")
    other.run_sync("act", call_id="toolu_1")
    keys.append({call[1]["key"] for call in script.calls})
    assert all(len(each) == 1 for each in keys)
    assert keys[0] != keys[1]
    again = mulligan.Toolbox(run="night-7")
    script = scripted(again, "ok", effects="keyed")
    result = again.run_sync("act", call_id="toolu_1")
    assert {result.key} == keys[0]


def test_toolboxes_without_a_run_do_not_share_keys(virtual_clock):
    keys = set()
    for _ in range(2):
        tools = mulligan.Toolbox()
        scripted(tools, "ok", effects="keyed")
        keys.add(tools.run_sync("act", call_id="1").key)
    assert len(keys) == 2


def test_named_arguments_make_the_key_whatever_the_call_id(tools):
    script = scripted(tools, "charged", effects="keyed", key=("order_id",))
    first = tools.run_sync("act", {"order_id": "7"}, call_id="a")
    again = tools.run_sync("act", {"order_id": "7"}, call_id="b")
    other = tools.run_sync("act", {"order_id": "8"}, call_id="c")
    assert first.key == again.key != other.key
    assert (first.text, again.text, again.attempts) == ("charged", "charged", 0)
    assert len(script.calls) == 2


def test_one_key_for_other_arguments_is_told_to_the_model(tools):
    scripted(tools, "charged", effects="keyed", key=("order_id",))
    tools.run_sync("act", {"order_id": "7", "amount": 5})
    result = tools.run_sync("act", {"order_id": "7", "amount": 6})
    assert result.action == "verify"
    assert "this order_id stands for an earlier call with other arguments" in result.text


@pytest.mark.parametrize(
    ("kind", "one", "other"),
    [
        (pydantic.HttpUrl, "https://a.example", "https://b.example"),
        (ipaddress.IPv4Address, "10.0.0.1", "10.0.0.2"),
        (object, json.loads("[" * 99 + "1" + "]" * 99), json.loads("[" * 99 + "2" + "]" * 99)),
    ],
)
@pytest.mark.parametrize("key", [(), ("what",)])
def test_operations_on_different_things_have_different_keys(tools, kind, one, other, key):
    done = []

    async def submit(what):
        done.append(what)
        raise LOST

    submit.__annotations__["what"] = kind
    tools.tool(effects="keyed", key=key)(submit)
    keys = [tools.run_sync("submit", {"what": what}).key for what in (one, other, one)]
    assert keys[0] == keys[2] != keys[1]
    assert done[0] != done[3]  # after three attempts


def test_a_model_that_repeats_a_keyed_call_in_doubt_gets_the_same_key(tools):
    script = scripted(tools, *[LOST] * 3, "ok", effects="keyed")
    first = tools.run_sync("act", call_id="a")
    assert "again with exactly the same arguments: that cannot apply it twice" in first.text
    assert tools.run_sync("act", call_id="b").text == "ok"
    assert len({call[1]["key"] for call in script.calls}) == 1
    tools.run_sync("act", call_id="c")  # this one is meant
    assert len({call[1]["key"] for call in script.calls}) == 2


# Effects


@pytest.mark.parametrize(
    ("effects", "calls", "action"),
    [
        ("read", 3, "use_another_tool"),
        ("idempotent", 3, "use_another_tool"),
        ("keyed", 3, "verify"),
        ("unsafe", 1, "verify"),
    ],
)
def test_a_lost_connection_is_repeated_only_where_it_is_safe(tools, effects, calls, action):
    script = scripted(tools, LOST, effects=effects)
    result = tools.run_sync("act", call_id="c")
    assert (len(script.calls), result.action) == (calls, action)


def test_verify_decides_about_a_call_in_doubt(tools):
    found = [mulligan.NOT_APPLIED, {"charge": 4711}]
    asked = []

    def look(order_id: str) -> object:
        asked.append(order_id)
        return found.pop(0)

    script = scripted(tools, LOST, LOST, effects="unsafe", verify=look)
    result = tools.run_sync("act", {"order_id": "7"}, call_id="c")
    assert (result.value, result.is_error) == ({"charge": 4711}, False)
    assert asked == ["7", "7"]
    assert len(script.calls) == 2


@pytest.mark.parametrize("finding", [None, RuntimeError("down")])
def test_a_verify_that_does_not_know_tells_the_model(tools, finding):
    look = Scripted(finding)

    @tools.tool(effects="read")
    def list_charges() -> list[str]:
        return []

    script = scripted(tools, LOST, effects="unsafe", verify=lambda order_id: look())
    result = tools.run_sync("act", call_id="c")
    assert len(script.calls) == 1
    assert "checked with list_charges that it was not" in result.text


def test_an_unsafe_call_in_doubt_is_not_repeated_before_the_model_has_read(tools):
    @tools.tool(effects="read", target="act")
    def list_charges() -> list[str]:
        return []

    @tools.tool(effects="read", target="weather")
    def weather() -> str:
        return "rain"

    script = scripted(tools, LOST, "charged", effects="unsafe")
    for call_id in ("a", "b", "a"):
        result = tools.run_sync("act", call_id=call_id)
        assert result.action == "verify"
        assert "list_charges" in result.text
        assert "weather" not in result.text
    assert len(script.calls) == 1
    assert tools.run_sync("list_charges").text == "[]"
    assert tools.run_sync("act", call_id="d").text == "charged"


def test_a_model_that_was_refused_often_can_call_after_it_has_read(tools):
    @tools.tool(effects="read", target="act")
    def list_charges() -> list[str]:
        return []

    script = scripted(tools, LOST, "charged", effects="unsafe")
    for number in range(10):
        tools.run_sync("act", call_id=str(number))
    assert len(script.calls) == 1
    tools.run_sync("list_charges")
    assert tools.run_sync("act", call_id="again").text == "charged"


@pytest.mark.parametrize("options", [{"verify": "find"}, {"target": "bank"}])
def test_only_a_read_that_shows_the_effect_resolves_a_doubt(tools, options):
    @tools.tool(effects="read", target="bank")
    def find() -> str:
        return "nothing"

    @tools.tool(effects="read")
    def weather() -> str:
        return "rain"

    script = scripted(tools, LOST, "charged", effects="unsafe", **options)
    tools.run_sync("act", call_id="a")
    tools.run_sync("weather")
    assert tools.run_sync("act", call_id="b").action == "verify"
    assert len(script.calls) == 1
    tools.run_sync("find")
    assert tools.run_sync("act", call_id="c").text == "charged"


def test_a_read_that_began_before_the_doubt_does_not_resolve_it(virtual_clock):
    tools = mulligan.Toolbox()

    @tools.tool(effects="read")
    async def find() -> str:
        await asyncio.sleep(10)
        return "nothing"

    script = scripted(tools, LOST, "charged", effects="unsafe", verify="find")

    async def main():
        reading = asyncio.create_task(tools.run("find"))
        await asyncio.sleep(1)
        await tools.run("act", call_id="a")
        await reading
        return await tools.run("act", call_id="b")

    assert virtual_clock.run(main()).action == "verify"
    assert len(script.calls) == 1


def test_verify_is_asked_again_also_after_the_model_has_read(tools):
    applied = [None, "charged before"]

    @tools.tool(effects="read")
    def find() -> str:
        return "not yet"

    script = scripted(tools, LOST, effects="unsafe", verify=lambda: applied.pop(0))
    assert tools.run_sync("act", call_id="a").action == "verify"
    tools.run_sync("find")
    assert tools.run_sync("act", call_id="b").text == "charged before"
    assert len(script.calls) == 1


def test_a_call_that_was_verified_as_not_applied_is_no_longer_in_doubt(tools):
    script = scripted(
        tools,
        *(LOST, status_error(422, "too small"), "ok"),
        effects="unsafe",
        key="order_id",
        verify=lambda order_id: mulligan.NOT_APPLIED,
    )
    assert tools.run_sync("act", {"amount": 0}).action == "fix_arguments"
    assert tools.run_sync("act", {"amount": 5}).text == "ok"
    assert len(script.calls) == 3


def test_the_same_call_id_of_an_unsafe_tool_is_answered_from_its_result(tools):
    script = scripted(tools, "charged", effects="unsafe")
    assert [tools.run_sync("act", call_id="a").text for _ in range(3)] == ["charged"] * 3
    assert len(script.calls) == 1


def test_an_unsafe_call_that_was_answered_can_be_corrected(tools):
    script = scripted(
        tools, status_error(422, "amount is too small"), "ok", effects="unsafe", key="order_id"
    )
    assert tools.run_sync("act", {"amount": 0}).action == "fix_arguments"
    assert tools.run_sync("act", {"amount": 5}).text == "ok"
    assert len(script.calls) == 2


def test_calls_that_are_cancelled_leave_a_doubt(virtual_clock):
    tools, calls = mulligan.Toolbox(run="r"), []

    @tools.tool(effects="unsafe")
    async def act() -> str:
        calls.append(1)
        await asyncio.sleep(60)
        return "never"

    async def main():
        work = asyncio.create_task(tools.run("act", call_id="a"))
        await asyncio.sleep(1)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        await asyncio.sleep(100_000)
        return await tools.run("act", call_id="a")

    result = virtual_clock.run(main())
    assert len(calls) == 1
    # The key is given back by another thread, in real time.
    assert result.action in {"verify", "wait"}


def test_a_keyed_call_that_was_cancelled_keeps_its_key(virtual_clock):
    tools, keys = mulligan.Toolbox(), []

    @tools.tool(effects="keyed")
    async def act() -> str:
        context = mulligan.current()
        keys.append(context and context.key)
        if len(keys) == 1:
            await asyncio.sleep(60)
        return "charged"

    async def main():
        work = asyncio.create_task(tools.run("act", call_id="a"))
        await asyncio.sleep(1)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        return await tools.run("act", call_id="the model planned again")

    # Made or not: the key is given back by another thread, in real time.
    assert virtual_clock.run(main()).key == keys[0]
    assert len(set(keys)) == 1


# Budget


def test_a_task_of_server_errors_limits_and_resets_ends_after_thirty_seconds(virtual_clock):
    tools = mulligan.Toolbox(budget="30s")
    limit = status_error(429, "slow down", headers={"retry-after": "14"})
    busy, lost = status_error(503, "busy"), ConnectionResetError("reset the second time")
    script = scripted(tools, busy, limit, LOST, limit, busy, lost, effects="read")
    result = tools.run_sync("act")
    assert 28 < virtual_clock.now() <= 30
    assert result.error is lost
    assert result.text.startswith("act failed: network: reset the second time\n")
    assert "tried: 6 attempts, 29.2s of waiting; the time for retries is used up" in result.text
    assert len(script.calls) == 6


def test_the_calls_of_a_task_share_one_budget(virtual_clock):
    tools = mulligan.Toolbox(budget="30s", repeats=100)
    scripted(tools, status_error(429, headers={"retry-after": "9"}), effects="read", target="shop")
    with tools.task():
        results = [tools.run_sync("act", {"amount": n}) for n in range(10)]
    assert virtual_clock.now() <= 30
    assert all(result.action == "wait" for result in results)


def test_a_limit_that_ends_beyond_the_budget_is_not_waited_for(tools, virtual_clock):
    scripted(tools, status_error(429, headers={"retry-after": "3600"}), effects="read")
    result = tools.run_sync("act")
    assert virtual_clock.now() == 0
    assert result.retry_at == virtual_clock.wall() + 3600
    assert "Do not call act before 2026-01-01 01:00:00 UTC (in 1h)." in result.text


# Open circuits


def test_an_open_circuit_answers_at_once_and_with_the_fallback(virtual_clock):
    tools = mulligan.Toolbox(repeats=100)
    script = scripted(tools, status_error(503), effects="read", fallback="cached")

    @tools.tool(effects="read")
    def cached(order_id: str = "7", amount: int = 5) -> str:
        return f"{order_id} from the cache"

    plain = mulligan.Toolbox(repeats=100)
    scripted(plain, status_error(503), effects="read", target="act")
    while not isinstance((result := plain.run_sync("act")).error, mulligan.CircuitOpen):
        assert virtual_clock.now() < 200
    made, at = len(script.calls), virtual_clock.now()
    assert "is known to be down and was not called. Use another tool; do not" in result.text
    answer = tools.run_sync("act", {"order_id": "8"})
    assert (answer.text, answer.tool, answer.answered_by) == ("8 from the cache", "act", "cached")
    assert (len(script.calls), virtual_clock.now()) == (made, at)


def test_a_fallback_that_may_have_been_applied_is_told(tools):
    sent = []

    @tools.tool(effects="read", fallback="other")
    def act() -> str:
        raise mulligan.CircuitOpen("act", 60.0, "5 failures in a row")

    @tools.tool(effects="unsafe")
    def other() -> str:
        sent.append(1)
        raise LOST

    result = tools.run_sync("act", call_id="a")
    assert (result.action, sent) == ("verify", [1])
    assert result.text.startswith("other failed: network")


# Loops


def test_identical_failures_are_told_to_change_then_to_stop(tools):
    script = scripted(tools, status_error(404, "no order"), effects="read")
    texts = [tools.run_sync("act", call_id=str(n)).text for n in range(8)]
    assert [text.count("The same call has failed") for text in texts] == [0, 0, 1, 1, 1, 1, 1, 1]
    assert "has failed 3 times. Do not send it unchanged" in texts[2]
    assert "Stop. The same call has failed 6 times and was not made again." in texts[6]
    assert len(script.calls) == 6
    assert "Stop." not in tools.run_sync("act", {"amount": 9}).text


def test_what_changes_the_world_makes_a_repeat_worth_trying(tools):
    script = scripted(tools, status_error(404, "no order"), effects="read")

    @tools.tool(effects="unsafe")
    def create_order() -> str:
        return "created"

    for _ in range(7):
        tools.run_sync("act")
    assert len(script.calls) == 6
    tools.run_sync("create_order", call_id="x")
    tools.run_sync("act")
    assert len(script.calls) == 7


def test_loops_of_one_run_are_not_those_of_another_and_are_forgotten(tools, virtual_clock):
    script = scripted(tools, status_error(404, "no order"), effects="read")
    for _ in range(7):
        tools.run_sync("act", run="one")
    tools.run_sync("act", run="two")
    assert len(script.calls) == 7
    virtual_clock.advance("10m")
    tools.run_sync("act", run="one")
    assert len(script.calls) == 8


def test_invented_tools_and_bad_arguments_count_as_well(tools):
    texts = [tools.run_sync("imagined").text for _ in range(3)]
    assert "has failed 3 times" in texts[-1]
    scripted(tools, "ok")
    texts = [tools.run_sync("act", {"x": 1}).text for _ in range(3)]
    assert "has failed 3 times" in texts[-1]
    for name in ("imagined", "act"):
        results = [tools.run_sync(name, {"y": 1}) for _ in range(8)]
        assert [result.action == "stop" for result in results] == [False] * 6 + [True] * 2


def test_failures_are_counted_by_many_threads():
    repeats = Repeats(limit=3)

    def fail():
        for _ in range(200):
            repeats.failed("call", now=0.0)

    threads = [threading.Thread(target=fail) for _ in range(20)]
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    finally:
        sys.setswitchinterval(before)
    assert repeats.failures("call", now=0.0) == 4000


def test_three_hundred_calls_of_one_operation_have_one_effect(virtual_clock):
    tools, effects = mulligan.Toolbox(), []

    @tools.tool(effects="unsafe", key="order_id")
    def charge(order_id: str) -> str:
        effects.append(order_id)
        return "charged"

    async def main():
        return await asyncio.gather(
            *(tools.run("charge", {"order_id": str(n % 3)}, call_id=str(n)) for n in range(300))
        )

    results = virtual_clock.run(main())
    assert {result.text for result in results} == {"charged"}
    assert sorted(effects) == ["0", "1", "2"]


def test_events_carry_the_name_of_the_tool(virtual_clock):
    heard: list[mulligan.Event] = []
    tools = mulligan.Toolbox(listeners=[heard.append])
    scripted(tools, LOST, status_error(429), "well", name="refund", effects="idempotent")
    assert tools.run_sync("refund").text == "well"
    failed = [each for each in heard if isinstance(each, mulligan.Failed)]
    assert [each.failure.kind for each in failed] == ["network", "rate_limit"]
    assert {(each.name, each.target) for each in heard} == {("refund", "refund")}
    assert len({each.request_id for each in heard}) == 1
    assert isinstance(heard[-1], mulligan.Recovered)
