"""A day with two models: limits, an outage, and an answer of before. In virtual time, no account.

The preferred model reaches its limit; the other one answers until the limit resets. Then both are
down, and an answer of before is given, marked as stale. How it works is in docs/fallbacks.md.
"""

from __future__ import annotations

import mulligan
from mulligan.testing import status_error, virtual_time


class Model:
    """A provider that is well, limited or down."""

    def __init__(self, name: str) -> None:
        self.name, self.state, self.requests = name, "well", 0

    def ask(self, question: str) -> str:
        self.requests += 1
        if self.state == "limited":
            raise status_error(429, headers={"retry-after": "7200"})
        if self.state == "down":
            raise status_error(503)
        return f"{self.name}'s answer to {question!r}"


def main() -> None:
    with virtual_time() as clock:
        claude, gpt = Model("claude"), Model("gpt")
        model = mulligan.Switch(
            (mulligan.Guard("anthropic", effects="idempotent"), claude.ask),
            (mulligan.Guard("openai", effects="idempotent", attempts=2), gpt.ask),
            cache=mulligan.AnswerCache("12h"),
        )

        def show(hour: int, what: str) -> None:
            answer = model.answer("what is new?")
            mark = f", {answer.age / 3600:.0f} h old" if answer.age is not None else ""
            print(f"{hour:02}:00  {what:<28} {answer.value}{mark}")

        show(9, "all is well")
        clock.advance("1h")
        claude.state = "limited"
        show(10, "claude is limited for 2 h")
        for _ in range(50):
            model.call("what is new?")
        print(f"       50 more calls             {claude.requests - 2} of them asked claude")
        clock.advance("3h")
        claude.state = "well"
        show(13, "the limit has reset")
        clock.advance("2h")
        claude.state = gpt.state = "down"
        show(15, "both are down")


if __name__ == "__main__":
    main()
