"""A program is ended with all of its group, as gently as it lets us."""

from __future__ import annotations

import signal
import threading
import time
from pathlib import Path

import pytest

from mulligan.run.process.supervise import StopProgram, has_members

pytestmark = pytest.mark.real

# Says how it was asked to end, in order, and does not.
STUBBORN = """
import os, signal, time
def told(number, frame):
    os.write(1, signal.Signals(number).name.encode() + b"\\n")
for number in (signal.SIGINT, signal.SIGTERM):
    signal.signal(number, told)
os.write(1, b"ready\\n")
while True:
    time.sleep(1)
"""


@pytest.fixture
def stop_on(supervised):
    """An `on_chunk` that asks for the end when the program says the word."""

    def on(word: bytes, reason: str = "interrupt"):
        def look(_stream, chunk):
            if word in chunk:
                supervised.stop.set(reason)

        return look

    return on


def test_a_stop_is_an_interrupt_and_the_last_words_are_heard(supervised, stop_on):
    ended = supervised.sh(
        "trap 'echo bye; exit 5' INT; echo ready; while :; do sleep 0.02; done",
        on_chunk=stop_on(b"ready"),
        grace=(60, 60),
    )
    assert (ended.code, ended.signal, ended.stopped) == (5, None, "interrupt")
    assert supervised.out == "ready\nbye\n"
    assert ended.took < 30


def test_a_program_that_does_not_care_dies_by_the_interrupt(supervised, stop_on):
    ended = supervised.sh("echo ready; exec sleep 100", on_chunk=stop_on(b"ready", "terminate"))
    assert (ended.code, ended.signal, ended.stopped) == (None, signal.SIGINT, "terminate")


def test_who_ignores_the_interrupt_is_terminated_and_then_killed(supervised, stop_on):
    ended = supervised.python(STUBBORN, on_chunk=stop_on(b"ready"))
    assert supervised.out.split() == ["ready", "SIGINT", "SIGTERM"]
    assert (ended.signal, ended.stopped) == (signal.SIGKILL, "interrupt")
    assert ended.took >= 0.6  # both graces were given


def test_asking_again_escalates_at_once(supervised):
    def look(_stream, chunk):
        supervised.stop.set()  # at `ready`, and then at every answer

    ended = supervised.python(STUBBORN, on_chunk=look, grace=(60, 60))
    assert supervised.out.split() == ["ready", "SIGINT", "SIGTERM"]
    assert (ended.signal, ended.stopped) == (signal.SIGKILL, "interrupt")
    assert ended.took < 10


def test_a_stop_from_another_thread_is_seen_at_once(supervised):
    threading.Timer(0.1, supervised.stop.set, ["cancel"]).start()
    ended = supervised.sh("exec sleep 100", timeout=None)
    assert (ended.signal, ended.stopped) == (signal.SIGINT, "cancel")
    assert ended.took < 10


def test_a_stop_reaches_a_program_that_never_stops_talking(supervised, stop_on):
    class Nowhere:
        def __init__(self):
            self.heard = 0

        def take(self, stream, chunk):
            self.heard += len(chunk)
            if self.heard > 1_000_000:
                supervised.stop.set()

        def ending(self):
            pass

        def quiet_until(self):
            return 0.0

    ended = supervised("yes", sink=Nowhere())
    assert (ended.signal, ended.stopped) == (signal.SIGINT, "interrupt")


def test_silence_for_too_long_ends_it(supervised):
    ended = supervised.sh("echo working; exec sleep 100", idle=0.2)
    assert (ended.code, ended.signal, ended.stopped) == (None, signal.SIGINT, "idle")
    assert ended.took >= 0.2


def test_what_leads_nowhere_is_ended(supervised):
    def judge(_stream, chunk):
        if chunk.count(b"again") or len(supervised.sink.out) > 3:
            raise StopProgram("futile")

    ended = supervised.sh("echo a; while :; do echo again; sleep 0.1; done", on_chunk=judge)
    assert (ended.signal, ended.stopped) == (signal.SIGINT, "futile")
    assert supervised.out.startswith("a\nagain\n")  # what it said is not lost


def test_output_on_either_stream_is_no_silence(supervised):
    script = "for i in 1 2 3 4; do sleep 0.1; echo x; sleep 0.1; echo x >&2; done"
    assert supervised.sh(script, idle=0.6).stopped == ""


def test_an_announced_silence_is_waited_for_and_then_some(supervised):
    # E-D7: it announced to retry at that time, so only from then on silence counts.
    began = time.monotonic()
    ended = supervised.sh("exec sleep 100", idle=0.1, quiet_until=began + 0.4)
    assert ended.stopped == "idle"
    assert ended.took >= 0.45


def test_who_speaks_after_an_announced_silence_goes_on(supervised):
    quiet_until = time.monotonic() + 0.4
    ended = supervised.sh("sleep 0.5; echo back", idle=0.3, quiet_until=quiet_until)
    assert (ended.code, ended.stopped, supervised.out) == (0, "", "back\n")


def test_time_that_the_sink_takes_is_no_silence_of_the_program(supervised):
    ended = supervised.sh(
        "echo a; sleep 0.1; echo b; sleep 0.1", idle=0.4, on_chunk=lambda *_: time.sleep(0.5)
    )
    assert (ended.code, ended.stopped) == (0, "")


def test_a_timeout_ends_who_talks_all_the_time(supervised):
    ended = supervised.sh("while :; do echo x; sleep 0.02; done", idle=5, timeout=0.3)
    assert ended.stopped == "timeout"
    assert ended.took >= 0.3


def test_children_are_ended_with_it(supervised, eventually):
    pids: list[int] = []
    ended = supervised.sh(
        "sleep 100 & sleep 100 & (trap '' INT TERM; while :; do sleep 0.05; done) & "
        "echo ready; sleep 100",
        idle=0.2,
        on_start=pids.append,
    )
    assert ended.stopped == "idle"
    assert not has_members(pids[0])


def test_children_that_ignore_the_interrupt_do_not_take_the_whole_grace(supervised, stop_on):
    pids: list[int] = []
    ended = supervised.sh(
        "sleep 100 >/dev/null 2>&1 & trap 'exit 5' INT; echo ready; while :; do sleep 0.02; done",
        on_chunk=stop_on(b"ready"),
        on_start=pids.append,
        grace=(60, 60),
    )
    assert (ended.code, ended.stopped) == (5, "interrupt")
    assert ended.took < 5
    assert not has_members(pids[0])


def test_a_child_that_holds_the_output_open_does_not_hold_us(supervised):
    pids: list[int] = []
    ended = supervised.sh("echo before; sleep 100 & exit 4", on_start=pids.append)
    assert (ended.code, ended.stopped, supervised.out) == (4, "", "before\n")
    assert ended.took < 5
    assert not has_members(pids[0])


def test_a_child_without_our_output_is_ended_too(supervised):
    pids: list[int] = []
    ended = supervised.sh("sleep 100 >/dev/null 2>&1 & exit 0", on_start=pids.append)
    assert ended.code == 0
    assert not has_members(pids[0])


def test_what_a_child_writes_shortly_after_the_end_is_heard(supervised):
    # bash: `agent > >(tee log)`
    supervised.sh("(sleep 0.1; echo late) & echo early")
    assert supervised.out == "early\nlate\n"


def test_what_a_child_says_when_it_is_ended_is_heard(supervised):
    supervised.sh("(trap 'echo swept; exit' TERM; while :; do sleep 0.02; done) & echo early")
    assert supervised.out == "early\nswept\n"


DAEMON = """
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
open(sys.argv[1], "w").write(str(os.getpid()))
if sys.argv[2] == "quiet":
    null = os.open("/dev/null", os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
for _ in range(300):
    time.sleep(0.1)
    print("still here", flush=True)
"""


def daemon_of(path: Path, eventually) -> int:
    assert eventually(lambda: path.exists() and path.read_text(encoding="ascii"))
    return int(path.read_text(encoding="ascii"))


def test_a_daemon_that_the_program_detached_is_left_alone(
    supervised, tmp_path, eventually, is_running, ended_after
):
    ended = supervised.python(DAEMON, str(tmp_path / "pid"), "quiet")
    daemon = ended_after(daemon_of(tmp_path / "pid", eventually))
    assert (ended.code, ended.stopped) == (0, "")
    assert is_running(daemon)


def test_a_daemon_that_keeps_talking_to_our_pipe_does_not_hold_us(
    supervised, tmp_path, eventually, ended_after
):
    ended = supervised.python(DAEMON, str(tmp_path / "pid"), "loud")
    ended_after(daemon_of(tmp_path / "pid", eventually))
    assert (ended.code, ended.stopped) == (0, "")
    assert ended.took < 5


def test_a_stopped_program_can_be_ended(supervised):
    threading.Timer(0.2, supervised.stop.set).start()
    ended = supervised.sh("kill -STOP $$; sleep 100")
    assert (ended.signal, ended.stopped) == (signal.SIGINT, "interrupt")


def test_a_program_whose_reader_went_away_ends_like_by_a_broken_pipe(supervised):
    class Closed:
        def take(self, stream, chunk):
            raise BrokenPipeError

        def ending(self):
            pass

        def quiet_until(self):
            return 0.0

    ended = supervised.sh("echo hello; exec sleep 100", sink=Closed())
    assert (ended.code, ended.signal, ended.stopped) == (None, signal.SIGPIPE, "pipe")


def test_who_ignores_a_broken_pipe_is_terminated(supervised):
    class Closed:
        def take(self, stream, chunk):
            raise BrokenPipeError

        def ending(self):
            pass

        def quiet_until(self):
            return 0.0

    ended = supervised.sh("trap '' PIPE; echo hello; exec sleep 100", sink=Closed())
    assert (ended.signal, ended.stopped) == (signal.SIGTERM, "pipe")


def test_a_program_is_not_blamed_for_time_that_we_did_not_get(supervised, monkeypatch):
    # E-B7: a paused machine or Ctrl-Z shows as a look that took longer than asked.
    import selectors

    real_select = selectors.DefaultSelector.select
    paused: list[bool] = []

    def select(self, timeout=None):
        found = real_select(self, timeout)
        if not found and not paused:
            paused.append(True)
            time.sleep(0.9)
        return found

    monkeypatch.setattr(selectors.DefaultSelector, "select", select)
    ended = supervised.sh("sleep 1.2; echo done", idle=0.8)
    assert paused
    assert (ended.code, ended.stopped, supervised.out) == (0, "", "done\n")


def test_several_programs_are_supervised_in_threads_of_one_process(tmp_path, supervised):
    codes = {}

    def run(number):
        codes[number] = supervised.sh(f"echo x; exit {number}").code

    threads = [threading.Thread(target=run, args=[number]) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert codes == {number: number for number in range(8)}
