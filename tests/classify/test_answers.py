from __future__ import annotations

from types import SimpleNamespace

import pytest

from mulligan.classify.classifier import classifier
from mulligan.classify.http import judge_response
from mulligan.core.failure import Kind

NOW = 1_794_772_800.0
DATE = "Sun, 15 Nov 2026 20:00:00 GMT"


def answer(status: object, body: object = b"", **headers: str) -> SimpleNamespace:
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return SimpleNamespace(status_code=status, headers=names, _content=body)


def test_a_good_answer_is_no_failure():
    assert judge_response(answer(200, b'{"id": 1}'), now=NOW) is None


def test_a_bad_status_is_a_failure():
    failure = judge_response(answer(503), now=NOW)
    assert failure is not None
    assert (failure.kind, failure.status) == (Kind.SERVER, 503)


def test_an_error_inside_a_200_is_a_failure():
    failure = judge_response(answer(200, b'{"error": {"type": "overloaded_error"}}'), now=NOW)
    assert failure is not None
    assert failure.kind is Kind.OVERLOADED


@pytest.mark.parametrize(
    "result",
    [
        None,
        "503",
        503,
        {"status_code": 503},
        [],
        object(),
        SimpleNamespace(status_code=503),  # no headers: perhaps a row of a table
        SimpleNamespace(status="failed", headers={}),
        SimpleNamespace(status=True, headers={}),
    ],
)
def test_what_is_no_response_is_an_answer(result):
    assert judge_response(result, now=NOW) is None


def test_without_a_clock_the_answers_own_date_is_used():
    stated = "Sun, 15 Nov 2026 20:00:40 GMT"
    told = judge_response(answer(429, retry_after=stated, date=DATE))
    assert told is not None
    assert told.hint is not None
    assert told.hint.delay == 40
    untold = judge_response(answer(429, retry_after=stated))
    assert untold is not None
    assert untold.hint is None
    duration = judge_response(answer(429, retry_after="40"))
    assert duration is not None
    assert duration.hint is not None


def test_an_object_that_explodes_when_looked_at_is_an_answer():
    class Booby:
        def __getattribute__(self, name: str) -> object:
            raise RuntimeError(name)

    assert judge_response(Booby(), now=NOW) is None


def test_ones_own_codes_count_here_too():
    knowing = classifier.adding(codes={"E17": "conditional"})
    failure = knowing.judge(answer(400, b'{"error": {"code": "E17"}}'), now=NOW)
    assert failure is not None
    assert failure.kind is Kind.CONDITIONAL
