"""A fleet before a server with a limit: what three policies make of it, in virtual time.

Nothing is waited for and nothing is called: three minutes pass in a second. The guards are the
product's own; the server is data. Run it: python examples/simulate_a_limit.py
"""

from __future__ import annotations

from pathlib import Path

from mulligan.sim.compare import run
from mulligan.sim.oracle import optimum
from mulligan.sim.policies import DEFAULT, NO_RETRIES, PATIENT
from mulligan.sim.scenario import Hints, Jobs, Scenario, ServerLimit
from mulligan.sim.scenario_file import load_scenario

LIMITED = Scenario(
    name="a window of a minute",
    jobs=Jobs(count=120),
    limits=(ServerLimit(kind="window", quota=50, per=60.0, first=25.0),),
    hints=Hints(retry_after="exact"),
)


def main() -> None:
    for scenario in (LIMITED, load_scenario(Path(__file__).parent / "scenario.toml")):
        print(f"{scenario.name}: {scenario.jobs.count} jobs")
        for policy in (DEFAULT, PATIENT, NO_RETRIES):
            found = run(scenario, policy, seed=1).metrics
            print(
                f"  {policy.name:8} {found.completion:6.1%} done in {found.seconds:6.1f} s "
                f"with {found.requests:3} requests: RQ {found.quality:.0f}"
            )
        best = optimum(scenario)
        print(f"  the best: {best.seconds:.1f} s, {best.requests:.0f} requests")


if __name__ == "__main__":
    main()
