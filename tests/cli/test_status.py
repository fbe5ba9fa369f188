"""What a person sees of a shared store, and does to it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest

from mulligan.classify.quotas import Quota
from mulligan.shared.breaker import BREAKER as CIRCUITS
from mulligan.shared.breaker import AskBreaker, Breaker, OpenBreaker, Passed, Shut, TellBreaker
from mulligan.shared.gate.gate import EnterGate, Gate, LeaveGate, PermitGranted
from mulligan.shared.retry_tokens import TOKENS, Reserve, Tokens
from mulligan.stores.open import open_store
from mulligan.stores.state_machine import Key

BREAKER, GATE = Key("api", "breaker"), Key("api", "gate")


@pytest.fixture
def store(tmp_path, monkeypatch):
    url = f"sqlite:{tmp_path}/state.db"
    monkeypatch.setenv("MULLIGAN_STORE", url)
    store = open_store(url)
    store.state.known(CIRCUITS)  # a guard has been here: the file exists
    yield store
    store.close()


def asked(store, key=BREAKER):
    return store.state.transact(key, AskBreaker(permit="p", settings=Breaker()))


def test_what_is_blocked_by_hand_is_refused_and_no_success_undoes_it(store, mulligan):  # E-B9
    code, out, err = mulligan("block", "api", "--because", "wrong invoices")
    assert (code, out) == (0, "api: blocked until mulligan allow or reset\n")
    assert err == "note: no failure of 'api' is known so far\n"
    store.state.transact(
        BREAKER,
        TellBreaker(permit="p", generation=1, result="success", worker="w", settings=Breaker()),
    )
    assert asked(store) == Shut(float("inf"), "wrong invoices")


def test_what_is_allowed_by_hand_passes_however_often_it_fails(store, mulligan):
    assert mulligan("allow", "api")[1] == "api: allowed until mulligan block or reset\n"
    for _ in range(9):
        failed = TellBreaker(
            permit="", generation=1, result="failure", worker="w", settings=Breaker()
        )
        store.state.transact(BREAKER, failed)
    assert asked(store) == Passed(1)


def test_a_hand_for_a_time_says_how_long(store, mulligan):
    assert mulligan("block", "api", "--for", "1h30m")[1] == "api: blocked for 1h30m\n"
    answer = asked(store)
    assert isinstance(answer, Shut)
    assert 5390 < answer.retry_in <= 5400
    assert "blocked manually for 1h" in mulligan("status")[1]


def test_a_reset_takes_the_hand_away_and_forgets_beliefs_and_debts(store, mulligan):
    mulligan("block", "api")
    rejected = LeaveGate(id="", turn=0, reply="rejected", hint=600, settings=Gate())
    store.state.transact(GATE, rejected)
    spend = Reserve(id="r", cost=14, lease=0.001, tokens=Tokens())
    store.state.transact(Key("api", "tokens"), spend)
    assert mulligan("reset", "api")[:2] == (0, "api: breaker closed, gate open, tokens full\n")
    assert isinstance(asked(store), Passed)
    enter = EnterGate(id="p", holder="h", settings=Gate())
    assert isinstance(store.state.transact(GATE, enter), PermitGranted)
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
    store.state.transact(BREAKER, OpenBreaker(stated=3000, because="down for repairs"))
    said = Quota(dimension="requests", limit=50, remaining=12)
    answered = LeaveGate(id="", turn=0, reply="answered", settings=Gate(), stated=(said,))
    store.state.transact(GATE, answered)
    store.state.transact(GATE, EnterGate(id="p", holder="h", settings=Gate()))
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
    store.state.transact(
        GATE, LeaveGate(id="", turn=0, reply="rejected", hint=600, settings=Gate())
    )
    mulligan("block", "other")
    rows = [json.loads(line) for line in mulligan("status", "--json")[1].splitlines()]
    assert [row["target"] for row in rows] == ["api", "other"]
    assert rows[0]["gate"]["state"] == "shut"
    assert 590 < rows[0]["gate"]["for"] <= 600
    assert rows[0]["gate"]["because"] == "a rejection asked to wait 10m"
    assert rows[1]["breaker"]["state"] == "blocked"
    assert mulligan("status", "other", "--json")[1].count("\n") == 1


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_nothing_in_a_targets_name_moves_the_terminals_cursor_or_its_letters(store, mulligan, form):
    name = "api\x1b[31m\nx\x07\x7f\x9b\u202egnp\u2066\u200f"
    mulligan("block", name, "--because", "\u202eyou may call\x1b]0;t\x07")
    said = Quota(dimension="re\u202equests\x1b[2J", limit=50, remaining=12)
    answered = LeaveGate(id="", turn=0, reply="answered", settings=Gate(), stated=(said,))
    store.state.transact(Key(name, "gate"), answered)
    out = mulligan("status", *form)[1]
    assert not set("\x1b\x07\x7f\x9b\u202e\u2066\u200f") & set(out)
    if form:
        assert json.loads(out)["target"] == name  # and a script can name it


@pytest.mark.parametrize("command", ["block", "allow", "reset"])
@pytest.mark.parametrize("name", ["", "  "])
def test_a_target_without_a_name_is_wrong_usage(store, mulligan, command, name):
    code, out, err = mulligan(command, name)
    assert (code, out) == (2, "")
    assert err == (
        f"error: a target needs a name; got {name!r}\n\n"
        'hint: the name is the guard\'s, as in mulligan.Guard("anthropic")\n'
    )
    assert mulligan("status")[1] == ""


def test_a_name_that_is_nearly_known_is_asked_about(store, mulligan):
    mulligan("block", "billing-api")
    note = "note: no failure of 'biling-api' is known so far; did you mean 'billing-api'?\n"
    assert mulligan("allow", "biling-api")[2] == note
    code, out, err = mulligan("reset", "bling-api")
    assert (code, out) == (1, "")
    assert err == (
        "error: nothing is known about 'bling-api'; did you mean 'biling-api'?\n\n"
        "hint: mulligan status lists the known names\n"
    )


COMMANDS = [("status",), ("block", "x"), ("allow", "x"), ("reset", "x")]

NO_STORE = (
    "error: no run of this user has hit a limit, and no store was given\n\n"
    "hint: give the store that the guards share, with --store or MULLIGAN_STORE: "
    "sqlite:PATH or redis://HOST\n"
)
NO_NAME = (
    "error: no program, provider or account of runs is called 'x'\n\n"
    "hint: for a guard's target, name its store with --store or MULLIGAN_STORE\n"
)


@pytest.mark.parametrize("command", COMMANDS)
def test_without_a_store_there_is_nothing_to_see(command, mulligan, monkeypatch):
    monkeypatch.delenv("MULLIGAN_STORE", raising=False)
    is_order = command[0] in {"block", "allow"}
    assert mulligan(*command) == ((1, "", NO_NAME) if is_order else (2, "", NO_STORE))
    assert mulligan(*command, "--store", "memory:")[2].startswith(
        "error: memory: is the memory of one process, which others cannot read\n"
    )


@pytest.mark.parametrize("command", [each for each in COMMANDS if each[0] != "block"])
def test_a_path_that_nobody_uses_is_told_and_not_made(command, mulligan, tmp_path):
    code, out, err = mulligan(*command, "--store", f"sqlite:{tmp_path}/none.db")
    assert (code, out) == (2, "")
    assert "none.db: no such file\n\nhint: " in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", COMMANDS)
def test_an_address_of_no_store_is_wrong_usage(command, mulligan, tmp_path):
    code, out, err = mulligan(*command, "--store", "state.db")
    assert (code, out) == (2, "")
    assert err == (
        "error: a store needs an address such as memory:, sqlite:PATH or redis://HOST; "
        "got 'state.db'\n\nhint: did you mean --store sqlite:state.db?\n"
    )
    assert mulligan(*command, "--store", "redis://host:port/0")[0] == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("content", ["text", "another programs", "folder"])
def test_a_file_that_is_no_store_is_told_and_left_alone(command, content, mulligan, tmp_path):
    path = tmp_path / "notes.db"
    if content == "text":
        path.write_text("milk, bread\n" * 20)
    elif content == "folder":
        path.mkdir()
    else:
        with closing(sqlite3.connect(path)) as theirs:
            theirs.execute("CREATE TABLE state (mind TEXT)")
            theirs.execute("PRAGMA user_version = 2")
    before = None if path.is_dir() else path.read_bytes()
    code, out, err = mulligan(*command, "--store", f"sqlite:{path}")
    assert (code, out) == (1, "")
    assert err.startswith(f"error: sqlite:{path}: ")
    assert "Traceback" not in err
    assert path.is_dir() or path.read_bytes() == before


def test_a_time_that_is_none_is_wrong_usage(store, mulligan):
    code, out, err = mulligan("block", "api", "--for", "soon")
    assert (code, out) == (2, "")
    assert err.startswith("error: invalid value for '--for': 'soon' is not a duration such as 90s")
