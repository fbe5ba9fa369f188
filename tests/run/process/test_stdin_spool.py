"""Every attempt gets the whole input, whatever became of the one before."""

from __future__ import annotations

import os
import socket
import stat
import threading
import time
from contextlib import closing

import pytest

from mulligan.run.process.stdin import StdinSpool

pytestmark = pytest.mark.real

# Reads it all, and says how much it was and how it began.
READ_ALL = "import sys; data = sys.stdin.buffer.read(); print(len(data), data[:5].decode())"


class Writer:
    """The other end of our stdin."""

    def __init__(self) -> None:
        self.fd, self._writes = os.pipe()

    def write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._writes, data) :]

    def close(self) -> None:
        if self._writes >= 0:
            os.close(self._writes)
            self._writes = -1


@pytest.fixture
def writer():
    writer = Writer()
    yield writer
    writer.close()
    os.close(writer.fd)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "stdin"


def kept(path):
    return {file.name: file.read_bytes() for file in path.parent.iterdir()}


def test_a_pipe_that_was_closed_is_kept_whole_and_given_to_each_attempt(supervised, writer, path):
    writer.write(b"hello")
    writer.close()
    spool = StdinSpool.open(path, writer.fd)
    assert spool.is_complete
    for _ in range(3):
        supervised.python(READ_ALL, stdin=spool)
        assert supervised.out == "5 hello\n"
    spool.close()
    assert kept(path) == {"stdin": b"hello"}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_what_arrives_later_is_passed_on_and_replayed(supervised, writer, path):
    spool = StdinSpool.open(path, writer.fd)
    assert not spool.is_complete

    def answer(_stream, chunk):
        if b"?" in chunk:
            writer.write(b"yes\n")

    ended = supervised.sh("echo more?; read word; echo got $word", on_chunk=answer, stdin=spool)
    assert (ended.code, supervised.out) == (0, "more?\ngot yes\n")
    assert kept(path) == {"stdin.part": b"yes\n"}
    writer.write(b"and more")
    writer.close()
    supervised.python(READ_ALL, stdin=spool)
    assert supervised.out == "12 yes\na\n"
    assert kept(path) == {"stdin": b"yes\nand more"}
    spool.close()


def test_an_open_pipe_that_says_nothing_does_not_hold_up_the_program(supervised, writer, path):
    spool = StdinSpool.open(path, writer.fd)
    ended = supervised.sh("echo working", stdin=spool)
    assert (ended.code, supervised.out) == (0, "working\n")
    # It has an open stdin, as it would have without us.
    assert supervised.sh("exec cat", stdin=spool, idle=0.2).stopped == "idle"
    spool.close()


def test_a_large_input_is_passed_on_while_it_arrives(supervised, writer, path):
    def write():
        for _ in range(40):
            writer.write(b"hello" * 100_000)
        writer.close()

    thread = threading.Thread(target=write)
    thread.start()
    spool = StdinSpool.open(path, writer.fd)
    supervised.python(READ_ALL, stdin=spool)
    thread.join()
    assert supervised.out == "20000000 hello\n"
    assert spool.is_complete
    assert spool.size == path.stat().st_size == 20_000_000
    spool.close()


@pytest.mark.parametrize("script", ["exec <&-; sleep 0.2", "sleep 0.2", "head -c 10 >/dev/null"])
def test_a_program_that_does_not_read_costs_nobody_the_input(supervised, writer, path, script):
    def write():
        writer.write(b"x" * 1_000_000)
        writer.close()

    thread = threading.Thread(target=write)
    thread.start()
    spool = StdinSpool.open(path, writer.fd)
    assert supervised.sh(script, stdin=spool).code == 0
    # The writer may still be at it: between two attempts nobody reads.
    supervised.python(READ_ALL, stdin=spool)
    thread.join()
    assert supervised.out == "1000000 xxxxx\n"
    spool.close()


def test_an_endless_writer_does_not_fill_the_disk(supervised, writer, path):
    is_over = threading.Event()

    def write():
        while not is_over.is_set():
            try:
                os.write(writer._writes, b"y\n" * 32768)
            except BlockingIOError:
                is_over.wait(0.001)

    os.set_blocking(writer._writes, False)
    thread = threading.Thread(target=write)
    thread.start()
    spool = StdinSpool.open(path, writer.fd)
    assert supervised.sh("read a; sleep 0.2; echo $a", stdin=spool).code == 0
    is_over.set()
    thread.join()
    assert supervised.out == "y\n"
    assert spool.size < 64 * 1024 * 1024
    spool.close()


def test_a_file_is_copied_from_where_it_stands_and_stands_there_afterwards(
    supervised, path, tmp_path
):
    # `while read line; do mulligan run …; done < list` must find its next line.
    source = tmp_path / "list"
    source.write_bytes(b"first\nsecond\n")
    with source.open("rb", buffering=0) as file:
        assert file.readline() == b"first\n"
        spool = StdinSpool.open(path, file.fileno())
        source.unlink()  # as a here-document is
        for _ in range(2):
            supervised.python(READ_ALL, stdin=spool)
            assert supervised.out == "7 secon\n"
        assert file.readline() == b"second\n"
    assert spool.is_complete
    spool.close()


def test_a_terminal_is_no_input_and_leaves_no_file(supervised, path):
    inside, outside = os.openpty()
    with closing(StdinSpool.open(path, outside)) as spool:
        assert spool.is_complete
        supervised.python(READ_ALL, stdin=spool)
    assert supervised.out == "0 \n"
    assert kept(path) == {}
    os.close(inside)
    os.close(outside)


def test_neither_is_a_closed_descriptor_or_the_null_device(supervised, path):
    null = os.open(os.devnull, os.O_RDONLY)
    with closing(StdinSpool.open(path, null)) as spool:
        assert spool.is_complete
    os.close(null)
    with closing(StdinSpool.open(path, null)) as spool:
        supervised.python(READ_ALL, stdin=spool)
    assert supervised.out == "0 \n"
    assert kept(path) == {}


def test_a_device_is_handed_on_as_it_is(supervised, path):
    zero = os.open("/dev/zero", os.O_RDONLY)
    with closing(StdinSpool.open(path, zero)) as spool:
        for _ in range(2):
            assert supervised.sh("head -c 3 | od -An -tx1", stdin=spool).code == 0
            assert supervised.out.split() == ["00", "00", "00"]
    os.close(zero)


def test_a_socket_is_read_like_a_pipe(supervised, path):
    ours, theirs = socket.socketpair()
    theirs.sendall(b"hello")
    theirs.close()
    with closing(StdinSpool.open(path, ours.fileno())) as spool:
        supervised.python(READ_ALL, stdin=spool)
    ours.close()
    assert supervised.out == "5 hello\n"


def test_a_whole_input_is_known_as_whole_after_a_crash(supervised, writer, path):
    writer.write(b"hello")
    writer.close()
    StdinSpool.open(path, writer.fd)  # and nobody closes it: kill -9
    with closing(StdinSpool.saved(path)) as spool:
        assert spool.is_complete
        supervised.python(READ_ALL, stdin=spool)
    assert supervised.out == "5 hello\n"


def test_a_part_of_an_input_is_known_as_a_part_after_a_crash(supervised, writer, path):
    writer.write(b"hel")
    StdinSpool.open(path, writer.fd)
    with closing(StdinSpool.saved(path)) as spool:
        assert not spool.is_complete
        supervised.python(READ_ALL, stdin=spool)
    assert supervised.out == "3 hel\n"


def test_no_input_is_known_as_no_input_after_a_crash(supervised, path):
    with closing(StdinSpool.saved(path)) as spool:
        assert spool.is_complete
        supervised.python(READ_ALL, stdin=spool)
    assert supervised.out == "0 \n"


def test_a_torn_connection_is_no_whole_input(supervised, path):
    server = socket.create_server(("127.0.0.1", 0))
    theirs = socket.create_connection(server.getsockname())
    ours, _ = server.accept()
    theirs.sendall(b"hel")
    with closing(StdinSpool.open(path, ours.fileno())) as spool:
        # A reset instead of an end.
        theirs.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        theirs.close()
        supervised.python(READ_ALL, stdin=spool)
        assert not spool.is_complete
    assert supervised.out == "3 hel\n"
    ours.close()
    server.close()


def test_a_spool_is_never_written_over(path, writer):
    path.with_name("stdin.part").write_bytes(b"of somebody else")
    with pytest.raises(FileExistsError):
        StdinSpool.open(path, writer.fd)


def test_input_that_cannot_be_kept_ends_the_program_and_says_why(
    supervised, writer, path, monkeypatch
):
    spool = StdinSpool.open(path, writer.fd)

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "pwrite", full)
    writer.write(b"hello")
    ended = supervised.sh("trap '' INT; cat; echo took it for all", stdin=spool)
    assert ended.stopped == "input"
    assert supervised.out == ""
    assert ended.error == "cannot keep the input: No space left on device"
    monkeypatch.undo()
    # What follows a gap is not kept either: it would look like a whole.
    writer.write(b"more")
    writer.close()
    spool.fill()
    assert not spool.is_complete
    assert kept(path) == {"stdin.part": b""}
    spool.close()


def test_a_spool_that_was_closed_is_not_taken_for_no_input(supervised, writer, path):
    writer.write(b"hello")
    writer.close()
    spool = StdinSpool.open(path, writer.fd)
    spool.close()
    supervised.python(READ_ALL, stdin=spool)
    assert supervised.out == "5 hello\n"


def test_kept_input_that_somebody_removed_is_not_taken_for_no_input(supervised, writer, path):
    writer.close()
    with closing(StdinSpool.open(path, writer.fd)) as spool:
        path.unlink()
        ended = supervised.sh("cat; echo ran", stdin=spool)
    assert supervised.out == ""
    assert ended.error == (
        f"cannot start sh: its input cannot be opened: [Errno 2] No such file or directory: "
        f"'{path}'"
    )


def test_input_that_the_program_takes_is_no_silence(supervised, writer, path):
    spool = StdinSpool.open(path, writer.fd)

    def write():
        for _ in range(8):
            time.sleep(0.1)
            writer.write(b"x")
        writer.close()

    thread = threading.Thread(target=write)
    thread.start()
    ended = supervised.python(READ_ALL, stdin=spool, idle=0.6)
    thread.join()
    assert (ended.stopped, supervised.out) == ("", "8 xxxxx\n")
    spool.close()


def test_two_programs_at_once_get_the_same_input(supervised, writer, path, tmp_path):
    spool = StdinSpool.open(path, writer.fd)

    def run(name):
        from mulligan.run.process.supervise import supervise

        class Sink:
            def take(self, stream, chunk):
                pass

            def ending(self):
                pass

            def quiet_until(self):
                return 0.0

        supervise(
            ["sh", "-c", f"cat > {name}"],
            cwd=tmp_path,
            environ=dict(os.environ),
            stdin=spool,
            sink=Sink(),
            idle=None,
            timeout=20,
            stop=supervised.stop,
        )

    threads = [threading.Thread(target=run, args=[name]) for name in ("a", "b")]
    for thread in threads:
        thread.start()
    data = os.urandom(3_000_000)
    writer.write(data)
    writer.close()
    for thread in threads:
        thread.join()
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() == data
    spool.close()
