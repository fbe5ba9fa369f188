"""Sentences that state a limit, whoever words them, and those that only talk about one."""

from __future__ import annotations

import pytest

from mulligan.core.hint import Confidence

from .test_reader import kind, outcome


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The weekly allowance of seat 4 is exhausted", "quota"),
        ('auth unavailable: 1 of 1 seats for model "m-1" are in cooldown:', "rate_limit"),
        ("stage=pick failed tookMs=39: acme rate limit: too many requests", "rate_limit"),
        ("All 4 keys of provider 'acme' are rate-limited", "rate_limit"),
        ("The model you picked is experiencing a high volume of traffic.", "overloaded"),
        ("Maximum com.acme.Generate reached for this month.", "quota"),
    ],
)  # fmt: skip
def test_a_sentence_that_states_a_limit_needs_no_entry_of_its_own(text, expected):
    assert kind(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "When the weekly limit is reached, the worker waits",
        "The weekly limit will be reached before it resets at 5pm",
        'It prints "weekly limit reached, resets at 5pm" and stops',
        "The recursion limit was reached",
        "The session limit hit rate is 12 %",
        "pool: 6 seats, 0 rate-limited",
        "month usage  $12.37 spent",
    ],
)
def test_a_sentence_about_a_limit_does_not_state_one(text):
    assert kind(text) is None


def test_the_words_of_another_limit_are_no_quota():
    assert kind("Error: the model has reached its context window limit.") == "context_length"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Error: the socket hung up: connection was lost", "network"),
        ("Error: your key was revoked: invalid api key", "auth"),
        ("Error: upstream request failed", "server"),
    ],
)
def test_an_error_in_unknown_words_is_named_by_their_stems(text, expected):
    assert kind(text) == expected


def test_a_limit_that_an_error_only_mentions_is_not_guessed():
    assert kind("error: could not apply 4f1a2bc... feat: show the usage limit") is None


CODE = """func TestLimit(t *testing.T) {
\tfake(t, "acme", `
{BODY}
`)
\tres, err := run("task", nil)
\trequire.Error(t, err)
\trequire.True(t, res.Partial)
}
"""


@pytest.mark.parametrize(
    "body",
    [
        "API Error: 429 rate limit reached, try again in 20s",
        '{"type":"turn.failed","error":{"message":"You\'ve hit your usage limit."}}',
        '{"error": {"type": "rate_limit_error", "message": "slow down"}}',
    ],
)
def test_what_stands_in_source_code_is_not_said(body):
    assert kind(CODE.replace("{BODY}", body)) is None
    assert kind(f"{CODE}\nAPI Error: 429 rate limit reached") == "rate_limit"


@pytest.mark.parametrize(
    "text",
    [
        "/**\n * What it prints:\n *   Error: rate limit reached, try again in 18s\n * and then it waits",
        ('// the body of a limit\nconst BODY = stringify({\n  "retry-after": "300",\n'
        '  "anthropic-ratelimit-unified-status": "rejected",\n});'),
    ],
)  # fmt: skip
def test_comments_and_literals_are_not_said(text):
    assert kind(text) is None


@pytest.mark.parametrize(
    "below",
    [
        "### Findings\n\nThe parser has three modules and the tests cover all of them.",
        "[12] assistant: I went on with the second file.",
        (
            "一共有十个文件，全部检查完毕，没有发现新的问题，可以合并到主分支，接下来继续处理下一个任务，"
            "并且更新了文档和测试用例，请再次确认以上结果。"
        ),
    ],
)
def test_an_error_with_an_answer_below_it_was_survived(below):
    error = "Error: 429 rate limit reached"
    assert kind(error) == "rate_limit"
    assert kind(f"{error}\n\n{below}") is None
    assert kind(f"{error}\n\n{below}", exit_code=1) == "rate_limit"


def test_a_log_that_begins_after_an_error_does_not_outlive_it():
    error = "Error: 429 rate limit reached"
    log = "[2026-07-06 12:00:01] [queue] [INFO] cycle start"
    assert kind(f"{error}\n{log}") == "rate_limit"
    assert kind(f"[2026-07-06 12:00:00] [queue] [ERROR] {error}\n{log}") is None


def test_paths_and_ids_below_a_banner_are_no_answer():
    text = (
        "the run failed: You've hit your limit · resets 5pm\n\ntail:\n\n"
        "[acpx] session a-b-c-525 (4d05ff7d-5cf1-4bcd) · /data/loop/shared/issues/525 · reconnect"
    )
    assert kind(text) == "quota"


def test_a_report_of_a_failure_is_read_without_its_markup():
    body = '{"error":{"message":"Rate limit exceeded: per-day","code":429}}'
    assert kind(f"- Score: 0\n- Step failed:\n```text\n{body}\n```\n") == "quota"
    assert kind(
        f"## Item\n\n- Attempt: 1/3\n- Item: W-1\n- Outcome: failed\n- Defects: 429: {body}"
    )
    several = (
        "### Error Message\n```\nrate limited: slow down\n```\n\n### Stack Trace\n```\nx\n```\n"
    )
    assert kind(several) == "rate_limit"


def test_a_document_with_labels_is_no_report():
    text = "# Status\n\n## Fix: 429\n**Time:** now\n- **Daily Limit:** 20 requests\n- **Delay:** 25 s\n"
    assert kind(text) is None


@pytest.mark.parametrize("mark", ["> ## Review limit reached", "## ⏳ Usage Limit Reached"])
def test_a_notice_under_a_title_counts_if_it_says_when(mark):
    told = outcome(f"{mark}\n> \n> **Next one available in:** **59 minutes**\n> Or pay for it now.")
    assert told.failure is not None
    assert told.reset.seconds == 59 * 60
    assert told.confidence is Confidence.LOW
    assert outcome(f"{mark}\n> \n> It is described on the page about limits.").failure is None


@pytest.mark.parametrize("prefix", ["@acme/web:dev: ", "api-1  | ", "[worker-3] "])
def test_a_name_that_a_runner_puts_on_each_line_is_taken_off(prefix):
    lines = ["starting", "{", '  "error": {"type": "rate_limit_error", "message": "slow"}', "}"]
    assert kind("\n".join(prefix + line for line in lines)) == "rate_limit"


def test_a_log_that_is_a_list_is_read_as_a_log():
    text = (
        "- 2026-07-06T11:00:00Z work began\n"
        "- 2026-07-06T12:00:00Z attempt 2 failed: worker error: You've hit your limit · resets 5pm"
    )
    assert outcome(text).reset.seconds == 3 * 3600


def test_a_screen_without_line_ends_is_read_by_its_last_banner():
    screen = "⏺ done" + " " * 400 + "⎿  You've hit your limit · resets 3pm ✻ Cooked for 3m"
    assert outcome(f"{screen} ⎿  You've hit your limit · resets 5pm").reset.seconds == 3 * 3600


def test_a_delay_in_milliseconds_is_read_in_front_of_words():
    told = outcome(
        "12:00:00 [retry] status=429 retryAfterMs=42000\n12:00:01 [retry] gave up status=429"
    )
    assert told.reset.seconds == 42


def test_the_time_of_an_error_above_a_guess_counts():
    text = "Error code: 429 - {'message': 'Try again in 5 seconds.'}\nERROR: cause: rate_limit"
    assert outcome(text, exit_code=1).reset.seconds == 5


@pytest.mark.parametrize(
    "below",
    [
        "export ACME_KEY=your-key",
        "let us know if this persists",
        "return to the menu with esc",
        "import taxes apply to prepaid plans",
    ],
)
def test_advice_that_begins_like_code_is_no_code(below):
    assert kind(f"Error: 429 rate limit reached\n\n{below}") == "rate_limit"


BANNER = "You've hit your limit · resets 5pm"


@pytest.mark.parametrize("above", ['DOC = """one line"""', 'DOC = """\nthat never ends\n'])
def test_a_literal_hides_nothing_behind_its_end_or_without_one(above):
    assert kind(f"{above}\n{BANNER}") == "quota"


@pytest.mark.parametrize(
    "line", ["acme.RateLimitError: slow down", "ERROR: 429 slow", "Error: 529"]
)
def test_an_error_on_each_line_is_no_name_of_a_runner(line):
    assert kind("\n".join([line] * 3)) in ("rate_limit", "overloaded")


def test_three_thousand_borders_are_no_obstacle():
    assert kind("│ " * 3000 + f"x\n{BANNER}") == "quota"


def test_credits_whose_reset_stands_on_the_next_line_are_a_quota():
    assert kind("the purse is out of credits\nit resets in 2h", exit_code=1) == "quota"
