"""A pydantic-ai agent whose model falls back to another provider while the circuit is open.

Runs against the fault server, without an account: python examples/wrap_pydantic_ai.py
"""

from __future__ import annotations

import asyncio

import httpx2
from pydantic_ai import Agent
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider

import mulligan
from mulligan.testing import FaultServer, virtual_time


async def main() -> None:
    with FaultServer("503") as first, FaultServer("ok(from the second)") as second, virtual_time():
        models = []
        for name, server in (("first", first), ("second", second)):
            guard = mulligan.Guard(
                name, attempts=2, when_open="fail", breaker=mulligan.Breaker(failures=2)
            )
            http = guard.wrap(httpx2.AsyncClient())
            provider = OpenAIProvider(base_url=f"{server.url}/v1", api_key="k", http_client=http)
            models.append(OpenAIChatModel("m", provider=provider))
        agent = Agent(FallbackModel(*models))
        for _ in range(3):
            answer = await agent.run("hi")
            print(f"{answer.output!r}; the first was asked {first.totals.requests} times")


if __name__ == "__main__":
    asyncio.run(main())
