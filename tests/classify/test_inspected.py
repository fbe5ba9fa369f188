"""Bodies as Node prints them."""

from __future__ import annotations

import pytest

from mulligan.classify.output.inspected import inspected_object


def test_a_body_is_read_where_it_begins():
    text = "call failed { status: 429, error: { code: 'busy', param: null } } and more"
    assert inspected_object(text, 12) == (
        {"status": 429, "error": {"code": "busy", "param": None}},
        len(text) - len(" and more"),
    )


def test_a_long_string_is_printed_in_pieces():
    text = "{\n  message: 'slow ' +\n    \"down, it's busy\",\n  ok: false\n}"
    assert inspected_object(text, 0) == (
        {"message": "slow down, it's busy", "ok": False},
        len(text),
    )


def test_what_the_runtime_leaves_out_is_no_obstacle():
    text = "{ at: 2026-01-02T03:04:05.678Z, cause: [Object], retry: [Function: retry], n: [ 1.5 ] }"
    found = inspected_object(text, 0)
    assert found is not None
    assert found[0]["n"] == [1.5]


@pytest.mark.parametrize(
    "text",
    [
        "{ never: 'ends",
        "{ status: response.status }",
        "{ message: describe(error) }",
        "{ message: `limit of ${plan}` }",
        '{"json": "is read elsewhere"}',
        "{ deep: " + "[" * 60 + "]" * 60 + " }",
        "{ a: 1 b: 2 }",
    ],
)
def test_source_code_is_no_body(text):
    assert inspected_object(text, 0) is None
