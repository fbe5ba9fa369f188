"""Count what calls do, in metrics for a server and in figures for a terminal.

    python examples/watching.py

The same figures are shown by `mulligan stats` and, live, by `mulligan dashboard`.
"""

from __future__ import annotations

from tempfile import TemporaryDirectory

import mulligan
from mulligan.stores.open import open_store
from mulligan.telemetry.figures import summary
from mulligan.telemetry.store import figures
from mulligan.testing import Scripted, status_error, virtual_time


def main() -> None:
    with TemporaryDirectory() as folder, virtual_time() as clock:
        store = open_store(f"sqlite:{folder}/state.db")
        counters, counted = mulligan.Counters(), mulligan.StoreListener(store)
        guard = mulligan.Guard("acme", effects="read", attempts=3, listeners=[counters, counted])
        for outcomes in (["well"], [status_error(503), "well"], [status_error(500)]):
            try:
                guard.call(Scripted(*outcomes))
            except Exception as error:  # noqa: BLE001 -- told, and counted
                print(f"ended: {mulligan.story(error)}")
        counted.flush()
        for (name, target, label), count in sorted(counters.totals.items()):
            print(f"{name} {target} {label}: {count}")
        found = summary(figures(store, since=3_600, now=clock.wall()))
        print(f"success after retry: {found['success_after_retry']:.0%}")


if __name__ == "__main__":
    main()
