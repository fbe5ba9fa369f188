"""`mulligan stats` on real servers: what guards of several processes have counted there."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from .conftest import BINARIES

pytestmark = pytest.mark.real

COUNT = """
import sys
import mulligan
from mulligan.testing import Scripted, status_error

url, target = sys.argv[1:]
listener = mulligan.StoreListener(url)
rule = mulligan.Rule(attempts=3, backoff=mulligan.Fixed(wait=0.01))
policy = mulligan.Policy(
    rules={mulligan.Kind.SERVER: rule, mulligan.Kind.OVERLOADED: rule},
    effects=mulligan.Effects.READ,
)
guard = mulligan.Guard(target, policy=policy, listeners=[listener], gate=False, breaker=False)
guard.call(Scripted(status_error(503, "no capacity"), "well"))
try:
    guard.call(Scripted(status_error(500)))
except Exception:
    pass
assert listener.flush()
"""


@pytest.mark.parametrize("name", BINARIES)
def test_figures_of_two_processes_add_up(name, servers, tmp_path, monkeypatch):
    monkeypatch.setenv("MULLIGAN_HOME", str(tmp_path))
    url, target = servers(name).url, f"acme-{tmp_path.name}"
    for _ in range(2):
        subprocess.run([sys.executable, "-c", COUNT, url, target], check=True, timeout=60)
    words = ["stats", "--store", url, "--target", target, "--since", "1h"]
    command = [sys.executable, "-m", "mulligan", *words]
    shown = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert "8, 6 of them retried" in shown.stdout
    found = json.loads(subprocess.check_output([*command, "--json"], timeout=60))
    calls = found["calls"]
    assert (calls["failures"], calls["retries"], calls["recovered"]) == (8, 6, 2)
    assert calls["kinds"] == {"server": 6, "overloaded": 2}
    assert (calls["ended"], calls["exhausted"]) == (2, 2)
