"""An existing MULLIGAN_HOME was set to mode 0700 without a word.

A team that keeps its agents' state in a folder of mode 0755, beside other things, found that nobody
else could enter the folder any more after the first run. A folder that exists now keeps its mode:
what is put into it is private by itself. One to which others can write is refused, because they
could replace the files.
"""

from __future__ import annotations

import os
import stat

import pytest

from mulligan.errors import StoreError
from mulligan.stores.home import home, private_folder


@pytest.mark.parametrize("mode", [0o700, 0o750, 0o755, 0o711])
def test_a_folder_that_exists_keeps_its_mode(tmp_path, monkeypatch, mode):
    folder = tmp_path / "state"
    folder.mkdir()
    folder.chmod(mode)
    monkeypatch.setenv("MULLIGAN_HOME", str(folder))
    assert home() == folder
    assert stat.S_IMODE(folder.stat().st_mode) == mode


@pytest.mark.parametrize("mode", [0o770, 0o775, 0o777, 0o1777])
def test_a_folder_that_others_can_write_to_is_refused_and_left_as_it_is(tmp_path, mode):
    folder = tmp_path / "state"
    folder.mkdir()
    folder.chmod(mode)
    with pytest.raises(StoreError, match=rf"mode {mode:04o}.*chmod go-w"):
        private_folder(folder)
    assert stat.S_IMODE(folder.stat().st_mode) == mode


def test_a_folder_that_is_made_is_private_whatever_the_umask(tmp_path):
    before = os.umask(0)
    try:
        private_folder(tmp_path / "state")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700
