"""Output without decoration that others added: borders, quotation marks, stamps, curl's arrows.

Quoting and stamping is undone only where all of the text is decorated that way: a quotation inside
an answer stays a quotation.
"""

from __future__ import annotations

import json
import re
from itertools import zip_longest

from ..bodies import status_in
from ..times.plain_text import without_escapes
from .error_bodies import body_evidence
from .failed_objects import failure_lines
from .json_stream import completed
from .printed_objects import printed_object
from .stamps import LEVEL, STAMP

__all__ = ("ONE_STRING", "unwrapped")

# A message, not a document.
ONE_STRING = 4000
_BORDERS = "│┃║"
# A traceback's box has one for the values of its variables.
_BOXES = 3
_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "`": "`"}
_FRAGMENT = re.compile(
    r"\s{0,16}(?:\"[\w.-]{1,40}\"\s?:|(?:status|statusCode|code|error|type|message): )"
)
_STAMP = re.compile(STAMP)
_LISTED_STRING = re.compile(r"\s{0,16}\"[^\n]{2,4000}\",?\s*")  # the lines of a log, in a list
_LISTED_STAMP = re.compile(rf"- (?:{STAMP}|\[(?i:{LEVEL})\])")
_LEVEL = re.compile(rf"(?i:\[?{LEVEL}\b\]?:?\s?)")
_LEVELED = re.compile(rf"[^\n]{{0,60}}?(?<![A-Za-z]){LEVEL}(?![A-Za-z])|\[?(?i:{LEVEL})\b")
# ### The error   **Status:** `408`   - Outcome: failed: what a report of a failure is made of
_LABEL = re.compile(
    r"\s{0,3}(?:#{1,6} [^\n]{1,160}|\*\*[^\n]{1,160}|</?\w[^\n]{0,200}>|[-*_]{3,}|\|[^\n]{1,400}\|"
    r"|(?:[-*•] )?(?:\*\*)?[A-Z][\w /()-]{1,30}(?:\*\*)?:(?:\*\*)?(?: [^\n]{1,4000})?"
    r"|(?:Failed|Error)\b[^\n]{0,300})\s*$"
)
_MARKUP = re.compile(
    r"^\s{0,3}(?:#{1,6} |[-*•] )|\*\*|</?(?:details|summary|b|br|code|pre)>", re.MULTILINE
)
# - Defects: 429: {"message": …   **Error:** acme.RateLimitError: …
_REPORTED = re.compile(
    r"^\s{0,3}(?:[-*•] |\*\*)[^\n:]{1,40}:(?:\*\*)? "
    r"(?:[45]\d\d\b|[\w.]{0,60}(?:Error|Exception)\b|\{[\"'])",
    re.MULTILINE,
)
_FAILED = re.compile(
    r"\b(?:errors?|failed|failure|exception|status|response|Traceback)\b|\w(?:Error|Exception)\b",
    re.IGNORECASE,
)
# ### Error Message   **Stack trace**
_ERROR_LABEL = re.compile(
    r"\s{0,3}(?:#{1,6} |\*\*)\W{0,6}(?:full )?(?:exception|failure|stack ?trace|traceback"
    r"|error(?: (?:message|output|logs?|details|text|response))?)\W{0,6}$",
    re.IGNORECASE,
)
_FEWEST_LABELS = 0.6
_A_REPORT = 4
# … ⎿  You've hit your limit ✻ Cooked for 3m: a screen whose lines were lost
_SCREEN = re.compile(r"(?<=\S)[ \t]*(?=[⎿❯✻] )")
_WIDEST = 400
# {…}   , …}: what people leave out of an object
_ELIDED = re.compile(r"(?:(?<=[{\[])|,)\s{0,4}(?:…|\.\.\.)(?=\s{0,4}[}\]])")
# A spinner goes back to the begin of its line, and what comes next stands there alone.
_OVERWRITTEN = re.compile(r"(?<!\r)\r++(?!\n)")
_CUT_WORD = re.compile(r"(?<=\w)\\\n(?=[a-z])")  # Please try a\⏎gain: as an editor wraps
# > [!WARNING]⏎> The engine was rate limited: a box in Markdown, not a quotation
_CALLOUT = re.compile(
    r"^> \[!(?:WARNING|CAUTION|ERROR)\][ \t]*(?P<said>(?:\n>[^\n]*){1,40})", re.MULTILINE
)
# @acme/web:dev:   api-1  |   [worker-3]; but Error:, WARN: and acme.RateLimitError: say something
_PREFIX = re.compile(
    rf"(?!\[?\d|\[?(?i:{LEVEL})\b|\S{{0,60}}(?i:error|exception|fail))"
    r"[\w@./:|\[\]-]{2,60}(?:: |\] |\s{0,40}\| )"
)
# - Agent: call failed: 429 {'error': …: one item of a list, with the body of an error
_ITEM = re.compile(r"^\s{0,8}[-*•] (?=[^\n]{0,400}[{\[][\"'])")


def unwrapped(text: str) -> str:
    """`text` as the program said it, before others dressed it up."""
    plain = _CUT_WORD.sub("", _OVERWRITTEN.sub("\n", without_escapes(text)))
    plain = _with_lost_lines(plain)
    plain = _without_prefix(_without_box(_ELIDED.sub("", plain)))
    plain = _without_stamps(_without_quote_marks(plain))
    return _braced(_without_quotes(_without_report(plain)))


def _with_lost_lines(text: str) -> str:
    """A screen that was copied as one line, or one row of a table, with its lines again."""
    bare = text.strip()
    if "\n" in bare:
        return text
    if bare[:2] == "| " and bare[-2:] == " |":
        return bare[2:-2].replace(" | ", "\n")
    text = _ITEM.sub("", text, count=1)
    return _SCREEN.sub("\n", text) if len(text) > _WIDEST else text


def _without_box(text: str) -> str:
    """`text` without the borders that a terminal program drew around it."""
    if not any(border in text for border in _BORDERS):
        return text
    return "\n".join(_line_without_box(line) for line in text.split("\n"))


def _line_without_box(line: str) -> str:
    for _ in range(_BOXES):
        bare = line.strip()
        if len(bare) < 2 or bare[0] not in _BORDERS:
            break
        line = bare[1:].rstrip(_BORDERS + " ").removeprefix(" ")
    return line


def _without_prefix(text: str) -> str:
    """Lines that a runner marked with the same name, without it: ``web:dev: …``, ``api-1  | …``."""
    lines = [line for line in text.split("\n") if line.strip()]
    if len(lines) > 1 and all(map(_LISTED_STAMP.match, lines)):
        return "\n".join(line.removeprefix("- ") for line in lines)
    if len(lines) > 1 and all(map(_LISTED_STRING.fullmatch, lines)):
        return "\n".join(_without_quotes(line.strip().rstrip(",")) for line in lines)
    found = _PREFIX.match(lines[0]) if len(lines) > 2 else None
    if found is None or not all(line.startswith(found[0]) for line in lines):
        return text
    return "\n".join(line.removeprefix(found[0]) for line in text.split("\n"))


def _without_quote_marks(text: str) -> str:
    """A text that is a quotation from its first line to its last, without its marks."""
    text = _CALLOUT.sub(lambda found: found["said"].replace("\n> ", "\n"), text)
    if not text.lstrip().startswith("> "):
        return text
    lines = text.split("\n")
    if not all(line.startswith(">") or not line.strip() for line in lines):
        return text
    return "\n".join(line.removeprefix(">").removeprefix(" ") for line in lines)


def _without_report(text: str) -> str:
    """A report of a failure, labels with blocks of code between them, without its markup."""
    outside, blocks = (text.split("```")[begin::2] for begin in (0, 1))
    blocks = [_without_quotes(block.partition("\n")[2]) for block in blocks]
    lines = [line for part in outside for line in part.split("\n") if line.strip()]
    labels = [line for line in lines if _LABEL.match(line)]
    is_comment = 2 * sum(line.startswith("# ") for line in labels) > len(labels)
    if is_comment or len(labels) < _FEWEST_LABELS * len(lines):
        return text
    is_failed = len(labels) >= _A_REPORT and _REPORTED.search(outside[0]) is not None
    is_error = bool(blocks) and any(map(_ERROR_LABEL.match, labels))
    is_error = is_error or (len(blocks) == 1 and _FAILED.search(outside[0]) is not None)
    is_error = is_error or (bool(blocks) and all(map(_FAILED.search, blocks)))
    if not (is_failed or is_error):
        return text
    plain = [_MARKUP.sub("", part) for part in outside]
    return "\n".join(part for pair in zip_longest(plain, blocks, fillvalue="") for part in pair)


def _without_stamps(text: str) -> str:
    """A log that stamps each physical line, or the lines of a printed value, without the stamps.

    Where a level stands behind the time, a logger made records: their lines keep their stamps,
    which tell where one record ends; only the lines of a value lose them.
    """
    if not _STAMP.match(text):
        return text
    lines, is_inside = text.split("\n"), False
    found = [_STAMP.match(line) for line in lines]
    rests = [line[one.end() :] if one else line for line, one in zip(lines, found, strict=True)]
    is_each = all(one or not line.strip() for line, one in zip(lines, found, strict=True))
    if is_each and not any(map(_LEVELED.match, rests)):
        return "\n".join(rests)
    for index, (one, rest) in enumerate(zip(found, rests, strict=True)):
        bare = _LEVEL.sub("", rest, count=1) if _LEVEL.match(rest) else rest
        is_inside = one is not None and (is_inside or bare.strip() in ("{", "["))
        if is_inside:
            lines[index] = bare
            is_inside = bare.rstrip() not in ("}", "]")
    return "\n".join(lines)


def _without_quotes(text: str) -> str:
    """What a program said as one quoted string, and nothing else."""
    bare = text.strip()
    if not 2 < len(bare) <= ONE_STRING or _QUOTES.get(bare[0]) != bare[-1]:
        return text
    if bare[0] != '"':
        return bare[1:-1] if "\n" not in bare else text
    try:
        said = json.loads(bare)
    except ValueError:
        return text
    return said if isinstance(said, str) else text


def _braced(text: str) -> str:
    """The inside of an error body whose braces were not copied with it."""
    if len(text) > ONE_STRING or not _FRAGMENT.match(text):
        return text
    whole = "{" + text.strip().rstrip(",") + "}"
    try:
        data = json.loads(whole, strict=False)
    except (ValueError, RecursionError):
        printed = printed_object(whole, 0)
        whole = whole if printed is not None else "{" + text.strip()
        data = completed(whole) if printed is None else printed[0]
    if not isinstance(data, dict):
        return text
    is_body = (status_in(data) or body_evidence(data)) is not None
    return whole if is_body or set(data) == {"result"} or failure_lines(data) else text
