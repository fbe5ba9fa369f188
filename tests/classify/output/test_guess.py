"""The guess at why a run failed, and what vetoes it."""

from __future__ import annotations

import time
from datetime import UTC

import pytest

from mulligan.api.agent_output import load_packs, read_output
from mulligan.config.packs import find_packs
from mulligan.core.failure import Kind
from mulligan.core.hint import Confidence

PACKS = load_packs(find_packs(environ={})).packs
NOW = 1_783_339_200.0  # 2026-07-06 12:00 UTC


def read(text, exit_code=1, stderr="", agent=""):
    return read_output(
        text, stderr, packs=PACKS, now=NOW, zone=UTC, exit_code=exit_code, agent=agent
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("the weekly cap of this seat was eaten", Kind.QUOTA),
        ("acme had to stop: its quota for today", Kind.QUOTA),
        ("nothing to be had from upstream, throttling us", Kind.RATE_LIMIT),
        ("der Dienst ist überlastet", Kind.OVERLOADED),
        ("you have to log in first", Kind.AUTH),
        ("stopped here, top up the purse", Kind.BILLING),
        ("it outgrew the context window", Kind.CONTEXT_LENGTH),
        ("waited and waited, timeout", Kind.TIMEOUT),
        ("die Anfrage wurde verworfen, Kontingent leer", Kind.QUOTA),
        ("слишком много запросов за минуту", Kind.RATE_LIMIT),
        ("本周额度没有了", Kind.QUOTA),
        ("モデルが混み合っています", Kind.OVERLOADED),
        ("come back, it resets in 2h", Kind.QUOTA),
    ],
)
def test_a_failed_run_in_words_that_no_rule_knows_is_guessed(text, kind):
    told = read(text)
    assert told.failure.kind is kind
    if told.because.startswith(("stems", "the run failed")):
        assert told.confidence is Confidence.LOW
    assert read(text, exit_code=0).failure is None
    assert read(text, exit_code=None).confidence is Confidence.HIGH


def test_a_guessed_limit_has_the_time_that_stands_beside_it():
    told = read("the cap for Opus is what stopped it, weekly cap\nresets in 2h")
    assert told.reset is not None
    assert told.reset.seconds == 7200


@pytest.mark.parametrize(
    "text",
    [
        "--- FAIL: TestLimit (0.0s)\n    a_test.go:8: got rate limit exceeded, retry after 30s\nFAIL",
        " FAIL  src/a.test.ts > returns 429\nAssertionError: expected 'Too many requests' to be 'x'",
        "src/a.ts(1,2): error TS2322: Type 'RateLimit' is not assignable",
        "/src/a.js\n  12:3  error  'quota' is not defined  no-undef\n\n✖ 1 problem (1 error)",
        "E       AssertionError: quota exceeded\n====== 1 failed in 0.2s ======",
        "[t] 12:00:01 thread 'main' panicked at src/a.rs:1:\nassertion failed: rate_limit == 3",
        "the agent met its turn limit",
        "Wrote notes about the rate limit\nAll tests pass, build succeeded",
        "  --rate-limit N  how many requests a minute\n  --timeout S     seconds",
        "error: could not apply 4f1a2bc... feat: show the usage limit\nhint: git add",
        "hook refused the commit: tests/data/429_rate_limit.json:7",
        "Error: session ses_rate_limit_2 not found",
        "error: unexpected argument '--quota-limit' found",
        (
            "1) e2e/a.spec.ts:4:3 › banner\n\n    Error: expect(box).toBeHidden() failed\n"
            "    Locator: getByText('Rate limit exceeded')\n\n  1 failed\n  5 passed (1.3m)"
        ),
    ],
)
def test_what_explains_the_exit_code_or_is_no_limit_of_the_provider_is_not_guessed(text):
    told = read(text)
    assert told.failure is not None
    assert told.failure.kind in (Kind.UNKNOWN, Kind.CLIENT)


@pytest.mark.parametrize(
    "text",
    [
        "commit 3f2a91c0d4b5e6f7\nAuthor: A <a@b.c>\n\n    Error: 429 Too Many Requests is a limit",
        "3f2a91c Rate limit exceeded: wait for the reset",
        '{"errors": {"limit": "Rate limit reached", "quota": "Quota exceeded", "auth": "Log in"}}',
        'msgstr "You have hit your usage limit. Try again in 5 minutes."',
        "errors.limit=Rate limit exceeded. Try again in 5 minutes.",
        "## 1.4.0 - 2026-07-06\n* Usage limit reached, resets 9pm: it is parsed",
        '[watch] detected "usage limit reached, resets 9pm" in agent output: no',
        "==> app.log <==\nError: 429 rate limit exceeded, retry after 30s",
    ],
)
def test_what_is_shown_is_not_said_whatever_the_exit_code(text):
    assert read(text, exit_code=0).failure is None
    assert read(text, exit_code=None).failure is None


@pytest.mark.parametrize(
    ("text", "kind", "seconds"),
    [
        ('{"status":"ERROR","message":"429 slow down, retry in 20 seconds"}', Kind.RATE_LIMIT, 20),
        ('{"kind":"error","detail":"401 Unauthorized: the token has expired"}', Kind.AUTH, None),
        ('{"event":"run.failed","payload":{"reason":"529 Overloaded"}}', Kind.OVERLOADED, None),
        ('{"result":{"isError":true,"reason":"Rate limit exceeded"}}', Kind.RATE_LIMIT, None),
        ('{"turn":{"stopReason":"error","errorMessage":"503 Service Unavailable"}}', Kind.SERVER, None),
    ],
)  # fmt: skip
def test_any_object_that_says_that_it_failed_is_read_at_exit_0_too(text, kind, seconds):
    told = read(text, exit_code=0)
    assert told.failure.kind is kind
    assert (told.reset.seconds if told.reset else None) == seconds


@pytest.mark.parametrize(
    "text",
    [
        '{"tool":"bash","isError":true,"output":"429 rate limit exceeded"}',
        '{"steps":[{"tool_name":"curl","status":"failed","error":"rate limit"}],"status":"ok"}',
        'Here is what it said:\n{"status":"ERROR","message":"429 slow down"}\nI mended it.',
        '{"status":"ERROR","message":"429 slow down"}\n{"status":"ok","message":"done"}',
    ],
)
def test_a_tool_that_failed_or_an_object_among_prose_is_no_failure_of_the_run(text):
    assert read(text, exit_code=0).failure is None


def test_lines_that_a_runner_stamps_are_read_without_their_stamps():
    stamp = "[2026-07-06T12:00:01.123Z] "
    text = f'{stamp}API Error: 429 {{\n{stamp}"error": {{"message": "slow down, retry in 20s"}}}}'
    assert read(text).reset.seconds == 20


@pytest.mark.parametrize(
    ("text", "kind", "seconds"),
    [
        ("lane task gave AcmeFailoverError (throttling, wait)", Kind.RATE_LIMIT, None),
        ("API başarısız: oturum kapalı, status=401 Unauthorized, body_len=12", Kind.AUTH, None),
        ("run.end   status=paused  pause_kind=usage_limit\nback again in 5 hours", Kind.QUOTA, 18000),
        ("frame 12 of run\\nacme.AcmeError (x)\\nthrottling us, it was", Kind.RATE_LIMIT, None),
        ('agent: "that was it, back at 3pm"\nno diff\nloop: stop reason=session limit', Kind.QUOTA, 10800),
    ],
)  # fmt: skip
def test_where_the_exit_code_is_not_known_the_text_must_end_as_machines_write(text, kind, seconds):
    told = read(text, exit_code=None)
    assert told.failure.kind is kind
    assert told.confidence is Confidence.LOW
    assert (told.reset.seconds if told.reset else None) == seconds
    assert read(text, exit_code=0).failure is None


@pytest.mark.parametrize(
    "text",
    [
        "I looked at AcmeFailoverError (throttling, wait)",
        "`AcmeFailoverError` (throttling, wait)",
        "AcmeFailoverError (throttling, wait)\nThe request succeeded",
        "AcmeFailoverError (throttling, wait)\n" + "words about the work that was done " * 12,
        "HTTP 429 responses are retried, honouring the quota",
        "AcmeFailoverError::Throttled { wait } => {",
    ],
)
def test_without_an_exit_code_people_code_and_what_was_survived_are_not_guessed(text):
    assert read(text, exit_code=None).failure is None


@pytest.mark.parametrize("line", ["rate limit quota " * 40 + "\n", "=" * 300 + "\n", "[[{{((\n"])
def test_hostile_text_is_guessed_in_linear_time(line):
    times = []
    for size in (20_000, 200_000):
        began = time.thread_time()
        read(line * (size // len(line)))
        times.append(time.thread_time() - began)
    assert times[1] < 20 * max(times[0], 0.02)


@pytest.mark.parametrize(
    "text",
    [
        '[wrapper] detected "rate limit" in output, stopping',
        "commit 7710af2b3c\nAuthor: A <a@example.com>\n\n    fix: rate limit reached, try again in 5m",
        "## 1.2.3\n- Fixed: rate limit reached, try again in 5 minutes is retried now",
        'msgid "Rate limit exceeded"\nmsgstr "Ratenlimit"',
        'src/a.py:3: error: Name "rate_limit" is not defined',
        "[ERROR]   LimitTest.quotaExceeded:12 expected: <429> but was: <200>",
        "No rate limit errors found",
        "quota: 0% used",
        "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory",
        "1) LimitTest::testRateLimit\nFailed asserting that rate limit reached.",
        "❯ src/limit.test.ts (3 tests | 1 failed) 12ms\n   × throws on quota exceeded 4ms",
        'en:\n  errors:\n    rate_limit: "Rate limit reached, try again later"',
        "Usage limit almost reached (95%).",
        "Error: usage limit not reached",
        "Rate limit exceeded: no",
        "rate_limited=false quota_exceeded=false",
        '{"verdict":"pass","findings":[{"severity":"error","message":"Rate limit reached: not handled"}]}',
        '{"type":"turn.error","message":"Rate limit reached"}\n{"type":"run.completed"}',
    ],
)
def test_words_of_others_and_denials_are_no_limits(text):
    for exit_code in (None, 0, 1):
        failure = read(text, exit_code=exit_code).failure
        assert failure is None or not failure.kind.is_limit


def test_a_message_that_stopped_by_an_error_is_no_work():
    event = '{"role":"assistant","stopReason":"error","errorMessage":"Rate limit reached"}'
    for exit_code in (None, 0, 1):
        failure = read(event, exit_code=exit_code).failure
        assert failure is not None
        assert failure.kind == "rate_limit"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("Failure: rate limit exceeded, try again in 30s", 30),
        ("agent.py:12: RateLimitError: 429 slow down", None),
        ("worker/run.go:42: rate limit exceeded, retry after 30s", 30),
        ("2026/07/06 12:00:00 main.go:42: 429 Too Many Requests", None),
        ("→ rate limit reached, wait 30s", 30),
        ("Rate limit reached: 0 of 50 requests are left, try again in 30s", 30),
        ("Error: rate limit exceeded: no requests left", None),
    ],
)
def test_a_failure_is_no_test_report_and_no_denial(text, seconds):
    told = read(text)
    assert told.failure is not None
    assert told.failure.kind == "rate_limit"
    assert (told.reset and told.reset.seconds) == seconds
