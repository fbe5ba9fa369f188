"""The example: an agent finishes its task through all faults, with and without a toolbox."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "agent_loop.py"


@pytest.mark.real
def test_the_agent_finishes_without_a_duplicate_and_the_naive_one_does_not():
    done = subprocess.run(
        [sys.executable, str(EXAMPLE)], capture_output=True, text=True, timeout=60, check=True
    )
    lines = done.stdout.splitlines()
    assert "    send_mail failed: network: [Errno 104] Connection reset by peer" in lines
    assert lines[-2].split() == [
        "10",
        "requests,",
        "5",
        "effects",
        "10",
        "requests,",
        "3",
        "effects",
    ]
    assert lines[-1].split() == ["2", "duplicates", "0", "duplicates"]
    ours = "\n".join(line[50:] for line in lines[lines.index("") :])
    for fault in ("GET  /stock     429", "PUT  /orders/1  503", "POST /payments  422"):
        assert fault in ours
    assert ours.count("← POST /payments") == ours.count("← POST /mails") == 1
    assert "the model stops" not in done.stdout
