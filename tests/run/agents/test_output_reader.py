"""What the programs' lines say while they run, in the shapes that they print."""

from __future__ import annotations

import json

import pytest

from mulligan.run.agents.adapter import Launch, OutputNote
from mulligan.run.agents.catalogue import program

ID = "5e551011-aaaa-4bbb-8ccc-0123456789ab"


class Seen:
    """Everything that a reader told of an attempt."""

    def __init__(self, name: str, *lines: object, is_translated: bool = True) -> None:
        reader = program(name).reader(Launch(argv=(name,), is_translated=is_translated))
        self.notes: list[OutputNote | None] = []
        for line in lines:
            stream, said = ("stderr", line[4:]) if str(line)[:4] == "err:" else ("stdout", line)  # type: ignore[index]
            data = said if isinstance(said, str) else json.dumps(said, separators=(",", ":"))
            self.notes.append(reader.line(stream, data.encode()))  # type: ignore[arg-type]
        self.notes.append(reader.end())
        told = [note for note in self.notes if note is not None]
        self.session = next((note.session for note in reversed(told) if note.session), "")
        self.retries = sum(note.is_retry for note in told)
        self.quiet = [note.quiet for note in told if note.quiet]
        self.is_work = any(note.is_work for note in told)
        self.pending = [note.pending for note in told if note.pending is not None]
        self.tools = [len(pending) for pending in self.pending]
        self.cost = next((note.cost for note in reversed(told) if note.cost is not None), None)
        self.tokens = next(
            (note.tokens for note in reversed(told) if note.tokens is not None), None
        )
        self.is_lost = any(note.is_lost for note in told)
        self.is_futile = any(note.is_futile for note in told)
        shown = [each for note in told for each in note.shown]
        self.stdout = "".join(text for stream, text in shown if stream == "stdout")
        self.stderr = "".join(text for stream, text in shown if stream == "stderr")


def claude_says(*content: object, usage: tuple[int, int] = (90, 10), **more: object) -> object:
    used = {"input_tokens": usage[0], "output_tokens": usage[1]}
    message = {"id": "msg_1", "role": "assistant", "content": list(content), "usage": used}
    return {"type": "assistant", "message": message, "session_id": ID, **more}


CLAUDE = (
    {"type": "system", "subtype": "init", "session_id": ID},
    {"type": "system", "subtype": "api_retry", "attempt": 1, "retry_delay_ms": 2161},
    claude_says({"type": "tool_use", "id": "toolu_9", "name": "Bash"}),
    {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "toolu_9"}]}},
    claude_says({"type": "text", "text": "Done."}),
    {
        "type": "result",
        "is_error": False,
        "result": "Done.",
        "total_cost_usd": 0.25,
        "usage": {"input_tokens": 100, "cache_read_input_tokens": 400, "output_tokens": 30},
        "session_id": ID,
    },
)


def test_claude_shows_its_result_and_nothing_else():
    seen = Seen("claude", *CLAUDE)
    assert (seen.stdout, seen.stderr) == ("Done.\n", "")
    assert seen.session == ID
    assert (seen.retries, seen.quiet) == (1, [2.161])
    assert seen.tools == [1, 0]
    assert (seen.cost, seen.tokens) == (0.25, 530)


def test_claude_that_fails_shows_why_on_stdout():
    error = {"type": "text", "text": "API Error: 529 Overloaded."}
    result = {"type": "result", "is_error": True, "result": "API Error: 529 Overloaded."}
    seen = Seen("claude", claude_says(error, error="overloaded"), result)
    assert seen.stdout == "API Error: 529 Overloaded.\n"
    assert not seen.is_work


def test_claude_that_ends_by_a_limit_of_the_users_says_which():
    said = ["Reached maximum number of turns (3)"]
    turns = {"type": "result", "subtype": "error_max_turns", "errors": said}
    assert Seen("claude", turns).stdout == "Error: Reached max turns (3)"
    other = {"type": "result", "subtype": "error_during_execution"}
    assert Seen("claude", other).stdout == "Execution error"


def test_a_second_result_of_claude_is_set_apart():
    second = {"type": "result", "subtype": "success", "result": "And the rest."}
    assert Seen("claude", *CLAUDE, second).stdout == "Done.\n\nAnd the rest.\n"


def test_what_the_user_asked_for_is_not_translated():
    seen = Seen("claude", *CLAUDE, is_translated=False)
    assert (seen.stdout, seen.stderr) == ("", "")
    assert (seen.session, seen.cost) == (ID, 0.25)


def test_an_event_that_broke_into_another_is_read_and_so_is_the_other():
    whole = json.dumps(CLAUDE[-1], separators=(",", ":"))
    limit = '{"type":"rate_limit_event","session_id":"' + ID + '"}'
    seen = Seen("claude", *CLAUDE[:-1], whole[:40] + limit, whole[40:])
    assert (seen.session, seen.stdout, seen.cost) == (ID, "Done.\n", 0.25)


def test_an_answer_is_not_lost_with_a_broken_line():
    whole = json.dumps(CLAUDE[-1], separators=(",", ":"))
    assert Seen("claude", *CLAUDE[:-1], whole[:40]).stdout == "Done.\n"


def test_tokens_of_a_run_that_was_killed_are_counted():
    assert Seen("claude", *CLAUDE[:5]).tokens == 100


CODEX = (
    {"type": "thread.started", "thread_id": ID},
    {"type": "turn.started"},
    {"type": "item.started", "item": {"id": "i0", "type": "command_execution", "command": "ls"}},
    {
        "type": "item.completed",
        "item": {
            "id": "i0",
            "type": "command_execution",
            "command": "ls",
            "aggregated_output": "a\nb\n",
            "exit_code": 0,
        },
    },
    {"type": "item.completed", "item": {"id": "i1", "type": "agent_message", "text": "Two files."}},
)


def test_codex_shows_its_progress_on_stderr_and_the_last_message_on_stdout():
    done = {"type": "turn.completed", "usage": {"input_tokens": 1200, "output_tokens": 34}}
    seen = Seen("codex", *CODEX, done)
    assert seen.stdout == "Two files.\n"
    assert seen.stderr == (
        f"session id: {ID}\nexec\nls\n succeeded:\na\nb\ncodex\nTwo files.\ntokens used\n1,234\n"
    )
    assert (seen.session, seen.tools, seen.tokens, seen.cost) == (ID, [1, 0], 1234, None)


def test_codex_that_fails_shows_no_message_and_says_why_once():
    reason = "stream disconnected before completion"
    seen = Seen(
        "codex",
        *CODEX,
        {"type": "error", "message": f"Reconnecting... 1/1 ({reason})"},
        {"type": "error", "message": reason},
        {"type": "turn.failed", "error": {"message": reason}},
    )
    assert seen.stdout == ""
    assert seen.stderr.count(f"ERROR: {reason}") == 1
    assert seen.retries == 1


def test_codex_in_text_tells_its_session_and_its_retries():
    lines = (f"err:session id: {ID}", "err:ERROR: Reconnecting... 2/5", "Hello")
    seen = Seen("codex", *lines, is_translated=False)
    assert (seen.session, seen.retries) == (ID, 1)


def gemini_says(text: str) -> object:
    return {"type": "message", "role": "assistant", "content": text, "delta": True}


def test_gemini_streams_its_answer():
    seen = Seen(
        "gemini",
        {"type": "init", "session_id": ID},
        {"type": "message", "role": "user", "content": "the prompt"},
        gemini_says("First I "),
        gemini_says("look."),
        {"type": "tool_use", "tool_id": "t1", "tool_name": "run_shell_command"},
        {"type": "tool_result", "tool_id": "t1", "status": "success"},
        gemini_says("Done."),
        {"type": "result", "status": "success", "stats": {"total_tokens": 77}},
    )
    assert seen.stdout == "First I look.\nDone.\n"
    assert (seen.session, seen.tools, seen.tokens) == (ID, [1, 0], 77)


def test_gemini_tells_its_retries_on_stderr():
    seen = Seen(
        "gemini",
        "err:Attempt 1 failed with status 503. Retrying with backoff...",
        "err:Attempt 2 failed: You exceeded your quota.",
        "err:Please retry in 2s.. Retrying after 5105ms...",
    )
    assert (seen.retries, seen.quiet) == (2, [5.105])


def test_gemini_that_fails_says_why_on_stderr():
    error = {"type": "result", "status": "error", "error": {"message": "[API Error: quota]"}}
    assert Seen("gemini", error).stderr == "[API Error: quota]\n"


def test_the_one_object_of_gemini_is_read_when_it_is_whole():
    stats = {"models": {"a": {"tokens": {"total": 10}}, "b": {"tokens": {"total": 5}}}}
    whole = json.dumps({"session_id": ID, "response": "x", "stats": stats}, indent=2)
    seen = Seen("gemini", *whole.splitlines(), is_translated=False)
    assert (seen.session, seen.tokens) == (ID, 15)


def opencode_part(kind: str, **part: object) -> object:
    return {"type": kind, "sessionID": "ses_1234abcd", "part": part}


def test_opencode_shows_text_on_stdout_and_tools_on_stderr():
    state = {"input": {"command": "ls"}, "title": "ls", "output": "a\n"}
    seen = Seen(
        "opencode",
        opencode_part("step_start"),
        opencode_part("tool_use", tool="bash", state=state),
        opencode_part("step_finish", cost=0.01, tokens={"total": 100}),
        opencode_part("text", text="\nOne file.\n"),
        opencode_part("step_finish", cost=0.02, tokens={"input": 150, "cache": {"read": 50}}),
    )
    assert (seen.stdout, seen.stderr) == ("One file.\n", "$ ls\na\n")
    assert seen.session == "ses_1234abcd"
    assert seen.cost == pytest.approx(0.03)
    assert seen.tokens == 300


def test_opencode_that_fails_says_why_on_stderr():
    error = {"name": "APIError", "data": {"message": "Rate limit reached"}}
    seen = Seen("opencode", {"type": "error", "sessionID": "ses_1234abcd", "error": error})
    assert seen.stderr == "Error: Rate limit reached\n"


def test_qwen_tells_its_retries_on_stderr():
    line = "err:Retrying in 60s (attempt 1/10): [API Error: 429 slow down]"
    seen = Seen("qwen", line, is_translated=False)
    assert (seen.retries, seen.quiet) == (1, [60.0])


def test_the_array_of_qwen_is_read_event_by_event():
    seen = Seen("qwen", json.dumps(list(CLAUDE)), is_translated=False)
    assert (seen.session, seen.cost, seen.is_work, seen.tools) == (ID, 0.25, True, [0])


LIST = {"command": "ls", "description": "List"}


def test_copilot_shows_answers_and_tools():
    def event(kind: str, **data: object) -> object:
        return {"type": kind, "data": data}

    seen = Seen(
        "copilot",
        event("assistant.turn_retry", reason="rate_limit"),
        event("tool.execution_start", toolCallId="c1", arguments=LIST),
        event("tool.execution_complete", toolCallId="c1", success=True, result={"content": "a\n"}),
        event("assistant.message", content="One file."),
        event("session.error", errorType="query", message="503 gone"),
        {"type": "result", "sessionId": ID, "exitCode": 1},
    )
    assert seen.stdout == "● List (shell)\n  │ ls\n  └ 1 line…\n\nOne file.\n\n"
    assert seen.stderr == "503 gone\n"
    assert (seen.session, seen.retries, seen.tools) == (ID, 1, [1, 0])


def pi_says(stop: str, *texts: str, **more: object) -> object:
    usage = {"totalTokens": 100, "cost": {"total": 0.5}}
    content = [{"type": "text", "text": text} for text in texts]
    message = {"role": "assistant", "content": content, "usage": usage, "stopReason": stop, **more}
    return {"type": "message_end", "message": message}


def test_pi_shows_its_last_answer():
    seen = Seen(
        "pi",
        {"type": "session", "id": ID},
        pi_says("toolUse", "I look."),
        {"type": "tool_execution_start", "toolCallId": "c"},
        {"type": "tool_execution_end", "toolCallId": "c"},
        pi_says("error", errorMessage="503"),
        {"type": "auto_retry_start", "attempt": 1, "delayMs": 2000},
        pi_says("stop", "Done."),
    )
    assert (seen.stdout, seen.stderr) == ("Done.\n", "")
    assert (seen.session, seen.retries, seen.quiet) == (ID, 1, [2.0])
    assert (seen.tools, seen.tokens, seen.cost) == ([1, 0], 300, 1.5)


def test_pi_that_fails_says_why_on_stderr():
    seen = Seen("pi", pi_says("error", errorMessage="401 wrong key"))
    assert (seen.stdout, seen.stderr, seen.is_work) == ("", "401 wrong key\n", False)


def test_cline_streams_its_answer():
    def event(**inner: object) -> object:
        return {"type": "agent_event", "event": inner}

    seen = Seen(
        "cline",
        event(type="content_start", contentType="text", text="One "),
        event(type="content_start", contentType="text", text="file."),
        event(type="usage", totalInputTokens=10, totalOutputTokens=5, totalCost=0.1),
        event(type="content_end", contentType="text", text="One file."),
        {"type": "run_result", "usage": {"inputTokens": 10, "outputTokens": 6, "totalCost": 0.2}},
    )
    assert seen.stdout == "One file.\n"
    assert (seen.tokens, seen.cost, seen.session) == (16, 0.2, "")


def test_aider_tells_its_waits_and_its_cost():
    seen = Seen(
        "aider",
        "litellm.ServiceUnavailableError: down",
        "Retrying in 0.5 seconds...",
        "Tokens: 2.5k sent, 100 received. Cost: $0.01 message, $0.04 session.",
        "Tokens: 1M sent, 1k cache hit, 5 received. Cost: $0.01 message, $0.05 session.",
    )
    assert (seen.retries, seen.quiet) == (1, [0.5])
    assert (seen.tokens, seen.cost) == (1_002_605, 0.05)


LOST = {
    "claude": f"No conversation found with session ID: {ID}",
    "codex": f"Error: thread/resume: failed: no rollout found for thread id {ID} (code 1)",
    "gemini": "Error resuming session: No previous sessions found for this project.",
    "opencode": "\x1b[91m\x1b[1mError: \x1b[0mSession not found",
    "qwen": f'No saved session found with title "{ID}".',
    "copilot": f"Error: No session, task, or name matched '{ID}'.",
    "pi": f"No session found matching '{ID}'",
}


@pytest.mark.parametrize("name", LOST)
def test_a_session_that_does_not_exist_is_told(name):
    assert Seen(name, f"err:{LOST[name]}").is_lost
    assert not Seen(name, LOST[name]).is_lost, "what a model says is no evidence"


def test_a_session_is_not_lost_once_it_has_worked():
    said = claude_says({"type": "text", "text": "hm"})
    assert not Seen("claude", said, f"err:{LOST['claude']}").is_lost


def test_words_between_the_events_are_shown():
    assert Seen("codex", "Reading the file").stdout == "Reading the file\n"


@pytest.mark.parametrize("bad", ["--resume", "short", "a b c d e f g h", "x" * 65, 7, None, ["x"]])
def test_a_session_id_that_could_be_an_option_is_not_believed(bad):
    assert Seen("claude", {"type": "system", "session_id": bad}).session == ""
    assert Seen("codex", {"type": "thread.started", "thread_id": bad}).session == ""
    assert Seen("opencode", {"type": "text", "sessionID": bad}).session == ""


def test_opencode_that_begins_anew_after_every_answer_is_ended():
    """A stream without its last event: opencode asks again, one message longer, without end."""
    half = (
        opencode_part("step_start"),
        opencode_part("text", text="Half an "),
        opencode_part("step_finish", reason="unknown", cost=0, tokens={"input": 0}),
    )
    seen = Seen("opencode", *half * 3)
    assert (seen.retries, seen.is_futile, seen.is_work) == (3, False, False)
    assert Seen("opencode", *half * 4).is_futile
    whole = opencode_part("step_finish", reason="stop", cost=0, tokens={"total": 9})
    recovered = Seen("opencode", *half * 3, whole, *half * 3)
    assert (recovered.is_futile, recovered.is_work) == (False, True)


def test_opencode_may_use_tools_in_steps_that_end_for_no_reason():
    step = (
        opencode_part("tool_use", tool="bash", state={"title": "ls", "output": "a"}),
        opencode_part("step_finish", reason="unknown", cost=0, tokens={"total": 9}),
    )
    seen = Seen("opencode", *step * 9)
    assert (seen.retries, seen.is_futile) == (0, False)


def test_half_an_answer_of_gemini_is_no_work():
    """It keeps nothing of a session without a whole answer: the run must be able to start anew."""
    half = {"type": "message", "role": "assistant", "content": "Half an ", "delta": True}
    failed = {"type": "result", "status": "error", "stats": {"total_tokens": 40}}
    done = {"type": "result", "status": "success", "stats": {"total_tokens": 40}}
    assert not Seen("gemini", half, failed).is_work
    assert Seen("gemini", half, done).is_work
