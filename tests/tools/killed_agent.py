"""An agent whose tool is killed with it: called by test_effects.py.

Usage: killed_agent.py FOLDER EFFECTS call-id|arguments before|after|never
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import mulligan

folder, effects, by, when = sys.argv[1:]
ledger = Path(folder, "ledger")
tools = mulligan.Toolbox(
    run="run-1" if by == "call-id" else "", store=f"sqlite:{folder}/state.db", lease="500ms"
)


def apply(key: str) -> None:
    """What the service does: under a key only once."""
    known = ledger.read_text().split() if ledger.exists() else []
    if effects == "unsafe" or key not in known:
        with ledger.open("a") as file:
            file.write(f"{key}\n")


@tools.tool(effects=mulligan.Effects(effects), key=("order_id",) if by == "arguments" else ())
def charge(order_id: str) -> str:
    """Charge an order, unless the machine dies."""
    context = mulligan.current()
    if when == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    apply(context.key if context else order_id)
    if when == "after":
        os.kill(os.getpid(), signal.SIGKILL)
    return "charged"


if __name__ == "__main__":
    result = tools.run_sync("charge", {"order_id": "7"}, call_id="toolu_1")
    sys.stdout.write(json.dumps({"is_error": result.is_error, "action": result.action}))
