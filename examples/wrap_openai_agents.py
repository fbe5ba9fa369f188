"""An agent of openai-agents on a guarded client: its own retries and the SDK's add no request.

Runs against the fault server, without an account: python examples/wrap_openai_agents.py
"""

from __future__ import annotations

import asyncio

import openai
from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled

import mulligan
from mulligan.testing import FaultServer, virtual_time


async def main() -> None:
    set_tracing_disabled(disabled=True)
    with FaultServer("503x2, ok(done), auth") as server, virtual_time() as clock:
        guard = mulligan.Guard("model", attempts=4)
        client = guard.wrap(openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="k"))
        agent = Agent(
            name="helper", model=OpenAIChatCompletionsModel(model="m", openai_client=client)
        )
        answer = await Runner.run(agent, "hi")
        print(f"{answer.final_output}: {server.totals.requests} requests, waits {clock.sleeps}")
        try:
            await Runner.run(agent, "hi")
        except openai.AuthenticationError as error:
            story = mulligan.story(error)
            print(story.note if story else error)


if __name__ == "__main__":
    asyncio.run(main())
