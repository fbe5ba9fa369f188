"""How one attempt of a program is judged: issue 12, items 3, 10, 17, 21, 23, 24, 25.

Found by people who ran wrapper scripts and the real programs under faults, with all defaults. Each
test drives a real process; the programs are scripts that print what the real ones print.
"""

from __future__ import annotations

import json
import shlex
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from mulligan.run.attempt.recovery import HARMLESS, UNSURE
from mulligan.run.journal.entries import AttemptBegun, AttemptEnd, RunRescheduled

from ..run.scripted import Recorder, Stage

pytestmark = pytest.mark.real

SESSION = "0d934841-1941-40fe-9930-4689fa253369"
HOUR = 3600.0


@pytest.fixture
def stage(tmp_path):
    return Stage(tmp_path)


def program(stage: Stage, name: str, *lines: str) -> None:
    """A program called `name` that does what the lines of shell say."""
    file = stage.folder / "bin" / name
    file.write_text("#!/bin/sh\n" + "\n".join(lines) + "\n")
    file.chmod(0o755)


def say(*events: dict[str, Any], to: int = 1) -> str:
    """A line of shell that prints events."""
    return "; ".join(f"echo {shlex.quote(json.dumps(each))} >&{to}" for each in events)


def hows(run: SimpleNamespace) -> list[str]:
    return [step.how for step in run.view.steps if isinstance(step, AttemptBegun)]


def kinds(run: SimpleNamespace) -> list[str]:
    return [step.kind for step in run.view.steps if isinstance(step, AttemptEnd)]


EFFECT = "echo ran >> effects.txt"
INIT = {"type": "system", "subtype": "init", "session_id": SESSION}
WORK = {"type": "assistant", "message": {"content": []}, "session_id": SESSION}
RESULT = {
    "type": "result",
    "subtype": "success",
    "is_error": False,
    "result": "Done.",
    "session_id": SESSION,
    "usage": {"input_tokens": 900, "output_tokens": 40},
}


class TestItem3:
    """A wrapper script called `claude` that printed text and exited with 0 "lost the network".

    It was started again, and again: three effects for one command. Its plain text was taken for
    a structured stream that had been cut off.
    """

    def test_a_wrapper_that_prints_text_has_one_effect(self, stage):
        program(stage, "claude", EFFECT, "echo 'All tests pass.'")
        run = stage.run("")
        assert (run.code, run.state.status, stage.effects) == (0, "done", 1)
        assert run.view.shown["stdout"] == b"All tests pass.\n"

    @pytest.mark.parametrize("agent", ["claude", "codex", "gemini", "opencode", "copilot", "pi"])
    def test_so_has_one_that_is_named_by_agent(self, stage, agent):
        program(stage, "wrapper", EFFECT, "echo 'All tests pass.'")
        words = {"codex": ("exec", "x"), "opencode": ("run", "x")}.get(agent, ("-p", "x"))
        run = stage.run("", command=("wrapper", *words), agent=agent)
        assert (run.code, run.state.status, stage.effects) == (0, "done", 1)

    def test_a_wrapper_that_prints_its_own_json_has_one_effect(self, stage):
        program(stage, "claude", EFFECT, """echo '{"passed": 12, "failed": 0}'""")
        run = stage.run("")
        assert (run.code, run.state.status, stage.effects) == (0, "done", 1)

    @pytest.mark.parametrize("output", ["", say({"type": "progress", "step": 1})])
    def test_what_lacks_its_end_is_a_doubt_and_never_started_again(self, stage, output):
        program(stage, "claude", EFFECT, output)
        run = stage.run("")
        assert (run.code, run.state.status, stage.effects) == (1, "failed", 1)
        ended = run.state.ended[-1]
        assert (ended.is_doubt, ended.kind) == (True, "bad_answer")
        assert "--restart" in ended.advice

    def test_nor_by_whoever_resumes_it_without_restart(self, stage):
        program(stage, "claude", EFFECT)
        first = stage.run("")
        for may_restart in (False, True):
            taken = stage.runs.claim(first.id, stage.clock.wall())
            stage.runs.write(
                taken, RunRescheduled(stage.clock.wall(), stage.clock.wall(), "hand"), "hand"
            )
            stage.drive(taken, "", may_restart=may_restart)
            assert (stage.effects > 1) == may_restart

    def test_a_session_that_the_program_named_is_asked_once_to_go_on(self, stage):
        program(stage, "claude", say(INIT, WORK), f'case "$*" in *--resume*) {say(RESULT)};; esac')
        run = stage.run("")
        assert (run.code, hows(run), kinds(run)) == (0, ["start", "resume"], ["bad_answer", ""])
        program(stage, "claude", EFFECT, say(INIT, WORK))
        again = stage.run("")
        assert (again.code, again.state.status, hows(again)) == (1, "failed", ["start", "resume"])

    def test_a_wrapper_that_crashes_has_no_session_that_could_go_on(self, stage):
        program(stage, "claude", EFFECT, "echo 'Half of it.'", "kill -9 $$")
        run = stage.run("")
        assert (run.code, run.state.status, stage.effects) == (137, "failed", 1)

    def test_nor_has_one_whose_supervisor_was_killed(self, stage):
        program(stage, "claude", EFFECT, "echo 'All tests pass.'")
        claimed = stage.claimed()
        stage.runs.write(
            claimed, AttemptBegun(stage.clock.wall(), 1, "start", SESSION, ""), "begun-1"
        )
        (stage.runs.files(claimed.id) / "attempt-1.out").write_bytes(b"Half of it.\n")
        run = stage.drive(claimed, "")
        assert (run.code, run.state.status, stage.effects) == (1, "failed", 0)


class TestItem10:
    """The last line of a paid success came without a newline, and nobody read the pipe any more:
    the run was "cut off", and would have been done again."""

    def test_a_success_into_a_closed_pipe_is_kept(self, stage, monkeypatch):
        def output(_view, _stream, _chunk):
            raise BrokenPipeError

        monkeypatch.setattr(Recorder, "output", output)
        program(stage, "claude", f"printf %s {shlex.quote(json.dumps(RESULT))}")
        run = stage.run("")
        assert (run.code, run.state.status, run.state.is_torn) == (0, "done", False)


COPILOT = {
    "type": "assistant.turn_start",
    "data": {"turnId": "0"},
}
ABORTED = (
    {"type": "abort", "data": {"reason": "user_abort"}},
    {"type": "result", "sessionId": SESSION, "exitCode": 0},
)


class TestItem17:
    """Copilot that hung was "done": our SIGINT made it report `exitCode: 0`, and it was believed.

    Nine of 18 runs exited with 0, without an answer, with nothing to resume.
    """

    def hang(self, stage, *before):
        trap = "finish() { " + say(*ABORTED) + "; exit 0; }; trap finish INT"
        answer = say({"type": "assistant.message", "data": {"content": "Done."}}, ABORTED[1])
        program(
            stage,
            "copilot",
            trap,
            say(COPILOT, *before),
            f'case "$*" in *--resume*) {answer}; exit 0;; esac',
            "i=0; while [ $i -lt 300 ]; do sleep 0.1; i=$((i+1)); done",
        )
        return stage.run("", command=("copilot", "-p", "x"), idle=0.4)

    def test_a_success_that_answers_our_signal_is_none(self, stage):
        run = self.hang(stage)
        assert (run.code, hows(run), kinds(run)) == (0, ["start", "resume"], ["timeout", ""])
        assert run.view.shown["stdout"].strip() == b"Done."

    def test_a_success_that_was_reported_before_counts(self, stage):
        answer = {"type": "assistant.message", "data": {"content": "Done."}}
        run = self.hang(stage, answer, ABORTED[1])
        assert (run.code, hows(run)) == (0, ["start"])
        assert run.view.shown["stdout"].strip() == b"Done."

    def test_a_supervisor_killed_after_its_signal_leaves_no_success(self, stage):
        claimed = stage.claimed(("copilot", "-p", "x"))
        stage.runs.write(
            claimed, AttemptBegun(stage.clock.wall(), 1, "start", SESSION, ""), "begun-1"
        )
        log = stage.runs.files(claimed.id) / "attempt-1"
        log.with_suffix(".out").write_text(json.dumps(COPILOT) + "\n")
        log.with_suffix(".after.out").write_text("".join(json.dumps(e) + "\n" for e in ABORTED))
        program(stage, "copilot", say(ABORTED[1]))
        run = stage.drive(claimed, "")
        assert hows(run) == ["resume"]


LIMIT = "You have exhausted your capacity on this model. Your quota will reset after 5h0m0s."


class TestItem21:
    """Gemini slept five hours in place in spite of `--horizon 1h`; qwen without credit asked 136
    times in 19 minutes. What a program announces while it runs was counted, and nothing else."""

    def gemini(self, stage):
        init = {"type": "init", "session_id": SESSION, "model": "m"}
        done = {"type": "result", "status": "success", "stats": {}}
        said = {"type": "message", "role": "assistant", "content": "Done."}
        program(
            stage,
            "gemini",
            say(init),
            f'case "$*" in *--resume*) {say(said, done)}; exit 0;; esac',
            f"echo {shlex.quote(f'Attempt 1 failed: {LIMIT} Retrying after 18000000ms...')} >&2",
            "sleep 30",
        )

    def test_a_long_wait_is_taken_over(self, stage):
        self.gemini(stage)
        run = stage.run("", command=("gemini", "-p", "x"))
        assert (run.code, hows(run), kinds(run)) == (0, ["start", "resume"], ["quota", ""])
        assert stage.clock.now() >= 5 * HOUR

    def test_beyond_the_horizon_it_ends_with_75_and_the_time(self, stage):
        self.gemini(stage)
        run = stage.run("", command=("gemini", "-p", "x"), horizon=HOUR)
        assert (run.code, run.state.status) == (75, "limited")
        assert run.state.until == pytest.approx(stage.clock.wall() + 5 * HOUR, abs=120)

    def test_the_limit_is_everybody_s(self, stage):
        self.gemini(stage)
        stage.run("", command=("gemini", "-p", "x"), horizon=HOUR)
        other = stage.run("", command=("gemini", "-p", "x"), horizon=HOUR)
        assert (other.code, other.state.attempts) == (75, 0)

    def test_a_short_wait_is_left_to_the_program(self, stage):
        retry = {"type": "system", "subtype": "api_retry", "retry_delay_ms": 400}
        retry |= {"error_status": 529, "error": "overloaded"}
        program(stage, "claude", say(INIT, retry), "sleep 0.2", say(WORK, RESULT))
        run = stage.run("")
        assert (run.code, hows(run), run.state.ended[0].retries) == (0, ["start"], 1)

    def test_what_cannot_go_on_is_left_asleep(self, stage):
        program(stage, "aider", EFFECT, "echo 'Retrying in 3000 seconds...'", "sleep 0.3; exit 0")
        run = stage.run("", command=("aider", "--message", "x"))
        assert (run.code, stage.effects) == (0, 1)

    def test_no_credit_is_not_asked_for_again_and_again(self, stage):
        error = (
            "[API Error: 429 You exceeded your current quota, please check your plan and billing"
            " details. insufficient_quota]"
        )
        program(
            stage,
            "qwen",
            "for i in 1 2 3 4 5 6 7 8 9; do",
            EFFECT,
            f"echo {shlex.quote(f'Retrying in 1s (attempt 1/10): {error}')} >&2; sleep 0.3; done",
        )
        run = stage.run("", command=("qwen", "x"))
        assert (run.code, run.state.status, kinds(run)) == (1, "failed", ["billing"])
        assert stage.effects < 5

    def test_a_refused_key_is_not_tried_ten_times(self, stage):
        retry = {"type": "system", "subtype": "api_retry", "retry_delay_ms": 300, "attempt": 1}
        retry |= {"error_status": 401, "error": "authentication_failed"}
        program(
            stage,
            "claude",
            say(INIT),
            f"for i in 1 2 3 4 5 6 7 8 9; do {EFFECT}; {say(retry)}; sleep 0.3; done",
        )
        run = stage.run("")
        assert (run.code, run.state.status, kinds(run)) == (1, "failed", ["auth"])
        assert stage.effects < 5


BANNER = "You've hit your session limit · resets 3am (UTC)"


class TestItem23:
    """An answer of one line that quoted a limit's words parked the account for hours, in spite of
    `is_error: false`, exit code 0 and output tokens."""

    def test_claude_s_answer_that_quotes_a_banner_is_an_answer(self, stage):
        program(stage, "claude", say(INIT, WORK, RESULT | {"result": BANNER}))
        run = stage.run("")
        assert (run.code, run.state.attempts, run.state.status) == (0, 1, "done")
        assert run.view.shown["stdout"].decode().strip() == BANNER

    @pytest.mark.parametrize("form", ["json", "stream-json"])
    def test_so_it_is_in_the_forms_that_users_choose(self, stage, form):
        program(stage, "claude", say(RESULT | {"result": BANNER}))
        run = stage.run("", command=("claude", "-p", "x", "--output-format", form))
        assert (run.code, run.state.attempts) == (0, 1)

    def test_gemini_s_too(self, stage):
        init = {"type": "init", "session_id": SESSION, "model": "m"}
        said = {"type": "message", "role": "assistant", "content": LIMIT}
        done = {"type": "result", "status": "success", "stats": {"total_tokens": 9}}
        program(stage, "gemini", say(init, said, done))
        run = stage.run("", command=("gemini", "-p", "x"))
        assert (run.code, run.state.attempts) == (0, 1)
        whole = {"session_id": SESSION, "response": LIMIT, "stats": {}}
        program(stage, "gemini", say(whole))
        run = stage.run("", command=("gemini", "-p", "x", "-o", "json"))
        assert (run.code, run.state.attempts) == (0, 1)

    @pytest.mark.parametrize(
        "command", [("qwen", "x"), ("gemini", "-p", "x", "-o", "text"), ("pi", "-p", "x")]
    )
    def test_and_plain_text_with_exit_code_0(self, stage, command):
        program(stage, command[0], f"echo {shlex.quote(LIMIT)}")
        run = stage.run("", command=command)
        assert (run.code, run.state.attempts) == (0, 1)

    @pytest.mark.parametrize("command", [("qwen", "x"), ("gemini", "-p", "x", "-o", "text")])
    def test_words_without_an_answer_are_no_success(self, stage, command):
        program(stage, command[0], f"echo 'Error: {LIMIT}' >&2")
        run = stage.run("", command=command, horizon=HOUR)
        assert (run.code, kinds(run)) == (75, ["quota"])

    def test_a_failure_in_pi_s_events_counts_against_exit_code_0(self, stage):
        message = {"role": "assistant", "stopReason": "error", "errorMessage": "529 Overloaded"}
        session = {"type": "session", "id": SESSION}
        program(stage, "pi", say(session, {"type": "message_end", "message": message}))
        run = stage.run("", command=("pi", "-p", "x"), attempts=1)
        assert (run.code, kinds(run)) == (1, ["overloaded"])

    def test_so_does_one_in_gemini_s_json(self, stage):
        error = {"type": "INVALID_STREAM", "message": "Stream ended without a finish reason."}
        program(stage, "gemini", say({"session_id": SESSION, "response": "", "error": error}))
        run = stage.run("", command=("gemini", "-p", "x", "-o", "json"), attempts=1)
        assert (run.code, run.state.status) == (1, "failed")


class TestItem24:
    """opencode with `--format json` that hung exited with 1, and a crash before any output ended
    the run with 137: nothing had been done in either. Claude's `json`, Gemini's `json` and Qwen
    had no watchdog, and the others' ended a program whose stream was alive."""

    def first_time(self, stage, then: str) -> None:
        step = {"type": "step_finish", "sessionID": "ses_abcd1234", "part": {"reason": "stop"}}
        program(
            stage,
            "opencode",
            f"if [ ! -e begun ]; then : > begun; {then}; fi",
            say(step),
        )

    @pytest.mark.parametrize("form", [(), ("--format", "json")])
    def test_what_hangs_before_its_first_word_is_started_again(self, stage, form):
        self.first_time(stage, "sleep 30")
        run = stage.run("", command=("opencode", "run", *form, "x"), idle=0.4)
        assert (run.code, hows(run)) == (0, ["start", "restart"])

    @pytest.mark.parametrize("form", [(), ("--format", "json")])
    def test_so_is_what_crashes_before_it(self, stage, form):
        self.first_time(stage, "kill -9 $$")
        run = stage.run("", command=("opencode", "run", *form, "x"))
        assert (run.code, hows(run)) == (0, ["start", "restart"])

    def test_a_program_that_computes_in_silence_is_not_hung(self, stage):
        busy = "import time\nend = time.monotonic() + 1.0\nwhile time.monotonic() < end: pass"
        program(stage, "claude", f"{sys.executable} -c {shlex.quote(busy)}", say(RESULT))
        run = stage.run("", command=("claude", "-p", "x", "--output-format", "json"), idle=0.4)
        assert (run.code, hows(run)) == (0, ["start"])

    @pytest.mark.skipif(sys.platform != "linux", reason="the kernel's count of bytes is Linux's")
    def test_nor_is_one_whose_stream_is_alive(self, stage):
        talk = (
            "import socket, time, threading\n"
            "door = socket.create_server(('127.0.0.1', 0))\n"
            "near = socket.create_connection(door.getsockname())\n"
            "far, _ = door.accept()\n"
            "for _ in range(17):\n"
            "    far.send(b'x'); near.recv(1); time.sleep(0.1)\n"
        )
        program(stage, "claude", f"{sys.executable} -c {shlex.quote(talk)}", say(RESULT))
        run = stage.run("", command=("claude", "-p", "x", "--output-format", "json"), idle=0.8)
        assert (run.code, hows(run)) == (0, ["start"])


class TestItem25:
    """Gemini that was killed inside a tool forgot the call, and ran the tool again: two effects.
    The prompt to go on did not say what had been under way."""

    def test_the_prompt_to_go_on_names_the_pending_call(self, stage):
        call = {
            "type": "tool_use",
            "tool_name": "run_shell_command",
            "tool_id": "t1",
            "parameters": {"command": "make deploy"},
        }
        init = {"type": "init", "session_id": SESSION, "model": "m"}
        done = {"type": "result", "status": "success", "stats": {}}
        program(
            stage,
            "gemini",
            f'case "$*" in *--resume*) echo "$*" > told; {say(init, done)}; exit 0;; esac',
            say(init, call),
            "kill -9 $$",
        )
        run = stage.run("", command=("gemini", "-p", "x"))
        assert (run.code, hows(run)) == (0, ["start", "resume"])
        told = (stage.folder / "work" / "told").read_text()
        assert "run_shell_command: make deploy" in told
        assert "Find out whether it did" in told


@pytest.mark.parametrize("advice", [HARMLESS, UNSURE])
def test_advice_does_not_lead_to_another_run(advice):
    """It named ``mulligan resume --restart``: that starts the newest run of the folder anew.

    Seen in the log of a worker, which wakes runs of many folders.
    """
    assert "--restart" in advice
    assert "mulligan resume" not in advice
