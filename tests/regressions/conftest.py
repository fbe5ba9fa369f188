"""Real servers and other processes, as the contract suites have them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any


def _contracts() -> Any:
    """The fixtures of tests/contracts: no folder of tests is a package, so it is loaded by path."""
    path = Path(__file__).parents[1] / "contracts" / "conftest.py"
    spec = importlib.util.spec_from_file_location("mulligan_contract_fixtures", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_fixtures = _contracts()
server, servers, new_server = _fixtures.server, _fixtures.servers, _fixtures.new_server
place, flaky = _fixtures.place, _fixtures.flaky
