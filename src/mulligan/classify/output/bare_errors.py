"""Errors without a prefix: "upstream returned status 429", "code=rate_limit_exceeded".

Such a line has a status beside a word that says where it comes from, or a code that only machines
write. People who talk about limits use the same words, so a line that reads like a person (an
acting subject, a condition) or like code is not an error.
"""

from __future__ import annotations

import re

from .talk import is_inside_quotes, is_person, is_quoting

__all__ = ("bare_error", "may_introduce")

_STATUS = re.compile(
    r"\b(?:HTTP|status|status_code|code|error|returned|got|received|responded(?: with)?"
    r"|answered|failed|rejected)"
    r"(?: (?:status|code|error|with|a|an|HTTP)){0,3}(?:: | \(|[\s:=#(\[])(?P<status>429|529)\b"
    r"|^(?P<first>429|529)\b(?:$|[;.,:)\]·—-](?![\d\"])|(?= (?:too|from|rate|limit|quota"
    r"|error|status|client|server|overload|service|you|request|resource|slow|throttl|(?-i:[A-Z{<(\[\"']))))",
    re.IGNORECASE,
)
# Not inside quotes: that is code which knows the word.
_CODE = re.compile(
    r"(?<![\"'%\w])(?:rate_limit(?:ed|_(?:exceeded|error|reached)\w*)?|RateLimit(?:ed|Error|Exceeded)"
    r"|rateLimit(?:ed|Exceeded)|RESOURCE_EXHAUSTED|ResourceExhausted|Throttl(?:ing|ed)Exception"
    r"|TooManyRequests(?:Error|Exception)?|quota_(?:exceeded|exhausted)|overloaded_error|OverloadedError|ServiceUnavailable(?:Error|Exception)"
    r"|usage_limit_(?:reached|exceeded)|(?:E|ERR_)?(?:RATE_LIMIT(?:ED|_EXCEEDED|_REACHED)"
    r"|TOO_MANY_REQUESTS|QUOTA_EXCEEDED|USAGE_LIMIT_(?:REACHED|EXCEEDED)))(?![\"'%\w])"
)
# A statement, not an essay.
_LONGEST = 600
_INTRODUCTION = 120


def bare_error(text: str) -> tuple[bool, int | None]:
    """Whether `text` is an error that nothing introduces, with its status, if it has one."""
    if len(text) > _LONGEST:
        return False, None
    status, code = _STATUS.search(text), _CODE.search(text)
    stated = status or code
    if stated is None or is_person(text) or is_inside_quotes(text, stated.start()):
        return False, None
    return True, int(status["status"] or status["first"]) if status else None


def may_introduce(message: str) -> bool:
    """Whether what stands before the first brace of `message` may introduce a body."""
    before = message[: message.find("{")]
    is_short = 0 < len(before) <= _INTRODUCTION
    return is_short and not is_person(before) and not is_quoting(before)
