from __future__ import annotations

import os

import pytest

from mulligan.dead_letters.spool import LetterSpool
from mulligan.errors import StoreError


@pytest.fixture
def spool(tmp_path) -> LetterSpool:
    return LetterSpool(tmp_path / "dead")


def test_what_is_put_is_found(spool):
    path = spool.put("b", '"two"')
    spool.put("a", '"one"')
    assert spool.all() == {"a": '"one"', "b": '"two"'}
    assert path.stat().st_mode & 0o777 == 0o600
    spool.remove("b")
    spool.remove("b")
    assert list(spool.all()) == ["a"]


def test_nothing_is_written_over(spool):
    spool.put("a", "1")
    with pytest.raises(FileExistsError):
        spool.put("a", "2")
    assert spool.all() == {"a": "1"}
    assert [path.name for path in spool.folder.iterdir()] == ["a.json"]


def test_links_are_neither_written_through_nor_read(spool, tmp_path):
    secret = tmp_path / "secret"
    secret.write_text("the user's own")
    (spool.folder / "a.json").symlink_to(secret)
    with pytest.raises(FileExistsError):
        spool.put("a", "overwritten")
    assert secret.read_text() == "the user's own"
    assert spool.all() == {}


def test_a_half_written_file_is_not_a_letter(spool):
    (spool.folder / f".a.{os.getpid()}").write_text('{"id":')
    assert spool.all() == {}


def test_a_file_in_the_place_of_the_folder_is_an_error(tmp_path):
    (tmp_path / "dead").write_text("")
    with pytest.raises(StoreError, match="cannot use this folder"):
        LetterSpool(tmp_path / "dead").put("a", "1")
