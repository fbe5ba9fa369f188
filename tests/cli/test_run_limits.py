"""What a person sees of the limits that runs have met, and does to them."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from math import inf
from types import SimpleNamespace

import pytest

from mulligan.core.failure import Failure, Kind
from mulligan.core.hint import Hint
from mulligan.run.agents.accounts import AgentAccount
from mulligan.run.attempt.account_limits import LimitMet
from mulligan.run.attempt.account_limits_client import RunLimits
from mulligan.run.journal.store import RunStore
from mulligan.stores.open import open_store
from mulligan.stores.state_machine import Key

ANN = AgentAccount("anthropic", "key of ann", "ANTHROPIC_API_KEY")
BEN = AgentAccount("anthropic", "key of ben", "login in ~/.claude")


@pytest.fixture
def store():
    runs = RunStore()
    store = runs.store()
    yield store
    store.close()
    runs.close()


def limits(store, account=ANN, *, program="claude", model="", run="k3fqzz"):
    clock = SimpleNamespace(now=lambda: 0.0, wall=lambda: 0.0)
    account = account._replace(model=model)
    return RunLimits(store, account, run=run, program=program, clock=clock, roll=lambda: 0.0)


def met(known, *, seconds=18_000.0, model="", message="You've hit your session limit"):
    hint = Hint(delay=seconds)
    failure = Failure(kind=Kind.QUOTA, message=message, hint=hint, model=model)
    known.ended(failure, is_success=False)


def test_the_table_names_provider_account_model_time_run_and_reason(store, mulligan):
    met(limits(store))
    met(limits(store, model="opus", run="b7"), model="opus", message="You've hit your Opus limit")
    code, out, err = mulligan("status")
    assert (code, err) == (0, "")
    heads, first, second = out.splitlines()
    assert heads.split() == ["LIMIT", "ACCOUNT", "UNTIL", "RUN", "WHY"]
    assert first.split()[:2] == ["anthropic", "ANTHROPIC_API_KEY"]
    assert ", in 5h  claude k3fqzz  You've hit your session limit" in first
    assert second.startswith("anthropic/opus  ANTHROPIC_API_KEY  ")
    assert second.endswith("claude b7      You've hit your Opus limit")
    assert store.scoped(ANN.secret)[:8] not in out


@pytest.mark.parametrize("seconds", [1.8e15, 1e300, inf])
def test_a_limit_with_an_unusable_time_is_shown(store, mulligan, seconds):
    met(limits(store))
    store.state.transact(
        Key("anthropic", "account", store.scoped(ANN.secret)),
        LimitMet(
            run="b7",
            program="claude",
            label="KEY",
            model="opus",
            is_default=False,
            seconds=seconds,
            is_sure=True,
            because="limit",
        ),
    )
    code, out, err = mulligan("status")
    assert (code, err) == (0, "")
    assert "an unknown time, in " in out


def test_in_json_a_line_is_a_limit(store, mulligan):
    met(limits(store, model="opus"), model="opus")
    row = json.loads(mulligan("status", "--json")[1])
    assert (row["limit"], row["provider"], row["model"]) == ("anthropic/opus", "anthropic", "opus")
    assert (row["programs"], row["run"]) == (["claude"], "k3fqzz")
    assert row["until"] == pytest.approx(row["met_at"] + 18_000, abs=5)


@pytest.mark.parametrize("name", ["anthropic", "claude"])
def test_what_status_shows_reset_takes_and_says_what_it_did(store, mulligan, name):
    """`reset claude` named no store; with one it hashed a hash, changed nothing, and said done."""
    known = limits(store)
    met(known)
    assert known.held() is not None
    assert mulligan("reset", name) == (
        0,
        "anthropic: forgot the limit that run k3fqzz hit (You've hit your session limit)\n",
        "",
    )
    assert limits(store).held() is None
    code, out, err = mulligan("reset", name)
    assert (code, out) == (1, "")
    assert err.startswith(f"error: nothing is known about {name!r}\n\nhint: ")


def test_a_model_s_limit_is_forgotten_alone(store, mulligan):
    met(limits(store))
    met(limits(store, model="opus"), model="claude opus 4")
    code, out, _ = mulligan("reset", "anthropic/opus")
    assert (code, out.partition(":")[0]) == (0, "anthropic/claude-opus-4")
    assert "anthropic " in mulligan("status")[1]
    assert mulligan("reset", "anthropic/opus")[0] == 1
    assert mulligan("reset", "anthropic/haiku")[0] == 1


def test_two_accounts_are_told_apart(store, mulligan):
    met(limits(store))
    met(limits(store, BEN, run="b7"))
    names = [line.split()[0] for line in mulligan("status")[1].splitlines()[1:]]
    assert len(set(names)) == 2
    ben = f"anthropic@{store.scoped(BEN.secret)[:4]}"
    assert ben in names
    assert mulligan("reset", ben)[1].startswith(f"{ben}: forgot the limit that run b7 hit")
    assert limits(store, BEN).held() is None
    assert limits(store).held() is not None


def test_runs_are_blocked_and_allowed_by_the_same_names(store, mulligan):
    code, out, _ = mulligan("block", "claude", "--because", "holiday")
    assert (code, out) == (0, "claude: runs are blocked until mulligan allow or reset\n")
    held = limits(store).held()
    assert held is not None
    assert (held.delay, held.because) == (float("inf"), "holiday")
    assert limits(store, program="pi").held() is None
    assert "blocked until reset" in mulligan("status", "claude")[1]
    met(limits(store))
    assert mulligan("allow", "claude", "--for", "2h")[1] == "claude: runs are allowed for 2h\n"
    assert limits(store).held() is None
    assert limits(store, program="pi").held() is not None
    mulligan("block", "anthropic")
    assert limits(store, program="pi").held() is not None
    assert limits(store).held() is not None
    code, out, _ = mulligan("reset", "claude")
    assert "claude: runs are no longer allowed" in out
    assert mulligan("reset", "anthropic") == (0, "anthropic: runs are no longer blocked\n", "")
    assert mulligan("status") == (0, "", "no limits and no failures are known\n")


def test_an_account_can_be_blocked_alone(store, mulligan):
    met(limits(store))
    met(limits(store, BEN))
    ben = f"anthropic@{store.scoped(BEN.secret)[:4]}"
    assert mulligan("allow", ben)[1] == f"{ben}: runs are allowed until mulligan block or reset\n"
    assert limits(store, BEN).held() is None
    assert limits(store).held() is not None


@pytest.mark.parametrize("command", ["block", "allow", "reset"])
def test_a_name_that_means_nothing_is_an_error_with_a_hint(store, mulligan, command):
    met(limits(store))
    code, out, err = mulligan(command, "claud")
    assert (code, out) == (1, "")
    assert "did you mean 'claude'?" in err
    assert "\nhint: " in err
    assert mulligan("block", "anthropic/opus")[0] == 1


def test_the_store_that_is_named_counts_as_well_as_that_of_the_runs(store, mulligan, tmp_path):
    url = f"sqlite:{tmp_path}/shared.db"
    shared = open_store(url)
    met(limits(store))
    met(limits(shared, run="far"))
    assert mulligan("status", "--store", url)[1].count("\n") == 3
    code, out, _ = mulligan("reset", "claude", "--store", url)
    assert (code, out.count("forgot")) == (0, 2)
    assert mulligan("block", "anthropic", "--store", url)[1] == (
        "anthropic: blocked until mulligan allow or reset\n"
        "anthropic: runs are blocked until mulligan allow or reset\n"
    )
    assert limits(store).held() is not None
    assert limits(shared).held() is not None
    shared.close()


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_nothing_in_a_limit_moves_the_terminals_cursor_or_its_letters(store, mulligan, form):
    wild = "\x1b[31m\nx\x07\x9b\u202egnp\u2066"
    known = limits(
        store, AgentAccount(f"p{wild}", "s", f"l{wild}"), model=f"m{wild}", run=f"r{wild}"
    )
    met(known, model=f"gpt-5{wild}" * 30, message=f"limit{wild}")
    out = mulligan("status", *form)[1]
    assert not set("\x1b\x07\x9b\u202e\u2066") & set(out)
    assert len(out.splitlines()) == (1 if form else 2)


def test_rows_of_another_version_are_left_alone(store, mulligan):
    met(limits(store))
    met(limits(store, BEN))
    path = store.url.removeprefix("sqlite:")
    scope = store.scoped(BEN.secret)
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("UPDATE state SET body = '[1,2,3]' WHERE scope = ?", (scope,))
        # A limit as it was kept before: a gate of the program.
        file.execute(
            "INSERT INTO state SELECT 'claude', 'f00dcafe00', 'gate', 'gate', '[]', forget_at, "
            "forget_on, era FROM state LIMIT 1"
        )
    assert limits(store, BEN).held() is None
    code, out, _ = mulligan("status")
    assert (code, out.count("\n")) == (0, 2)
    met(limits(store, BEN))
    assert limits(store, BEN).held() is not None


def test_a_guard_s_account_is_named_by_the_hash_that_status_shows(mulligan, tmp_path):
    """`status` showed a hash, `reset --scope` hashed it again and reported success."""
    url = f"sqlite:{tmp_path}/state.db"
    mulligan("block", "api", "--scope", "team-a", "--store", url)
    shown = mulligan("status", "--store", url)[1].splitlines()[1].split()[1]
    code, _, err = mulligan("reset", "api", "--store", url)
    assert code == 1
    assert f"--scope {shown}" in err
    assert mulligan("reset", "api", "--scope", shown, "--store", url)[0] == 0
    assert "blocked" not in mulligan("status", "--store", url)[1]
