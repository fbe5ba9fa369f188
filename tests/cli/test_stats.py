"""`mulligan stats`: the figures of calls and runs."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner

import mulligan
from mulligan.cli import _group
from mulligan.telemetry.figures import Bucket, Count, summary
from mulligan.testing import Scripted, status_error

pytestmark = pytest.mark.real  # a thread writes what is counted


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.delenv("MULLIGAN_STORE", raising=False)
    return f"sqlite:{tmp_path / 'guards.db'}"


def stats(*words):
    return CliRunner().invoke(_group, ["stats", *words], catch_exceptions=False)


def count(store, *targets):
    fast = mulligan.Policy(
        rules={mulligan.Kind.SERVER: mulligan.Rule(attempts=2, backoff=mulligan.Fixed(wait=0.01))},
        effects=mulligan.Effects.READ,
    )
    listener = mulligan.StoreListener(store)
    for target in targets:
        guard = mulligan.Guard(target, policy=fast, listeners=[listener], gate=False, breaker=False)
        for _ in range(3):
            guard.call(Scripted(status_error(500), "well"))
        with pytest.raises(Exception, match="500"):
            guard.call(Scripted(status_error(500)))
    assert listener.flush()


def test_the_figures_are_printed_with_a_small_chart(store):  # R-X4
    count(store, "acme")
    shown = stats("--store", store)
    assert shown.exit_code == 0
    assert "failures in the last 1h" in shown.output
    assert "█" in shown.output.splitlines()[0]
    assert "5, 4 of them retried" in shown.output
    assert "75%, 3 recovered" in shown.output
    assert "1 of 1 that ended without success" in shown.output
    assert "attempts per call      2.0" in shown.output
    assert "server" in shown.output


def test_json_has_the_same_figures_for_machines(store):
    count(store, "acme", "other")
    found = json.loads(stats("--store", store, "--json", "--since", "24h").stdout)
    assert found["calls"]["failures"] == 10
    assert found["calls"]["success_after_retry"] == 0.75
    one = json.loads(stats("--store", store, "--json", "--target", "acme").stdout)
    assert (one["calls"]["failures"], one["runs"]) == (5, None)


def test_runs_count_without_any_store(store):
    CliRunner().invoke(_group, ["run", "--", "sh", "-c", "exit 0"])
    shown = stats()
    assert "1, 0 failed" in shown.output


def test_with_nothing_counted_it_says_what_to_do(store):
    shown = stats("--since", "2h")
    assert shown.exit_code == 0
    assert shown.stderr.startswith("nothing was counted in the last 2h\n\nhint: give guards")


def test_a_span_that_is_not_kept_is_refused(store):
    with pytest.raises(Exception, match="--since needs 1m to 31d; got 60d"):
        _group.main(["stats", "--since", "60d"], standalone_mode=False)


def test_figures_of_nothing_are_not_known():
    assert summary(())["success_after_retry"] is None
    bucket = Bucket("acme", 0, 60, (Count("retry_delay_seconds", "inf", 1.0, 9_000.0),))
    assert summary([bucket])["delay_p95_below"] == 3_600
