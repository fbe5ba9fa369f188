"""Bodies as Python prints them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.classify.output.literals import python_object

SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=20)
BODIES = st.dictionaries(
    st.text(min_size=1, max_size=8), st.lists(SCALARS, max_size=3) | SCALARS, min_size=1, max_size=4
)


def test_a_body_is_read_where_it_begins():
    text = "Error code: 429 - {'error': {'code': 'busy', 'param': None}} and more"
    assert python_object(text, 18) == ({"error": {"code": "busy", "param": None}}, 60)


def test_a_body_may_be_wrapped_inside_a_string():
    assert python_object("{'message': 'slow\ndown'}", 0) == ({"message": "slow down"}, 24)


@given(body=BODIES)
def test_whatever_python_prints_is_read_back(body):
    text = repr(body)
    found = python_object(text, 0)
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
    assert python_object(text, 0) is None


@given(text=st.text(alphabet="{}[]()'\"\\:, aN1\n", max_size=200))
def test_no_text_makes_it_raise(text):
    python_object("{'" + text, 0)
