from __future__ import annotations

import json
import unicodedata
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from enum import Enum, StrEnum
from fractions import Fraction
from pathlib import PurePosixPath
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.errors import SettingError
from mulligan.once.fingerprint import canonical, digest


def same(one: object, other: object) -> bool:
    return digest(canonical(one, name="it")) == digest(canonical(other, name="it"))


class Colour(Enum):
    RED = "red"


class Word(StrEnum):
    RED = "red"


@dataclass
class Order:
    id: int
    lines: list[str]


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
numbers = (
    st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.decimals(allow_nan=False, allow_infinity=False, places=3)
    | st.fractions()
)


@given(value=plain)
def test_what_was_sent_as_json_is_what_it_was(value):
    assert same(value, json.loads(json.dumps(value)))


@given(one=numbers, other=numbers)
def test_numbers_are_the_same_if_they_are_equal(one, other):  # E-F9
    assert same(one, other) == (one == other)


@given(one=plain, other=plain)
def test_what_differs_as_json_differs(one, other):
    def spelled(value):
        text = json.dumps(value, sort_keys=True, ensure_ascii=False)
        return unicodedata.normalize("NFC", text)

    if same(one, other):
        assert _as_python(one) == _as_python(other)
    elif spelled(one) == spelled(other):
        pytest.fail("the same JSON, and two forms")


def _as_python(value):
    """Equal in Python and as JSON: True is not 1 there, and é is é."""
    if isinstance(value, bool) or value is None:
        return ("constant", value)
    if isinstance(value, str):
        return unicodedata.normalize("NFC", value)
    if isinstance(value, list):
        return [_as_python(each) for each in value]
    if isinstance(value, dict):
        return sorted((_as_python(k), repr(_as_python(v))) for k, v in value.items())
    return Fraction(value) if value not in (float("inf"), float("-inf")) else value


@given(items=st.dictionaries(st.text(), st.integers()), luck=st.randoms())
def test_the_order_of_keys_makes_no_difference(items, luck):  # E-F9
    shuffled = list(items.items())
    luck.shuffle(shuffled)
    assert same(items, dict(shuffled))


@given(words=st.text())
def test_the_spelling_of_letters_makes_no_difference(words):  # E-F9
    assert same(words, unicodedata.normalize("NFD", words))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, 1.0),
        (1, Decimal("1.00")),
        (0.0, -0.0),
        ((1, 2), [1, 2]),
        ({1, 2}, frozenset([2, 1])),
        (b"ab", bytearray(b"ab")),
        (
            datetime(2026, 1, 1, 12, tzinfo=UTC),
            datetime(2026, 1, 1, 13, tzinfo=timezone(timedelta(hours=1))),
        ),
        (Order(1, ["a"]), Order(True + 0, list("a"))),
        (Decimal("1e5000"), Decimal("10e4999")),
    ],
)
def test_these_mean_the_same(one, other):
    assert same(one, other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (1, "1"),
        (1, True),
        (0, False),
        (0, None),
        ("", None),
        ([], {}),
        ([], ""),
        ([[1], 2], [1, [2]]),
        ({"a": 1}, [["a", 1]]),
        ("red", Colour.RED),
        (Word.RED, Colour.RED),
        ("a", PurePosixPath("a")),
        (str(UUID(int=1)), UUID(int=1)),
        (b"a", "a"),
        (0.1, Decimal("0.1")),
        (float("inf"), float("-inf")),
        (10**400, float("inf")),
        (datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC)),  # noqa: DTZ001 -- the point
        (timedelta(1), 86400),
        (["list", 1], [1]),
        (["number", "1"], 1),
        (Decimal("1e5000"), Decimal("1e5001")),
        (Decimal("1." + "1" * 40 + "1e5000"), Decimal("1." + "1" * 40 + "2e5000")),
        (Decimal("1e5000"), Decimal("-1e5000")),
    ],
)
def test_these_only_look_alike(one, other):
    assert not same(one, other)


def test_nan_is_refused_because_it_is_equal_to_nothing():
    for value in (float("nan"), Decimal("NaN"), Decimal("sNaN")):
        with pytest.raises(SettingError, match=r"^amount holds NaN, which is equal to nothing$"):
            canonical([value], name="amount")


def test_what_nobody_can_compare_is_refused_with_what_to_do():
    with pytest.raises(
        SettingError,
        match=r"^client holds a builtins\.object, and two of these cannot be "
        r"compared; exclude=\('client',\), or give the call a key of its own$",
    ):
        canonical({"a": object()}, name="client")
    assert canonical(object(), name="client", is_strict=False) == ["opaque", "builtins.object"]


def test_a_list_that_contains_itself_is_refused():
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(SettingError, match="nested more than 64 deep"):
        canonical(endless, name="it")


def test_a_list_that_doubles_with_each_level_is_refused_in_time():
    value: list[object] = []
    for _ in range(60):
        value = [value, value]
    with pytest.raises(
        SettingError, match=r"^it holds more than 100000 values; give the call a key of its own$"
    ):
        canonical(value, name="it")
    assert canonical(value, name="it", is_strict=False) == ["opaque", "builtins.list"]


class Spiteful:
    """Raises whenever it is asked anything."""

    def _no(self, *args):
        raise ZeroDivisionError

    __getattr__ = __repr__ = __str__ = __eq__ = __hash__ = __iter__ = __len__ = __bool__ = _no


class SpitefulNumber(Spiteful):
    __index__ = as_integer_ratio = Spiteful._no


class SpitefulPath(Spiteful):
    __fspath__ = model_dump = Spiteful._no


class SpitefulMap(dict[str, int]):
    def items(self):
        raise ZeroDivisionError


class SpitefulMeta(type):
    def __getattribute__(cls, name):
        if name == "__qualname__":
            raise ZeroDivisionError
        return super().__getattribute__(name)


class Nameless(metaclass=SpitefulMeta):
    pass


class Elsewhere(tzinfo):
    def utcoffset(self, when):
        raise ZeroDivisionError

    dst = tzname = utcoffset


def nowhere() -> datetime:
    return datetime(2026, 1, 1, tzinfo=Elsewhere())


def endless() -> list[object]:
    value: list[object] = []
    value.extend([value, value])
    return value


anything: st.SearchStrategy[object] = st.recursive(
    st.one_of(
        st.none(),
        st.text(st.characters(exclude_categories=())),  # lone surrogates, too
        st.binary(),
        st.floats(),
        st.decimals(allow_nan=True),
        st.builds(lambda power: -(10**power), st.integers(0, 6000)),
        st.builds(lambda power: Decimal(f"{'9' * 2000}e{power}"), st.integers(-(10**6), 10**6)),
        st.complex_numbers(),
        st.datetimes(),
        st.timedeltas(),
        st.sampled_from(
            [
                datetime.min.replace(tzinfo=timezone(timedelta(hours=5))),
                Decimal("sNaN"),
                int,
                Colour,
                json,
                len,
                NotImplemented,
                memoryview(b"ab"),
            ]
        ),
        st.builds(
            lambda made: made(),
            st.sampled_from(
                [Spiteful, SpitefulNumber, SpitefulPath, SpitefulMap, Nameless, endless, nowhere]
            ),
        ),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.tuples(inner, inner),
        st.dictionaries(st.text(), inner, max_size=3),
        st.builds(Order, inner, inner),
    ),
    max_leaves=6,
)


@given(value=anything)
def test_whatever_it_is_the_only_error_is_the_documented_one(value):
    with suppress(SettingError):
        digest(canonical(value, name="it"))
    digest(canonical(value, name="it", is_strict=False))


def test_a_value_that_raises_when_it_is_read_is_refused_with_what_to_do():
    with pytest.raises(
        SettingError,
        match=r"^it holds something that cannot be read \(ZeroDivisionError\); exclude=\('it',\), "
        r"or give the call a key of its own$",
    ):
        canonical([SpitefulNumber()], name="it")


def test_a_pydantic_model_is_known_by_its_fields():
    from pydantic import BaseModel

    class Model(BaseModel):
        a: int
        b: str = "x"

    assert same(Model(a=1), Model(a=1, b="x"))
    assert not same(Model(a=1), Model(a=2))
