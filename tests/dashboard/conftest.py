"""Fixtures of the dashboard: a state folder, its runs, a running server."""

from __future__ import annotations

import pytest

from mulligan.run.journal.store import RunStore

from .serving import running


@pytest.fixture
def home(tmp_path, monkeypatch):
    folder = tmp_path / "home"
    monkeypatch.setenv("MULLIGAN_HOME", str(folder))
    monkeypatch.delenv("MULLIGAN_STORE", raising=False)
    return folder


@pytest.fixture
def runs(home):
    store = RunStore()
    yield store
    store.close()


@pytest.fixture
def dashboard(home):
    with running() as found:
        yield found
