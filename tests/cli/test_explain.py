"""What people see when they ask what a policy does."""

from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner, Result
from hypothesis import given
from hypothesis import strategies as st

from mulligan.cli.commands.explain import _bar, command
from mulligan.cli.ui.policy import ABOUT, backoff_text, sheet
from mulligan.config.forecast import ForecastWait
from mulligan.config.loader import load_policy
from mulligan.core.backoff import Backoff, Exponential, Fixed, Linear, Schedule
from mulligan.core.presets import PRESETS, preset


def explain(*argv: str) -> Result:
    return CliRunner().invoke(command, list(argv), catch_exceptions=False)


def rows(text: str) -> list[list[str]]:
    """The numbers of the tables: after, least, median, most, in all, at most."""
    return [line.split()[:6] for line in text.splitlines() if re.match(r" +\d+ ", line)]


# Attempt, least, median, most; then the median and the most of all waits so far.
GOLDEN = {
    # R-B1: uniform in [0, min(1 · 2ⁿ, 30)], three retries
    "skill": """
        1 0s 500ms 1s 500ms 1s
        2 0s 1s 2s 1.5s 3s
        3 0s 2s 4s 3.5s 7s
    """,
    # R-L3: 1 s fixed, three attempts; R-B3: 200 ms · 2ⁿ + [0, 100 ms]; R-B4: 500 ms · (n + 1)
    "tools": """
        1 1s 1s 1s 1s 1s
        2 1s 1s 1s 2s 2s
        1 200ms 250ms 300ms 250ms 300ms
        2 400ms 450ms 500ms 700ms 800ms
        3 800ms 850ms 900ms 1.55s 1.7s
        4 1.6s 1.65s 1.7s 3.2s 3.4s
        1 500ms 500ms 500ms 500ms 500ms
        2 1s 1s 1s 1.5s 1.5s
    """,
    # R-B6: 5 s; R-B7: 1 s + 1 s · n, cap 5 s; R-B5: from 1 s, cap 10 s; R-B8, R-B9: from 2 s
    "pattern": """
        1 5s 5s 5s 5s 5s
        2 5s 5s 5s 10s 10s
        3 5s 5s 5s 15s 15s
        1 1s 1s 1s 1s 1s
        2 2s 2s 2s 3s 3s
        3 3s 3s 3s 6s 6s
        4 4s 4s 4s 10s 10s
        5 5s 5s 5s 15s 15s
        1 0s 500ms 1s 500ms 1s
        2 0s 1s 2s 1.5s 3s
        3 0s 2s 4s 3.5s 7s
        1 0s 1s 2s 1s 2s
        2 0s 2s 4s 3s 6s
        3 0s 4s 8s 7s 14s
        4 0s 8s 16s 15s 30s
        5 0s 15s 30s 30s 1m
        1 0s 1s 2s 1s 2s
        2 0s 2s 4s 3s 6s
        3 0s 4s 8s 7s 14s
        4 0s 8s 16s 15s 30s
        5 0s 15s 30s 30s 1m
        1 0s 500ms 1s 500ms 1s
        2 0s 1s 2s 1.5s 3s
        3 0s 2s 4s 3.5s 7s
    """,
    # R-B11: 1 s · 2ⁿ + [0, 1 s], four attempts
    "surface": """
        1 1s 1.5s 2s 1.5s 2s
        2 2s 2.5s 3s 4s 5s
        3 4s 4.5s 5s 8.5s 10s
    """,
    # R-B13: 120, 300, 900 s + [0, 30 s], three retries
    "pipeline": """
        1 2m 2m15s 2m30s 2m15s 2m30s
        2 5m 5m15s 5m30s 7m30s 8m
        3 15m 15m15s 15m30s 22m45s 23m30s
    """,
    "subagent": """
        1 0s 500ms 1s 500ms 1s
        2 0s 1s 2s 1.5s 3s
    """,
    # Limits from 1 s to 60 s, faults from 0.5 s, ten attempts
    "default": """
        1 0s 500ms 1s 500ms 1s
        2 0s 1s 2s 1.5s 3s
        3 0s 2s 4s 3.5s 7s
        4 0s 4s 8s 7.5s 15s
        5 0s 8s 16s 15.5s 31s
        6 0s 16s 32s 31.5s 1m3s
        7 0s 30s 1m 1m2s 2m3s
        1 0s 250ms 500ms 250ms 500ms
        2 0s 500ms 1s 750ms 1.5s
        3 0s 1s 2s 1.75s 3.5s
        4 0s 2s 4s 3.75s 7.5s
        5 0s 4s 8s 7.75s 15.5s
        6 0s 8s 16s 15.75s 31.5s
        7 0s 15s 30s 30.75s 1m2s
        9 0s 15s 30s 1m1s 2m2s
        1 0s 500ms 1s 500ms 1s
    """,
}


@pytest.mark.parametrize("name", PRESETS)
def test_the_waits_of_every_preset_are_those_of_its_source(name):
    wanted = [line.split() for line in GOLDEN[name].strip().splitlines()]
    assert rows(explain(name).stdout.partition("Waits after")[2]) == wanted


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_explained_line_by_line_without_a_warning(name):  # R-X6
    result = explain(name)
    labels = re.findall(r"^(\w[\w ]*?)  +\S", result.stdout.split("Waits after")[0], re.MULTILINE)
    assert labels == [
        "target",
        "strategy",
        "attempts",
        "backoff",
        "retryable errors",
        "raised at once",
        "repeating",
        "timeouts",
        "waits",
        "time",
        "breaker",
        "gate",
        "tokens",
        "on exhaustion",
    ]
    assert (result.exit_code, result.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("skill", "of HTTP statuses only 429, 502, 503, 504"),  # R-C7
        ("skill", "4 in total, the first one included"),  # R-B1
        ("tools", "3 for rate_limit, quota, network, timeout; 5 for overloaded, server"),
        ("tools", "retrying takes 30s at most (budget)"),  # R-B18
        ("pipeline", "up to 6h slept through (in_place); beyond 6h given up"),  # R-B14
        ("pipeline", "or the time that the server names, if it is later"),  # R-B14
        ("pipeline", "2m, 5m, 15m, 30m, then the last again, up to 30s added"),  # R-B13
        ("subagent", "total 5m; after a timeout 80% of it: total 4m and then 3m12s"),  # R-B19
        ("default", "any number of attempts, usually 35 within 15m"),
        ("default", "no attempt starts after 15m without progress (in_place)"),
        ("default", "up to 15m slept through (in_place); up to 6h parked"),
    ],
)
def test_the_numbers_of_the_sources_stand_in_the_words(name, words):
    assert words in " ".join(explain(name).stdout.split())


def test_without_an_argument_the_default_is_explained():
    assert explain().stdout == explain("default").stdout


def test_presets_are_listed_one_line_each():
    assert list(ABOUT) == list(PRESETS)
    lines = explain("--list").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(PRESETS)
    assert max(map(len, lines)) <= 88
    assert json.loads(explain("--list", "--json").stdout)[0]["name"] == "default"


def test_json_is_complete():
    data = json.loads(explain("tools", "--json").stdout)
    assert list(data) == ["policy", "waits", "warnings"]
    assert data["policy"]["budget"] == 30
    assert data["policy"]["rules"]["network"]["backoff"]["step"] == 0.5
    assert [table["kinds"] for table in data["waits"]] == [
        ["rate_limit", "quota"],
        ["overloaded", "server"],
        ["network", "timeout"],
    ]
    assert data["waits"][1]["attempts"] == 5
    assert data["waits"][1]["goes_on"] is False
    assert data["waits"][1]["rows"][3] == {
        "after": 4,
        "least": 1.6,
        "median": 1.65,
        "most": 1.7,
        "total_least": 3.0,
        "total_median": 3.2,
        "total_most": 3.4,
    }
    assert data["warnings"] == []


def test_json_says_where_rows_go_on():
    waits = json.loads(explain("default", "--json").stdout)["waits"]
    assert [(table["attempts"], table["goes_on"]) for table in waits] == [
        (None, True),
        (10, False),
        (2, False),
    ]


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_can_be_written_as_a_file_to_start_from(name, tmp_path):
    (tmp_path / "own.toml").write_text(explain(name, "--toml").stdout, encoding="utf-8")
    assert load_policy(tmp_path / "own.toml") == preset(name)


@pytest.fixture
def nightly(tmp_path):
    path = tmp_path / "nightly.toml"
    path.write_text('preset = "skill"\nkey_ttl = "1m"\npatience = "30s"\n[rules.auth]\n')
    return str(path)


def test_contradictions_are_told_to_stderr_one_line_each_the_grave_first(nightly):
    result = explain(nightly)
    assert result.exit_code == 0
    assert "warning" not in result.stdout
    assert re.sub(r": .*", "", result.stderr.replace("warning: ", "")).split() == [
        "key_ttl",
        "rules.auth",
        "patience",
    ]
    assert all(line.startswith("warning: ") for line in result.stderr.splitlines())


def test_in_json_contradictions_are_data(nightly):
    result = explain(nightly, "--json")
    assert result.stderr == ""
    first = json.loads(result.stdout)["warnings"][0]
    assert (first["key"], first["is_grave"]) == ("key_ttl", True)
    assert set(first) == {"key", "message", "hint", "is_grave"}


def test_a_file_called_like_a_preset_is_read_only_if_it_is_asked_for(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "skill").write_text('preset = "tools"\nname = "mine"')
    assert explain("skill").stdout.startswith("skill\nfour attempts")
    assert explain("./skill").stdout.startswith("mine\nfrom ./skill\n")


def test_a_policy_that_retries_nothing_has_no_tables(tmp_path):
    (tmp_path / "never.toml").write_text("[rules]")
    result = explain(str(tmp_path / "never.toml"))
    assert "strategy          none: nothing is retried" in result.stdout
    assert "Waits after" not in result.stdout


def test_of_a_long_table_the_beginning_and_the_end_are_shown(tmp_path):
    words = "[rules.server]\nattempts = 20\nbackoff = { shape = 'fixed', wait = 5 }"
    (tmp_path / "long.toml").write_text(words)
    result = explain(str(tmp_path / "long.toml"))
    assert [row[0] for row in rows(result.stdout)] == ["1", "2", "3", "4", "5", "6", "7", "19"]
    assert rows(result.stdout)[-1] == ["19", "5s", "5s", "5s", "1m35s", "1m35s"]
    data = json.loads(explain(str(tmp_path / "long.toml"), "--json").stdout)
    assert len(data["waits"][0]["rows"]) == 19


def test_names_cannot_paint_the_terminal(tmp_path):
    (tmp_path / "loud.toml").write_text('preset = "skill"\nname = "\\u001b[31m[red]x[/red]"')
    assert explain(str(tmp_path / "loud.toml")).stdout.startswith("[red]x[/red]\n")


@pytest.mark.parametrize(
    ("backoff", "words"),
    [
        (Exponential(first=1, cap=30), "1s, then doubled, 30s at most, full jitter"),
        (
            Exponential(first=1, factor=1.5, cap=90, jitter="equal"),
            "1s, then times 1.5, 1m30s at most, equal jitter",
        ),
        (Linear(first=1, step=2, cap=5), "1s, then 2s more each time, 5s at most, no jitter"),
        (
            Fixed(wait=5, jitter="proportional", spread=0.2),
            "5s every time, give or take 20%",
        ),
        (Schedule(waits=(60,)), "1m every time, no jitter"),
        (
            Schedule(waits=(60, 300), jitter="additive", spread=30),
            "1m, 5m, then the last again, up to 30s added",
        ),
    ],
)
def test_a_backoff_reads_as_a_clause(backoff: Backoff, words):
    assert backoff_text(backoff) == words


@given(waits=st.lists(st.floats(0, 1e6), min_size=3, max_size=3), room=st.integers(0, 100))
def test_a_bar_fits_its_room_and_is_never_invisible(waits, room):
    least, median, most = sorted(waits)
    row = ForecastWait(
        after=1,
        least=least,
        median=median,
        most=most,
        total_least=0,
        total_median=0,
        total_most=0,
    )
    bar = _bar(row, max(most, 1.0), room, "#=-")
    assert re.fullmatch(r"#*=*-*", bar)
    assert min(1, room) <= len(bar) <= room


def test_a_deadline_longer_than_patience_is_named_as_the_bound():
    assert dict(sheet(preset("default").but(deadline="1h")))["time"] == (
        "no attempt starts after 1h without progress (deadline); the whole call takes "
        "1h at most (deadline)"
    )
