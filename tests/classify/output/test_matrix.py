"""Every message in every dress: what a program says does not depend on who hands it on."""

from __future__ import annotations

import json
import textwrap
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from mulligan.api.agent_output import load_packs, read_output
from mulligan.config.packs import find_packs

NOW = datetime(2026, 7, 6, 12, 0, tzinfo=UTC).timestamp()
PACKS = load_packs(find_packs(environ={}, folder=None)).packs
HOUR = 3600.0

# What is said, its kind, the seconds to its reset.
SAID = (
    ("You've hit your session limit · resets 9pm (Europe/Berlin)", "quota", 7 * HOUR),
    ("You've hit your weekly limit · resets Jul 8 at 9pm (Europe/Berlin)", "quota", 55 * HOUR),
    ("5-hour limit reached ∙ resets 9pm (Europe/Berlin)", "quota", 7 * HOUR),
    (f"Claude AI usage limit reached|{NOW + 7 * HOUR:.0f}", "quota", 7 * HOUR),
    ("You've hit your usage limit. See the plans or try again at Jul 6th, 2026 7:00 PM.", "quota", 5 * HOUR),
    ("You've hit your usage limit. See the plans or try again in 7 hours.", "quota", 7 * HOUR),
    ("You have exhausted your capacity on this model. Your quota will reset after 7h0m0s.", "quota", 7 * HOUR),
    ("5 hour usage limit reached. It will reset in 7 hours. Enable usage from your balance", "quota", 7 * HOUR),
    ("Rate limit reached for m on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. Please try again in 2s.", "rate_limit", 2.0),
    ("This request would exceed your organization's rate limit of 30,000 input tokens per minute.", "rate_limit", None),
    ("API rate limit exceeded for user ID 1234.", "rate_limit", None),
    ("Error code: 429 - {'error': {'message': 'Rate limit reached', 'type': 'rate_limit_error'}}", "rate_limit", None),
    ('429 {"type":"error","error":{"type":"rate_limit_error","message":"Too fast for m."}}', "rate_limit", None),
    ("acme.RateLimitError: Error code: 429 - {'type': 'error', 'error': {'message': 'slow'}}", "rate_limit", None),
    ("API Error: 529 Overloaded. This is a server-side issue, usually temporary", "overloaded", None),
)  # fmt: skip


def lines(width, before=""):
    """A terminal of `width` columns."""
    return lambda said: "\n".join(
        textwrap.wrap(before + said, width, break_long_words=False, break_on_hyphens=False)
    )


def event(**around):
    """An event that says it where SAID stands."""
    return lambda said: json.dumps(around).replace('"SAID"', json.dumps(said))


DRESSES = {
    # a terminal
    "alone": "{0}",
    "indented": "    {0}",
    "under a corner": "  ⎿  {0}",
    "after a square": "■ {0}",
    "in colour": "\x1b[31m{0}\x1b[0m\n",
    "over a spinner": "⠋ Thinking…\r{0}\r\n",
    "above a prompt": "{0}\n\n❯ \n",
    "above a menu": "{0}\n/upgrade to increase your limit.\n\n✻ Baked for 2m 4s\n",
    "after an answer": "I'll look at the tests first.\n\nRunning the tests now.\n{0}",
    "after a tool": "⏺ Bash(make test)\n  ⎿  31 passed in 2s\n\n⏺ {0}",
    "twice": "{0}\n{0}",
    "after a retry": "Retrying in 4 seconds… (attempt 4/10)\n{0}",
    "in 80 columns": lines(80),
    "in 60 columns": lines(60, "Error: "),
    "in a box": lambda said: "\n".join(f"│ {one.ljust(62)} │" for one in lines(60)(said).split("\n")),
    # a log
    "logged by Python": "2026-07-06 12:00:00,123 - agent.runner - ERROR - {0}",
    "logged by loguru": "2026-07-06 12:00:00.123 | ERROR    | agent.runner:run:42 - {0}",
    "logged by Rust": "2026-07-06T12:00:00.123456Z ERROR agent_core::turn: {0}",
    "warned by Rust": "2026-07-06T12:00:00.123456Z  WARN agent_core::turn: {0}",
    "logged by Go": "2026/07/06 12:00:00 {0}",
    "logged by glog": "E0706 12:00:00.123456       1 runner.go:42] {0}",
    "logged by a CI": "2026-07-06T12:00:00.1234567Z ##[error]{0}",
    "logged by compose": "agent-1  | {0}",
    "logged by syslog": "Jul 06 12:00:00 host agent[312]: {0}",
    "logged in brackets": "[2026-07-06T12:00:00.123Z] [WARN] {0}",
    "logged with a tag": "[worker-3] [claude] {0}",
    "logged as JSON": event(level="error", time=1, msg="SAID"),
    "logged by pino": event(level=50, time=1, err={"message": "SAID"}, msg="run failed"),
    "logged with fields": event(level="ERROR", fields={"message": "SAID"}, target="agent"),
    # whoever started it
    "a worker's": "worker-3: {0}",
    "an agent's": 'Agent "review" failed: {0}',
    "an exit's": "acme exited with code 1: {0}",
    "a command's": "Command failed with exit code 1: acme -p go\n{0}",
    "a label's": "Status: failed\nMessage: {0}",
    "the last error": "Failed after 3 attempts. Last error: {0}",
    "the reason to stop": "Paused: {0}",
    "a chat's": "🔔 Claude stopped: {0}",
    "a rejection's": "API Error: Request rejected (429) · {0}",
    "an error in brackets": "✕ [API Error: {0}]",
    # a runtime
    "of JavaScript": "Error: {0}\n    at run (/srv/app.js:10:5)\n\nNode.js v22.1.0",
    "of Python": 'Traceback (most recent call last):\n  File "a.py", line 3, in f\nRuntimeError: {0}',
    "of Java": "com.acme.CallException: {0}\n\tat com.acme.Client.call(Client.java:42)",
    "of Go": "panic: {0}\n\ngoroutine 1 [running]:\nmain.main()\n\t/srv/main.go:12 +0x1d",
    "of Rust": "Error: could not run the agent\n\nCaused by:\n    {0}",
    "as Python prints it": lambda said: f"ProcessError({said!r})",
    "as Node prints it": lambda said: f"{{\n  type: 'result',\n  is_error: true,\n  result: {json.dumps(said, ensure_ascii=False)}\n}}",
    # a program's own events
    "Claude's result": event(type="result", subtype="success", is_error=True, result="SAID"),
    "Claude's transcript": event(
        type="assistant", isApiErrorMessage=True,
        message={"model": "<synthetic>", "content": [{"type": "text", "text": "SAID"}]},
    ),
    "Codex's turn": event(type="turn.failed", error={"message": "SAID"}),
    "Codex's transcript": event(type="event_msg", payload={"type": "error", "message": "SAID"}),
    "Codex's server": event(
        method="turn/completed", params={"turn": {"status": "failed", "error": {"message": "SAID"}}}
    ),
    "Gemini's object": event(session_id="x", error={"type": "Error", "message": "SAID"}),
    "Gemini's result": event(type="result", status="error", error={"message": "SAID"}),
    "opencode's error": event(
        type="error", sessionID="ses_x", error={"name": "APIError", "data": {"message": "SAID"}}
    ),
    "Copilot's error": event(type="session.error", data={"errorType": "query", "message": "SAID"}),
    "Cline's result": event(type="run_result", finishReason="error", text="SAID"),
    "pi's message": event(
        type="message", message={"role": "assistant", "stopReason": "error", "errorMessage": "SAID"}
    ),
    # an API
    "a body": event(error={"message": "SAID"}),
    "a list of errors": event(errors=[{"message": "SAID"}]),
    "a detail": event(detail="SAID"),
    "an error in data": event(data={"error": {"message": "SAID"}}),
    "a remote procedure": event(jsonrpc="2.0", id=1, error={"code": -32000, "message": "SAID"}),
    "a failed status": event(status="failed", message="SAID"),
    "a failed run": event(object="thread.run", status="failed", last_error={"message": "SAID"}),
    "an event of a stream": lambda said: f"event: error\ndata: {event(error={'message': 'SAID'})(said)}",
    "a response": lambda said: f"HTTP/1.1 429 Too Many Requests\r\n\r\n{event(error={'message': 'SAID'})(said)}",
}  # fmt: skip


@pytest.mark.parametrize(("said", "kind", "seconds"), SAID)
@pytest.mark.parametrize("dress", DRESSES)
def test_what_is_said_is_heard_in_every_dress(dress, said, kind, seconds):
    put = DRESSES[dress]
    text = put.replace("{0}", said) if isinstance(put, str) else put(said)
    found = read_output(text, packs=PACKS, now=NOW, zone=ZoneInfo("Europe/Berlin"))
    assert found.failure is not None
    assert found.failure.kind == kind
    assert seconds is None or (found.reset is not None and found.reset.seconds == seconds)


def quoted(before, after=""):
    """The words as a string of some language, between `before` and `after`."""
    return lambda said: before + json.dumps(said, ensure_ascii=False) + after


# Where the same words stand without having been said.
SHOWN = {
    # code
    "a constant of Python": lambda said: f"BANNER = {said!r}",
    "a test of Python": lambda said: f"def test_it():\n    assert parse({said!r}).kind == 'quota'",
    "a list of Python": lambda said: f"CASES = [\n    {said!r},\n    'other',\n]",
    "a constant of JavaScript": quoted("const banner = ", ";"),
    "a test of JavaScript": quoted("    expect(classify(", ")).toBe('quota');"),
    "a list of Go": quoted("\tcases := []string{\n\t\t", ",\n\t}"),
    "a test of Rust": quoted("    assert_eq!(classify(", "), Kind::Quota);"),
    "a comment": "# {0}",
    "a comment in C": "/*\n * {0}\n */",
    "a comment with an example": "  // e.g. {0}",
    "a fixture in JSON": quoted('{\n  "fixtures": [\n    ', "\n  ]\n}"),
    "a fixture in YAML": quoted("cases:\n  - text: ", "\n    kind: quota"),
    "a fixture in TOML": quoted("[[case]]\ntext = ", '\nkind = "quota"'),
    # tools
    "a diff": "diff --git a/x b/x\n--- a/x\n+++ b/x\n@@ -1,2 +1,3 @@\n a\n+{0}\n b",
    "a search": "$ grep -rn limit fixtures\nfixtures/a.txt:1:{0}",
    "a file": "$ cat fixtures/limit.txt\n{0}\n\n$ ls\nfixtures",
    "a numbered file": "     1→{0}\n     2→other",
    "a tool of Claude": "⏺ Read(a.txt)\n  ⎿  {0}\n\n⏺ The fixture holds the banner, so it can be tested with it now.",
    "a command of Codex": "• Ran cat out.txt\n  └ {0}\n\n• The file holds the banner, so I added a test for it.",
    "the name of a test": "tests/test_limits.py::test_reads[{0}] PASSED\n\n12 passed in 0.3s",
    "a title": "#1234 [BUG] {0}\n#1235 [BUG] other",
    "a subject": "Subject: Re: {0}\n\nHi, what does this mean? Thanks!",
    # people
    "a quotation": "The docs say:\n\n> {0}\n\nSo the wrapper has to wait before it starts the program again.",
    "an inline quotation": "I now match `{0}` in the parser, and the tests pass.",
    "a condition": quoted("When the program prints ", ", we wait."),
    "a summary": "## Summary\n\n- Added a case for `{0}`\n- All tests pass",
    "a list of wordings": "Known wordings:\n- {0}\n- something else",
    "a table of wordings": "| wording | kind |\n|---|---|\n| {0} | quota |",
    "a plan": quoted("1. Match ", "\n2. Parse the time\n3. Wait"),
    "a block in an answer": "The program prints:\n\n```\n{0}\n```\n\nThe wrapper waits until then.",
    "an answer about it": "{0}\n\nThat line is what the parser has to find, so I wrote a test for it; all tests pass.",
    "an answer after it": "{0}\n\n⏺ The limit is over, so I went on: the parser is split into three modules now.",
    # events
    "what a tool of Claude said": lambda said: "\n".join((
        json.dumps({"type": "user", "message": {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "t", "content": said}]}}),
        json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "Done."}),
    )),
    "what Claude answered": lambda said: json.dumps({
        "type": "result", "subtype": "success", "is_error": False,
        "result": f"The banner reads: {said} and is parsed now."}),
    "what Codex ran": lambda said: "\n".join((
        json.dumps({"type": "item.completed", "item": {
            "type": "command_execution", "aggregated_output": said, "exit_code": 0}}),
        json.dumps({"type": "turn.completed", "usage": {}}),
    )),
    "what an unknown tool said": event(tool="bash", exit_code=1, output="SAID"),
}  # fmt: skip


@pytest.mark.parametrize("exit_code", [None, 0])
@pytest.mark.parametrize("said", [said for said, _, _ in SAID])
@pytest.mark.parametrize("place", SHOWN)
def test_what_is_merely_shown_is_not_heard(place, said, exit_code):
    put = SHOWN[place]
    text = put.replace("{0}", said) if isinstance(put, str) else put(said)
    found = read_output(
        text, packs=PACKS, now=NOW, zone=ZoneInfo("Europe/Berlin"), exit_code=exit_code
    )
    assert found.failure is None
