"""`mulligan runs`, `show`, `cancel` and `completion`, on a run store of their own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from math import inf, nan

import pytest

from mulligan.cli import main
from mulligan.run.journal.entries import (
    PLAN,
    AttemptBegun,
    AttemptEnd,
    RunCancelled,
    RunMade,
    RunRemark,
    RunRescheduled,
    WorkDelivered,
    WorkVerified,
)
from mulligan.run.journal.retention import KEPT, prune, prune_daily
from mulligan.run.journal.store import RunStore

NOW = time.time()


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "home"))
    runs = RunStore()
    yield runs
    runs.close()


@pytest.fixture
def mulligan(capfd, runs):
    """Run the command; its exit code, stdout and stderr."""

    def mulligan(*argv: str) -> tuple[object, str, str]:
        capfd.readouterr()
        with pytest.raises(SystemExit) as caught:
            main(list(argv))
        said = capfd.readouterr()
        return caught.value.code, said.out, said.err

    return mulligan


def add(
    runs,
    *steps,
    name="",
    at=NOW - 600,
    command=("claude", "-p", "hello"),
    is_held=False,
    agent="claude",
    id_="",
):
    """A run with these steps; its id."""
    host, user = os.uname().nodename, os.geteuid()
    made = RunMade(at, agent, " ".join(command), "/src", host, user, name, {}, ["HOME"])
    claimed, _ = runs.make(runs.new_folder(command, id_), made)
    for number, step in enumerate(steps):
        runs.write(claimed, step, f"step-{number}")
    if not is_held:
        runs.release(claimed)
    return claimed.id


BEGUN = AttemptBegun(NOW - 500, 1, "start", "a-session", "")
LIMIT = AttemptEnd(
    NOW - 400,
    1,
    100.0,
    code=1,
    session="a-session",
    cost=0.31,
    tokens=5000,
    kind="quota",
    status=429,
    message="You have hit your limit",
    reading="claude: hit-your-limit (banner)",
    reset_at=NOW + 7200,
    then="again",
    until=NOW + 7260,
    because="retry in 1h1m, as resets 3am says",
)
WELL = AttemptEnd(
    NOW - 100, 1, 400.0, code=0, cost=0.1, then="done", because="the program succeeded"
)


# runs


def test_without_runs_it_says_how_to_begin_one(mulligan):
    assert mulligan("runs") == (0, "", "no runs yet; start one with: mulligan run -- COMMAND\n")


def test_runs_are_listed_newest_first_with_where_they_stand(mulligan, runs):
    old = add(runs, BEGUN, WELL, at=NOW - 900)
    new = add(runs, BEGUN, LIMIT, name="port")
    code, out, err = mulligan("runs")
    head, first, second = out.splitlines()
    assert (code, err) == (0, "")
    assert head.split() == "run name program status attempts cost when folder".split()  # noqa: SIM905 -- a row
    assert first.split()[:6] == [new, "port", "claude", "waiting", "1", "$0.31"]
    assert re.search(r"in (2h|1h\d+m)", first)  # the suite may take its time to come here
    assert second.split()[:5] == [old, "claude", "done", "1", "$0.10"]
    assert second.split()[-2:] == ["ago", "/src"]


@pytest.mark.parametrize("at", [1.8e15, 1e300, inf, -inf, nan])
def test_a_run_with_an_unusable_time_is_listed_and_shown(mulligan, runs, at):
    waiting = add(runs, BEGUN, LIMIT._replace(reset_at=at, until=at))
    odd = add(runs, BEGUN._replace(at=at), WELL._replace(at=at, took=at), at=at)
    code, out, err = mulligan("runs")
    assert (code, err) == (0, "")
    assert {line.split()[0] for line in out.splitlines()[1:]} == {waiting, odd}
    for id_ in (waiting, odd):
        code, out, err = mulligan("show", id_)
        assert (code, err) == (0, "")
        assert "an unknown time" in out


def test_open_runs_are_all_listed_and_ended_ones_only_with_all(mulligan, runs):
    for _ in range(7):
        add(runs, BEGUN, WELL)
    waiting = [add(runs, BEGUN, LIMIT, at=NOW - 9000) for _ in range(2)]
    _, out, _ = mulligan("runs")
    assert len(out.splitlines()) == 1 + 5 + 2
    assert all(id_ in out for id_ in waiting)
    assert len(mulligan("runs", "--all")[1].splitlines()) == 1 + 9


def test_a_run_whose_supervisor_died_is_cut_off_not_running(mulligan, runs):
    dead = add(runs, BEGUN)
    alive = add(runs, BEGUN, is_held=True)
    rows = {row.split()[0]: row for row in mulligan("runs")[1].splitlines()}
    assert " cut off " in rows[dead]
    assert " running " in rows[alive]


def test_json_has_one_object_a_run(mulligan, runs):
    id_ = add(runs, BEGUN, LIMIT, name="port")
    (line,) = mulligan("runs", "--json")[1].splitlines()
    run = json.loads(line)
    assert (run["run"], run["status"], run["cost"], run["is_held"]) == (id_, "waiting", 0.31, False)
    assert run["until"] == LIMIT.until


def test_names_of_others_cannot_draw_on_the_terminal(mulligan, runs):
    add(runs, BEGUN, WELL, name="\x1b[2Jport\x07", command=("\x1b]0;x\x07claude",))
    assert "\x1b" not in mulligan("runs")[1]
    assert "\x1b" not in mulligan("show")[1]


# show


def test_show_tells_each_attempt_its_decision_and_the_reason(mulligan, runs):
    second = AttemptBegun(NOW - 50, 2, "resume", "a-session", LIMIT.because)
    id_ = add(runs, BEGUN, LIMIT, second, WELL._replace(attempt=2), name="port")
    code, out, _ = mulligan("show", "port")
    assert code == 0
    for words in (
        f"run       {id_} port\n",
        "command   claude -p hello\n",
        "status    done, exit code 0\n",
        "attempts  2, 5m50s of waiting between\n",
        "spent     $0.41, 5,000 tokens\n",
        "session   a-session\n",
        "  ended    usage limit after 1m40s, exit code 1\n",
        "  said     You have hit your limit\n",
        "  read     claude: hit-your-limit (banner)\n",
        "  because  retry in 1h1m, as resets 3am says\n",
        ", resumed its session\n",
        "  ended    done after 6m40s, exit code 0\n",
    ):
        assert words in out


def test_show_without_a_name_is_about_the_newest(mulligan, runs):
    add(runs, BEGUN, WELL, at=NOW - 900)
    new = add(runs, BEGUN, LIMIT)
    assert mulligan("show")[1].startswith(f"run       {new}\n")


def test_show_takes_the_beginning_of_an_id(mulligan, runs):
    id_ = add(runs, BEGUN, WELL)
    assert mulligan("show", id_[:3])[0] == 0


def test_show_of_nothing_says_so(mulligan):
    assert mulligan("show")[::2] == (
        2,
        "error: there is no run yet\n\nhint: start one with: mulligan run -- COMMAND\n",
    )
    assert mulligan("show", "port")[::2] == (
        1,
        "error: no run 'port'; mulligan runs lists them\n",
    )


def test_show_json_has_every_step(mulligan, runs):
    add(runs, BEGUN, LIMIT)
    run = json.loads(mulligan("show", "--json")[1])
    assert run["begun"] == [BEGUN._asdict()]
    assert run["ended"] == [LIMIT._asdict()]
    assert run["variables"] == ["HOME"]


def test_show_of_a_plan_lists_its_agents(mulligan, runs):
    plan = add(runs, BEGUN, agent=PLAN)
    failed = AttemptEnd(NOW - 40, 1, 1.0, code=3, then="stop", exit=3, because="it is not repeated")
    add(runs, BEGUN, WELL, id_=f"{plan}.review.two", at=NOW - 500)
    add(runs, BEGUN, failed, id_=f"{plan}.review.one", at=NOW - 550)
    refused = WorkVerified(NOW - 30, 1, is_good=False, said="two tests fail")
    add(runs, BEGUN, WELL, refused, id_=f"{plan}.review.six", at=NOW - 450)
    _, out, _ = mulligan("show", plan)
    lines = [" ".join(line.split()) for line in out.splitlines() if ".review." in line]
    assert lines == [
        f"{plan}.review.one failed 1 it is not repeated",
        f"{plan}.review.two done 1 $0.10",
        f"{plan}.review.six not verified 1 $0.10",
    ]
    agents = json.loads(mulligan("show", plan, "--json")[1])["agents"]
    assert [each["run"].rpartition(".")[2] for each in agents] == ["one", "two", "six"]
    assert mulligan("show", f"{plan}.review.one")[0] == 0


def test_show_of_an_agent_that_was_not_delivered_says_why_and_what_to_do(mulligan, runs):
    trouble = WorkDelivered(NOW, "a.txt conflicts with the tree; merge the branch x")
    ended = AttemptEnd(NOW, 1, 3.0, is_work=True, then="stop", exit=1, because="review failed")
    plan = add(runs, BEGUN, ended, agent=PLAN)
    add(runs, BEGUN, WELL, trouble, id_=f"{plan}.review.one")
    _, out, _ = mulligan("show", f"{plan}.review.one")
    assert (
        "status    not delivered, though its program has finished\n"
        "because   a.txt conflicts with the tree; merge the branch x\n"
        f"hint      once fixed: mulligan resume {plan}\n"
    ) in out
    found = json.loads(mulligan("show", "--json", f"{plan}.review.one")[1])
    assert (found["status"], found["fell_short"]) == ("done", "not delivered")
    assert found["because"] == trouble.trouble
    other = add(runs, BEGUN, WELL, agent=PLAN)
    add(runs, BEGUN, WELL, trouble, id_=f"{other}.review.one")
    assert "mulligan resume" not in mulligan("show", f"{other}.review.one")[1]


def test_show_of_a_plan_that_waits_says_so_and_tells_what_happened_to_the_trees(mulligan, runs):
    now = NOW
    parked = AttemptEnd(
        now, 1, 3.0, is_work=True, then="again", until=now + 600, because="they wait"
    )
    plan = add(runs, BEGUN, parked, agent=PLAN)
    refused = AttemptEnd(
        now, 1, 0.0, stopped="refused", then="stop", exit=1, because="the tree is torn"
    )
    failed = WorkVerified(now, 1, is_good=False, said="2 tests\nfailed")
    remark = RunRemark(now, "git: left .env: it looks like a secret")
    add(runs, BEGUN, WELL, failed, refused, remark, id_=f"{plan}.review.one")
    code, out, _ = mulligan("show", plan)
    assert code == 0
    assert "  ended    parked after 3s\n  then     continues at " in out
    assert out.rstrip().endswith(f"{plan}.review.one: {remark.text}")
    code, out, _ = mulligan("show", f"{plan}.review.one")
    assert "  check    not verified\n           2 tests\n           failed\n" in out
    assert " not started: the tree is torn\n" in out
    code, out, _ = mulligan("show", "--json", f"{plan}.review.one")
    found = json.loads(out)
    assert (found["remarks"][0]["text"], found["checks"][0]["is_good"]) == (remark.text, False)


def test_a_log_is_printed_byte_for_byte(mulligan, runs):
    id_ = add(runs, BEGUN, WELL)
    for number, suffix in ((1, "out"), (1, "err")):
        (runs.files(id_) / f"attempt-{number}.{suffix}").write_text(f"\x1b[1m{suffix}\n")
    assert mulligan("show", id_, "--log") == (0, "\x1b[1mout\n", "\x1b[1merr\n")
    assert mulligan("show", id_, "--log", "1") == (0, "\x1b[1mout\n", "\x1b[1merr\n")
    code, _, err = mulligan("show", id_, "--log", "7")
    assert code == 2
    assert err.startswith(f"error: run {id_} has no log of attempt 7; it began 1\n")


# cancel


def test_a_parked_run_is_cancelled_at_once(mulligan, runs):
    id_ = add(runs, BEGUN, LIMIT, name="port")
    assert mulligan("cancel", "port") == (0, "", f"cancelled run {id_}\n")
    state = runs.look(id_)
    assert (state.status, state.because) == ("cancelled", "cancelled by the user")


def test_what_has_ended_cannot_be_cancelled(mulligan, runs):
    id_ = add(runs, BEGUN, WELL)
    hint = f"mulligan show {id_} shows the result"
    assert mulligan("cancel", id_) == (
        2,
        "",
        f"error: run {id_} is done: it cannot be cancelled\n\nhint: {hint}\n",
    )


@pytest.mark.real
def test_what_runs_is_ended_by_a_cancel_and_exits_130(mulligan, runs):
    command = [sys.executable, "-m", "mulligan", "run", "--", "sleep", "60"]
    run = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        ends_at = time.monotonic() + 20
        while not (ids := [i for i, state in runs.all() if state.status == "running"]):
            assert time.monotonic() < ends_at
            time.sleep(0.05)
        assert mulligan("cancel", ids[0])[0] == 0
        assert run.wait(10) == 130
        assert "mulligan: cancelled: " in run.communicate()[1]
    finally:
        run.kill()
        run.wait()


# completion


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_is_printed_for_each_shell(mulligan, shell):
    code, out, err = mulligan("completion", shell)
    assert (code, err) == (0, "")
    assert f"_MULLIGAN_COMPLETE={shell}_complete" in out


def offered(mulligan, monkeypatch, *words):
    monkeypatch.setenv("_MULLIGAN_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", " ".join(["mulligan", *words]))
    monkeypatch.setenv("COMP_CWORD", str(len(words)))
    out = mulligan()[1]
    monkeypatch.delenv("_MULLIGAN_COMPLETE")
    return [line.partition(",")[2] for line in out.splitlines() if line]


def test_a_shell_is_offered_commands_and_runs_by_id_and_name(mulligan, runs, monkeypatch):
    done = add(runs, BEGUN, WELL, at=NOW - 900)
    waiting = add(runs, BEGUN, LIMIT, name="port")
    assert offered(mulligan, monkeypatch, "ru") == ["run", "runs"]
    assert offered(mulligan, monkeypatch, "show", "") == [waiting, "port", done]
    assert offered(mulligan, monkeypatch, "resume", "") == [waiting, "port"]
    assert offered(mulligan, monkeypatch, "cancel", "po") == ["port"]


def test_a_shell_is_offered_agents_presets_and_folders(mulligan, monkeypatch):
    assert offered(mulligan, monkeypatch, "run", "--agent", "c") == [
        *("claude", "cline", "codex", "continue", "copilot")
    ]
    assert offered(mulligan, monkeypatch, "run", "--policy", "def") == ["default"]
    monkeypatch.setenv("COMP_CWORD", "3")
    assert offered(mulligan, monkeypatch, "run", "--policy", "./my") == ["./my"]  # a file
    assert offered(mulligan, monkeypatch, "run", "--cwd", "src") == ["src"]  # a folder


def test_a_desk_that_cannot_be_opened_offers_nothing(mulligan, monkeypatch):
    monkeypatch.setenv("MULLIGAN_HOME", "/dev/null/nowhere")
    assert offered(mulligan, monkeypatch, "show", "") == []


# pruning


def test_what_ended_long_ago_is_forgotten_and_what_is_open_is_not(runs):
    gone = add(runs, BEGUN, WELL)
    cancelled = add(runs, BEGUN, RunCancelled(NOW, "cancelled by the user"))
    waiting = add(runs, BEGUN, LIMIT)
    paused = add(runs, BEGUN, WELL._replace(then="pause"))
    taken = add(runs, BEGUN, WELL, is_held=True)
    assert prune(runs, NOW + KEPT - 1000) == ()
    assert set(prune(runs, NOW + KEPT + 1)) == {gone, cancelled}
    assert set(runs.ids()) == {waiting, paused, taken}
    left = {each.name for each in (runs.folder / "runs").iterdir()}
    assert left == {waiting, paused, taken}


def test_a_run_taken_up_again_is_young_again(runs):
    id_ = add(
        runs, BEGUN, WELL._replace(then="stop"), RunRescheduled(NOW + KEPT, NOW + KEPT, "by hand")
    )
    assert prune(runs, NOW + KEPT + 1) == ()
    assert runs.ids() == (id_,)


def test_folders_that_no_journal_knows_go_after_a_day(runs):
    # Counted from now, not from when this file was imported: what is older than the journal stays.
    later = time.time() + 2 * 86_400 + 60
    for name, age in (("young", 0.0), ("old", 2 * 86_400.0)):
        folder = runs.folder / "runs" / runs.new_folder(("true",), name)
        os.utime(folder, (later - age, later - age))
    prune(runs, later)
    assert [each.name for each in (runs.folder / "runs").iterdir()] == ["young"]


def test_pruning_by_the_way_happens_once_a_day(runs):
    assert prune_daily(runs, NOW) == ()
    old = add(runs, BEGUN, WELL._replace(at=NOW - 2 * KEPT))
    assert prune_daily(runs, NOW + 3600) == ()
    os.utime(runs.folder / "pruned", (NOW - 2 * 86_400, NOW - 2 * 86_400))
    assert prune_daily(runs, NOW) == (old,)


def test_pruning_by_hand_says_how_much_went(mulligan, runs):
    add(runs, BEGUN, WELL._replace(at=NOW - 2 * KEPT))
    code, out, err = mulligan("runs", "--prune")
    assert (code, out) == (0, "")
    assert err.startswith("deleted 1 run\n")
