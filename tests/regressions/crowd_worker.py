"""One process of a crowd on one store: fifty threads that write to the same state.

Started by test_crowded_server; waits for a line on stdin, then says how often the store was lost.
"""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor

import mulligan.stores.redis.store
from mulligan.shared.retry_tokens import TOKENS, Reserve, Settle, Tokens
from mulligan.stores.cache import FailOpen
from mulligan.stores.open import open_store
from mulligan.stores.state_machine import Key

KEY = Key("target", "tokens")


def slowness() -> float:
    """How much longer work takes here than on a machine with two processors for four of us."""
    began, busy = time.monotonic(), time.process_time()
    while time.process_time() - busy < 0.05:
        pass
    return max(1.0, (time.monotonic() - began) / 0.05 / 2)


def main(url: str, me: str, threads: int, rounds: int) -> None:
    lost: list[str] = []
    # What a busy machine needs longer for is not the store's.
    mulligan.stores.redis.store._STATE_PATIENCE *= slowness()
    state = FailOpen(open_store(url).state, lambda trouble: lost.append(str(trouble)))

    def agent(number: int) -> None:
        for each in range(rounds):
            name = f"{me}/{number}/{each}"
            state.transact(KEY, Reserve(id=name, cost=1, lease=60, tokens=Tokens()))
            state.transact(KEY, Settle(id=name, is_returned=True))

    with ThreadPoolExecutor(threads) as pool:
        pool.submit(state.peek, KEY, TOKENS).result()
        print("ready", flush=True)  # noqa: T201 -- how it speaks to the test
        sys.stdin.readline()
        list(pool.map(agent, range(threads)))
    print(len(lost), *lost[:3], flush=True)  # noqa: T201 -- the same


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))
