"""What does litellm do under each fault?

Compares requests made and exception raised with what was measured in November 2026, and exits 1
where they differ. It runs in an environment of its own (`tests/real/install-litellm`): litellm
wants openai < 3, and the rest of the tests openai 3.

    python tests/real/litellm_faults.py PYTHON-OF-LITELLM
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.table import Table

import mulligan
from mulligan.testing import FaultServer

SOON = "retry-after-ms=5"
# provider, fault, num_retries, requests, ending. OpenAI's SDK retries inside, Anthropic's path
# does not; num_retries comes on top, also for what can never pass.
CASES = [
    ("openai", "ok", 0, 1, "stop"),
    ("openai", f"429({SOON})", 0, 3, "RateLimitError 429"),
    ("openai", f"overloaded({SOON})", 0, 3, "ServiceUnavailableError 503"),
    ("openai", f"500({SOON})", 0, 3, "InternalServerError 500"),
    ("openai", f"billing({SOON})", 0, 3, "RateLimitError 429"),
    ("openai", "auth", 0, 1, "AuthenticationError 401"),
    ("openai", "context", 0, 1, "ContextWindowExceededError 400"),
    ("openai", "reset", 0, 3, "InternalServerError 500"),
    ("openai", f"429({SOON})", 2, 5, "RateLimitError 429"),
    ("openai", f"overloaded({SOON})", 2, 5, "ServiceUnavailableError 503"),
    ("openai", "auth", 2, 3, "AuthenticationError 401"),
    ("anthropic", "ok", 0, 1, "stop"),
    ("anthropic", "429", 0, 1, "RateLimitError 429"),
    ("anthropic", "overloaded", 0, 1, "InternalServerError 500"),
    ("anthropic", "billing", 0, 1, "BadRequestError 400"),
    ("anthropic", "reset", 0, 1, "InternalServerError 500"),
    ("anthropic", "429", 2, 3, "RateLimitError 429"),
    # By client=guard.wrap(openai.OpenAI()), with attempts=4; num_retries still comes on top.
    ("guarded", f"503({SOON})x2, ok", 0, 3, "stop"),
    ("guarded", f"429({SOON})", 0, 4, "RateLimitError 429"),
    ("guarded", "auth", 0, 1, "AuthenticationError 401"),
    ("guarded", "reset", 0, 4, "InternalServerError 500"),
    ("guarded", "auth", 2, 3, "AuthenticationError 401"),
]


def main() -> int:
    python = Path(sys.argv[1])
    script = "; ".join(f"@c{number} -> {case[1]}" for number, case in enumerate(CASES))
    asked = [[f"c{number}", case[0], case[2]] for number, case in enumerate(CASES)]
    calls = Path(__file__).with_name("litellm_calls.py")
    with FaultServer(script) as server:
        said = subprocess.run(
            [python, calls, server.url, json.dumps(asked)],
            check=True,
            stdout=subprocess.PIPE,
            timeout=120,
            env={**os.environ, "PYTHONPATH": str(Path(mulligan.__file__).parents[1])},
        ).stdout
        made = [entry.client for entry in server.requests]
    lines = [line for line in said.splitlines() if line.startswith(b"[")]
    ends: dict[str, str] = dict(map(json.loads, lines))
    table = Table("path", "fault", "num_retries", "requests", "ended", "as measured")
    is_same = True
    for number, (provider, fault, retries, requests, ending) in enumerate(CASES):
        client = f"c{number}"
        got = (made.count(client), ends.get(client, "nothing"))
        is_same &= got == (requests, ending)
        verdict = "yes" if got == (requests, ending) else f"NO: {requests}, {ending}"
        table.add_row(provider, fault, str(retries or ""), str(got[0]), got[1], verdict)
    Console(width=140).print(table)
    return 0 if is_same else 1


if __name__ == "__main__":
    sys.exit(main())
