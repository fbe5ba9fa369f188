"""Events as lines of a file."""

from __future__ import annotations

import json
import stat

import pytest

import mulligan
from mulligan import JsonLinesListener
from mulligan.testing import Scripted, status_error, virtual_time

pytestmark = pytest.mark.real  # a thread writes the file


def call(listener, *outcomes):
    with virtual_time():
        guard = mulligan.Guard("acme", effects="read", listeners=[listener], gate=False)
        try:
            guard.call(Scripted(*outcomes))
        except Exception as error:  # noqa: BLE001 -- what the test asks for
            return error
    return None


def test_every_event_is_a_line_with_its_facts(tmp_path):
    listener = JsonLinesListener(tmp_path / "events.jsonl")
    call(listener, status_error(503, "no\u2028capacity token=abcdef123"), "well")
    assert listener.flush()
    lines = (tmp_path / "events.jsonl").read_text(encoding="ascii").splitlines()
    first, second = map(json.loads, lines)
    assert (first["event"], first["target"], first["attempt"]) == ("failed", "acme", 1)
    assert (first["kind"], first["status"], first["delay"]) == ("overloaded", 503, 0.25)
    assert "abcdef" not in lines[0]
    assert (second["event"], second["attempt"], second["waited"]) == ("recovered", 2, 0.25)


def test_the_file_is_readable_for_its_owner_alone(tmp_path):
    JsonLinesListener(tmp_path / "events.jsonl")
    assert stat.S_IMODE((tmp_path / "events.jsonl").stat().st_mode) == 0o600


def test_a_file_that_was_moved_away_is_made_again(tmp_path):
    path = tmp_path / "events.jsonl"
    listener = JsonLinesListener(path)
    call(listener, status_error(503), "well")
    assert listener.flush()
    path.rename(tmp_path / "old")
    call(listener, status_error(503), "well")
    assert listener.flush()
    assert len(path.read_text().splitlines()) == 2
    assert listener.dropped == 0


def test_a_folder_that_is_gone_costs_events_and_no_call(tmp_path, caplog):
    folder = tmp_path / "logs"
    folder.mkdir()
    listener = JsonLinesListener(folder / "events.jsonl")
    (folder / "events.jsonl").unlink()
    folder.rmdir()
    assert call(listener, status_error(503), "well") is None
    assert listener.flush()
    assert listener.dropped == 2
    assert "the listener JsonLinesListener has dropped" in caplog.text


def test_a_file_that_cannot_be_written_is_refused_where_it_is_named(tmp_path):
    with pytest.raises(
        mulligan.SettingError, match=r"JsonLinesListener cannot write to .*: No such file or dir"
    ):
        JsonLinesListener(tmp_path / "nowhere" / "events.jsonl")
