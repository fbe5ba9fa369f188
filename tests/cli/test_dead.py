from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from mulligan.cli import main
from mulligan.testing import virtual_time

APP = """
import os
import mulligan

hooks = mulligan.Guard(
    "hooks", store=os.environ["LETTERS"], dead_letters=True, effects="read", attempts=1
)


def supply():
    return {"token": os.environ.get("TOKEN", "supplied")}


@mulligan.replayable("deliver", secrets=("token",), supply=supply)
def deliver(number, token):
    up = os.environ["UP"]
    if not os.path.exists(up):
        raise ConnectionRefusedError("nobody listens")
    with open(up, "a") as log:
        print(number, token, file=log)


def plain():
    raise ConnectionRefusedError("nobody listens")


def setup():
    print("set up")


def fill(*numbers):
    for number in numbers:
        try:
            hooks.call(deliver, number, token="hidden-0123456789")
        except ConnectionRefusedError:
            pass
    try:
        hooks.call(plain)
    except ConnectionRefusedError:
        pass
"""


@pytest.fixture
def shop(tmp_path, monkeypatch):
    """A folder with an app whose receiver is down, and two letters of it."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("LETTERS", f"sqlite:{tmp_path / 'letters.db'}")
    monkeypatch.setenv("MULLIGAN_STORE", f"sqlite:{tmp_path / 'letters.db'}")
    monkeypatch.setenv("UP", str(tmp_path / "received"))
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "shop_app.py").write_text(APP)
    (tmp_path / "broken_app.py").write_text("{}['setting']")
    sys.modules.pop("shop_app", None)
    from mulligan.dead_letters import replayable as registry

    monkeypatch.setattr(registry, "_known", {})
    import shop_app  # type: ignore[import-not-found]

    shop_app.fill(1)
    yield tmp_path
    sys.modules.pop("shop_app", None)


def run(capsys, *argv: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["dead", *argv])
    said = capsys.readouterr()
    code = ended.value.code
    assert isinstance(code, int)
    return code, said.out, said.err


def ids(capsys) -> list[str]:
    return [json.loads(line)["id"] for line in run(capsys, "list", "--json")[1].splitlines()]


def test_a_table_lists_letters(shop, capsys):
    code, out, _ = run(capsys, "list")
    head, first, second = out.splitlines()
    assert code == 0
    assert head.split() == ["id", "age", "state", "target", "function", "because"]
    assert first.split()[2:5] == ["waiting", "hooks", "deliver"]
    assert first.endswith("the only attempt failed with network")
    assert second.split()[4] == "plain"


def test_no_letters_are_no_error(tmp_path, capsys):
    (tmp_path / "x.db").touch()
    store = f"sqlite:{tmp_path / 'x.db'}"
    assert run(capsys, "list", "--store", store) == (0, f"no dead letters in {store}\n", "")
    assert run(capsys, "list", "--store", store, "--json") == (0, "", "")


@pytest.mark.parametrize("words", [("list",), ("show", "66"), ("replay", "--all"), ("purge", "66")])
def test_a_file_that_is_missing_is_refused_as_by_mulligan_status(tmp_path, capsys, words):
    """A misspelt path must not look like a store without letters."""
    store = f"sqlite:{tmp_path / 'missing.db'}"
    said = run(capsys, *words, "--store", store)
    with pytest.raises(SystemExit) as ended:
        main(["status", "--store", store])
    assert said == (ended.value.code, "", capsys.readouterr().err)
    assert said[2].startswith(f"error: {store}: no such file\n")
    assert not (tmp_path / "missing.db").exists()


def test_a_store_with_letters_alone_is_not_missing(shop, capsys):
    """Letters are in the journal of a store; its other file is made by breakers and gates."""
    import shop_app

    store = f"sqlite:{shop / 'alone.db'}"
    guard = shop_app.mulligan.Guard("hooks", dead_letters=store, effects="read", attempts=1)
    with pytest.raises(ConnectionRefusedError):
        guard.call(shop_app.plain)
    assert not (shop / "alone.db").exists()
    code, out, _ = run(capsys, "list", "--store", store, "--json")
    assert (code, len(out.splitlines())) == (0, 1)


def test_letters_in_spool_files_are_listed_while_their_store_is_missing(shop, capsys):
    import shop_app

    (shop / "folder").touch()  # so that no file can be made in it
    store = f"sqlite:{shop / 'folder' / 'letters.db'}"
    guard = shop_app.mulligan.Guard("hooks", dead_letters=store, effects="read", attempts=1)
    with pytest.raises(ConnectionRefusedError):
        guard.call(shop_app.plain)
    code, out, err = run(capsys, "list", "--store", store)
    assert (code, "waiting, in a file" in out) == (1, True)
    assert err.startswith(f"error: {store}: ")
    assert "no such file" not in err


def test_a_letter_is_shown_whole_and_without_secrets(shop, capsys):
    first, second = ids(capsys)
    code, out, _ = run(capsys, "show", first)
    lines = dict(line.split(None, 1) for line in out.splitlines() if line[:1].isalpha())
    assert code == 0
    assert lines["function"] == "shop_app.deliver"
    assert lines["arguments"] == '{"number": 1}'
    assert lines["secrets"] == "token: not stored; needed at replay"
    assert "hidden" not in out
    out = run(capsys, "show", second)[1]
    assert "no: its function is not replayable" in out
    assert json.loads(run(capsys, "show", first, "--json")[1])["state"] == "waiting"


def test_an_unknown_letter_is_wrong_usage(shop, capsys):
    code, _, err = run(capsys, "show", "zz")
    assert code == 2
    assert err.startswith("error: no dead letter 'zz' in sqlite:")
    assert err.endswith("\n\nhint: mulligan dead list shows them all\n")


def test_a_replay_makes_the_calls_again_and_says_what_came_of_each(shop, capsys):
    first, second = ids(capsys)
    (shop / "received").touch()
    code, out, err = run(capsys, "replay", "--app", "shop_app", "--all")
    assert code == 1  # one of them is refused
    assert out.splitlines() == [
        f"{first} replayed",
        f"{second} refused: its function is not replayable",
    ]
    assert err == "1 replayed, 1 refused\n"
    assert (shop / "received").read_text() == "1 supplied\n"
    assert "replayed" in run(capsys, "list", "--state", "replayed")[1]
    code, out, err = run(capsys, "replay", "--all", "--function", "deliver")
    assert (code, out, err) == (0, "", "nothing to replay\n")
    code, out, _ = run(capsys, "replay", first)
    assert (code, out) == (0, f"{first} replayed: it had been replayed before\n")
    assert (shop / "received").read_text() == "1 supplied\n"


def test_setup_is_called_if_it_is_named(shop, capsys):
    (shop / "received").touch()
    code, out, _ = run(capsys, "replay", "--app", "shop_app:setup", "--function", "deliver")
    assert code == 0
    assert out.startswith("set up\n")


def test_what_fails_again_is_said_and_counted(shop, capsys):
    first, _ = ids(capsys)
    words = ("--app", "shop_app", first, "--json", "--store", os.environ["LETTERS"])
    with virtual_time():
        code, out, err = run(capsys, "replay", *words)
    state = json.loads(out)
    assert code == 1
    assert (state["id"], state["state"]) == (first, "failed")
    assert state["because"] == "ConnectionRefusedError: nobody listens"
    assert err == ""


def test_a_rehearsal_calls_nothing(shop, capsys):
    first, second = ids(capsys)
    (shop / "received").touch()
    code, out, _ = run(capsys, "replay", "--app", "shop_app", "--all", "--dry-run")
    assert code == 0
    assert out.splitlines() == [
        f"would replay {first}",
        f"would refuse {second}: its function is not replayable",
    ]
    assert (shop / "received").read_text() == ""
    assert {
        json.loads(line)["state"] for line in run(capsys, "list", "--json")[1].splitlines()
    } == {"waiting"}


@pytest.mark.parametrize(
    ("argv", "error"),
    [
        (["replay"], "no letters were selected"),
        (["purge"], "no letters were selected"),
        (["replay", "x", "--all"], "letters are selected by ID or by filters, not by both"),
        (["replay", "--all", "--app", "no.such.module"], "--app no.such.module cannot be loaded"),
        (["replay", "--all", "--app", "shop_app:nobody"], "--app shop_app:nobody cannot be"),
        (["replay", "--all", "--app", "broken_app"], "--app broken_app cannot be loaded: KeyError"),
        (["list", "--older", "yesterday"], "--older needs a duration"),
        (["list", "--state", "lost"], "invalid value for '--state'"),
        (["list", "--store", "mongo:x"], "a store needs an address such as"),
        (["show", "66", "--store", "mongo:x"], "a store needs an address such as"),
        (["purge", "--all", "--store", "redis://h:port"], "redis://h:port is not a server address"),
        (["replay", "--all", "--store", "memory:"], "memory: is the memory of one process"),
    ],
)
def test_what_cannot_be_meant_is_said(shop, capsys, argv, error):
    code, out, err = run(capsys, *argv)
    assert code == 2
    assert err.startswith(f"error: {error}")
    assert out == ""


def test_letters_are_purged_by_filter_or_by_name(shop, capsys):
    first, second = ids(capsys)
    assert run(capsys, "purge", "--function", "deliver", "--dry-run")[1] == f"would purge {first}\n"
    assert run(capsys, "purge", "--function", "deliver")[1] == f"purged {first}\n"
    assert run(capsys, "purge", second)[:2] == (0, f"purged {second}\n")
    assert ids(capsys) == []


def test_a_store_that_is_down_still_shows_what_waits_in_files(shop, capsys, monkeypatch):
    import shop_app

    monkeypatch.setattr(
        shop_app,
        "hooks",
        shop_app.mulligan.Guard(
            "hooks", dead_letters="redis://127.0.0.1:1/0", effects="read", attempts=1
        ),
    )
    shop_app.fill(7)
    code, out, err = run(capsys, "list", "--store", "redis://127.0.0.1:1/0")
    assert code == 1
    assert "waiting, in a file" in out
    assert err.startswith("error: redis://127.0.0.1:1/0: no answer")
    assert len(ids(capsys)) == 4  # the other store shows them, too


@pytest.mark.real
def test_two_commands_at_once_make_one_call(shop):
    (shop / "received").touch()
    (shop / "slow_app.py").write_text(
        "import time\nfrom shop_app import *\n"
        "_now = deliver\n"
        "def slow(number, token):\n    time.sleep(0.4)\n    _now(number, token)\n"
        "import mulligan.dead_letters.replayable as r\n"
        "r._known['deliver'] = r.Replayable(\n"
        "    name='deliver', function=slow, secrets=('token',), supply=supply\n)\n"
    )
    words = [sys.executable, "-m", "mulligan", "dead", "replay", "--app", "slow_app"]
    started = [
        subprocess.Popen([*words, "--function", "deliver"], cwd=shop, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    said = [process.communicate(timeout=30)[0].decode() for process in started]
    assert Path(shop / "received").read_text() == "1 supplied\n"
    assert sum(" replayed" in each for each in said) in (1, 2)  # the late one may find it done
