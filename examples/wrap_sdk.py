"""One guard for two SDKs: their own retries are off, and a broken stream cannot look whole.

Runs against the fault server, without an account: python examples/wrap_sdk.py
"""

from __future__ import annotations

import anthropic
import openai

import mulligan
from mulligan.testing import FaultServer, virtual_time


def main() -> None:
    with FaultServer("overloadedx2, ok, truncate(6)") as server, virtual_time() as clock:
        model = mulligan.Guard("model", attempts=4)
        claude = model.wrap(anthropic.Anthropic(base_url=server.url, api_key="k"))
        answer = claude.messages.create(
            model="m", max_tokens=9, messages=[{"role": "user", "content": "hi"}]
        )
        print(f"{answer.stop_reason} after {server.totals.requests} requests, waits {clock.sleeps}")

        gpt = model.wrap(openai.OpenAI(base_url=f"{server.url}/v1", api_key="k"))
        try:
            with gpt.responses.stream(model="m", input="hi") as stream:
                for event in stream:
                    if event.type == "response.output_text.delta":
                        print(event.delta, end="")
        except openai.APIConnectionError as error:
            story = mulligan.story(error)
            print(f"\n{story.note if story else error}")


if __name__ == "__main__":
    main()
