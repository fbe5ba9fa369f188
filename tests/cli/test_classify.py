from __future__ import annotations

import json
import re

import pytest
from click.testing import CliRunner

from mulligan.cli import main
from mulligan.cli.commands.classify import command

NOW = ["--now", "2026-07-06T14:00:00+02:00", "--tz", "Europe/Berlin"]


@pytest.fixture(autouse=True)
def _no_packs_of_mine(monkeypatch, tmp_path):
    monkeypatch.setenv("MULLIGAN_PACKS", "")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))


def run(*args, words=""):
    return CliRunner().invoke(command, [*NOW, *args], input=words, catch_exceptions=False)


def test_a_limit_is_told_with_its_reset_and_what_follows():
    result = run(words="You've hit your limit · resets 5pm")
    assert result.exit_code == 0
    assert result.stdout == (
        "kind      quota\n"
        "message   You've hit your limit · resets 5pm\n"
        "resets    in 3h, 17:00 CEST (read from 'resets 5pm')\n"
        "because   claude: hit-your-limit (banner)\n"
        "mulligan  parks the run and resumes it at 17:01 CEST\n"
    )


@pytest.mark.parametrize(
    ("words", "last"),
    [
        ("All done.", "does nothing"),
        ("Rate limit exceeded. Try again in 20s.", "waits 20s and retries"),
        (
            "You've hit your limit · resets Jul 9, 5pm",
            "stops and says when: Thu 9 Jul 17:01 CEST is beyond the horizon of 6h",
        ),
        (
            "Rate limit exceeded.",
            "retries, waiting longer each time: the server named no time",
        ),
        (
            "You've hit your limit · resets 1:40pm",
            (
                "tries once first, the time may have passed; then stops and says when: "
                "Tue 7 Jul 13:41 CEST is beyond the horizon of 6h"
            ),
        ),
        ("API Error: 500", "retries a few times, waiting longer each time"),
        ("Invalid API key · Run /login again", "stops: waiting cannot fix it"),
        (
            "Attempt 1 failed: slow. Retrying in 5s",
            "does nothing: the program is retrying by itself",
        ),
    ],
)
def test_it_says_what_mulligan_would_do(words, last):
    assert run(words=words).stdout.splitlines()[-1] == f"mulligan  {last}"


def test_an_unknown_failure_needs_an_exit_code():
    assert run("--exit-code", "3", words="hm").stdout.startswith("kind      unknown\n")


def test_json_is_one_object_with_the_message():
    answer = json.loads(
        run("--json", "--agent", "claude", words="You've hit your limit · resets 5pm").stdout
    )
    assert answer == {
        "kind": "quota",
        "reset_in": 10800.0,
        "reset_at": "2026-07-06T15:00:00Z",
        "confidence": "high",
        "agent": "claude",
        "model": None,
        "work_left": False,
        "source": "banner",
        "because": "claude: hit-your-limit",
        "message": "You've hit your limit · resets 5pm",
    }


def test_json_lines_answer_each_line_by_its_id():
    limit = {"text": "You've hit your limit · resets 5pm", "now": "2026-07-06T14:00:00+02:00"}
    rows = [
        {"id": "a", **limit},
        {"id": "b", **limit, "local_tz": "UTC"},
        {"id": 3, "stdout": "", "stderr": "API Error: 529", "agent": "claude", "exit_code": 1},
        {"id": None, "text": "fine", "exit_code": 0},
        {"id": "e", "text": "odd", "exit_code": 2},
    ]
    result = run("--jsonl", words="\n".join(json.dumps(row) for row in rows) + "\n\n")
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert [answer["id"] for answer in answers] == ["a", "b", 3, None, "e"]
    assert [answer["kind"] for answer in answers] == [
        "quota",
        "quota",
        "overloaded",
        None,
        "unknown",
    ]
    assert [answer["reset_in"] for answer in answers] == [10800.0, 18000.0, None, None, None]
    assert set(answers[0]) == {
        *(
            "id",
            "kind",
            "reset_in",
            "reset_at",
            "confidence",
            "agent",
            "model",
            "work_left",
            "source",
            "because",
        ),
    }


def test_a_text_of_stderr_is_held_against_the_answer_on_stdout():
    row = {"id": 1, "text": "API Error: 529", "stream": "stderr", "exit_code": 0}
    rows = [row, {**row, "id": 2, "stdout": "Here is the plan."}]
    result = run("--jsonl", words="\n".join(json.dumps(one) for one in rows))
    kinds = [json.loads(line)["kind"] for line in result.stdout.splitlines()]
    assert kinds == ["overloaded", None]


@pytest.mark.parametrize(
    ("field", "at"),
    [
        ('"resets_at":1783358820000000', "2026-07-06T17:27:00Z"),
        ('"retry_after":99999999999999', None),
        ('"resets_at":1e17', None),
    ],
)
@pytest.mark.parametrize("form", ["text", "--json", "--jsonl"])
def test_no_number_is_a_time_that_cannot_be_shown(field, at, form):
    """An epoch in microseconds was read in milliseconds: the year 58482 raised a ValueError."""
    words = '{"type":"error","error":{"message":"rate limit",' + field + "}}"
    if form == "text":
        assert ("resets" in run(words=words).output) == (at is not None)
        return
    row = json.dumps({"id": "one", "text": words}) if form == "--jsonl" else words
    assert json.loads(run(form, words=row).output)["reset_at"] == at


def test_a_reset_that_is_over_is_zero_seconds_away():
    answer = json.loads(
        run("--json", words="You've hit your limit · resets 2026-07-01 10:00").stdout
    )
    assert answer["reset_in"] == 0


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense", "line 2 of the input is not JSON: "),
        ("[1]", "line 2 of the input needs a JSON object; got [1]"),
        ('{"id":1,"text":"x","now":"soon"}', "line 2: now needs ISO 8601; got 'soon'"),
        ('{"id":1,"text":"x","local_tz":"Mars/Base"}', "line 2: no such zone 'Mars/Base'"),
        ('{"id":1,"text":"x","exit_code":"1"}', "line 2: exit_code needs a whole number; got '1'"),
        (
            '{"id":1,"text":"x","exit_code":true}',
            "line 2: exit_code needs a whole number; got True",
        ),
        ('{"id":1,"text":"x","agent":"claud"}', "line 2: no agent is called 'claud'; did you mean"),
        (
            '{"id":1,"text":"x","stream":"both"}',
            "line 2: stream needs stdout or stderr; got 'both'",
        ),
        ('{"id":1,"text":5}', "line 2: text needs a string; got 5"),
        ('{"id":1,"output":"x"}', "line 2: it has no text, stdout or stderr"),
    ],
)
def test_a_json_line_that_cannot_be_read_is_named_and_the_others_are_answered(line, message):
    rows = '{"id":"before","text":"x"}\n' + line + '\n{"id":"after","text":"x"}\n'
    result = run("--jsonl", words=rows)
    assert result.exit_code == 2
    assert [json.loads(one)["id"] for one in result.stdout.splitlines()] == ["before", "after"]
    assert result.stderr.startswith(f"error: {message}")
    assert result.stderr.count("\n") == 1


def test_options_hold_for_json_lines_that_do_not_say_it():
    rows = [
        {"id": 1, "text": "hm"},
        {"id": 2, "text": "hm", "exit_code": 0, "agent": "codex"},
        {"id": 3, "text": "You've hit your limit · resets 5pm", "now": "2026-07-06T14:00:00+00:00"},
    ]
    args = [
        "--jsonl",
        "--exit-code",
        "3",
        "--agent",
        "claude",
        *NOW[:2],
        "--tz",
        "America/New_York",
    ]
    told = CliRunner().invoke(command, args, input="\n".join(map(json.dumps, rows)))
    answers = [json.loads(line) for line in told.stdout.splitlines()]
    assert [one["kind"] for one in answers] == ["unknown", None, "quota"]
    assert [one["agent"] for one in answers] == ["claude", "codex", "claude"]
    assert answers[2]["reset_at"] == "2026-07-06T21:00:00Z"


def test_a_time_without_a_zone_is_one_of_the_rows_own_zone():
    row = {"id": 1, "text": "You've hit your limit · resets 5pm", "now": "2026-07-06T14:00:00"}
    told = run("--jsonl", words=json.dumps({**row, "local_tz": "America/New_York"}))
    assert json.loads(told.stdout)["reset_in"] == 3 * 3600


def test_half_of_a_character_in_an_id_is_given_back():
    result = run("--jsonl", words='{"id":"\\ud800","text":"x"}')
    assert (result.exit_code, json.loads(result.stdout)["id"]) == (0, "\ud800")


@pytest.mark.parametrize("codec", ["utf-16", "utf-8-sig"])
@pytest.mark.parametrize("lines_above", [1, 60_000])
def test_what_powershell_writes_is_read(tmp_path, codec, lines_above):
    file = tmp_path / "out.txt"
    words = "reading one more of the files\n" * lines_above + "You've hit your limit · resets 5pm\n"
    file.write_bytes(words.encode(codec))
    assert run("--json", str(file)).stdout.startswith('{"kind": "quota", "reset_in": 10800.0')
    file.write_bytes(f"{json.dumps({'id': 1, 'text': words[-400:]})}\n".encode(codec))
    assert json.loads(run("--jsonl", str(file)).stdout)["kind"] == "quota"


def test_a_time_that_no_calendar_has_is_told_in_seconds():
    now = "9999-12-31T23:59:00+00:00"
    limit = "You've hit your limit. Try again in 5 minutes."
    told = CliRunner().invoke(command, ["--json", "--now", now], input=limit)
    assert (json.loads(told.stdout)["reset_in"], json.loads(told.stdout)["reset_at"]) == (300, None)
    told = CliRunner().invoke(command, ["--now", now], input=limit)
    assert "resets    in 5m, beyond the year 9999 (read from" in told.stdout


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["--tz", "Mars"], "needs an IANA zone such as Europe/Berlin; got 'Mars'"),
        (["--now", "soon"], "needs a time such as 2026-07-06T14:00:00+02:00; got 'soon'"),
        (["--agent", "claud"], "no agent is called 'claud'; did you mean 'claude'?"),
        (["--json", "--jsonl"], "--json prints one object, --jsonl one a line; use one of them"),
        (["--jsonl", "--explain"], "--explain prints text; use it without --json and --jsonl"),
    ],
)
def test_wrong_options_say_what_to_write(args, message):
    result = CliRunner().invoke(command, args, input="x")
    assert result.exit_code == 2
    assert message in result.output


def test_a_bad_pack_of_the_users_is_a_warning_and_classifying_goes_on(monkeypatch, tmp_path):
    bad = tmp_path / "bad.toml"
    bad.write_text("version = 1\n", encoding="utf-8")
    monkeypatch.setenv("MULLIGAN_PACKS", str(bad))
    result = run(words="You've hit your limit · resets 5pm")
    assert result.exit_code == 0
    assert result.stdout.startswith("kind      quota")
    assert result.stderr == f"warning: {bad}: a pack needs at least one [[entry]]\n"


def test_it_reads_a_file(tmp_path):
    file = tmp_path / "log.txt"
    file.write_bytes(b"\xff\xfe You've hit your limit\nYou've hit your limit \xc2\xb7 resets 5pm\n")
    assert run(str(file)).stdout.startswith("kind      quota")


def test_the_command_is_in_the_table(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--help"])
    assert ended.value.code == 0
    help_ = capsys.readouterr().out
    assert "classify" in help_
    assert "packs" in help_


def test_a_guess_is_called_one():
    words = "the weekly cap was eaten\nthe quota of this seat"
    told = json.loads(run("--json", "--exit-code", "1", words=words).stdout)
    assert (told["kind"], told["confidence"]) == ("quota", "low")
    shown = run("--exit-code", "1", words=words).stdout
    assert shown.startswith("kind      quota (a guess)\n")
    assert "resumes the session once after a minute, then waits longer each time" in shown
    stated = run("--exit-code", "1", words="the fair share is used up, back in 20 hours").stdout
    assert "resumes the session once after a minute, then stops and says when: " in stated
    assert json.loads(run("--json", "--exit-code", "0", words=words).stdout)["kind"] is None


def test_the_model_of_a_limit_is_told():
    told = json.loads(run("--json", words="You've hit your Opus limit · resets 5pm").stdout)
    assert told["model"] == "opus"


def test_explain_names_the_line_the_rule_and_why_others_do_not_count():
    words = "- a regex for rate limit exceeded\nYou've hit your limit · resets 5pm\n"
    told = run("--explain", words=words).stdout
    assert "line      2: You've hit your limit · resets 5pm\n" in told
    assert "rule      claude: hit-your-limit (seen: Claude Code" in told
    assert "not read  1: - a regex for rate limit exceeded (shown, not said" in told


def test_explain_of_a_miss_says_that_no_rule_knows_it():
    told = run("--explain", words="the weekly cap was eaten").stdout
    assert "not read  1: the weekly cap was eaten (no rule knows it; --exit-code 1" in told


def test_explain_is_text():
    result = run("--explain", "--json")
    assert result.exit_code == 2
    assert "--explain prints text" in result.output


def test_a_turn_that_ended_early_before_a_limit_is_told_as_work_left():
    notice = "Approaching your 5-hour usage limit — Claude will wrap up the current step."
    words = f"Step 2 done.\n⏺ {notice}\n"
    told = json.loads(run("--json", "--exit-code", "0", words=words).stdout)
    assert (told["kind"], told["work_left"]) == (None, True)
    quoted = (
        "It prints `Approaching your 5-hour usage limit — Claude will wrap up`, says the issue."
    )
    assert json.loads(run("--json", words=quoted).stdout)["work_left"] is False


SHOWN_BELOW = """Error: 429 Too Many Requests
hello
```
Error: 429 Too Many Requests
```
"""


def rows(text):
    """The rows of an answer by their labels; the first of several."""
    return {line[:9].strip(): line[10:] for line in reversed(text.splitlines())}


def test_the_line_that_decided_is_named_not_the_last_with_its_words():
    told = rows(run("--explain", "--exit-code", "1", words=SHOWN_BELOW).stdout)
    assert told["line"] == "1: Error: 429 Too Many Requests"
    assert told["not read"].startswith("4: Error: 429 Too Many Requests (shown, not said")


@pytest.mark.parametrize("is_file", [True, False])
def test_a_line_is_numbered_from_the_begin_of_a_long_output(tmp_path, is_file):
    words = "reading one more of the files\n" * 150_000 + "API Error: 529 Overloaded\n"
    (tmp_path / "out.txt").write_text(words, encoding="utf-8")
    told = run("--explain", *([str(tmp_path / "out.txt")] if is_file else []), words=words)
    assert rows(told.stdout)["line"] == "150001: API Error: 529 Overloaded"


def test_an_event_is_named_by_its_line_among_lines_with_its_words():
    event = {"type": "turn.failed", "error": {"message": "You've hit your usage limit."}}
    words = f"You've hit your usage limit.\n\n{json.dumps(event)}\n"
    assert rows(run("--explain", words=words).stdout)["line"].startswith("3: {")


def test_an_exit_code_is_not_looked_for_in_the_lines():
    words = "the wrapper prints exit code 3 when it ends\n"
    assert "line" not in rows(run("--explain", "--exit-code", "3", words=words).stdout)


OUTVOTED = """# Notes
We added tests for the failures that the agent may see when the limit is reached.
Summary of changes: we updated docs and tests for retry handling of errors in the client.

Error: 429 Too Many Requests

The tests pass and we can merge now.
"""


def test_a_line_that_all_words_outvoted_is_named_with_its_rule_and_their_score():
    told = run("--explain", words=OUTVOTED).stdout
    assert rows(told)["outvoted"] == "5: Error: 429 Too Many Requests"
    assert "apis: throttled; without --exit-code all words are weighed" in told
    assert re.search(r"(?m)^score     -\d\.\d\d; -1\.5 or less reads like a text", told)
    assert "no rule knows it" not in told


def test_a_guess_is_offered_only_for_the_line_that_would_be_one():
    words = "the weekly cap was eaten\nthe quota of this seat\n"
    told = run("--explain", words=words).stdout
    assert told.count("--exit-code 1 would make it a guess") == 1
    assert "2: the quota of this seat (no rule knows it; --exit-code 1 would" in told
