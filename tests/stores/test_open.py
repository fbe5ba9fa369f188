from __future__ import annotations

import builtins

import pytest

from mulligan import SettingError
from mulligan.errors import MissingExtra
from mulligan.stores.memory import Memory
from mulligan.stores.open import open_store, printable
from mulligan.stores.redis.store import Redis
from mulligan.stores.sqlite.store import Sqlite


def test_a_store_is_opened_by_its_address(tmp_path):
    assert isinstance(open_store("memory:"), Memory)
    assert isinstance(open_store(f"sqlite:{tmp_path}/a.db"), Sqlite)
    assert isinstance(open_store(f"sqlite://{tmp_path}/a.db"), Sqlite)
    assert isinstance(open_store("redis://127.0.0.1:1/0"), Redis)


def test_one_address_is_one_store(tmp_path):
    assert open_store("memory:") is open_store("memory:")
    assert open_store(f"sqlite:{tmp_path}/a.db") is not open_store(f"sqlite:{tmp_path}/b.db")


@pytest.mark.parametrize("url", ["", "memory", "sqlite:", "my://u:p@h/db", "memory:x", "redis:h"])
def test_an_address_of_nothing_is_refused_without_its_password(url):
    with pytest.raises(SettingError, match=r"^a store needs an address such as memory:") as caught:
        open_store(url)
    assert "u:p" not in str(caught.value)


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("redis://user:pw@host:6379/0", "redis://host:6379/0"),
        ("redis://:p@ss@host/0", "redis://host/0"),
        ("rediss://host/0?password=pw&db=1", "rediss://host/0?password=[masked]&db=1"),
        ("sqlite:/home/me/state.db", "sqlite:/home/me/state.db"),
        ("memory:", "memory:"),
    ],
)
def test_addresses_are_shown_without_passwords(url, shown):
    assert printable(url) == shown


def test_a_missing_client_is_named_with_its_extra(monkeypatch):
    real_import = builtins.__import__

    def without_redis(name, *args, **kwargs):
        if name.partition(".")[0] == "redis" and args[3:4] != (1,):
            raise ImportError(name)
        return real_import(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", without_redis)
    with pytest.raises(MissingExtra, match=r"pip install 'mulligan\[redis\]'"):
        Redis("redis://127.0.0.1:1/0")
