"""Errors without an introduction: "upstream returned status 429", "code=rate_limit_exceeded".

Such a line has a status beside a word that says where it comes from, or a code that only machines
write. People who talk about limits use the same words, so a line that reads like a person (an
acting subject, a condition) or like code is not an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ("BareError", "as_bare_error", "is_person", "is_quoting", "may_introduce")

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
_PERSON = re.compile(
    r"\b(?:i|i'm|i've|i'll|we|we've|my|our|he|she|they|when|whenever|unless|should|would|might|fix\w*"
    r"|add(?:s|ed)?|handl\w*|detect\w*|pars\w+|match\w*|patterns?|regex\w*|tests?|tested|docs?|readme"
    r"|documentation|example|e\.g|caused|implement\w*|refactor\w*|limiter|limiting|classif\w*|treat\w*"
    r"|counts?|counted|summary|now|then|instead|survived"
    r"|recovered|twice|succeeded|completed|eventually|means|listed|documented|described|section|passed|passes|works?|worked"
    r"|because the|resolved|incident|some|between|yesterday"
    r"|which|what|how|why|select|where|const|let|var|def"
    r"|der|das|und|wenn|wird|ich|wir|les|quand|cuando|los|quando|para|que"
    r"|retry:|retrying|retried|will retry|retry in|are|were|responses)(?!\w)"
    r"|^(?:if|when|once) |\b(?:if|once) (?!(?:it|this|the (?:problem|error|issue)|you)\b)"
    r"|'\w[^']{0,60}'\s*(?:is|was|in|to)\b|[=!]==?\s|\s=\s|=>|->|\*\*|^@\w|\w=\w{1,60}\(|\(\)|\w\(\{|\)\.\w+\(|::|\|\s|[;,\[{]\s*$|^[-*#>+|\"']"
    r"|^\[(?![\s\w.:/-]{1,40}\] )",
    re.IGNORECASE,
)
# Addresses and names of modules say nothing about who speaks.
_ASIDE = re.compile(
    r"[\"']?https?://\S{1,400}|\bwhen calling the \w{1,60} operation\b"
    # Caused by: …   proxy/handler.go:412   acme::agent::llm: …
    r"|\bCaused by: |\b[\w./-]{1,80}\.\w{1,5}:\d{1,6}\b|\b\w{1,60}(?:::\w{1,60}){1,8}:?"
)
# The program prints `API Error: {…}`: a quotation is not an error.
_QUOTES = re.compile(r"(?:^|\s)[\"'`](?!\s)")
# A quotation that has begun and has not ended.
_QUOTED = re.compile(r"(?:^|\s)(?:'(?!\s)[^']{0,200}|\"(?!\s)[^\"]{0,200}|`[^`]{0,200})$")
# A statement, not an essay.
_LONGEST = 600
_INTRODUCTION = 120


@dataclass(frozen=True, slots=True, kw_only=True)
class BareError:
    """An error that nothing introduced.

    Args:
        status: The HTTP status in it, if any.
    """

    status: int | None = None


def is_person(text: str) -> bool:
    """Whether `text` sounds like a person who talks, or like code."""
    return _PERSON.search(_ASIDE.sub(" ", text)) is not None


def is_quoting(text: str) -> bool:
    """Whether a quotation begins in `text`."""
    return _QUOTES.search(_ASIDE.sub(" ", text)) is not None


def as_bare_error(text: str) -> BareError | None:
    """`text` as an error that nothing introduces; None if it may be a person who talks."""
    if len(text) > _LONGEST:
        return None
    status, code = _STATUS.search(text), _CODE.search(text)
    stated = status or code
    if stated is None or is_person(text):
        return None
    if _QUOTED.search(text[: stated.start()]):
        return None
    return BareError(status=int(status["status"] or status["first"]) if status else None)


def may_introduce(message: str) -> bool:
    """Whether what stands before the first brace of `message` may introduce a body."""
    before = message[: message.find("{")]
    is_short = 0 < len(before) <= _INTRODUCTION
    return is_short and not is_person(before) and not is_quoting(before)
