"""Explains a classification: which line decided, by which rule, and why other lines did not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...classify.output.shown import is_survival, shown
from ...classify.output.talk import is_person
from ...classify.pattern_packs import Meaning, Voice
from ...classify.times.plain_text import one_line
from ...core.redaction import presentable

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ...api.agent_output import Outcome
    from ...classify.pattern_packs import Packs

__all__ = ("explained",)

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


def explained(outcome: Outcome, text: str, packs: Packs) -> str:
    """The line, the rule and the reason, aligned like the rest of `mulligan classify`."""
    lines = text.split("\n")
    number = _line_of(outcome.message, lines)
    rows = [("line", f"{number}: {presentable(lines[number - 1], _WIDTH)}")] if number else []
    name, _, rest = outcome.because.partition(": ")
    entries = (one for pack in packs.packs if pack.name == name for one in pack.entries)
    entry = next((one for one in entries if one.id == rest.partition(":")[0]), None)
    if entry is not None:
        rows.append(("rule", f"{outcome.because} (seen: {entry.seen})"))
        rows.append(("voice", f"{entry.voice}: {_VOICES[entry.voice]}"))
    else:
        rows.append(("rule", outcome.because))
    if outcome.source:
        rows.append(("evidence", outcome.source))
    rows.append(("sure", f"{outcome.confidence}"))
    others = list(_others(lines, number, outcome, packs))[-_MOST_OTHERS:]
    rows += [("not read" if not at else "", said) for at, said in enumerate(others)]
    return "\n".join(f"{name:<9} {said}" for name, said in rows)


def _line_of(message: str, lines: list[str]) -> int:
    """The number of the last line that `message` was read from; 0 if it cannot be found."""
    words = one_line(message)[:60]
    for index in range(len(lines) - 1, -1, -1):
        plain = one_line(presentable(lines[index][:4000], 4000))
        if words and plain and (words in plain or (len(plain) > 12 and plain in one_line(message))):
            return index + 1
    return 0


def _others(lines: list[str], number: int, outcome: Outcome, packs: Packs) -> Iterator[str]:
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
        elif outcome.failure is None:
            why = "no rule knows it; --exit-code 1 would make it a guess"
        else:
            why = "other evidence decided"
        yield f"{index + 1}: {presentable(lines[index], 80)} ({why})"
