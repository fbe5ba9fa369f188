"""One process among several that share a store; started by test_stores with what to do.

Says what it has done on stdout, one line each, and waits for a line on stdin where told to.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import count
from typing import Any

from mulligan import Guard, Once
from mulligan.core.belief import Stated
from mulligan.core.breaker import BREAKER, Ask, Breaker, Hand, Passed, Tell
from mulligan.core.claims import Drop, Finish, Mine, Renew, Take
from mulligan.core.entry import Entry
from mulligan.core.gate import Enter, Gate, Go, Leave
from mulligan.core.machine import Key
from mulligan.core.tokens import Reserve, Settle, Tokens
from mulligan.errors import StoreDown
from mulligan.stores.url import open_store

KEY = Key("target", "breaker")


def say(*words):
    print(*words, flush=True)  # noqa: T201 -- how it speaks to the test


def probe(store, me, callers):
    """How many of our threads pass a half-open breaker."""

    def ask(number):
        answer = store.state.transact(KEY, Ask(permit=f"{me}/{number}", settings=Breaker()))
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
        enter = Enter(id=f"{me}/{number}", holder=me, settings=Gate(), most=int(most))
        answer = until_it_lands(store.state, Key("target", "gate"), enter)
        if not isinstance(answer, Go):
            break
        got += answer.count
        if loud:
            say(f"+{answer.count}")
    say(got)


def append(store, me, stream):
    """Write until we are killed; say what has been acknowledged."""
    for number in count():
        store.journal.append(stream, Entry(f"{me}/{number}", '"body"'))
        say(f"{me}/{number}")


def hold(store, me, lease):
    """Take a key, wait, and try to finish."""
    take = Take(holder=me, fingerprint="f", lease=float(lease))
    answer = store.keys.transact(Key("target", "once"), take)
    epoch = answer.epoch if isinstance(answer, Mine) else 0
    say(epoch)
    sys.stdin.readline()
    finish = Finish(holder=me, epoch=epoch, value='"mine"', ttl=60)
    say(store.keys.transact(Key("target", "once"), finish))


def once(store, me, lease, how=""):
    """Do order-17 once; in the middle of it wait for a line, or for our end."""

    def work():
        say("running")
        if how == "wait":
            sys.stdin.readline()
        return me

    say(Guard("bank", store=store).once(Once("order-17", lease=float(lease)), work))


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
    *(Ask, Breaker, Drop, Enter, Finish, Gate, Hand, Leave),
    *(Renew, Reserve, Settle, Stated, Take, Tell, Tokens),
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
    }
    doing[what](open_store(url), *rest)
