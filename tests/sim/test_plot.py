"""The picture: well-formed, self-contained, with every policy and its numbers in it."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from mulligan.sim.compare import resized, run
from mulligan.sim.plot import as_html, as_png, as_svg
from mulligan.sim.policies import DEFAULT, NO_RETRIES, PATIENT
from mulligan.sim.scenario import Jobs, Scenario, ServerLimit
from mulligan.sim.scenario_file import find_scenario, shipped


def words(svg):
    root = ET.fromstring(svg)  # noqa: S314 -- our own
    return [each.text for each in root.iter("{http://www.w3.org/2000/svg}text")]


@pytest.mark.parametrize("name", [name for name in shipped() if "overload" not in name])
def test_every_shipped_scenario_can_be_drawn(name):
    scenario = resized(find_scenario(name), agents=8)
    runs = [run(scenario, policy) for policy in (DEFAULT, NO_RETRIES)]
    said = words(as_svg(runs))
    assert name in said
    assert {"default", "none"} <= set(said)
    assert any(text.startswith("RQ ") for text in said)


def test_four_policies_make_two_rows_and_the_same_runs_the_same_picture():
    scenario = resized(find_scenario("s2-window-bare"), agents=20)
    runs = [run(scenario, policy) for policy in (DEFAULT, PATIENT, NO_RETRIES, DEFAULT)]
    assert as_svg(runs) == as_svg(runs)
    assert words(as_svg(runs)).count("jobs done") == 5  # four panels and the legend


def test_one_panel_is_wide_enough_for_the_legend_and_labels_do_not_overlap():
    scenario = Scenario(
        jobs=Jobs(count=50), limits=(ServerLimit(kind="bucket", quota=5, per=60.0),), horizon=1200.0
    )
    root = ET.fromstring(as_svg([run(scenario, DEFAULT)]))  # noqa: S314 -- our own
    texts = list(root.iter("{http://www.w3.org/2000/svg}text"))
    text = "the best any client could do"
    last = next(each for each in texts if each.text == text)
    assert float(last.attrib["x"]) + 6 * len(text) <= float(root.attrib["width"])
    labels = sorted(float(each.attrib["x"]) for each in texts if (each.text or "").endswith("↑"))
    assert all(later - earlier >= 30 for earlier, later in pairwise(labels))


def test_names_are_no_markup():
    scenario = Scenario(name="<script>", shows="a & b", jobs=Jobs(count=1))
    page = as_html([run(scenario, NO_RETRIES)])
    assert "<script>" not in page
    assert page.startswith("<!doctype html>")


def test_a_png_is_the_same_picture():
    found = as_png([run(Scenario(jobs=Jobs(count=3)), NO_RETRIES)])
    assert found.startswith(b"\x89PNG")
