"""`mulligan simulate`: tables, JSON, pictures, and what it refuses."""

from __future__ import annotations

import json
import sys

import pytest

from mulligan.cli import main


@pytest.fixture
def simulate(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def simulate(*args: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["simulate", *args])
        said = capsys.readouterr()
        code = ended.value.code
        return (code if isinstance(code, int) else 0), said.out, said.err

    return simulate


def test_policies_stand_side_by_side_under_what_the_scenario_shows(simulate):
    code, out, err = simulate("s10-one-second", "-p", "default", "-p", "none")
    lines = out.splitlines()
    assert (code, err) == (0, "")
    assert lines[0] == "s10-one-second: Twenty calls at once through one second of overload."
    assert lines[2].startswith("20 jobs, 20 agents, 1 process, seed 0; T* ")
    assert lines[4].split()[:4] == ["policy", "RQ", "done", "time"]
    assert [line.split()[0] for line in lines[5:]] == ["default", "none"]


def test_the_same_seed_gives_the_same_words(simulate):
    first, second = (simulate("s13-stream-cut", "--seed", "7", "--json") for _ in range(2))
    assert first == second
    assert simulate("s13-stream-cut", "--seed", "8", "--json") != first


def test_json_is_one_object_a_run(simulate):
    code, out, _ = simulate("s10-one-second", "s13-stream-cut", "--json", "-p", "none")
    found = [json.loads(line) for line in out.splitlines()]
    assert code == 0
    assert [each["scenario"] for each in found] == ["s10-one-second", "s13-stream-cut"]
    assert {"quality", "best_seconds", "best_requests", "completion", "lag"} <= found[0].keys()
    assert found[0]["lag"] is None  # never


def test_several_scenarios_end_with_the_mean(simulate):
    _, out, _ = simulate("s10-one-second", "s13-stream-cut", "-p", "none")
    assert out.splitlines()[-1].startswith("none: geometric mean of RQ ")


def test_the_list_names_every_scenario(simulate):
    _, out, _ = simulate("--list")
    assert len(out.splitlines()) == 34


def test_a_users_scenario_and_policy_are_files(simulate, tmp_path):
    (tmp_path / "mine.toml").write_text('[jobs]\ncount = 4\n[[faults]]\nend = "2s"\n')
    (tmp_path / "eager.toml").write_text('preset = "default"\nattempts = 9\nbreaker = "off"\n')
    code, out, _ = simulate("mine.toml", "-p", "eager.toml", "--agents", "6", "--processes", "2")
    assert code == 0
    assert "6 jobs, 6 agents, 2 processes" in out
    assert out.splitlines()[-1].split()[0] == "eager"


@pytest.mark.parametrize("name", ["out.svg", "out.html", "out.png"])
def test_a_picture_is_written_where_asked(simulate, tmp_path, name):
    code, _, err = simulate("s10-one-second", "--plot", name)
    assert (code, err) == (0, f"wrote {name}\n")
    assert (tmp_path / name).stat().st_size > 1000


@pytest.mark.parametrize(
    ("args", "said"),
    [
        ((), "no scenario given"),
        (("s10-one-secnd",), "did you mean 's10-one-second'?"),
        (("s10-one-second", "-p", "defualt"), "did you mean 'default'?"),
        (("s10-one-second", "--plot", "out.gif"), "--plot writes .svg, .png or .html"),
        (("s10-one-second", "--plot", "no/out.svg"), "no folder 'no' for --plot"),
        (("all", "--plot", "out.svg"), "--plot draws one scenario"),
        (("s10-one-second", "--agents", "0"), "0 is not in the range x>=1"),
    ],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_simulated(simulate, args, said):
    code, out, err = simulate(*args)
    assert code in {1, 2}
    assert out == ""
    assert said in err


def test_a_png_without_the_extra_is_refused_with_the_line_that_installs_it(simulate, monkeypatch):
    monkeypatch.setitem(sys.modules, "resvg_py", None)
    code, _, err = simulate("s10-one-second", "--plot", "out.png")
    assert code == 1
    assert "pip install 'mulligan[plot]'" in err
