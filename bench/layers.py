"""How many requests does one call make, when every layer above the client retries?

Question   A model is asked once, through an HTTP client, an SDK or a framework, set up as its users
           set it up. How many requests arrive at a server that answers 503, 401, or resets the
           connection: with the layers alone, and with their HTTP client guarded?
Baseline   The same clients without a guard, by the server's own ledger.
Claim      With a guard of three attempts, at most three requests at a 503 and at a reset, and one
           at a 401, whatever the layers above would do. A broken claim exits 1.
Run        python bench/layers.py [--quick] [--json FILE]
"""

from __future__ import annotations

import argparse
import logging
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from _layer_clients import PLAIN
from _measure import RESULTS, Row, machine, table, verdict_lines, write

import mulligan
from mulligan.testing import FaultServer, virtual_time

# The SDKs read this header, and it spares the bench their backoff.
FAULTS = {"503": "503(retry-after-ms=5)", "401": "auth", "reset": "reset"}
ALLOWED = {"503": 3, "401": 1, "reset": 3}
QUICK = ("anthropic", "openai chat", "LangGraph")
PACKAGES = (
    *("mulligan", "aiohttp", "anthropic", "google-genai", "httpx", "httpx2", "langchain-anthropic"),
    *("langchain-openai", "langgraph", "openai", "openai-agents", "pydantic-ai-slim", "requests"),
)


def requests(ask: Any, script: str, *, is_guarded: bool) -> int:
    """How many requests one call makes."""
    guard = mulligan.Guard("model", attempts=3) if is_guarded else None
    with FaultServer(script) as server, virtual_time():
        try:
            ask(server.url, guard)
        except Exception as error:
            del error  # what is counted are requests
        return server.totals.requests


def main() -> int:
    head, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=head, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="three clients; keeps nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    options = parser.parse_args()
    logging.getLogger("mulligan").setLevel(logging.CRITICAL)

    names = [name for name in PLAIN if not options.quick or name in QUICK]
    cases = [(name, fault, how) for name in names for fault in FAULTS for how in (False, True)]
    with ThreadPoolExecutor(8) as pool:
        counted = pool.map(
            lambda case: requests(PLAIN[case[0]], FAULTS[case[1]], is_guarded=case[2]), cases
        )
        found = dict(zip(cases, counted, strict=True))
    rows = [judged(fault, names, found) for fault in ALLOWED]
    columns = [(fault, how) for fault in FAULTS for how in (False, True)]
    head_line = [f"{fault} {'guarded' if how else 'alone'}" for fault, how in columns]
    lines = [[name, *(str(found[name, fault, how]) for fault, how in columns)] for name in names]
    print("\nRequests per call\n")
    print(table(["client", *head_line], lines))
    print("\nVerdicts\n")
    print(verdict_lines(rows))

    file = options.json or (None if options.quick else RESULTS / "layers.json")
    if file is not None:
        data = {
            "bench": "layers",
            **machine(PACKAGES),
            "verdicts": [row.data() for row in rows],
            "clients": {
                name: {
                    fault: {"alone": found[name, fault, False], "guarded": found[name, fault, True]}
                    for fault in FAULTS
                }
                for name in names
            },
        }
        write(file, data)
    return int(any(row.verdict == "BROKEN" for row in rows))


def judged(fault: str, names: list[str], found: dict[tuple[str, str, bool], int]) -> Row:
    """The worst client of all, alone and guarded."""
    alone, guarded = (max(found[name, fault, how] for name in names) for how in (False, True))
    return Row(
        question=f"requests per call at a {fault}, worst client",
        baseline=f"{alone} alone",
        claim=f"at most {ALLOWED[fault]}",
        verdict="held" if guarded <= ALLOWED[fault] else "BROKEN",
        found=str(guarded),
        numbers={"alone": alone, "guarded": guarded},
    )


if __name__ == "__main__":
    sys.exit(main())
