"""kill -9 at any moment, then resume: it goes on, and nothing is done twice."""

from __future__ import annotations

import pytest

from .killing import live


@pytest.mark.real
@pytest.mark.parametrize("moments", [[0.15], [0.5], [0.8, 0.3], [1.1, 0.6, 0.4]], ids=str)
def test_a_run_whose_supervisor_is_killed_goes_on_where_it_stood(tmp_path, moments):
    life = live(tmp_path, moments)
    assert (life.status, life.code) == ("done", 0), life
    assert life.effects <= 1, life
    assert life.finished == 1, life
    assert life.doubled == [], life
