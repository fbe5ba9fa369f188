"""How well do words tell the output of a failed run from a text about failures?

Question   Where nobody knows a program's exit code: how often does the score of
           `mulligan.classify.output.failure_score` mistake a text about failures for the output of
           a failed run, or the other way round, on rounds of messages that it was not learnt from?
Baseline   The share of texts about failures among the messages: what a coin weighted by it
           would mistake.
Claim      Of harmless texts at most 4 % score as failed; of failed runs at most 4 % score as
           harmless; the score tells a random pair of the two apart 97 times of 100. The table in
           the package is the one that learning gives now. A broken claim exits 1.
Run        python bench/failure_words.py [--quick] [--json FILE] [--write] [--add CORPUS ...]
           Messages are kept in bench/failure_words.txt.gz as counts of the words that at least
           five of them have. --add puts labelled messages there (see bench/detection.py for the
           fields), a file a round; --write learns the table from all of them and writes it into
           the package. A round of whole outputs has a number for a name; only those are held out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
import random
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from _measure import RESULTS, Row, machine, verdict_lines, write

from mulligan.classify.output import failure_score, failure_words
from mulligan.classify.output.failure_score import READS_FAILED, READS_HARMLESS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

DATA = Path(__file__).with_suffix(".txt.gz")
TABLE = Path(failure_words.__file__)
RAREST = 5
MOST = 4096
QUANTUM = 0.5
COST = 10.0
EPOCHS = 20
MOST_WRONG = 0.04
LEAST_APART = 0.97
ALMOST = 0.9
PARTS = 6


@dataclass(frozen=True, slots=True)
class Message:
    """A labelled message: the round it came with, whether the run failed, its words."""

    round: str
    failed: bool
    counts: dict[str, int]


def main() -> int:
    head, _, rest = (__doc__ or "").partition("\n\n")
    parser = argparse.ArgumentParser(
        description=head, epilog=rest, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="two rounds; keeps nothing")
    parser.add_argument("--json", type=Path, metavar="FILE", help="where the results go")
    parser.add_argument("--add", nargs="+", type=Path, default=(), metavar="CORPUS")
    parser.add_argument("--write", action="store_true", help="write the table into the package")
    options = parser.parse_args()
    messages = load() if DATA.exists() else []
    if options.add:
        messages = keep([*messages, *(one for file in options.add for one in labelled(file))])
    if options.write:
        TABLE.write_text(module(learn(messages)), encoding="utf-8")
        print(f"{TABLE.name}: learnt from {len(messages)} messages")
        return 0

    rounds = sorted({one.round for one in messages if one.round.isdecimal()})
    parts = [rounds[-2:]] if options.quick else [rounds[at::PARTS] for at in range(PARTS)]
    told = held_out(messages, parts)
    rows = [*verdicts(told), agreement(messages, is_quick=options.quick)]
    print(f"\n{len(told)} messages of {len(messages)}\n\n{verdict_lines(rows)}\n")
    file = options.json or (None if options.quick else RESULTS / "failure_words.json")
    if file is not None:
        found = {"bench": "failure_words", **machine(["mulligan"]), "messages": len(told)}
        write(file, found | {"verdicts": [row.data() for row in rows]})
    return int(any(row.verdict == "BROKEN" for row in rows))


def labelled(file: Path) -> Iterable[Message]:
    """The messages of one round; none of which people could say that they are both."""
    for line in filter(str.strip, file.read_text(encoding="utf-8").splitlines()):
        data = json.loads(line)
        others = data.get("alt_label") or ()
        is_doubtful = data.get("in_progress") or data.get("ambiguous") or "not_failure" in others
        if not is_doubtful:
            counts = failure_score.word_counts(data["text"])
            yield Message(file.stem, data["label"] != "not_failure", dict(counts))


def keep(messages: Sequence[Message]) -> list[Message]:
    """Write `messages` to the file of messages, and give them as they are there."""
    spread = Counter(word for one in messages for word in one.counts)
    words = sorted((one for one in spread if spread[one] >= RAREST), key=lambda w: (-spread[w], w))
    places = {word: at for at, word in enumerate(words)}
    lines = [" ".join(words)]
    for one in messages:
        known = sorted((places[w], count) for w, count in one.counts.items() if w in places)
        steps, last = [], 0
        for at, count in known:
            steps.append(f"{at - last}" if count == 1 else f"{at - last}:{count}")
            last = at
        lines.append(f"{one.round} {one.failed:d} {' '.join(steps)}")
    DATA.write_bytes(gzip.compress("\n".join(lines).encode(), 9, mtime=0))
    return load()


def load() -> list[Message]:
    first, *rest = gzip.decompress(DATA.read_bytes()).decode().split("\n")
    words, messages = first.split(" "), []
    for line in rest:
        name, failed, *steps = line.split()
        at, counts = 0, {}
        for step in steps:
            gap, _, count = step.partition(":")
            at += int(gap)
            counts[words[at]] = int(count or 1)
        messages.append(Message(name, failed == "1", counts))
    return messages


def learn(messages: Sequence[Message]) -> dict[str, int]:
    """Weights in quanta: those of the words that matter most, and "" for the bias."""
    weights = logistic(messages, None)
    matter = dict.fromkeys(weights, 0.0)
    for one in messages:
        for word, value in vector(one.counts, weights).items():
            matter[word] += value * value
    ordered = sorted(
        matter.keys() - {""}, key=lambda w: (-abs(weights[w]) * math.sqrt(matter[w]), w)
    )
    weights = logistic(messages, set(ordered[:MOST]))
    rounded = {word: round(weight / QUANTUM) for word, weight in weights.items()}
    return {word: weight for word, weight in sorted(rounded.items()) if weight or not word}


def vector(counts: dict[str, int], known: Iterable[str] | None) -> dict[str, float]:
    """The known words of a message, each by the logarithm of its count, of length 1 together."""
    told = {w: 1 + math.log(n) for w, n in counts.items() if known is None or w in known}
    length = math.sqrt(math.fsum(one * one for one in told.values())) or 1.0
    return {word: one / length for word, one in told.items()}


def logistic(messages: Sequence[Message], known: set[str] | None) -> dict[str, float]:
    """Logistic regression with both classes alike and an L2 penalty, by dual coordinate descent."""
    vectors = [vector(one.counts, known) for one in messages]
    signs = [1 if one.failed else -1 for one in messages]
    costs = {sign: COST * len(signs) / (2 * signs.count(sign)) for sign in (1, -1)}
    weights: dict[str, float] = {"": 0.0} | {word: 0.0 for one in vectors for word in one}
    share = [0.001 * costs[sign] for sign in signs]
    for one, sign, part in zip(vectors, signs, share, strict=True):
        add(weights, one, sign * part)
    order, dice = list(range(len(vectors))), random.Random(18)
    for _ in range(EPOCHS):
        dice.shuffle(order)
        for at in order:
            one, sign = vectors[at], signs[at]
            margin = weights[""] + sum(weights[word] * value for word, value in one.items())
            new = solve(sign * margin, share[at], costs[sign])
            add(weights, one, sign * (new - share[at]))
            share[at] = new
    return weights


def add(weights: dict[str, float], one: dict[str, float], part: float) -> None:
    weights[""] += part
    for word, value in one.items():
        weights[word] += part * value


def solve(margin: float, share: float, cost: float) -> float:
    """The share of one message that fits its margin, where those of the others stay: bisected."""
    square = 2.0  # of a vector's length, with the bias
    low, high = -(margin + square * (cost - share)), -(margin - square * share)
    for _ in range(40):
        middle = (low + high) / 2
        is_above = middle + margin + square * (cost * sigmoid(middle) - share) > 0
        low, high = (low, middle) if is_above else (middle, high)
    return cost * sigmoid((low + high) / 2)


def sigmoid(value: float) -> float:
    return 1 / (1 + math.exp(-value)) if value > -700 else 0.0


def held_out(
    messages: Sequence[Message], parts: Sequence[Sequence[str]]
) -> list[tuple[bool, float]]:
    """Whether each message of some rounds failed, and its score as learnt from other rounds.

    Rounds meet the same reports again: what is almost a message that is scored is not learnt from.
    """
    found = []
    for held in parts:
        these = [one for one in messages if one.round in held]
        others = [one for one in messages if one.round not in held]
        weights = {w: n * QUANTUM for w, n in learn(without_copies(others, these)).items()}
        bias = weights.pop("")
        found += [(one.failed, failure_score.weigh(one.counts, weights, bias)[0]) for one in these]
        print(f"  {', '.join(held)}: {len(these)}", flush=True)
    return found


def without_copies(messages: Sequence[Message], of: Sequence[Message]) -> list[Message]:
    """Those of `messages` that share less than nine tenths of their words with each one `of`."""
    places: dict[str, dict[int, float]] = {}
    for at, one in enumerate(of):
        for word, value in vector(one.counts, None).items():
            places.setdefault(word, {})[at] = value
    kept = []
    for one in messages:
        alike = dict.fromkeys(range(len(of)), 0.0)
        for word, value in vector(one.counts, None).items():
            for at, other in places.get(word, {}).items():
                alike[at] += value * other
        if max(alike.values(), default=0) < ALMOST:
            kept.append(one)
    return kept


def verdicts(told: Sequence[tuple[bool, float]]) -> list[Row]:
    failed = sorted(value for is_failed, value in told if is_failed)
    harmless = sorted(value for is_failed, value in told if not is_failed)
    share = len(harmless) / len(told)
    alarms = sum(value >= READS_FAILED for value in harmless) / len(harmless)
    lost = sum(value <= READS_HARMLESS for value in failed) / len(failed)
    pairs = sum(one > other for one in failed for other in harmless) / len(failed) / len(harmless)
    return [
        row("harmless texts that read like failed runs", f"{1 - share:.1%}", alarms, MOST_WRONG),
        row("failed runs that read like harmless texts", f"{share:.1%}", lost, MOST_WRONG),
        row("pairs told apart", "50.0%", pairs, LEAST_APART, is_least=True),
    ]


def row(question: str, baseline: str, found: float, bound: float, *, is_least: bool = False) -> Row:
    is_held = found >= bound if is_least else found <= bound
    return Row(
        question=question,
        baseline=baseline,
        claim=f"{'≥' if is_least else '≤'} {bound:.0%}",
        found=f"{found:.1%}",
        verdict="held" if is_held else "BROKEN",
        numbers={"share": round(found, 4)},
    )


def agreement(messages: Sequence[Message], *, is_quick: bool) -> Row:
    """Whether the package has the table that is learnt here; a last digit may differ."""
    now = {} if is_quick else learn(messages)
    kept = kept_table()
    apart = sum(abs(now.get(word, 0) - kept.get(word, 0)) > 1 for word in now.keys() | kept.keys())
    return Row(
        question="the table is the one learnt",
        baseline="-",
        claim="no weight more than a step apart",
        found="not asked" if is_quick else f"{apart} of {len(kept)} apart",
        verdict="NOT MEASURED" if is_quick else "BROKEN" if apart else "held",
        numbers={} if is_quick else {"apart": apart},
    )


def kept_table() -> dict[str, int]:
    tables = (("", failure_words.WORDS), ("l:", failure_words.LAST_WORDS))
    found = {
        prefix + word: weight
        for prefix, table in tables
        for weight, words in table.items()
        for word in words.split()
    }
    return found | {"": round(failure_words.BIAS / QUANTUM)}


def module(weights: dict[str, int]) -> str:
    """The table as the module that the package imports."""
    tables: dict[str, dict[int, list[str]]] = {"WORDS": {}, "LAST_WORDS": {}}
    for word, weight in weights.items():
        if word:
            name = "LAST_WORDS" if word.startswith("l:") else "WORDS"
            tables[name].setdefault(weight, []).append(word.removeprefix("l:"))
    lines = [
        '"""What words weigh in `failure_score`; written by bench/failure_words.py --write."""',
        "",
        "from __future__ import annotations",
        "",
        "from typing import Final",
        "",
        '__all__ = ("BIAS", "LAST_WORDS", "QUANTUM", "WORDS")',
        "",
        f"QUANTUM: Final = {QUANTUM}",
        f"BIAS: Final = {weights[''] * QUANTUM}",
    ]
    for name, table in tables.items():
        lines += [f"{name}: Final[dict[int, str]] = {{"]
        lines += [f"    {weight}: {quoted(words)}," for weight, words in sorted(table.items())]
        lines += ["}"]
    return "\n".join([*lines, ""])


def quoted(words: Sequence[str]) -> str:
    """A literal in the quotes that need fewer escapes."""
    text = " ".join(words).replace("\\", "\\\\")
    quote = "'" if text.count('"') > text.count("'") else '"'
    return quote + text.replace(quote, "\\" + quote) + quote


if __name__ == "__main__":
    raise SystemExit(main())
