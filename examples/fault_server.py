"""A payment whose answer gets lost: what a blind retry costs, and what a key saves.

The fault server applies the first write, then resets the connection before the answer. The client
cannot know whether it was paid. Run it: python examples/fault_server.py
"""

from __future__ import annotations

import json
from urllib.request import Request, urlopen

from mulligan.testing import FaultServer


def pay(url: str, headers: dict[str, str]) -> int:
    """Create an invoice; try again, blindly, until an answer comes. Returns its number."""
    while True:
        request = Request(f"{url}/invoices", data=b'{"eur": 700}', headers=headers)
        try:
            with urlopen(request, timeout=5) as response:
                number: int = json.load(response)["id"]
                return number
        except ConnectionError as error:
            print(f"    no answer ({error}), trying again")


def main() -> None:
    for what, headers in (
        ("blindly", {"x-client": "blind"}),
        ("with a key", {"x-client": "careful", "Idempotency-Key": '"order-4711"'}),
    ):
        # The reply to the first request is lost; after that all is well.
        with FaultServer("POST /invoices -> lost,ok") as server:
            print(f"paying {what}:")
            number = pay(server.url, headers)
            totals = server.totals
            print(
                f"    invoice {number} confirmed; the server saw {totals.requests} requests, "
                f"{totals.effects} effects, {totals.duplicates} duplicates\n"
            )


if __name__ == "__main__":
    main()
