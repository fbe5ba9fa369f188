"""Asks a model with a guarded SDK client; a process of its own for tests of shared state.

Arguments: the server's address, the store, how many calls to make, and how many at once.
"""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import anthropic

import mulligan


def main() -> None:
    url, store, calls, at_once = sys.argv[1:]
    guard = mulligan.Guard("model", store=store)
    with guard.wrap(anthropic.Anthropic(base_url=url, api_key="mulligan-team")) as client:

        def ask(_number: int) -> str:
            messages: Any = [{"role": "user", "content": "hi"}]
            return str(client.messages.create(model="m", max_tokens=9, messages=messages).role)

        with ThreadPoolExecutor(int(at_once)) as pool:
            print(*pool.map(ask, range(int(calls))))  # noqa: T201 -- the test reads it


if __name__ == "__main__":
    main()
