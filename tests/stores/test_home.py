"""The folder for state is private, and one variable moves it."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from mulligan.errors import StoreError
from mulligan.stores.home import home, private_folder


def test_the_variable_names_the_folder(monkeypatch, tmp_path):
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path / "deep" / "state"))
    assert home() == tmp_path / "deep" / "state"
    assert stat.S_IMODE(home().stat().st_mode) == 0o700


def test_without_the_variable_it_is_the_platforms(monkeypatch, tmp_path):
    monkeypatch.delenv("MULLIGAN_HOME", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home().name == "mulligan"
    assert tmp_path in home().parents


def test_a_file_in_its_place_is_an_error_that_says_what_to_do(tmp_path):
    (tmp_path / "state").write_text("")
    with pytest.raises(StoreError, match="choose another with MULLIGAN_HOME"):
        private_folder(tmp_path / "state")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_somebody_else_is_refused(tmp_path):
    folder = tmp_path / "theirs"
    folder.mkdir()
    os.chown(folder, 12345, -1)
    with pytest.raises(StoreError, match="belongs to user 12345"):
        private_folder(Path(folder))
