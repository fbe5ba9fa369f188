"""What did the agent's output mean, and how long is the wait?

Run: python examples/classify_output.py
"""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

from mulligan.api.agent_output import load_packs, read_output
from mulligan.core.duration import duration_text

OUTPUTS = {
    "a plan's limit": "You've hit your weekly limit · resets Jul 9 at 1pm (America/New_York)",
    "a turn that failed": '{"type":"turn.failed","error":{"message":"Rate limited, retry in 7m"}}',
    "a bill": "Error code: 429 - {'error': {'code': 'insufficient_quota'}}",
    "a notice": "Attempt 2 failed with status 503. Retrying with backoff...",
    "an answer": "Done. The limiter answers 429 and its counter resets at 9pm.",
}


def main() -> None:
    packs = load_packs().packs
    now = datetime(2026, 7, 6, 12, 0, tzinfo=UTC).timestamp()
    for name, words in OUTPUTS.items():
        outcome = read_output(words, packs=packs, now=now, zone=ZoneInfo("Europe/Berlin"))
        kind = "no failure" if outcome.failure is None else str(outcome.failure.kind)
        wait = (
            "" if outcome.reset is None else f", resets in {duration_text(outcome.reset.seconds)}"
        )
        print(f"{name:20} {kind}{wait} ({outcome.because})")


if __name__ == "__main__":
    main()
