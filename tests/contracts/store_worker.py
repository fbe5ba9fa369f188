"""One process among several that share a store; started by test_stores with what to do.

Says what it has done on stdout, one line each, and waits for a line on stdin where told to.
"""

from __future__ import annotations

import os
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from typing import Any

from mulligan import Guard, Once
from mulligan.classify.quotas import Quota
from mulligan.errors import StoreDown
from mulligan.once.claims import Drop, Finish, Mine, Renew, Take
from mulligan.shared.breaker import (
    BREAKER,
    AskBreaker,
    Breaker,
    ManualOverride,
    Passed,
    TellBreaker,
)
from mulligan.shared.gate.gate import EnterGate, Gate, LeaveGate, PermitGranted
from mulligan.shared.retry_tokens import Reserve, Settle, Tokens
from mulligan.stores.entries import JournalLine
from mulligan.stores.open import open_store
from mulligan.stores.state_machine import Key

KEY = Key("target", "breaker")


def say(*words):
    print(*words, flush=True)  # noqa: T201 -- how it speaks to the test


def probe(store, me, callers):
    """How many of our threads pass a half-open breaker."""

    def ask(number):
        answer = store.state.transact(KEY, AskBreaker(permit=f"{me}/{number}", settings=Breaker()))
        return isinstance(answer, Passed)

    with ThreadPoolExecutor(int(callers)) as pool:
        pool.submit(store.state.peek, KEY, BREAKER).result()
        say("ready")
        sys.stdin.readline()
        say(sum(pool.map(ask, range(int(callers)))))


def grants(store, me, most, loud=""):
    """How many permits we get until nothing remains; each is said at once if `loud`."""
    say("ready")
    sys.stdin.readline()
    got = 0
    for number in count():
        enter = EnterGate(id=f"{me}/{number}", holder=me, settings=Gate(), most=int(most))
        answer = until_it_lands(store.state, Key("target", "gate"), enter)
        if not isinstance(answer, PermitGranted):
            break
        got += answer.count
        if loud:
            say(f"+{answer.count}")
    say(got)


def append(store, me, stream):
    """Write until we are killed; say what has been acknowledged."""
    for number in count():
        store.journal.append(stream, JournalLine(f"{me}/{number}", '"body"'))
        say(f"{me}/{number}")


def hold(store, me, lease):
    """Take a key, wait, and try to finish."""
    take = Take(holder=me, fingerprint="f", lease=float(lease))
    answer = store.keys.transact(Key("target", "once"), take)
    epoch = answer.epoch if isinstance(answer, Mine) else 0
    say(epoch)
    sys.stdin.readline()
    finish = Finish(holder=me, epoch=epoch, fingerprint="f", value='"mine"', ttl=60)
    say(store.keys.transact(Key("target", "once"), finish))


def once(store, me, lease, how="", patience=""):
    """Do order-17 once; in the middle of it wait for a line, or for our end; after it, if told."""
    be_patient(store, patience)

    def work():
        say("running")
        if how:
            sys.stdin.readline()
        return me

    say(Guard("bank", store=store).once(Once("order-17", lease=float(lease)), work))
    if how == "stay":
        sys.stdin.readline()


def be_patient(store, patience):
    """Wait so many seconds for a server that has our keys; nothing for what is the default."""
    if patience:
        store._cold.patience = float(patience)


def orders(store, me, ledger, count_, lease, patience=""):
    """Do orders once, in an order of our own; each effect is a line of `ledger`."""
    be_patient(store, patience)
    file = os.open(ledger, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    dice, bank = random.Random(me), Guard("bank", store=store)

    def pay(number):
        os.write(file, f"{number} {me}\n".encode())
        time.sleep(dice.uniform(0, 0.004))
        return number

    for number in dice.sample(range(int(count_)), int(count_)):
        paid = None
        while paid is None:
            try:
                paid = bank.once(Once(f"order-{number}", lease=float(lease)), pay, number)
            except StoreDown:
                time.sleep(0.02)
        say(paid)
    say("done")
    sys.stdin.readline()  # what could not be recorded yet is known to this process alone


def serve(store):
    """Do what each line says, an operation as Python writes it, and say what came of it."""
    names = {each.__name__: each for each in WORDS} | {"Key": Key, "inf": float("inf")}
    say("ready")
    for line in sys.stdin:
        port, key, operation = eval(line, names)  # noqa: S307 -- our own test speaks here
        say(repr(until_it_lands(getattr(store, port), key, operation)))


def until_it_lands(port, key, operation):
    """What landed before a lost answer is not done twice: the operation has an id."""
    while True:
        with suppress(StoreDown):
            return port.transact(key, operation)


# What `serve` understands.
WORDS = (
    *(AskBreaker, Breaker, Drop, EnterGate, Finish, Gate, ManualOverride, LeaveGate),
    *(Renew, Reserve, Settle, Quota, Take, TellBreaker, Tokens),
)

if __name__ == "__main__":
    what, url, *rest = sys.argv[1:]
    doing: dict[str, Any] = {
        "probe": probe,
        "grants": grants,
        "append": append,
        "hold": hold,
        "serve": serve,
        "once": once,
        "orders": orders,
    }
    doing[what](open_store(url), *rest)
