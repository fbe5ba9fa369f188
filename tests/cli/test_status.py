"""What a person sees of a shared store, and does to it."""

from __future__ import annotations

import json

import pytest

from mulligan.cli import main
from mulligan.core.belief import Stated
from mulligan.core.breaker import Ask, Breaker, Open, Passed, Shut, Tell
from mulligan.core.gate import Enter, Gate, Go, Leave
from mulligan.core.machine import Key
from mulligan.core.tokens import TOKENS, Reserve, Tokens
from mulligan.stores.url import open_store

BREAKER, GATE = Key("api", "breaker"), Key("api", "gate")


@pytest.fixture
def mulligan(capsys):
    """Run the command; its exit code, stdout and stderr."""

    def mulligan(*argv: str) -> tuple[object, str, str]:
        with pytest.raises(SystemExit) as caught:
            main(list(argv))
        said = capsys.readouterr()
        return caught.value.code, said.out, said.err

    return mulligan


@pytest.fixture
def store(tmp_path, monkeypatch):
    url = f"sqlite:{tmp_path}/state.db"
    monkeypatch.setenv("MULLIGAN_STORE", url)
    store = open_store(url)
    yield store
    store.close()


def asked(store, key=BREAKER):
    return store.state.transact(key, Ask(permit="p", settings=Breaker()))


def test_what_is_blocked_by_hand_is_refused_and_no_success_undoes_it(store, mulligan):  # E-B9
    code, out, err = mulligan("block", "api", "--because", "wrong invoices")
    assert (code, out) == (0, "api: blocked until mulligan allow or reset\n")
    assert err == "note: nothing has gone wrong at 'api' so far\n"
    store.state.transact(
        BREAKER,
        Tell(permit="p", generation=1, result="success", worker="w", settings=Breaker()),
    )
    assert asked(store) == Shut(float("inf"), "wrong invoices")


def test_what_is_allowed_by_hand_passes_however_often_it_fails(store, mulligan):
    assert mulligan("allow", "api")[1] == "api: allowed until mulligan block or reset\n"
    for _ in range(9):
        failed = Tell(permit="", generation=1, result="failure", worker="w", settings=Breaker())
        store.state.transact(BREAKER, failed)
    assert asked(store) == Passed(1)


def test_a_hand_for_a_time_says_how_long(store, mulligan):
    assert mulligan("block", "api", "--for", "1h30m")[1] == "api: blocked for 1h30m\n"
    answer = asked(store)
    assert isinstance(answer, Shut)
    assert 5390 < answer.retry_in <= 5400
    assert "blocked by hand for 1h" in mulligan("status")[1]


def test_a_reset_takes_the_hand_away_and_forgets_beliefs_and_debts(store, mulligan):
    mulligan("block", "api")
    rejected = Leave(id="", turn=0, reply="rejected", hint=600, settings=Gate())
    store.state.transact(GATE, rejected)
    spend = Reserve(id="r", cost=14, lease=0.001, tokens=Tokens())
    store.state.transact(Key("api", "tokens"), spend)
    assert mulligan("reset", "api")[:2] == (0, "api: breaker closed, gate open, tokens full\n")
    assert isinstance(asked(store), Passed)
    enter = Enter(id="p", holder="h", settings=Gate())
    assert isinstance(store.state.transact(GATE, enter), Go)
    spent = store.state.peek(Key("api", "tokens"), TOKENS)[0].spent
    assert spent in {0, 14}  # what a retry still holds stays spent until it ends


def test_a_scope_is_its_own_and_is_never_shown(store, mulligan):
    mulligan("block", "api", "--scope", "account-of-ann")
    assert isinstance(asked(store), Passed)
    assert isinstance(asked(store, BREAKER._replace(scope=store.scoped("account-of-ann"))), Shut)
    for form in ((), ("--json",)):
        out = mulligan("status", *form)[1]
        assert "blocked" in out
        assert "ann" not in out


def test_the_table_shows_breaker_gate_tokens_and_who_waits(store, mulligan):
    store.state.transact(BREAKER, Open(stated=3000, because="down for repairs"))
    said = Stated(dimension="requests", limit=50, remaining=12)
    answered = Leave(id="", turn=0, reply="answered", settings=Gate(), stated=(said,))
    store.state.transact(GATE, answered)
    store.state.transact(GATE, Enter(id="p", holder="h", settings=Gate()))
    retry = Reserve(id="r", cost=14, lease=900, tokens=Tokens())
    store.state.transact(Key("api", "tokens"), retry)
    code, out, err = mulligan("status")
    assert (code, err) == (0, "")
    heads, row, why = out.splitlines()
    assert heads.split() == ["TARGET", "SCOPE", "BREAKER", "GATE", "TOKENS", "WAITING"]
    assert row.startswith("api     -      open for 50m")
    assert "  11 of 50 requests  14 spent  1 retries, 1 calls" in row
    assert why == "api: breaker: down for repairs"
    assert "\x1b" not in out


def test_in_json_a_line_is_a_target(store, mulligan):
    store.state.transact(GATE, Leave(id="", turn=0, reply="rejected", hint=600, settings=Gate()))
    mulligan("block", "other")
    rows = [json.loads(line) for line in mulligan("status", "--json")[1].splitlines()]
    assert [row["target"] for row in rows] == ["api", "other"]
    assert rows[0]["gate"]["state"] == "shut"
    assert 590 < rows[0]["gate"]["for"] <= 600
    assert rows[0]["gate"]["because"] == "a rejection asked to wait 10m"
    assert rows[1]["breaker"]["state"] == "blocked"
    assert mulligan("status", "other", "--json")[1].count("\n") == 1


def test_control_characters_in_a_targets_name_do_not_reach_the_terminal(store, mulligan):
    mulligan("block", "api\x1b[31m\nx")
    assert "\x1b" not in mulligan("status")[1]


def test_a_name_that_is_nearly_known_is_asked_about(store, mulligan):
    mulligan("block", "billing-api")
    note = "note: nothing has gone wrong at 'biling-api' so far; did you mean 'billing-api'?\n"
    assert mulligan("reset", "biling-api")[2] == note


NO_STORE = (
    "error: no store is named, and what other processes keep in memory cannot be seen\n\n"
    "hint: name the store that the guards share, with --store or MULLIGAN_STORE: "
    "sqlite:PATH or redis://HOST\n"
)


@pytest.mark.parametrize("command", [("status",), ("block", "x"), ("allow", "x"), ("reset", "x")])
def test_without_a_store_there_is_nothing_to_see(command, mulligan, monkeypatch, tmp_path):
    monkeypatch.delenv("MULLIGAN_STORE", raising=False)
    assert mulligan(*command) == (2, "", NO_STORE)
    assert mulligan(*command, "--store", "memory:")[2].startswith(
        "error: memory: belongs to one process, and this is another one\n"
    )
    missing = mulligan("status", "--store", f"sqlite:{tmp_path}/none.db")
    assert missing[0] == 2
    assert "none.db: no such file\n" in missing[2]
    assert not (tmp_path / "none.db").exists()


def test_a_time_that_is_none_is_wrong_usage(store, mulligan):
    code, out, err = mulligan("block", "api", "--for", "soon")
    assert (code, out) == (2, "")
    assert err.startswith("error: --for needs a duration such as 90")
