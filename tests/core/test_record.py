from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, field, fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from mulligan.core.record import record


@record()
class Point:
    x: float
    y: float = 0.0
    marks: tuple[str, ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True)
class Twin:
    x: float
    y: float = 0.0
    marks: tuple[str, ...] = field(default=(), repr=False)


@record(kw_only=True)
class Named:
    name: str
    tags: list[str] = field(default_factory=list)

    def __post_init__(self):
        if not self.name:
            raise ValueError("a name is needed")


# What a type checker would refuse is tried here.
unchecked: Any = Point
named_only: Any = Named

numbers = st.integers(-3, 3)


@given(st.lists(numbers, max_size=4), st.dictionaries(st.sampled_from(["x", "y", "z"]), numbers))
def test_a_record_takes_the_arguments_that_a_dataclass_takes(args, named):
    try:
        twin = Twin(*args, **named)
    except TypeError:
        with pytest.raises(TypeError):
            unchecked(*args, **named)
    else:
        assert asdict(unchecked(*args, **named)) == asdict(twin)


@given(st.tuples(numbers, numbers), st.tuples(numbers, numbers))
def test_records_are_equal_and_hash_as_their_fields_do(one, other):
    assert (Point(*one) == Point(*other)) is (one == other)
    assert one != other or hash(Point(*one)) == hash(Point(*other))
    assert unchecked(*one) != Twin(*one)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (unchecked, r"Point\(\) needs x"),
        (lambda: unchecked(1, z=2), r"Point\(\) takes no z"),
        (lambda: unchecked(1, x=2), r"Point\(\) takes x, y, marks"),
        (lambda: unchecked(1, 2, (), 4), r"Point\(\) takes x, y, marks"),
        (lambda: named_only("n"), r"Named\(\) takes named arguments only"),
    ],
)
def test_a_wrong_argument_is_named(make, message):
    with pytest.raises(TypeError, match=f"^{message}$"):
        make()


def test_a_record_is_frozen():
    point = unchecked(1)
    with pytest.raises(FrozenInstanceError, match=r"^cannot change the field 'x' of a Point$"):
        point.x = 2
    with pytest.raises(FrozenInstanceError):
        del point.x
    assert not hasattr(point, "__dict__")


def test_a_default_is_made_for_each_record_and_fields_are_checked():
    assert Named(name="a").tags is not Named(name="b").tags
    with pytest.raises(ValueError, match=r"^a name is needed$"):
        Named(name="")


def test_a_record_is_a_dataclass_to_those_who_ask():
    point = Point(1, marks=("m",))
    assert [each.name for each in fields(point)] == ["x", "y", "marks"]
    assert replace(point, y=2) == Point(1, 2, ("m",))
    assert repr(point) == "Point(x=1, y=0.0)"
    assert pickle.loads(pickle.dumps(point)) == point  # noqa: S301 -- our own
    match point:
        case Point(x, y):
            assert (x, y) == (1, 0.0)


def test_pydantic_reads_and_checks_a_record():
    adapter = TypeAdapter(Named)
    assert adapter.validate_python({"name": "a", "tags": ["b"]}) == Named(name="a", tags=["b"])
    with pytest.raises(ValidationError, match="a name is needed"):
        adapter.validate_python({"name": ""})
