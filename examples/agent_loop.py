"""An agent that finishes an order through 429, 503, a reset, a lost reply and a 422.

The shop is the fault server: real HTTP, no key needed. The agent has four tools, one of each
class: it reads the stock, sets an address (idempotent), pays (keyed) and sends a mail (unsafe). It
is played twice, with the same faults and the same model:

    naive      three blind attempts, then "An error occurred. Please try again."
    mulligan   the same functions in a Toolbox

The model is a script, too. What it does next depends on nothing but what it is told.
Run it: python examples/agent_loop.py
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Callable
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import mulligan
from mulligan.testing import FaultServer

FAULTS = (
    "GET /stock -> 429(retry-after=1), ok;"
    "PUT /orders/1 -> 503, reset, ok;"
    'POST /payments -> 422(message="amount must be in cents"), lost, ok;'
    "POST /mails -> lost, ok"
)
COLLECTIONS = ("stock", "orders", "payments", "mails")

# What the model sees of a call: whether it failed, and the text.
Seen = tuple[bool, str]
Call = Callable[[str, dict[str, Any]], Seen]


class ShopError(Exception):
    """The shop refused, in the shape of any SDK's error: status, headers, body."""

    def __init__(self, status: int, headers: dict[str, str], body: dict[str, Any]) -> None:
        super().__init__(body.get("detail", ""))
        self.status_code, self.headers, self.body = status, headers, body


class Shop:
    """The tools as plain functions."""

    def __init__(self, url: str) -> None:
        self.url = url

    def ask(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        context = mulligan.current()
        headers = {"content-type": "application/json", "x-client": "agent"}
        if context is not None and context.key:
            headers["Idempotency-Key"] = context.key
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, data=data, method=method, headers=headers)
        try:
            with urlopen(request, timeout=5) as answer:
                return json.load(answer)
        except HTTPError as error:
            raise ShopError(error.code, dict(error.headers), json.load(error)) from None

    def read_stock(self) -> Any:
        """How many books are in stock."""
        return self.ask("GET", "/stock")

    def set_address(self, street: str) -> Any:
        """Set the address of order 1."""
        return self.ask("PUT", "/orders/1", {"street": street})

    def pay(self, order: int, amount: float) -> Any:
        """Pay an order."""
        return self.ask("POST", "/payments", {"order": order, "amount": amount})

    def send_mail(self, order: int) -> Any:
        """Tell the customer that an order is on its way."""
        return self.ask("POST", "/mails", {"order": order})

    def list_mails(self) -> Any:
        """All mails that were sent."""
        return self.ask("GET", "/mails")


def naive(shop: Shop) -> Call:
    """What many loops do: try three times, whatever it was, and tell the model to try again."""

    def call(name: str, arguments: dict[str, Any]) -> Seen:
        for _ in range(3):
            try:
                return False, json.dumps(getattr(shop, name)(**arguments))
            except Exception:  # noqa: BLE001, S112 -- this is what it shows
                continue
        return True, "An error occurred. Please try again."

    return call


def careful(shop: Shop) -> Call:
    """The same functions in a toolbox."""
    tools = mulligan.Toolbox(budget="30s")
    tools.tool(effects="read", target="shop")(shop.read_stock)
    tools.tool(effects="read", target="shop")(shop.list_mails)
    tools.tool(effects="idempotent", target="shop")(shop.set_address)
    tools.tool(effects="keyed", target="shop", key="order")(shop.pay)
    tools.tool(effects="unsafe", target="shop", verify="list_mails")(shop.send_mail)
    ids = iter(range(1, 1000))

    def call(name: str, arguments: dict[str, Any]) -> Seen:
        result = tools.run_sync(name, arguments, call_id=f"call_{next(ids)}")
        return result.is_error, result.text

    return call


def model(call: Call, show: Callable[[str], None]) -> None:
    """Plays the model: four steps, and for each failure what its text says."""
    plan: list[tuple[str, dict[str, Any]]] = [
        ("read_stock", {}),
        ("set_address", {"street": "Harbour Road 7"}),
        ("pay", {"order": 1, "amount": 49.9}),
        ("send_mail", {"order": 1}),
    ]
    turns = 0
    while plan and turns < 20:
        turns += 1
        name, arguments = plan[0]
        is_error, text = call(name, arguments)
        show(f"{name}({', '.join(f'{key}={arguments[key]}' for key in arguments)})")
        for line in text.splitlines():
            show(f"    {line}")
        if not is_error:
            plan.pop(0)
            if name == "list_mails" and '"order": 1' in text:
                plan.pop(0)  # the mail is there: sending it again would be a second one
        elif "in cents" in text:
            plan[0] = (name, {**arguments, "amount": 4990})
        elif "checked with list_mails" in text:
            plan.insert(0, ("list_mails", {}))
        elif "try again" not in text:
            show("the model stops")
            return


def play(make: Callable[[Shop], Call], show: Callable[[str], None]) -> list[str]:
    """One agent against one shop; the shop's ledger, a line a request."""
    with FaultServer("ok", resources=COLLECTIONS) as server:
        shop = Shop(server.url)
        shop.ask("POST", "/orders", {"street": ""})
        server.set(FAULTS)
        server.clear()
        model(make(shop), show)
        lines = []
        for entry in server.requests:
            status = entry.status or "---"
            doubled = ", AGAIN" if entry.is_duplicate or entry.is_rekeyed else ""
            effect = f"  ← {entry.effect}{doubled}" if entry.effect else ""
            lines.append(f"{entry.method:<4} {entry.path:<10} {status}{effect}")
        totals = server.totals
        lines.append(f"{totals.requests} requests, {totals.effects} effects")
        lines.append(f"{totals.duplicates + totals.rekeyed} duplicates")
        return lines


def main() -> None:
    logging.getLogger("mulligan").setLevel(logging.CRITICAL)  # the texts below say it all
    is_quiet = "--quiet" in sys.argv
    if not is_quiet:
        print("What the model reads from the toolbox:\n")
    ledgers = [play(naive, lambda _: None), play(careful, (lambda _: None) if is_quiet else print)]
    width = max(len(line) for line in ledgers[0]) + 4
    print(f"\n{'naive retries':<{width}}mulligan")
    sums = [ledger[-2:] for ledger in ledgers]
    left, right = (ledger[:-2] for ledger in ledgers)
    for number in range(max(len(left), len(right))):
        one = left[number] if number < len(left) else ""
        other = right[number] if number < len(right) else ""
        print(f"{one:<{width}}{other}".rstrip())
    for one, other in zip(*sums, strict=True):
        print(f"{one:<{width}}{other}")


if __name__ == "__main__":
    main()
