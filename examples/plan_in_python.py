"""A plan written in Python: two agents side by side, then one that reads what they found.

Run: python examples/plan_in_python.py
"""

from __future__ import annotations

import os
import tempfile

from mulligan.run import Agent, Phase, Plan, run_plan

# Programs of every machine; with an agent it is Agent(program="claude", prompt="…").
PLAN = Plan(
    name="count",
    phases=(
        Phase(
            name="look",
            on_failure="require_minimum",
            minimum=1,
            agents=(
                Agent(name="words", command=("sh", "-c", "echo 'three words here' | wc -w")),
                Agent(name="broken", command=("sh", "-c", "echo cannot >&2; exit 3")),
            ),
        ),
        Phase(
            name="tell",
            agents=(
                Agent(
                    name="clerk",
                    command=("cat",),
                    input="stdin",
                    prompt="They found:\n\n{{outputs.look}}",
                    output="found.txt",
                ),
            ),
        ),
    ),
)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("MULLIGAN_HOME", f"{folder}/home")
        report = run_plan(PLAN, folder=folder, is_shown=False)
        for phase in report.phases:
            for agent in phase.agents:
                print(f"{phase.name}/{agent.name}: {agent.status} {agent.because}".rstrip())
        with open(f"{folder}/found.txt", encoding="utf-8") as found:  # noqa: PTH123 -- an example
            print(found.read())
        assert report.is_success  # noqa: S101 -- an example


if __name__ == "__main__":
    main()
