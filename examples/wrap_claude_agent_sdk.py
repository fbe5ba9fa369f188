"""A query of claude-agent-sdk that survives an overload: the session is resumed, not begun again.

Runs the program that the SDK brings against the fault server, without an account:
python examples/wrap_claude_agent_sdk.py
"""

from __future__ import annotations

import asyncio
import tempfile

from claude_agent_sdk import ClaudeAgentOptions, ResultMessage

import mulligan
from mulligan.adapters.claude_agent_sdk import guarded_query
from mulligan.testing import FaultServer, virtual_time


async def main() -> None:
    with (
        FaultServer("529x3, ok(done)") as server,
        tempfile.TemporaryDirectory() as home,
        virtual_time(),
    ):
        env = {**server.env("claude"), "HOME": home, "CLAUDE_CONFIG_DIR": home}
        options = ClaudeAgentOptions(env=env, cwd=home, model="claude-sonnet-4-5")
        guard = mulligan.Guard("claude", attempts=3)
        async for message in guarded_query(guard, prompt="hi", options=options):
            if isinstance(message, ResultMessage):
                print("failed" if message.is_error else "done", message.result)


if __name__ == "__main__":
    asyncio.run(main())
