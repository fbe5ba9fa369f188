"""Words with which people talk about a limit, where a program would state it.

"When the weekly limit is reached, …", "I added a test for …", "it prints `rate limited`": the same
words as a banner, and no failure. One list serves all that ask who is speaking.
"""

from __future__ import annotations

import re

__all__ = (
    "explains",
    "is_condition",
    "is_inside_quotes",
    "is_person",
    "is_talk",
)

_TELLERS = (
    r"i(?!/o)|i'm|i've|i'll|we|we've|my|our|he|she|they"
    r"|der|das|und|wenn|wird|ich|wir|les|quand|cuando|los|quando|para|que"
)
_ASKS = r"when|whenever|unless|should|would|could|might|how|why|which|what|whether"
_TELLS = (
    r"prints?|printed|shows?|showed|mentions?|means?|meant|reads?|wordings?|banners?"
    r"|quot(?:e|es|ed|ing)|e\.g|example|like|patterns?|regex\w*|match\w*|pars(?:e|es|ed|er|ing)"
    r"|detect\w*|handl\w*|classif\w*|treats?|treated|counts?|counted|add(?:s|ed)?|fix(?:e[sd])?"
    r"|implement\w*|refactor\w*|tests?|tested|docs?|readme|documentation|documented|described"
)
_TALK = re.compile(
    rf"\b(?:{_TELLERS}|{_ASKS}|{_TELLS}|if|once|after|string|answer\w*)\b", re.IGNORECASE
)
# A sentence without a prefix is a person's far more often than a line with one.
_PERSON = re.compile(
    rf"\b(?:{_TELLERS}|{_ASKS}|{_TELLS}"
    r"|caused|limiter|limiting|summary|then|instead|survived|recovered|twice|succeeded|completed"
    r"|eventually|listed|section|passed|passes|works?|worked|because the|resolved|incident|some"
    r"|between|yesterday|select|where|const|let|var|def|retry:|retrying|retried|will retry|retry in"
    r"|responses)(?!\w)"
    r"|^(?:if|once) |\b(?:if|once) (?!(?:it|this|the (?:problem|error|issue)|you)\b)"
    r"|(?-i:\b(?:DEBUG|TRACE|VERBOSE)\b)|'\w[^']{0,60}'\s*(?:is|was|in|to)\b|[=!]==?\s|\s=\s|=>|->|\*\*|^@\w|\w=\w{1,60}\(|\(\)|\w\(\{"
    r"|\)\.\w+\(|::|\|\s|[;,\[{]\s*$|^[-*#>+|\"']|^\[(?![\s\w.:/-]{1,40}\] )",
    re.IGNORECASE,
)
# If you see Error 429, …: advice, whatever it quotes.
_CONDITION = re.compile(
    r"(?:if|when|whenever|once|until|unless|before|while|because|since|how|why|whether)\b",
    re.IGNORECASE,
)
# … is what the program prints: the sentence goes on about its banner.
_EXPLAINS = re.compile(
    r"\W{0,3}\s(?:is|was|were|means?|meant|which|when|because|instead|should|would|twice|if|unless"
    r"|appears?|indicates?|says?|pattern|banner|string|message|text|regex)\b"
    # Wait 20 seconds and retry on a 429: an instruction
    r"|\s(?:and|then|before) (?:then )?(?:retry|retrying|try again) (?:on|for|when|if|every)\b",
    re.IGNORECASE,
)
_REMARK = re.compile(
    r"(?-i:\bI(?:'m|'ve|'ll)?) (?:believe|think|guess|suggest|recommend|fixed|added|found|noticed"
    r"|tried|would|am closing|changed|updated|see|saw)\b",
    re.IGNORECASE,
)
# Addresses and names of modules say nothing about who speaks.
_ASIDE = re.compile(
    r"[\"']?https?://\S{1,400}|\bwhen calling the \w{1,60} operation\b"
    # Caused by: …   proxy/handler.go:412   acme::agent::llm: …
    r"|\bCaused by: |\b[\w./-]{1,80}\.\w{1,5}:\d{1,6}\b|\b\w{1,60}(?:::\w{1,60}){1,8}:?"
)
_OPEN_QUOTE = re.compile(
    r"(?:^|\s)(?:'(?!\s)(?:[^']|(?<=\w)'(?=\w)){0,200}|\"(?!\s)[^\"]{0,200}|`[^`]{0,200})$"
)


def is_inside_quotes(text: str, end: int) -> bool:
    """Whether a quotation has begun before `end` and has not ended there."""
    return _OPEN_QUOTE.search(text[:end]) is not None


def is_talk(text: str, start: int = 0, end: int | None = None) -> bool:
    """Whether words in front of a banner make it a subject of conversation."""
    return _TALK.search(text, start, len(text) if end is None else end) is not None


def is_person(text: str) -> bool:
    """Whether `text` sounds like a person who talks, or like code."""
    return _PERSON.search(_ASIDE.sub(" ", text)) is not None


def is_condition(text: str) -> bool:
    """Whether `text` tells what would happen, not what did."""
    return _CONDITION.match(text) is not None


def explains(text: str, end: int) -> bool:
    """Whether the sentence that ends its banner at `end` goes on to talk about it."""
    return _EXPLAINS.match(text, end) is not None or _REMARK.search(text, end) is not None
