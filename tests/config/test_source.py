"""Files that are not what they should be."""

from __future__ import annotations

import os
import re

import pytest

from mulligan.config.source import read, shown
from mulligan.errors import FileError


def refusal(path: str) -> str:
    with pytest.raises(FileError) as caught:
        read(path)
    return str(caught.value)


@pytest.fixture(autouse=True)
def _inside(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def test_a_file_that_is_not_there():
    assert refusal("gone.toml") == "gone.toml: no such file"


def test_a_folder(tmp_path):
    (tmp_path / "plans.toml").mkdir()
    assert refusal("plans.toml") == "plans.toml: is a folder, not a file"


def test_a_pipe_is_refused_before_anybody_waits_for_it():
    os.mkfifo("pipe.toml")
    assert refusal("pipe.toml") == "pipe.toml: is not a regular file"


def test_a_file_below_a_file(tmp_path):
    (tmp_path / "a").touch()
    assert refusal("a/b.toml") == "a/b.toml: cannot be read: not a directory"


def test_a_name_that_no_file_can_have():
    assert refusal("a\0b.toml") == "ab.toml: is not the name of a file"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(tmp_path):
    (tmp_path / "secret.toml").touch(mode=0)
    assert refusal("secret.toml") == "secret.toml: cannot be read: permission denied"


def test_a_loop_of_links(tmp_path):
    (tmp_path / "a.toml").symlink_to("a.toml")
    assert re.fullmatch(r"a\.toml: cannot be read: too many .*symbolic links.*", refusal("a.toml"))


def test_a_binary_file(tmp_path):
    (tmp_path / "photo.toml").write_bytes(b"\x89PNG\r\n\x1a\n\0\0")
    assert refusal("photo.toml") == "photo.toml: is a binary file, not TOML"


def test_text_in_another_encoding(tmp_path):
    (tmp_path / "old.toml").write_bytes('a = 1\nname = "Zoë"'.encode("latin-1"))
    assert refusal("old.toml") == "old.toml:2: is not UTF-8 text (byte 0xeb)"


def test_a_file_of_megabytes(tmp_path):
    (tmp_path / "big.toml").write_bytes(b"#" * 1_048_577)
    assert refusal("big.toml") == "big.toml: has 1048577 bytes; at most 1048576 are read"


def test_arrays_without_end(tmp_path):
    (tmp_path / "deep.toml").write_text("a = " + "[" * 100_000)
    assert refusal("deep.toml") == "deep.toml: not readable: nested too deeply"


def test_tables_without_end(tmp_path):
    (tmp_path / "deep.toml").write_text("b = 1\n" + ".".join("a" * 5_000) + " = 1")
    assert refusal("deep.toml") == "deep.toml:2: a: nested too deeply"


def test_marks_that_editors_on_windows_leave_are_read_over(tmp_path):
    (tmp_path / "notepad.toml").write_bytes(b"\xef\xbb\xbfa = 1\r\nb = 2\r\n")
    assert read("notepad.toml").data == {"a": 1, "b": 2}


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (True, "true"),
        ({"a": 1}, "a table"),
        ([1], "an array"),
        ("a\x1b[31mb", r"'a\x1b[31mb'"),
        ("x" * 500, "'" + "x" * 78 + "…"),
    ],
)
def test_values_are_quoted_short_and_harmless(value, words):
    assert shown(value) == words
