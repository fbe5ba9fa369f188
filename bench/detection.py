"""How well are agents' words understood?

Question   Of labelled messages: how many limits are detected, how many reset times are right
           within a minute, how many harmless texts raise an alarm, how many final errors are
           called retryable, how many kinds are exact? How does time grow with the text?
Baseline   The best public tool on 486 real messages: 77 % of the limits, 23 % of the resets, an
           alarm on 56 of 85 harmless texts.
Claim      At least 99 % of limits and resets, 97 % of kinds, no false alarm, no final error
           retried; with --unseen, for messages that nobody had seen when the patterns were
           written, 97 %, 97 %, 97 %, at most 1 %, at most 1 %. Ten times the text takes at most
           twelve times as long. A broken claim exits 1.
Run        python bench/detection.py [--quick] [--unseen] [--misses N] [--json FILE] [CORPUS ...]
           A corpus is a file of JSON lines: id, text, label (a kind or not_failure), now, and
           where known agent, local_tz, exit_code, expected_seconds, alt_label,
           alt_expected_seconds, ambiguous, in_progress. Lines without a label are skipped.
           Without a corpus: bench/detection.jsonl.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from _measure import RESULTS, Row, Spread, machine, verdict_lines, write

from mulligan.api.agent_output import load_packs, read_output
from mulligan.config.packs import find_packs

OWN = Path(__file__).with_suffix(".jsonl")
PACKS = load_packs(find_packs(environ={})).packs
LIMITS = {"rate_limit", "quota", "overloaded"}
TRANSIENT = LIMITS | {"server", "network", "timeout"}
FINAL = {"billing", "auth", "context_length", "content_policy", "client"}
NEAR = 60
# What hurts most: lines that are almost banners, objects that never close.
HOSTILE = (
    "The limit of the API was reached again, so the error is retried and the quota resets\n",
    '{"error": {"message": "x\n',
    '{"type":"error","message":"Rate limit reached, try again in 5s"}\n',
)


def main() -> int:
    head, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=head, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="*", type=Path, metavar="CORPUS")
    parser.add_argument("--quick", action="store_true", help="every fourth message; keeps nothing")
    parser.add_argument("--unseen", action="store_true", help="hold it to the claim for the unseen")
    parser.add_argument("--misses", type=int, default=10, metavar="N", help="how many to print")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    options = parser.parse_args()
    rows = [
        json.loads(line)
        for corpus in options.corpora or [OWN]
        for line in corpus.read_text(encoding="utf-8").splitlines()
        if line.strip()
    ][:: 4 if options.quick else 1]
    messages = [row for row in rows if row.get("label") is not None]
    if len(messages) < len(rows):
        print(f"skipped {len(rows) - len(messages)} without a label", file=sys.stderr)
    if not messages:
        parser.error("no message has a label: a kind, or not_failure")

    count, misses, times = score(messages)
    found = [*verdicts(count, is_unseen=options.unseen), pace(times), growth()]
    print(f"\n{len(messages)} messages\n\n{verdict_lines(found)}\n")
    for miss in misses[: options.misses]:
        print(f"  {miss}")
    if len(misses) > options.misses:
        print(f"  ({len(misses) - options.misses} more)")

    is_kept = not (options.quick or options.corpora)
    file = options.json or (RESULTS / "detection.json" if is_kept else None)
    if file is not None:
        told = [
            {"question": r.question, "claim": r.claim, "found": r.found, "verdict": r.verdict}
            | r.numbers
            for r in found
        ]
        where = machine(("mulligan",))
        write(file, {"bench": "detection", **where, "messages": len(messages), "verdicts": told})
    return int(any(row.verdict == "BROKEN" for row in found))


def score(messages: list[dict[str, Any]]) -> tuple[Counter[str], list[str], list[float]]:
    """What was right, counted; what was wrong, in words; how long each took."""
    count: Counter[str] = Counter()
    misses: list[str] = []
    times: list[float] = []
    for row in messages:
        moment = datetime.fromisoformat(row["now"])
        zone = ZoneInfo(row["local_tz"]) if row.get("local_tz") else moment.tzinfo or UTC
        began = time.thread_time()
        outcome = read_output(
            row["text"],
            packs=PACKS,
            now=moment.timestamp(),
            zone=zone,
            agent=row.get("agent") or "",
            exit_code=row.get("exit_code"),
        )
        times.append(time.thread_time() - began)
        kind = None if outcome.failure is None else str(outcome.failure.kind)
        reset = outcome.reset.seconds if outcome.reset and outcome.failure else None
        wrong = judge(row, kind, reset, count)
        misses += [f"{row['id']}: {why}: {row['text'][:100]!r}" for why in wrong]
    return count, misses, times


def judge(
    row: dict[str, Any], kind: str | None, reset: float | None, count: Counter[str]
) -> list[str]:
    """Count one answer; say what is wrong about it."""
    label, right, wrong = row["label"], accepted(row), []
    is_exact = kind in right
    is_open = bool(row.get("in_progress") or row.get("ambiguous"))
    count["kinds"] += 1
    count["kinds right"] += is_exact
    if not is_exact:
        wrong.append(f"{kind}, expected {' or '.join(sorted(map(str, right)))}")
    if label in LIMITS and not is_open:
        count["limits"] += 1
        count["limits right"] += kind in LIMITS or is_exact
    if label == "not_failure":
        count["harmless"] += 1
        count["false alarms"] += kind in TRANSIENT and not is_exact
    if label in FINAL:
        count["final"] += 1
        count["final retried"] += kind in TRANSIENT and not is_exact
    expected = row.get("expected_seconds")
    if expected is not None and not row.get("in_progress"):
        either = [expected, row.get("alt_expected_seconds") or expected]
        is_near = reset is not None and any(abs(reset - one) <= NEAR for one in either)
        count["resets"] += 1
        count["resets right"] += is_near
        if not is_near:
            wrong.append(f"resets in {reset}, expected {expected}")
    return wrong


def accepted(row: dict[str, Any]) -> set[str | None]:
    """The kinds that count as right; None stands for "not a failure"."""
    others = row.get("alt_label") or []
    labels = [row["label"], *([others] if isinstance(others, str) else others)]
    right: set[str | None] = {None if label == "not_failure" else label for label in labels}
    return right | {None} if row.get("in_progress") or row.get("ambiguous") else right


def verdicts(count: Counter[str], *, is_unseen: bool) -> list[Row]:
    """One row for each claim about understanding."""
    least, most = (97, 1) if is_unseen else (99, 0)
    claims = (
        ("limits detected", "limits right", "limits", least, "77 %"),
        ("resets within 60 s", "resets right", "resets", least, "23 %"),
        ("exact kind", "kinds right", "kinds", 97, ""),
        ("false alarms", "false alarms", "harmless", -most, "66 %"),
        ("final errors retried", "final retried", "final", -most, ""),
    )
    rows = []
    for question, part, whole, bound, baseline in claims:
        share = 100 * count[part] / count[whole] if count[whole] else 0.0
        is_held = share >= bound if bound > 0 else share <= -bound
        rows.append(
            Row(
                question=question,
                baseline=baseline,
                claim=f"≥ {bound} %" if bound > 0 else f"≤ {-bound} %",
                found=f"{share:.2f} % ({count[part]}/{count[whole]})",
                verdict="NOT MEASURED" if not count[whole] else "held" if is_held else "BROKEN",
                numbers={"part": count[part], "whole": count[whole]},
            )
        )
    return rows


def pace(times: list[float]) -> Row:
    """How long one message takes."""
    spread = Spread.of([1000 * each for each in times] * 2)  # a spread needs two numbers
    return Row(
        question="time of a message",
        baseline="",
        claim="",
        found=f"{spread.text(2)} ms",
        verdict="reported",
        numbers={"ms": spread.data()},
    )


def growth() -> Row:
    """How much longer ten times the text takes, at worst."""
    ratio = max(_took(line, 400_000) / _took(line, 40_000) for line in HOSTILE)
    return Row(
        question="ten times the text",
        baseline="the text once",
        claim="≤ 12 x",
        found=f"{ratio:.1f} x",
        verdict="held" if ratio <= 12 else "BROKEN",
        numbers={"ratio": round(ratio, 2)},
    )


def _took(line: str, size: int) -> float:
    text, best = line * (size // len(line)), float("inf")
    for _ in range(3):
        began = time.thread_time()
        read_output(text, packs=PACKS, now=0.0, zone=UTC, exit_code=1)
        best = min(best, time.thread_time() - began)
    return best


if __name__ == "__main__":
    raise SystemExit(main())
