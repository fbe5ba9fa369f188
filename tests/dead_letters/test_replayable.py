from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mulligan
from mulligan import SettingError, replayable
from mulligan.dead_letters import replayable as registry
from mulligan.dead_letters.replayable import fit, rebuilt, replayable_of


@pytest.fixture(autouse=True)
def _no_others(monkeypatch):
    monkeypatch.setattr(registry, "_known", {})


def send(url, /, *parts, token="", retries=3, **options):
    return url, parts, token, retries, options


values = st.recursive(
    st.none() | st.booleans() | st.integers(-1000, 1000) | st.text("abc é", max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("xyz"), inner, max_size=3),
    max_leaves=6,
)


@given(
    url=values,
    parts=st.lists(values, max_size=3),
    options=st.dictionaries(st.sampled_from(["a", "b", "c"]), values),
)
def test_a_call_is_rebuilt_from_its_letter_without_its_secrets(url, parts, options):
    registry._known.clear()
    replayable("send", secrets=("token", "c"))(send)
    made = registry._known["send"]
    arguments, unfit = fit(made, send, (url, *parts), {"token": "hidden", **options})
    assert unfit == ""
    assert arguments is not None
    assert "hidden" not in str(arguments)
    secrets = {"token": "hidden"} | ({"c": options["c"]} if "c" in options else {})
    args, kwargs = rebuilt(send, arguments, secrets)
    assert send(*args, **kwargs) == (url, tuple(parts), "hidden", 3, options)


def test_a_name_belongs_to_one_function():
    replayable("send")(send)
    replayable("send")(send)  # a module that is imported again

    def other(): ...

    other.__qualname__ = "other"
    with pytest.raises(
        SettingError,
        match=r"^two functions are replayable as 'send': "
        r"tests\.dead_letters\.test_replayable\.send and "
        r"tests\.dead_letters\.test_replayable\.other; give one another name$",
    ):
        replayable("send")(other)


@pytest.mark.parametrize("name", ["", "a\nb", " ", "x" * 101, 5])
def test_a_name_is_short_and_printable(name):
    with pytest.raises(SettingError, match="replayable needs a short name for letters"):
        replayable(name)


def test_secrets_are_parameters():
    def plain(a): ...

    with pytest.raises(SettingError, match=r"secrets names 'token', which plain\(\) does not take"):
        replayable("plain", secrets=("token",))(plain)
    replayable("plain", secrets="a")(plain)
    assert registry._known["plain"].secrets == ("a",)


def test_streams_and_builtins_are_refused():
    def stream():
        yield 1

    with pytest.raises(SettingError, match="streams are not replayed"):
        replayable("stream")(stream)
    with pytest.raises(SettingError, match="print takes no marks"):
        replayable("print")(print)


def test_a_mark_is_found_under_every_decorator():
    @replayable("above")
    @mulligan.retry
    def above(): ...

    @mulligan.retry
    @replayable("below")
    def below(): ...

    assert replayable_of(above) is replayable_of(above.__wrapped__)  # type: ignore[attr-defined]
    assert replayable_of(below) is not None


def test_a_method_is_not_replayed_because_its_object_is_not_stored():
    class Shop:
        def bill(self, order): ...

    replayable("bill")(Shop.bill)
    made = registry._known["bill"]
    assert fit(made, Shop().bill, (1,), {})[1].startswith("it was called as a method")
