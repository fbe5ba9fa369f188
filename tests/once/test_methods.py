"""What of an object counts where a method is done once: its class, and what is named."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from inspect import iscoroutinefunction

import pytest

from mulligan import Guard, Once, SettingError
from mulligan.testing import virtual_time

guard = Guard("bank")
done: list[object] = []


@pytest.fixture(autouse=True)
def _nothing_is_done():
    done.clear()
    with virtual_time():
        yield


@dataclass
class Shop:
    """A dataclass: its state could be compared, and is another one after each call."""

    account: str = "ada"
    bills: int = 0

    @guard.once_per("order")
    def bill(self, order):
        done.append(order)
        self.bills += 1
        return order

    @guard.once_per("self.account", "order")
    def charge(self, order):
        done.append((self.account, order))
        return order

    @guard.once_per("order")
    async def abill(self, order):
        done.append(order)
        return order

    @guard.once_per(scope="run 7")
    def transfer(self, order):
        done.append(order)
        return order

    @classmethod
    @guard.once_per()
    def open(cls, name):
        done.append((cls.__name__, name))
        return name

    @staticmethod
    @guard.once_per()
    def greet(name):
        done.append(name)
        return name

    @classmethod
    def close(cls, name):
        done.append((cls.__name__, name))
        return name


class Branch(Shop):
    pass


def test_the_state_of_an_object_does_not_count():
    shop = Shop()
    assert [shop.bill(1), shop.bill(1), Shop("bob").bill(1), shop.bill(2)] == [1, 1, 1, 2]
    assert done == [1, 2]


def test_what_of_an_object_is_named_does():
    for account in ("ada", "bob", "ada"):
        assert Shop(account).charge(1) == 1
    assert done == [("ada", 1), ("bob", 1)]


def test_a_method_that_two_classes_inherit_is_two_operations():
    for kind in (Shop, Branch, Shop, Branch):
        kind().bill(1)
    assert done == [1, 1]
    for kind in (Shop, Branch, Shop, Branch):
        kind.open("main street")
    assert done[2:] == [("Shop", "main street"), ("Branch", "main street")]


def test_a_bound_class_method_counts_with_its_class():
    for kind in (Shop, Branch, Shop, Branch):
        guard.once(Once(), kind.close, "main street")
    assert done == [("Shop", "main street"), ("Branch", "main street")]


def test_a_static_method_is_a_function():
    assert [Shop.greet("ada"), Shop().greet("ada")] == ["ada", "ada"]
    assert done == ["ada"]


def test_a_coroutine_method_stays_one():
    async def main():
        return [await Shop().abill(1), await Shop().abill(1)]

    assert iscoroutinefunction(Shop.abill)
    assert asyncio.run(main()) == [1, 1]
    assert done == [1]


def test_a_scope_says_whose_method_it_is():
    assert [Shop().transfer(1), Shop("bob").transfer(1)] == [1, 1]
    assert done == [1]


def test_a_method_without_anything_that_tells_objects_apart_is_refused_where_it_is_written():
    with pytest.raises(
        SettingError,
        match=r"^bill is a method, and two objects could look like one: name what makes the key, "
        r"once_per\('order'\) or once_per\('self\.account', 'order'\), or say whose it is with "
        r"scope=$",
    ):

        class Till:
            @guard.once_per()
            def bill(self, order): ...

    class Other:
        @guard.once_per(exclude=("self",))
        def bill(self, order):
            done.append(order)

    Other().bill(1)
    Other().bill(1)
    assert done == [1]


@pytest.mark.parametrize("kind", [classmethod, staticmethod])
def test_once_per_goes_under_what_makes_a_method(kind):
    with pytest.raises(
        SettingError, match=rf"^once_per goes under @{kind.__name__}: write it on the line below$"
    ):
        guard.once_per("order")(kind(lambda cls, order: order))


def test_what_an_object_does_not_have_makes_no_key():
    class Till:
        @guard.once_per("self.account.id", "order")
        def bill(self, order): ...

    with pytest.raises(
        SettingError,
        match=r"^'self\.account\.id' makes the key, and the Till in this call of bill\(\) has no "
        r"'account'$",
    ):
        Till().bill(1)
    with pytest.raises(SettingError, match=r"once_per names 'shop\.id', which bill\(\) does not"):
        guard.once_per("shop.id")(Till.bill)


def test_a_parameter_that_makes_the_key_must_be_given():
    @guard.once_per("order")
    def bill(**fields):
        done.append(fields)

    bill(order=1)
    with pytest.raises(
        SettingError, match=r"^'order' makes the key, and this call of bill\(\) has none$"
    ):
        bill(amount=5)
    assert done == [{"order": 1}]


def test_a_keyword_that_is_called_like_a_positional_parameter_hides_nothing():
    def note(order, /, **fields):
        done.append((order, fields))

    per_all = guard.once_per(scope="run 7")(note)
    per_all(1, order="x")
    per_all(2, order="x")
    assert len(done) == 2


class Teller:
    def __call__(self, amount):
        return amount


def test_an_object_that_can_be_called_brings_its_state_along():
    with pytest.raises(SettingError, match=r"Teller is an object: it brings values along"):
        guard.once(Once(), Teller(), 5)
    with pytest.raises(SettingError, match="append is a method"):
        guard.once(Once(), list[int]().append, 5)
    assert guard.once(Once(scope="ada"), Teller(), 5) == 5
