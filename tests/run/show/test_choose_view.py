"""Events, output that is held back, notifications: what a run tells programs and absent people."""

from __future__ import annotations

import json
import os
import re
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.run.agents.adapter import Launch, OutputNote
from mulligan.run.attempt.output import AttemptFacts
from mulligan.run.context import REAL_PLATFORM, RunContext
from mulligan.run.journal.entries import (
    AttemptBegun,
    AttemptEnd,
    RunCancelled,
    RunMade,
    RunRescheduled,
)
from mulligan.run.journal.state import state_of
from mulligan.run.process.stop import Stop
from mulligan.run.show.choose_view import recording
from mulligan.run.show.final_only import FinalOnlyOutput
from mulligan.run.show.json_events import JsonEvents
from mulligan.run.show.notify import Notifier, remember, remembered, send
from mulligan.run.show.plain_view import PlainView
from mulligan.run.show.standard_streams import StandardStreams

from ..scripted import Stage

MADE = RunMade(1000.0, "claude", "claude -p hi", "/src", "host", 0, "port", {}, [])
BEGUN = AttemptBegun(1000.0, 1, "start", "s", "")
WELL = AttemptEnd(1060.0, 1, 60.0, code=0, cost=0.2, tokens=900, then="done")
LATER = WELL._replace(kind="quota", then="again", until=9000.0, because="retry in 2h, as X says")


class Shown:
    """Keeps what is shown, and what went wrong with notifications."""

    def __init__(self) -> None:
        self.text: list[tuple[str, bytes]] = []
        self.errors: list[str] = []

    def output(self, stream, chunk) -> None:
        self.text.append((stream, chunk))


@pytest.fixture
def stop():
    stop = Stop()
    yield stop
    stop.close()


class Piped:
    """Streams into two pipes, and what has arrived there since it was last asked."""

    def __init__(self, stop, out, err) -> None:
        self.streams = StandardStreams(stop, out[1], err[1])
        self._out, self._err = out[0], err[0]
        for descriptor in (self._out, self._err):
            os.set_blocking(descriptor, False)

    @property
    def out(self) -> str:
        return _read(self._out)

    @property
    def err(self) -> str:
        return _read(self._err)

    @property
    def events(self):
        return [json.loads(line) for line in self.out.splitlines()]


def _read(descriptor: int) -> str:
    try:
        return os.read(descriptor, 1 << 16).decode()
    except BlockingIOError:
        return ""


@pytest.fixture
def piped(stop):
    """Streams into two pipes, and what arrived there."""
    out, err = os.pipe(), os.pipe()

    yield Piped(stop, out, err)
    for descriptor in (*out, *err):
        os.close(descriptor)


def state(*steps):
    found = state_of([MADE, *steps])
    assert found is not None
    return found


# Lines


def test_a_run_that_simply_succeeds_prints_nothing_of_ours(piped):
    lines = PlainView("k3fqzz", "claude", streams=piped.streams)
    lines.step(BEGUN)
    lines.output("stdout", b"hello\n")
    lines.step(WELL)
    lines.over(state(BEGUN, WELL))
    assert (piped.out, piped.err) == ("hello\n", "")


def test_a_line_says_the_day_once_it_is_another(piped):
    lines = PlainView("k3fqzz", "claude", streams=piped.streams)
    lines.step(BEGUN._replace(attempt=2))
    lines.step(BEGUN._replace(attempt=3))
    lines.step(BEGUN._replace(attempt=4, at=BEGUN.at + 86_400))
    first, second, third = piped.err.splitlines()
    assert len(first.split()) == len(second.split()) == len(third.split()) - 3


def test_a_wait_that_nobody_was_told_of_is_told_once(piped):
    lines = PlainView("k3fqzz", "claude", streams=piped.streams)
    lines.waiting(2000.0, 2.0)  # a short hold is no news
    lines.waiting(9000.0, 8000.0)
    lines.waiting(9000.0, 7999.0)
    (line,) = piped.err.splitlines()
    assert re.fullmatch(r"mulligan: [\d:]+ claude waits until [\w\d: ]+", line)


def test_a_wait_that_followed_from_a_step_is_told_by_the_step(piped):
    lines = PlainView("k3fqzz", "claude", streams=piped.streams)
    lines.step(LATER)
    assert "retry in 2h12m" in piped.err
    lines.waiting(9000.0, 8000.0)
    assert piped.err == ""


def test_in_a_log_of_both_streams_our_line_begins_a_line(stop):
    reader, writer = os.pipe()
    twin = os.dup(writer)
    lines = PlainView("k3fqzz", "claude", streams=StandardStreams(stop, writer, twin))
    lines.output("stdout", b"no newline")
    lines.step(BEGUN._replace(attempt=2))
    written = os.read(reader, 4096)
    for descriptor in (reader, writer, twin):
        os.close(descriptor)
    assert written.startswith(b"no newline\nmulligan: ")


def test_nobody_reading_our_lines_is_no_reason_to_fail(stop):
    reader, writer = os.pipe()
    os.close(reader)
    PlainView("k3fqzz", "claude", streams=StandardStreams(stop, writer, writer)).step(
        BEGUN._replace(attempt=2)
    )
    os.close(writer)


def test_a_worker_tells_whose_line_it_is_and_keeps_the_text_to_itself(tmp_path, stop, capfd):
    stage = Stage(tmp_path)
    claimed = stage.claimed()
    state = stage.runs.look(claimed.id)
    assert state is not None
    recorded = recording(stage.context(stop=stop), claimed, state)
    recorded.output("stdout", b"hello\n")
    for each in recorded.listeners:
        each.step(BEGUN._replace(attempt=2, how="resume"))
    stage.runs.close()
    said = capfd.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"mulligan: {claimed.id}: ")


# Events

FIELDS = {
    "begun": set(AttemptBegun._fields),
    "ended": set(AttemptEnd._fields),
    "moved": set(RunRescheduled._fields) - {"prompt"},
    "over": set(RunCancelled._fields),
    "output": {"at", "attempt", "stream", "text"},
    "retrying": {"at", "attempt", "retries", "quiet"},
    "notified": {"at", "error"},
    "summary": {
        *("at", "status", "exit", "attempts", "waited", "cost", "tokens", "until", "kind"),
        *("message", "because", "advice", "fell_short", "name", "agent", "command", "cwd"),
    },
}


def test_every_event_is_one_object_a_line_with_the_documented_fields(piped):
    events = JsonEvents("k3fqzz", streams=piped.streams, now=lambda: 1.0)
    events.step(BEGUN)
    facts = AttemptFacts(1, Launch(("claude",)))
    events.noted(OutputNote(is_retry=True, quiet=2.0), facts)
    events.output("stderr", b"hm\n")
    events.step(LATER)
    events.step(RunRescheduled(1.0, 2.0, "a run of this account met a limit"))
    events.step(RunCancelled(1.0, "cancelled by the user"))
    events.notified("")
    events.over(state(BEGUN, LATER))
    found = piped.events
    assert {each["event"] for each in found} == set(FIELDS)
    for each in found:
        assert each.pop("run") == "k3fqzz"
        assert set(each) - {"event"} == FIELDS[each["event"]], each["event"]


def test_nothing_but_events_is_written_to_stdout_and_nothing_to_stderr(piped):
    events = JsonEvents("k3fqzz", streams=piped.streams)
    events.step(BEGUN)
    events.output("stdout", b"not\njson\n")
    events.over(state(BEGUN, WELL))
    assert [each["event"] for each in piped.events] == ["begun", "output", "summary"]
    assert piped.err == ""


@given(text=st.text(max_size=40), cut=st.integers(1, 7))
def test_text_comes_whole_wherever_it_was_cut(text, cut):
    out, stop = os.pipe(), Stop()
    raw = text.encode("utf-8", "replace")
    events = JsonEvents("k3fqzz", streams=StandardStreams(stop, out[1], out[1]))
    for at in range(0, len(raw), cut):
        events.output("stdout", raw[at : at + cut])
    events.step(WELL)
    lines = os.read(out[0], 1 << 16).decode().splitlines()
    os.close(out[0])
    os.close(out[1])
    stop.close()
    found = [json.loads(line) for line in lines]
    assert "".join(each["text"] for each in found[:-1]) == raw.decode()


def test_bytes_that_are_no_text_are_replaced(piped):
    events = JsonEvents("k3fqzz", streams=piped.streams)
    events.output("stdout", b"\xff\xfe ok")
    assert piped.events[0]["text"] == "�� ok"


# Held back


def test_only_the_final_attempt_is_shown(tmp_path):
    shown = Shown()
    held = FinalOnlyOutput(shown.output, tmp_path / "held")
    held.output("stdout", b"of an attempt that is repeated")
    held.step(LATER)
    held.output("stdout", b"final")
    held.output("stderr", b"words")
    assert shown.text == []
    held.step(WELL._replace(attempt=2))
    assert shown.text == [("stdout", b"final"), ("stderr", b"words")]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("then", ["stop", "pause"])
def test_an_attempt_that_nothing_follows_is_final(tmp_path, then):
    shown = Shown()
    held = FinalOnlyOutput(shown.output, tmp_path / "held")
    held.output("stdout", b"last words")
    held.step(WELL._replace(then=then))
    assert shown.text == [("stdout", b"last words")]


def test_what_is_held_back_lies_in_a_private_file(tmp_path):
    held = FinalOnlyOutput(Shown().output, tmp_path / "held")
    held.output("stdout", b"x" * 100_000)
    assert (tmp_path / "held").stat().st_mode & 0o777 == 0o600
    held.step(LATER)


@given(pieces=st.lists(st.tuples(st.sampled_from(["stdout", "stderr"]), st.binary(max_size=50))))
def test_what_was_held_back_comes_out_as_it_went_in(tmp_path_factory, pieces):
    shown = Shown()
    held = FinalOnlyOutput(shown.output, tmp_path_factory.mktemp("held") / "held")
    for stream, chunk in pieces:
        held.output(stream, chunk)
    held.over(state(BEGUN, WELL))
    assert shown.text == pieces


def leave(path, text):
    """What a supervisor leaves behind that was killed while it held `text` back."""
    held = FinalOnlyOutput(Shown().output, path)
    held.output("stdout", text)
    data = path.read_bytes()
    held.over(state(BEGUN))
    path.write_bytes(data)


@pytest.mark.parametrize("then", ["done", "again"])
def test_what_a_killed_supervisor_held_back_is_shown_if_it_was_final(tmp_path, then):
    leave(tmp_path / "held", b"the answer\n")
    with (tmp_path / "held").open("ab") as file:
        file.write(b"\0\xff")  # it died as it wrote the next
    shown = Shown()
    held = FinalOnlyOutput(shown.output, tmp_path / "held")
    held.step(WELL._replace(then=then))
    assert shown.text == ([("stdout", b"the answer\n")] if then == "done" else [])
    assert list(tmp_path.iterdir()) == []


def test_what_was_held_of_an_attempt_whose_end_is_known_is_not_shown_with_the_next(tmp_path):
    leave(tmp_path / "held", b"of the first")
    shown = Shown()
    held = FinalOnlyOutput(shown.output, tmp_path / "held")
    held.step(BEGUN._replace(attempt=2))
    held.step(WELL._replace(attempt=2))
    assert shown.text == []


def test_what_cannot_be_held_back_is_shown_and_not_lost(tmp_path):
    shown = Shown()
    held = FinalOnlyOutput(shown.output, tmp_path / "nowhere" / "held")
    held.output("stdout", b"one")
    held.output("stdout", b"two")
    held.step(WELL)
    assert shown.text == [("stdout", b"one"), ("stdout", b"two")]


# Notifications

WRITE = "import sys; open(sys.argv[1], 'a').write(sys.stdin.read())"


def notifying(shown, argv, stop, where, in_place=120.0):
    runs: Any = SimpleNamespace(look=lambda _id: where)
    context = RunContext(os.environ, runs, stop, REAL_PLATFORM)
    told = shown.errors.append
    return Notifier(context, "k3fqzz", argv, told=told, in_place=lambda: in_place)


@pytest.mark.real
def test_somebody_is_told_of_a_long_wait_and_of_the_end(tmp_path, stop):
    shown, news = Shown(), tmp_path / "news"
    argv = (sys.executable, "-c", WRITE, str(news))
    view = notifying(shown, argv, stop, state(BEGUN, LATER))
    view.step(BEGUN)
    view.step(LATER)
    view.over(state(BEGUN, LATER))  # parked: that is known already
    view.over(state(BEGUN, WELL))
    parked, over = [json.loads(line) for line in news.read_text().splitlines()]
    assert (parked["event"], parked["status"], parked["until"]) == ("parked", "waiting", 9000.0)
    assert (over["event"], over["status"], over["exit"], over["cost"]) == ("over", "done", 0, 0.2)
    assert set(over) == FIELDS["summary"] - {"at"} | {"event", "run"}
    assert shown.errors == ["", ""]


def test_a_short_wait_and_an_interruption_are_no_news(tmp_path, stop):
    shown = Shown()
    view = notifying(shown, ("false",), stop, state(BEGUN, LATER))
    view.step(LATER._replace(until=1100.0))
    view.over(state(BEGUN, WELL._replace(then="pause", exit=130)))
    assert shown.errors == []


@pytest.mark.real
def test_a_notification_gets_no_shell(tmp_path, stop):
    argv = (sys.executable, "-c", WRITE, str(tmp_path / "$(touch x); news"))
    assert send(argv, {"event": "over"}, stop=stop, environ=os.environ) == ""
    assert [each.name for each in tmp_path.iterdir()] == ["$(touch x); news"]


@pytest.mark.real
@pytest.mark.parametrize(
    ("argv", "error"),
    [
        (("false", "--token=sk-planted-0123456789"), "false exited with 1"),
        (("no-such-program",), "cannot run no-such-program: No such file or directory"),
    ],
)
def test_a_notification_that_fails_is_reported_by_its_name_alone(stop, argv, error):
    assert send(argv, {}, stop=stop, environ=os.environ) == error


@pytest.mark.real
def test_a_notification_that_hangs_is_ended_sooner_once_we_must_end(stop):
    stop.set()
    began = time.monotonic()
    error = send(("sleep", "60"), {}, stop=stop, environ=os.environ)
    assert error == "sleep took longer than 1s, and was stopped"
    assert time.monotonic() - began < 5


def test_the_command_of_a_notification_is_kept_privately(tmp_path):
    assert remembered(tmp_path) == ()
    remember(tmp_path, ("curl", "-H", "Authorization: Bearer x"))
    assert remembered(tmp_path) == ("curl", "-H", "Authorization: Bearer x")
    assert (tmp_path / "notify.json").stat().st_mode & 0o777 == 0o600
