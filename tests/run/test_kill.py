"""kill -9 at any moment, then resume: it goes on, and nothing is done twice."""

from __future__ import annotations

import os
import random

import pytest

from .killing import live

# A handful here; `make soak` asks for a hundred.
LIVES = int(os.environ.get("MULLIGAN_SOAK", "4"))


def moments(seed):
    """When its supervisor is killed, and those who take the run up again."""
    dice = random.Random(seed)
    return [round(dice.uniform(0.05, 1.6), 3) for _ in range(dice.randint(1, 3))]


@pytest.mark.real
@pytest.mark.parametrize("seed", range(LIVES))
def test_a_run_whose_supervisor_is_killed_goes_on_where_it_stood(tmp_path, seed):
    life = live(tmp_path, moments(seed))
    assert (life.status, life.code) == ("done", 0), life
    assert life.effects <= 1, life
    assert life.finished == 1, life
    assert life.doubled == [], life
