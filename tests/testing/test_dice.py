"""Dice that fall as told, and real ones that fall differently in every process."""

from __future__ import annotations

import re
import subprocess
import sys
from math import nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

import mulligan
from mulligan.calls.clock import SystemDice
from mulligan.testing import LoadedDice, Scripted, VirtualClock


@given(st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=5))
def test_rolls_come_in_turn_and_the_last_one_for_ever(rolls):
    dice = LoadedDice(*rolls)
    assert [dice.roll() for _ in range(8)] == (rolls + [rolls[-1]] * 8)[:8]


def test_by_default_the_dice_fall_on_the_median():
    assert LoadedDice().roll() == 0.5


@pytest.mark.parametrize("roll", [1, 1.0, -0.1, 2, nan])
def test_a_roll_that_no_die_gives_is_refused(roll):
    message = f"LoadedDice needs rolls in [0, 1); got {roll!r}"
    with pytest.raises(mulligan.SettingError, match=f"^{re.escape(message)}$"):
        LoadedDice(0.5, roll)


def test_a_guard_may_have_dice_of_its_own():
    clock = VirtualClock()
    guard = mulligan.Guard(clock=clock, dice=LoadedDice(0.0, 0.9))
    guard.call(Scripted(ConnectionRefusedError(), ConnectionRefusedError(), "ok"))
    assert clock.sleeps == [0, 0.9]


def test_real_dice_roll_between_zero_and_one():
    rolls = [SystemDice().roll() for _ in range(1000)]
    assert all(0 <= roll < 1 for roll in rolls)
    assert len(set(rolls)) > 900


FORK = """
import os
from mulligan.calls.clock import SystemDice

dice = SystemDice()
dice.roll()
for _ in range(4):
    if os.fork() == 0:
        os.write(1, f"{dice.roll()!r}\\n".encode())
        os._exit(0)
    os.wait()
os.write(1, f"{dice.roll()!r}\\n".encode())
"""


@pytest.mark.real
def test_forked_children_roll_differently():
    done = subprocess.run(
        [sys.executable, "-c", FORK], capture_output=True, text=True, check=True, timeout=30
    )
    rolls = done.stdout.split()
    assert len(rolls) == 5
    assert len(set(rolls)) == 5
