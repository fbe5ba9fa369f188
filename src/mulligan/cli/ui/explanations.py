"""Explains a classification: which line decided, by which rule, and why other lines did not."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...api.agent_output import Outcome
from ...classify.output.failure_score import READS_HARMLESS, failure_score
from ...classify.output.shown import is_survival, shown
from ...classify.output.talk import is_person
from ...classify.output.timeline import split_stream
from ...classify.output.unwrap import unwrapped
from ...classify.pattern_packs import Meaning, Voice
from ...classify.times.plain_text import one_line, without_escapes
from ...core.hint import Confidence
from ...core.redaction import presentable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ...classify.pattern_packs import Packs
    from .program_output import PrintedOutput

__all__ = ("Readings", "explained")

_VOICES = {
    Voice.LINE: "a line that begins with the words, or an error that contains them",
    Voice.ERROR: "an error that contains the words",
    Voice.ANYWHERE: "any line that contains the words",
    Voice.STATED: "a line that says the words early, and when it resets",
    Voice.WEAK: "a statement that contains the words, where nothing else matched",
    Voice.GUESS: "an error in unknown words, or the last lines of a run that failed",
}
# Lines that were not believed: the last few are enough to report a miss.
_MOST_OTHERS = 8
_MOST_LINES = 2000
_WIDTH = 160
# Evidence whose message is not the program's own.
_NOT_IN_LINES = ("", "exit code", "headers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """One output as it was read, and as it would be read with other exit codes.

    Args:
        outcome: As it was read.
        exit_code: The exit code with which it was.
        if_well: With exit code 0: so no words outvote a line.
        if_failed: With exit code 1.
    """

    outcome: Outcome
    exit_code: int | None
    if_well: Outcome
    if_failed: Outcome

    @property
    def is_outvoted(self) -> bool:
        """Whether all words together overruled a line or a guess; they do without an exit code."""
        is_harmless = self.exit_code is None and self.outcome.failure is None
        return is_harmless and self.outcome.because != self.if_well.because


def explained(readings: Readings, printed: PrintedOutput, packs: Packs) -> str:
    """The line, the rule and the reason, aligned like the rest of `mulligan classify`."""
    lines = printed.text.split("\n")
    places = _places(printed.text, lines)
    outcome, is_outvoted = readings.outcome, readings.is_outvoted
    outvoted = readings.if_well if is_outvoted else None
    number = _line_of(outvoted or outcome, lines, places)
    rows = []
    if number:
        said = presentable(lines[number - 1], _WIDTH)
        rows.append(("outvoted" if is_outvoted else "line", f"{number + printed.above}: {said}"))
    if is_outvoted:
        rule = "a guess" if outvoted is None or outvoted.failure is None else outvoted.because
        score = failure_score(without_escapes(printed.text)).value
        rows += [
            ("" if number else "outvoted", f"{rule}; without --exit-code all words are weighed"),
            ("score", f"{score:.2f}; {READS_HARMLESS} or less reads like a text about failures"),
        ]
    name, _, rest = outcome.because.partition(": ")
    entries = (one for pack in packs.packs if pack.name == name for one in pack.entries)
    entry = next((one for one in entries if one.id == re.split("[:;]", rest)[0]), None)
    if entry is not None:
        rows.append(("rule", f"{outcome.because} (seen: {entry.seen})"))
        rows.append(("voice", f"{entry.voice}: {_VOICES[entry.voice]}"))
    else:
        rows.append(("rule", outcome.because))
    if outcome.source:
        rows.append(("evidence", outcome.source))
    rows.append(("sure", f"{outcome.confidence}"))
    guessed = _line_of(readings.if_failed, lines, places)
    others = _others(lines, number, guessed, readings, packs)
    told = [
        f"{index + 1 + printed.above}: {presentable(lines[index], 80)} ({why})"
        for index, why in [*others][-_MOST_OTHERS:]
    ]
    rows += [("not read" if not at else "", said) for at, said in enumerate(told)]
    return "\n".join(f"{name:<9} {said}" for name, said in rows)


def _places(text: str, lines: Sequence[str]) -> list[int]:
    """Where in `lines` each line stands that was read in `text`; empty if that cannot be told.

    The reader counts no JSON values, drops decoration, and keeps only the last lines.
    """
    plain = unwrapped(text).split("\n")
    if len(plain) != len(lines):
        return []
    places, index = [], len(plain) - (not plain[-1])
    for line in reversed(split_stream(text).lines):
        index -= 1
        while index >= 0 and not _is_read_as(plain[index], line):
            index -= 1
        if index < 0:
            return []
        places.append(index)
    return places[::-1]


def _is_read_as(plain: str, line: str) -> bool:
    """Whether the reader made `line` of `plain`: all of it, or what stands beside JSON in it."""
    is_part = bool(line.strip()) and (plain.startswith(line) or plain.endswith(line))
    return plain == line or is_part


def _line_of(outcome: Outcome, lines: Sequence[str], places: Sequence[int]) -> int:
    """The number of the line that decided `outcome`; 0 if it cannot be found."""
    if outcome.source in _NOT_IN_LINES:
        return 0
    first, last = 0, len(lines)
    if outcome.line is not None and places:
        at = outcome.line
        if not outcome.is_structured and at < len(places) and _says(lines[places[at]], outcome):
            return places[at] + 1
        # JSON stands between two lines that were read.
        first = places[at - 1] if 0 < at <= len(places) else 0
        last = places[at] + 1 if at < len(places) else last
    found = [index for index in range(first, last) if _says(lines[index], outcome)]
    is_shown = shown(lines[first:last]) if len(found) > 1 else ()
    spoken = [index for index in found if not (is_shown and is_shown[index - first])]
    return (spoken or found)[-1] + 1 if found else 0


def _says(line: str, outcome: Outcome) -> bool:
    """Whether `line` contains the words of `outcome`, or is a part of them."""
    words = one_line(outcome.message)
    plain = one_line(presentable(line[:4000], 4000))
    is_part = len(plain) > 12 and plain in words
    return bool(words and plain) and (words[:60] in plain or is_part)


def _others(
    lines: Sequence[str], number: int, guessed: int, readings: Readings, packs: Packs
) -> Iterator[tuple[int, str]]:
    """Other lines with words of a limit, each with why it did not count."""
    stems = [
        entry.match
        for pack in packs.packs
        for entry in pack.entries
        if entry.voice is Voice.GUESS and entry.means is not Meaning.NOT_FAILURE
    ]
    first = max(0, len(lines) - _MOST_LINES)
    is_shown = shown(lines[first:])
    for index in range(first, len(lines)):
        plain = one_line(lines[index])
        if index + 1 == number or not any(stem.search(plain) for stem in stems):
            continue
        if is_shown[index - first]:
            why = "shown, not said: code, a list, a log, a test"
        elif any(map(is_survival, lines[index + 1 :])):
            why = "survived: the program went on"
        elif is_person(plain):
            why = "reads like a person who talks, or like code"
        elif number and index + 1 < number:
            why = "a later line decided"
        elif readings.outcome.failure is None:
            why = _why_not(readings, is_guess=index + 1 == guessed)
        else:
            why = "other evidence decided"
        yield index, why


def _why_not(readings: Readings, *, is_guess: bool) -> str:
    """Why a line is no failure that nothing speaks against."""
    outcome, failed = readings.outcome, readings.if_failed
    if readings.is_outvoted:
        return "all words together read like a text about failures"
    if outcome.is_progress or outcome.is_done:
        return outcome.because
    if not is_guess or failed.failure is None:
        return "no rule takes it for the end of the run"
    if failed.confidence is Confidence.LOW:
        return "no rule knows it; --exit-code 1 would make it a guess"
    return f"not for sure the end of the run; --exit-code 1 would make it one ({failed.because})"
