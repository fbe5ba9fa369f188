"""Execute, verify, execute again with what was wrong; in virtual time."""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import pydantic
import pytest

import mulligan
from mulligan.testing import Scripted, status_error
from mulligan.tools.json_schema import JsonSchema
from mulligan.tools.verifiers import Command, verification_of

LOST = ConnectionResetError("reset by peer")


@pytest.fixture(params=["sync", "asyncio"])
def correct(request, virtual_clock):
    """`mulligan.correct` on a plain function, and on a coroutine function."""

    def run(execute, verify, **options: Any):
        if request.param == "sync":
            return mulligan.correct(execute, verify, **options)

        async def main():
            async def aexecute(correction):
                return execute(correction)

            return await mulligan.correct(aexecute, verify, **options)

        return virtual_clock.run(main())

    return run


def test_an_attempt_that_passes_is_the_only_one(correct, virtual_clock):
    done = correct(lambda correction: 42, lambda result: result == 42)
    result, passed = done
    assert (result, passed, done.attempts, done.evidence) == (42, True, 1, ())
    assert virtual_clock.now() == 0


def test_what_was_wrong_is_told_to_the_next_attempt_after_two_and_four_seconds(
    correct, virtual_clock
):
    told = []

    def execute(correction):
        told.append(correction)
        return f"draft {correction.attempt}"

    def verify(result):
        return [] if result == "draft 3" else [f"{result} has no title", "too long"]

    done = correct(execute, verify)
    assert tuple(done) == ("draft 3", True)
    assert virtual_clock.sleeps == [2, 4]
    assert told[0].previous_attempts == ()
    assert told[0].correction_guidance == ""
    assert (
        told[2].previous_attempts
        == done.evidence
        == (
            {
                "attempt": 1,
                "result_summary": "draft 1",
                "failure_reasons": ["draft 1 has no title", "too long"],
            },
            {
                "attempt": 2,
                "result_summary": "draft 2",
                "failure_reasons": ["draft 2 has no title", "too long"],
            },
        )
    )
    assert told[2].correction_guidance == (
        "Attempt 2 of 3 did not pass:\n- draft 2 has no title\n- too long\n"
        "Correct this, and keep what was right."
    )
    assert [decision.delay for decision in done.decisions] == [2, 4]


def test_the_fourth_attempt_comes_after_eight_seconds_and_the_last_result_is_returned(
    correct, virtual_clock
):
    done = correct(lambda correction: correction.attempt, lambda result: False, attempts=4)
    assert tuple(done) == (4, False)
    assert virtual_clock.sleeps == [2, 4, 8]
    assert done.because == "attempt 4 of 4 did not pass"
    assert len(done.evidence) == 4


def test_a_result_that_stays_the_same_is_told_so(correct):
    told = []

    def execute(correction):
        told.append(correction.correction_guidance)
        return "same"

    correct(execute, lambda result: "wrong")
    assert "The result is the same as in attempt 1: do it differently." in told[2]


@pytest.mark.parametrize("names", ["both", "one", "none", "all"])
def test_execute_is_given_what_it_takes_by_name(virtual_clock, names):
    seen: list[Any] = []

    def both(previous_attempts, correction_guidance=""):
        seen.append((previous_attempts, correction_guidance))

    def one(attempt):
        seen.append(attempt)

    def none():
        seen.append(None)

    def all_of_it(**known):
        seen.append(sorted(known))

    execute: Any = {"both": both, "one": one, "none": none, "all": all_of_it}[names]
    mulligan.correct(execute, lambda result: "no", attempts=2)
    expected = {
        "one": 2,
        "none": None,
        "all": ["attempt", "correction", "correction_guidance", "previous_attempts"],
    }
    if names == "both":
        assert seen[1][0] == [{"attempt": 1, "result_summary": "None", "failure_reasons": ["no"]}]
    else:
        assert seen[1] == expected[names]


def test_failures_of_the_transport_are_retried_and_are_no_corrections(correct, virtual_clock):
    script = Scripted(status_error(503), LOST, "bad", LOST, "good")
    done = correct(
        lambda correction: script(correction.attempt),
        lambda result: result == "good" or "not good",
        effects="read",
    )
    assert tuple(done) == ("good", True)
    assert [args[0] for args, _ in script.calls] == [1, 1, 1, 2, 2]
    assert done.attempts == 2
    assert len(virtual_clock.sleeps) == 4


def test_an_unsafe_execution_in_doubt_is_not_repeated(correct):
    script = Scripted(LOST, "good")
    with pytest.raises(ConnectionResetError):
        correct(lambda correction: script(), lambda result: True)
    assert len(script.calls) == 1


def test_one_budget_for_retries_waits_and_attempts(correct, virtual_clock):
    def execute(correction):
        virtual_clock.advance(5)
        return correction.attempt

    done = correct(execute, lambda result: False, attempts=10, budget="30s")
    # 5 | 2+5 | 4+5 | 8+5 = 29 s after the first; another wait does not fit
    assert done.attempts == 4
    assert done.because == "attempt 4 of 10 did not pass, and the budget is used up"
    assert virtual_clock.now() == 34


def test_a_budget_that_ends_in_a_retry_ends_with_the_real_error(correct, virtual_clock):
    real = status_error(429, "slow down", headers={"retry-after": "20"})
    script = Scripted("bad", real, real, "good")
    with pytest.raises(type(real), match="slow down"):
        correct(lambda c: script(), lambda result: result == "good", effects="read", budget="30s")
    assert virtual_clock.now() <= 30


def test_a_422_that_can_be_corrected_is_corrected(correct):
    body = {"is_retriable": True, "errors": [{"loc": ["amount"], "msg": "must be positive"}]}
    script = Scripted(status_error(422, "invalid", body=body), "good")
    told = []

    def execute(correction):
        told.append(correction.correction_guidance)
        return script()

    done = correct(execute, lambda result: True)
    assert tuple(done) == ("good", True)
    assert "- amount: must be positive" in told[1]
    assert done.evidence[0]["result_summary"] == "rejected by the service"


def test_a_422_that_stays_ends_without_a_result_and_with_its_error(correct):
    error = status_error(422, "invalid", body={"is_retriable": True, "detail": "no such sku"})
    done = correct(Scripted(error), lambda result: True, attempts=2)
    assert tuple(done) == (None, False)
    assert done.error is error


@pytest.mark.parametrize(
    "error", [status_error(422, "final"), status_error(401), KeyError("bug"), ValueError("bug")]
)
def test_what_cannot_be_corrected_is_raised(correct, error):
    script = Scripted(error)
    with pytest.raises(type(error)) as caught:
        correct(lambda correction: script(), lambda result: True)
    assert caught.value is error
    assert len(script.calls) == 1


def test_what_verify_raises_is_raised(correct):
    def verify(result):
        raise KeyError("a bug in verify")

    with pytest.raises(KeyError, match="a bug in verify"):
        correct(lambda correction: 1, verify)


class Order(pydantic.BaseModel):
    sku: str
    count: int = pydantic.Field(gt=0)


def test_a_pydantic_model_verifies_text_and_objects(correct):
    script = Scripted('{"sku": "a"', '{"sku": "a", "count": 0}', '{"sku": "a", "count": 2}')
    done = correct(lambda correction: script(), Order)
    assert done.passed
    assert done.result == '{"sku": "a", "count": 2}'
    assert done.parsed == Order(sku="a", count=2)
    reasons = [each["failure_reasons"] for each in done.evidence]
    assert "Invalid JSON" in reasons[0][0]
    assert reasons[1] == ["count: Input should be greater than 0"]
    assert correct(lambda correction: {"sku": "a", "count": 1}, Order).passed


SCHEMA = {
    "type": "object",
    "properties": {
        "sku": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 3},
        "count": {"type": ["integer", "null"], "minimum": 1},
        "tags": {"type": "array", "items": {"enum": ["new", "old"]}, "maxItems": 2},
        "to": {"$ref": "#/$defs/address"},
    },
    "required": ["sku"],
    "additionalProperties": False,
    "$defs": {"address": {"anyOf": [{"type": "string"}, {"type": "object"}]}},
}


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ({"sku": "abc", "count": 1, "tags": ["new"], "to": {}}, []),
        ({"sku": "abc", "count": None, "to": "x"}, []),
        ({"sku": "a", "count": 2.0}, []),
        ({}, ["$.sku is missing"]),
        ([], ["$ must be object; it is array"]),
        ({"sku": 7}, ["$.sku must be string; it is number"]),
        ({"sku": "ABCD"}, ["$.sku has over 3 characters", "$.sku must match ^[a-z]+$"]),
        ({"sku": "a", "count": True}, ["$.count must be integer or null; it is boolean"]),
        ({"sku": "a", "count": 0}, ["$.count must be at least 1"]),
        ({"sku": "a", "tags": ["mid"]}, ["$.tags[0] must be one of 'new', 'old'; it is 'mid'"]),
        ({"sku": "a", "tags": ["new"] * 3}, ["$.tags has more than 2 items"]),
        ({"sku": "a", "x": 1}, ["$.x is unknown"]),
        ({"sku": "a", "to": 7}, ["$.to fits none of 2 forms ($.to must be string; it is number)"]),
    ],
)
def test_a_json_schema_says_what_is_wrong_and_where(value, wrong):
    assert sorted(JsonSchema(SCHEMA).wrong(value)) == sorted(wrong)


def test_a_json_schema_verifies_text(correct):
    script = Scripted("no JSON", '{"sku": "A"}', '{"sku": "a"}')
    done = correct(lambda correction: script(), SCHEMA)
    assert (done.passed, done.parsed) == (True, {"sku": "a"})
    assert done.evidence[1]["failure_reasons"] == ["$.sku must match ^[a-z]+$"]


def test_a_schema_that_is_not_checked_in_full_is_refused():
    with pytest.raises(mulligan.SettingError, match="uses 'dependentRequired', which is not"):
        mulligan.correct(lambda: 1, {"properties": {"a": {"dependentRequired": {}}}})


@pytest.mark.real
def test_a_command_verifies_by_its_exit_code(correct, tmp_path):
    script = (
        "import pathlib, sys; sys.exit(f'no {p}' if not (p := pathlib.Path('x')).exists() else 0)"
    )

    def execute(correction):
        if correction.attempt == 2:
            (tmp_path / "x").touch()
        return "written"

    done = correct(execute, Command([sys.executable, "-c", script], cwd=tmp_path))
    assert (done.passed, done.attempts) == (True, 2)
    first, second = done.evidence[0]["failure_reasons"]
    assert first.endswith("exited with 1")
    assert second == "no x"


@pytest.mark.real
def test_a_command_that_takes_too_long_is_ended(virtual_clock):
    slow = Command(["sleep", "60"], timeout="200ms")
    done = mulligan.correct(lambda: 1, slow, attempts=1)
    assert done.evidence[0]["failure_reasons"] == ["sleep 60 was ended after 200ms"]


@pytest.mark.real
def test_a_command_is_ended_with_its_caller(tmp_path):
    mark = tmp_path / "pid"
    slow = Command(["sh", "-c", f"echo $$ > {mark}; sleep 60"])

    async def execute():
        return 1

    async def main():
        work = asyncio.create_task(mulligan.correct(execute, slow))
        while not (mark.exists() and mark.read_text().strip()):  # noqa: ASYNC110 -- another process
            await asyncio.sleep(0.01)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work

    asyncio.run(main())
    with pytest.raises(ProcessLookupError):
        os.kill(int(mark.read_text()), 0)


@pytest.mark.parametrize(
    ("answer", "reasons"),
    [
        (True, ()),
        (None, ()),
        ("", ()),
        ([], ()),
        ((True, ["ignored"]), ()),
        (False, ("the result did not pass",)),
        ("too long", ("too long",)),
        (["a", "b"], ("a", "b")),
        ((False, "a"), ("a",)),
        ((False, []), ("the result did not pass",)),
    ],
)
def test_a_function_may_say_it_in_many_ways(answer, reasons):
    assert verification_of(answer).reasons == reasons


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: mulligan.correct(lambda: 1, 7), "verify needs a function, a pydantic model"),
        (lambda: mulligan.correct(lambda: 1, lambda _: 7), "verify needs to return True, False"),
        (lambda: mulligan.correct(lambda a, b: 1, bool), "execute takes a, b; it is given"),
        (lambda: mulligan.correct(lambda: 1, bool, attempts=0), "attempts needs a whole number"),
        (lambda: mulligan.correct(lambda: 1, ["ls", 7]), "a command needs a list of words"),
        (
            lambda: mulligan.correct(lambda: 1, asyncio.sleep),
            "verify is async, so execute",
        ),
    ],
)
def test_what_cannot_be_meant_is_refused(virtual_clock, call, error):
    with pytest.raises(mulligan.SettingError, match=f"^{error}"):
        call()


def test_secrets_and_long_results_do_not_go_into_the_next_prompt(correct):
    key = "sk-ant-api03-" + "a1B2" * 20
    done = correct(lambda c: f"key={key} " + "x" * 9999, lambda result: f"wrong: {result}")
    assert key not in str(done.evidence)
    assert all(len(each["result_summary"]) <= 500 for each in done.evidence)
