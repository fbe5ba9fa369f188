"""Bodies as Python and Node print them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.classify.output.printed_objects import printed_object

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=20)
BODIES = st.dictionaries(
    st.text(min_size=1, max_size=8), st.lists(SCALARS, max_size=3) | SCALARS, min_size=1, max_size=4
)


def test_a_body_is_read_where_it_begins():
    text = "Error code: 429 - {'error': {'code': 'busy', 'param': None}} and more"
    assert printed_object(text, 18) == ({"error": {"code": "busy", "param": None}}, 60)


def test_a_body_may_be_wrapped_inside_a_string():
    assert printed_object("{'message': 'slow\ndown'}", 0) == ({"message": "slow down"}, 24)


@given(body=BODIES)
def test_whatever_python_prints_is_read_back(body):
    text = repr(body)
    found = printed_object(text, 0)
    assert found is None or found == (body, len(text))


@pytest.mark.parametrize(
    "text",
    [
        "{'never': 'ends",
        "{'a': {'b': [}",
        "{'call': open('x')}",
        '{"json": "is read elsewhere"}',
        "{'deep': " + "[" * 60 + "]" * 60 + "}",
        "{'" + "\\'" * 20_000,
        "no body",
    ],
)
def test_anything_else_is_no_body(text):
    assert printed_object(text, 0) is None


@given(text=st.text(alphabet="{}[]()'\"\\:, aN1\n", max_size=200))
def test_no_text_makes_it_raise(text):
    printed_object("{'" + text, 0)


def test_a_body_is_read_where_it_begins_in_javascript():
    text = "call failed { status: 429, error: { code: 'busy', param: null } } and more"
    assert printed_object(text, 12) == (
        {"status": 429, "error": {"code": "busy", "param": None}},
        len(text) - len(" and more"),
    )


def test_a_long_string_is_printed_in_pieces():
    text = "{\n  message: 'slow ' +\n    \"down, it's busy\",\n  ok: false\n}"
    assert printed_object(text, 0) == (
        {"message": "slow down, it's busy", "ok": False},
        len(text),
    )


def test_what_the_runtime_leaves_out_is_no_obstacle():
    text = "{ at: 2026-01-02T03:04:05.678Z, cause: [Object], retry: [Function: retry], n: [ 1.5 ] }"
    found = printed_object(text, 0)
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
    assert printed_object(text, 0) is None
