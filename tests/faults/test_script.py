from __future__ import annotations

import re
from math import ceil, inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.errors import SettingError
from mulligan.faults.fault_names import MENU, STATUSES, Fault
from mulligan.faults.script import RuleState, Script, ScriptRule, ScriptStep, roll, take


def never(_: int) -> float:
    return 0.999999


def play(text: str, times: list[float], roll_=never) -> list[str]:
    """What requests at these times get from a script of one rule."""
    rule = Script.parse(text).rules[0]
    state, got = RuleState.of(rule), []
    for now in times:
        turn, state = take(rule, state, now=now, roll=roll_)
        got.append(turn.fault.name)
    return got


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("429x2,529,ok", ["429", "429", "529", "ok", "ok"]),
        ("429", ["429"] * 5),
        ("429x2", ["429", "429", "ok", "ok", "ok"]),
        ("reset,hang,stall", ["reset", "hang", "stall", "stall", "stall"]),
        ("ok,ok,503", ["ok", "ok", "503", "503", "503"]),
        ("500x0,ok", ["ok"] * 5),
    ],
)
def test_steps_are_taken_in_order_and_the_last_one_stays(text, expected):
    assert play(text, [0.0] * 5) == expected


def test_a_time_table_runs_from_the_first_request():
    times = [1000.0, 1014.9, 1015.0, 2000.0]
    assert play("0-15s:529,ok", times) == ["529", "529", "ok", "ok"]


def test_a_window_may_be_open_on_either_side_and_takes_the_other_sides_unit():
    assert play("-2s:503,ok", [0.0, 1.9, 2.0]) == ["503", "503", "ok"]
    assert play("1-2m:503,ok", [0.0, 60.0, 119.0, 120.0]) == ["ok", "503", "503", "ok"]
    assert play("5s-:503,ok", [0.0, 5.0, 1e9]) == ["ok", "503", "503"]


def test_a_chance_leaves_the_rest_of_the_script_in_place():
    rolls = iter([0.29, 0.3, 0.9, 0.1])
    got = play("503:0.3,429,ok", [0.0] * 4, lambda _: next(rolls))
    assert got == ["503", "429", "ok", "503"]


def test_a_plan_is_refused_until_the_reset_it_states_and_accepted_from_then_on():
    rule = Script.parse("plan(15s)").rules[0]
    state = RuleState.of(rule)
    first, state = take(rule, state, now=100.2, roll=never)
    assert first.reset_at == ceil(115.2)
    for now, expected in [(110.0, "plan"), (115.9, "plan"), (116.0, "ok"), (999.0, "ok")]:
        turn, state = take(rule, state, now=now, roll=never)
        assert turn.fault.name == expected
        assert expected == "ok" or turn.reset_at == first.reset_at


def test_after_a_plan_comes_what_follows_it():
    assert play("plan(10s),529,ok", [0.0, 9.0, 10.0, 11.0]) == ["plan", "plan", "529", "ok"]


def test_rules_choose_by_method_path_and_client():
    script = Script.parse("POST /invoices -> lost,ok; /v1/* -> 503; @team-a -> 429; ok")
    assert [
        script.find(method=method, path=path, client=client)
        for method, path, client in [
            ("POST", "/invoices", "x"),
            ("GET", "/invoices", "x"),
            ("POST", "/v1/messages", "team-a"),
            ("GET", "/invoices", "team-a"),
        ]
    ] == [0, 3, 1, 2]


def test_a_request_that_no_rule_covers_has_none():
    assert Script.parse("/v1/* -> 503").find(method="GET", path="/x", client="") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("429x", "a step is written like 429, 429x2, 503:0.3, 0-15s:529 or stall(3); got '429x'"),
        ("503:1.5", "a chance is a number from 0 to 1; got '1.5' in '503:1.5'"),
        ("503:1.2.3", "a chance is a number from 0 to 1; got '1.2.3' in '503:1.2.3'"),
        ("9-3s:529", "a window ends after it begins, as in 5-15s; got '9-3s:529'"),
        ("stal", "no fault is called 'stal'; did you mean stall?"),
        ("stall(3", "parentheses are opened as often as closed; got 'stall(3'"),
        ("stall(x)", "stall(after=…) needs a whole number such as 3; got 'x'"),
        ("html(200)", "html(status=…) needs a status from 400 to 599; got '200'"),
        ("reset(applied=maybe)", "reset(applied=…) needs yes or no; got 'maybe'"),
        ("/x -> ", "a rule needs at least one step, such as ok; got '/x ->'"),
        (
            "messages -> ok",
            "a rule begins with a method, a /path or a @client; got 'messages' in 'messages -> ok'",
        ),
        ("call(x, [1])", "call(arguments=…) needs a JSON object; got '[1]'"),
        ("reset(3)", "reset does not take '3'; it takes delay, applied"),
    ],
)
def test_a_script_that_cannot_be_meant_is_refused_with_what_to_write(text, message):
    with pytest.raises(SettingError, match=f"^{re.escape(message)}$"):
        Script.parse(text)


def test_an_unknown_fault_without_a_neighbour_lists_the_menu():
    with pytest.raises(SettingError, match=r"^no fault is called 'zzzzzz'; known are 200 to 599, "):
        Script.parse("zzzzzz")


def test_no_name_of_ours_alone_is_shown():
    with pytest.raises(SettingError) as caught:
        Script.parse("nnnn")
    assert "NNN" not in str(caught.value)


names = st.one_of(
    st.integers(300, 599).map(str), st.sampled_from([name for name in MENU if name not in STATUSES])
)
words = st.text("abcxyz0189 .=_-/>,;()\"\\:@'", min_size=1, max_size=12).map(str.strip).filter(bool)
waits = st.integers(1, 10**6).map(lambda n: f"{n}ms")


@st.composite
def faults(draw) -> Fault:
    name = draw(names)
    options = []
    if draw(st.booleans()):
        options.append(("delay", draw(waits)))
    if name in {"ok", "shell"} and draw(st.booleans()):
        options.append(("text" if name == "ok" else "command", draw(words)))
    if name.isdigit() and draw(st.booleans()):
        options.append(("retry-after", draw(words)))
    return Fault(name=name, options=tuple(options))


@st.composite
def steps(draw) -> ScriptStep:
    since = draw(st.floats(0, 1e6))
    return ScriptStep(
        fault=draw(faults()),
        count=draw(st.integers(0, 10**6)),
        since=since,
        until=draw(st.one_of(st.just(inf), st.floats(0.001, 1e6).map(lambda more: since + more))),
        chance=draw(st.floats(0, 1)),
    )


rules = st.builds(
    ScriptRule,
    steps=st.lists(steps(), min_size=1, max_size=4).map(tuple),
    method=st.sampled_from(["", "GET", "POST"]),
    path=st.sampled_from(["", "/v1/*", "/invoices"]),
    client=st.sampled_from(["", "*", "team-a"]),
)


@given(st.lists(rules, min_size=1, max_size=3).map(tuple))
def test_a_script_reads_back_what_it_writes(written):
    assert Script.parse(str(Script(rules=written))).rules == written


@pytest.mark.parametrize(
    ("text", "option", "value"),
    [
        ("ok(see a -> b)", "text", "see a -> b"),
        ("shell(cat a -> b; ls)", "command", "cat a -> b; ls"),
        ('shell(echo ":)")', "command", 'echo ":)"'),
        ('ok(":)")', "text", ":)"),
        ('503(message="Hello, world")', "message", "Hello, world"),
        (r'503(message="a \"b\", (c")', "message", 'a "b", (c'),
        ('write(a.txt, "delay=3")', "content", "delay=3"),
        ('call(search, {"q": "a) -> b"})', "arguments", '{"q": "a) -> b"}'),
        ("503(applied=yes, 2)", "retry-after", "2"),
        ("stall(after=3, 5s)", "for", "5s"),
    ],
)
def test_values_may_hold_what_separates_steps(text, option, value):
    [rule] = Script.parse(text).rules
    [step] = rule.steps
    assert step.fault.text(option) == value
    assert Script.parse(str(rule)).rules == (rule,)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("ok(a)(b)", r"^parentheses are opened as often as closed; got 'a\)\(b'$"),
        (
            "429(header.Content-Length=3)",
            r"^429 frames its body itself; got 'header.Content-Length",
        ),
        ("@a @b -> ok", r"^a rule has one client; got another, '@b', in '@a @b -> ok'$"),
        ("/a /b -> ok", r"^a rule has one path; got another, '/b', "),
        ("get POST -> ok", r"^a rule has one method; got another, 'POST', "),
    ],
)
def test_what_says_two_things_at_once_is_refused(text, message):
    with pytest.raises(SettingError, match=message):
        Script.parse(text)


def test_a_method_may_be_written_small():
    assert Script.parse("get /x -> 503").rules[0].method == "GET"


@given(
    st.lists(steps(), min_size=1, max_size=5), st.lists(st.floats(0, 100), max_size=40), st.data()
)
def test_no_step_answers_more_often_than_it_may(written, gaps, data):
    rule = ScriptRule(steps=tuple(written))
    state, now = RuleState.of(rule), 0.0
    for gap in gaps:
        now += gap
        _, state = take(rule, state, now=now, roll=lambda _: data.draw(st.floats(0, 0.999)))
    assert state.asked == len(gaps)
    for used, step in zip(state.used, rule.steps, strict=True):
        assert step.count is not None
        assert used <= step.count


@given(st.integers(), st.integers())
def test_a_roll_is_in_the_unit_interval_and_the_same_again(seed, occasion):
    assert 0 <= roll(seed, occasion) < 1
    assert roll(seed, occasion) == roll(seed, occasion)


def test_three_in_ten_are_about_three_in_ten():
    hits = sum(roll(7, "rule", n) < 0.3 for n in range(10_000))
    assert 2_850 < hits < 3_150


@pytest.mark.parametrize("status", ["100", "199", "600", "999"])
def test_a_status_that_no_answer_has_is_refused(status):
    with pytest.raises(SettingError, match=f"^no fault is called '{status}'; known are 200 to 599"):
        Script.parse(status)
