"""Output passes as it is written: all of it, in order, in bounded memory."""

from __future__ import annotations

import hashlib
import os
import random
import subprocess
import sys
import threading
import time

import pytest

from mulligan.run.process.stop import Stop
from mulligan.run.show.standard_streams import PatientWriter

pytestmark = pytest.mark.real

MEGABYTE = 1_000_000


class Counted:
    """A sink that keeps nothing but a sum."""

    def __init__(self) -> None:
        self.sums = {"stdout": hashlib.sha256(), "stderr": hashlib.sha256()}
        self.sizes = {"stdout": 0, "stderr": 0}
        self.longest = 0

    def take(self, stream, chunk: bytes) -> None:
        self.sums[stream].update(chunk)
        self.sizes[stream] += len(chunk)
        self.longest = max(self.longest, len(chunk))

    def ending(self) -> None:
        pass

    def quiet_until(self) -> float:
        return 0.0


# How much memory a supervisor takes for so many megabytes of output; a process of its own, for a
# peak cannot be reset.
PEAK = """
import os, resource, sys
from pathlib import Path
from mulligan.run.process.supervise import supervise
from mulligan.run.process.stop import Stop

class Counted:
    size = 0
    def take(self, stream, chunk):
        self.size += len(chunk)
    def ending(self):
        pass

    def quiet_until(self):
        return 0.0

sink = Counted()
script = "import sys; line = b'x' * 1_000_000; [sys.stdout.buffer.write(line) for _ in range(%s)]"
ended = supervise(
    [sys.executable, "-c", script % sys.argv[1]], cwd=Path("/"), environ=dict(os.environ),
    stdin=None, sink=sink, idle=None, timeout=60, stop=Stop(),
)
print(ended.code, sink.size, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak_of(megabytes: int) -> float:
    # By a shell that forks: a peak is inherited through exec, and ours is higher than any of these.
    answer = subprocess.run(
        ["sh", "-c", '"$0" -c "$1" "$2"; true', sys.executable, PEAK, str(megabytes)],  # noqa: S607
        capture_output=True,
        check=True,
        timeout=60,
    )
    code, size, peak = map(int, answer.stdout.split())
    assert (code, size) == (0, megabytes * MEGABYTE)
    return peak


def test_a_hundred_megabytes_take_no_more_memory_than_one():
    # All in one line, too: nothing here waits for a line's end.
    assert peak_of(100) < 1.25 * peak_of(1)


def test_one_line_of_fifty_megabytes_arrives_in_small_pieces(supervised):
    sink = Counted()
    script = "import sys; sys.stdout.buffer.write(b'x' * 50_000_000 + b'\\n')"
    assert supervised.python(script, sink=sink).code == 0
    assert sink.sizes["stdout"] == 50 * MEGABYTE + 1
    assert sink.longest <= 65536


def test_random_bytes_on_both_streams_arrive_unchanged(supervised):
    script = """
import os, random
rng = {1: random.Random(1), 2: random.Random(2)}
for _ in range(200):
    for fd in (1, 2):
        data = rng[fd].randbytes(10_000)
        while data:
            data = data[os.write(fd, data):]
"""
    sink = Counted()
    assert supervised.python(script, sink=sink).code == 0
    for stream, seed in (("stdout", 1), ("stderr", 2)):
        expected = random.Random(seed)
        whole = b"".join(expected.randbytes(10_000) for _ in range(200))
        assert sink.sums[stream].digest() == hashlib.sha256(whole).digest()


def test_a_storm_of_tiny_writes_arrives_whole(supervised):
    script = "import os; [os.write(1 + i % 2, b'%d,' % i) for i in range(50_000)]"
    assert supervised.python(script).code == 0
    heard = supervised.out.split(",")[:-1] + supervised.err.split(",")[:-1]
    assert sorted(map(int, heard)) == list(range(50_000))


def test_words_are_heard_while_the_program_still_runs(supervised):
    heard_at = []
    ended = supervised.sh(
        "echo first; sleep 0.4; echo second", on_chunk=lambda *_: heard_at.append(time.monotonic())
    )
    assert ended.code == 0
    assert heard_at[1] - heard_at[0] >= 0.3


def test_a_slow_sink_slows_the_program_and_loses_nothing(supervised, tmp_path):
    # The program notes how far it came; it cannot be further ahead than two pipes and a chunk.
    script = """
import os, sys
for i in range(40):
    os.write(1, b"x" * 16384)
    os.write(2, b"y" * 16384)
    open(sys.argv[1], "w").write(str((i + 1) * 32768))
"""
    progress, ahead = tmp_path / "progress", []

    def slow(_stream, _chunk):
        time.sleep(0.01)
        if progress.exists() and (text := progress.read_text(encoding="ascii")):
            heard = len(supervised.sink.out) + len(supervised.sink.err)
            ahead.append(int(text) - heard)

    assert supervised.python(script, str(progress), on_chunk=slow).code == 0
    assert len(supervised.sink.out) == len(supervised.sink.err) == 40 * 16384
    assert max(ahead) <= 2 * 65536 + 65536


def test_who_talks_on_one_stream_is_not_blocked_by_the_other(supervised):
    # Reading one stream to its end before the other would wait here for ever.
    script = "import os; [os.write(2, b'e' * 65536) for _ in range(32)]; os.write(1, b'done')"
    assert supervised.python(script).code == 0
    assert (supervised.out, len(supervised.sink.err)) == ("done", 32 * 65536)


def test_a_program_that_closes_its_output_and_works_on_is_waited_for(supervised):
    ended = supervised.sh("exec >&- 2>&-; sleep 0.3; exit 6")
    assert ended.code == 6
    assert ended.took >= 0.3


def test_a_reader_that_pauses_does_not_hold_up_a_stop():
    inside, outside = os.pipe()
    stop = Stop()
    outlet = PatientWriter(outside, stop)
    assert outlet.write(b"x" * 10)
    threading.Timer(0.1, stop.set).start()
    began = time.monotonic()
    assert not outlet.write(b"x" * 10_000_000)
    assert not outlet.write(b"more")
    assert time.monotonic() - began < 10  # or for ever
    for descriptor in (inside, outside):
        os.close(descriptor)
    stop.close()


def test_what_is_written_while_somebody_reads_arrives_whole(tmp_path):
    inside, outside = os.pipe()
    stop, heard = Stop(), bytearray()

    def read():
        while chunk := os.read(inside, 1000):
            heard.extend(chunk)

    reader = threading.Thread(target=read)
    reader.start()
    data = random.Random(3).randbytes(300_000)
    assert PatientWriter(outside, stop).write(data)
    os.close(outside)
    reader.join()
    os.close(inside)
    assert bytes(heard) == data
    with (tmp_path / "file").open("wb") as file:
        assert PatientWriter(file.fileno(), stop).write(data)
    assert (tmp_path / "file").read_bytes() == data
    stop.close()


def test_a_reader_that_is_gone_is_an_error():
    inside, outside = os.pipe()
    os.close(inside)
    stop = Stop()
    with pytest.raises(BrokenPipeError):
        PatientWriter(outside, stop).write(b"x")
    os.close(outside)
    stop.close()
