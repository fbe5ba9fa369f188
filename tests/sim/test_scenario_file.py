"""Scenario files: ours are whole, and users' mistakes are named with file, line and key."""

from __future__ import annotations

import pytest

from mulligan.errors import FileError
from mulligan.sim.oracle import optimum
from mulligan.sim.scenario_file import find_scenario, load_scenario, shipped

FAMILIES = [f"s{number}" for number in range(1, 17)]


def test_every_family_of_the_recovery_language_ships():
    found = {name.split("-")[0].rstrip("abcdl") for name in shipped()}
    assert found == set(FAMILIES)
    assert len(shipped()) == 33
    assert shipped()[0].startswith("s1-")
    assert shipped()[-1].startswith("s16-")


@pytest.mark.parametrize("name", shipped())
def test_a_shipped_scenario_says_what_it_shows_and_where_its_optimum_comes_from(name):
    scenario = find_scenario(name)
    assert scenario.shows.endswith(".")
    assert "R* =" in scenario.optimum or "requests" in scenario.optimum
    assert scenario.optimum.startswith(("T* =", "No T*"))
    best = optimum(scenario)
    assert (best.seconds is None) == scenario.optimum.startswith("No T*")
    assert best.seconds is None or best.seconds < scenario.horizon


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is not a scenario: it has no [jobs]"),
        ("[jobs]\ncuont = 3\n", "jobs.count: is missing"),
        ("[jobs]\ncount = 0\n", "jobs.count: needs a whole number >= 1; got 0"),
        ('[jobs]\ncount = 1\n[[limits]]\nkind = "bukcet"\nquota = 3\n', "bucket"),
        (
            "[jobs]\ncount = 1\n[[faults]]\nend = 3\nstart = 5\n",
            "faults[0].end: needs to be after start=5",
        ),
        ("[jobs]\ncount = 1\nlost = 2.0\n", "jobs.lost: needs a number from 0 to 1; got 2"),
        (
            "[jobs]\ncount = 1\nmodels = { a = 0.5 }\n",
            "jobs.models: needs shares that sum to 1",
        ),
        ("processes = 0\n[jobs]\ncount = 1\n", "processes: needs a whole number >= 1; got 0"),
        ("horizon = 0\n[jobs]\ncount = 1\n", "horizon: needs more than 0 seconds; got 0"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_its_place(tmp_path, text, said):
    file = tmp_path / "mine.toml"
    file.write_text(text)
    with pytest.raises(FileError) as refused:
        load_scenario(file)
    assert said in str(refused.value) + refused.value.hint
    assert "mine.toml" in str(refused.value)


def test_the_nearest_key_is_offered_with_the_line(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text("[jobs]\ncuont = 3\ncount = 3\n")
    with pytest.raises(FileError) as refused:
        load_scenario(file)
    assert (refused.value.line, refused.value.key) == (2, "jobs.cuont")
    assert refused.value.hint == "did you mean 'count'?"


def test_a_scenario_is_found_by_name_or_by_path(tmp_path):
    file = tmp_path / "mine.toml"
    file.write_text('[jobs]\ncount = 3\n[latency]\nservice = "2s"\n')
    assert find_scenario(str(file)).name == "mine"
    assert find_scenario(str(file)).latency.service == 2
    with pytest.raises(FileError, match="no scenario of this name") as refused:
        find_scenario("s6-outage-20")
    assert refused.value.hint == "did you mean 's6-outage-20s'?"
