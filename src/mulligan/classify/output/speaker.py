"""Lines of text without stamps and prefixes, and whether an error introduced them.

A line that an error introduces ("API Error:", "litellm.RateLimitError:", "429 …", "the run
failed:") may say what happened anywhere. Any other line counts only if it begins with the words
of a banner. Introductions are removed one by one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ..times.plain_text import level
from .error_prefixes import ERROR_PREFIX
from .stamps import STAMP
from .talk import is_talk

__all__ = ("SpokenLine", "read_line", "status_anywhere")

# Symbols, emoji, box drawing, punctuation: all but what opens a quote, code, a list or markup.
_ORNAMENTS = re.compile(r"[^\w\"'`#+<{\[($@%/\\=~^&-]+")
# Time stamps, levels, tags that come before what is said.
_STAMP = re.compile(
    rf"{STAMP}"
    r"|[EWIF]\d{4} \d\d:\d\d:\d\d\.\d{1,9}\s+\d{1,9} [\w./-]{1,60}:\d{1,6}\] "  # glog
    r"|[\w.-]{1,40} {1,20}\| "  # docker compose
    r"|[\w.]{1,60}:[\w<>.]{1,60}:\d{1,6} - "  # loguru
    r"|\d{1,2}: (?=\D|[45]\d\d [A-Z])|\[\d{1,3}\] => "  # a chain of causes; PHP
    r"|\w{1,40}(?:::\w{1,40}){1,6}:\s+"  # a module in Rust
    # worker-3: a name with digits or punctuation, in front of a sentence
    r"|(?=[\w./-]{0,30}[\d./-])[a-z][\w./-]{2,30}:\s+"
    r"(?=(?:You|Your|API|Sorry|This|The|No|Rate|Usage|\d)\b)"
    r"|[\w.]{1,60} (?:- )?(?=(?:ERROR|CRITICAL|WARNING|INFO|DEBUG)\b)"  # logging
)
_LEVEL = re.compile(
    r"(?:\[\s*)?(?P<level>ERROR|ERR|FATAL|CRITICAL|WARN|WARNING|INFO|DEBUG|NOTICE)(?:\s*\])?"
    r"(?::[\w.-]{1,40}:|[:\s](?!\w+\s*=))\s*(?:[-|]\s+)?(?=\S)"
    r"|(?P<short>ERRO|FATA|PANI)\[\d{1,9}\]\s+"  # logrus
    r"|(?P<dotnet>fail|crit): (?=[A-Z])"
    r"|-\s(?P<dashed>error)\s(?=[\w\s\[]{0,60}(?:Error|Exception)\b\]?:)"  # Next.js
    r"|(?:##)?\[(?P<tag>(?i:(?:[a-z]{2,24} ){0,2}(?:error|err|fatal|critical|fail|failed)))\]"
    r"\s*:?\s*(?=\S)"
)
# 23:27:08 - openhands:ERROR: agent.py:228 - …   2026-01-02 03:04:05,678 - 14 - llm.py:1 - ERROR: …
_LOGGED = re.compile(
    r"(?=\[?\d[\d:./T-]{4,})(?:[\w.:,/\[\]()|<>+@#-]{1,60}+\s+){0,7}?[\w.:\[(|-]{0,40}?"
    r"(?<![A-Za-z_])(?:ERROR|CRITICAL|FATAL|SEVERE)(?![A-Za-z_])[\])]?[:\s|-]{1,6}"
    r"(?:[\w./-]{1,60}:\d{1,6}(?::\d{1,6})?\s+-\s+|[\w.]{1,60}\s+[—-]\s+|\[[^\[\]\n]{1,60}\]\s*){0,3}"
)
_TAG = re.compile(
    r"(?:stderr|stdout|output|result|message|details?|reason)\s*[:=]\s*|(?:response|body)=(?=\{)"
    r"|\[(?:result|stderr|stdout|claude|codex|gemini|copilot|opencode|qwen|aider|agent"
    r"|cli|runner|worker[\w-]{0,8}"
    # [orchestrator] …: any name, but not an error code
    r"|(?!\w{0,30}(?:err|limit|exhaust|quota|overload|unavail|denied|timeout|throttl|invalid|debug|trace|verbose))"
    r"(?:[a-z][\w./@-]{2,60}|run #?\d{1,5}|\d{4,20}))\]\s*:?\s+",
    re.IGNORECASE,
)
# I'm sorry, I can't complete that request. …   Oops! …
_APOLOGY = re.compile(
    r"(?:(?:i'm|i am|we're|we are) (?:very )?)?(?:sorry|apologies|unfortunately|oops|uh-oh|whoops"
    r"|desculpe|lo siento|désolé|entschuldigung|spiacenti?)"
    r"(?:[.!,:;]|\s-)\s+"
    r"(?:(?:i|we) (?:can't|cannot|could not|couldn't|am unable|are unable|had (?:a|some)|ran into)"
    r"[^.!?:\n]{1,60}[.!:]\s+)?",
    re.IGNORECASE,
)
_NAMED = re.compile(
    r"(?:claude(?: code)?|codex|gemini(?: cli)?|copilot|opencode|qwen|aider|goose|cursor|kimi|amp"
    r"|graphql|gh|agent|cn|pi)(?:\s?:\s+|\s+(?=you(?:'ve|'re)?\s(?:hit|have|exhausted|exceeded|reached)))",
    re.IGNORECASE,
)
# 429 Too Many Requests   HTTP/1.1 429   HTTP 429   status code: 503   (400: Bad Request): …
_STATUS = re.compile(
    r"(?i:HTTP(?:/\d(?:\.\d)?)?\s+|(?:got )?status(?:\s+code)?\s*[:=]?\s*"
    r"|[\[(](?=\d{3}(?:: [A-Z][\w ]{2,40})?[\])]))?"
    # 503 ("Service Unavailable") errors are …: a page about them
    r"(?P<status>[1-5]\d\d)(?!\s*\([^()\n]{1,40}\)\s(?:errors?|responses?)\b)"
    r"(?:(?:: [A-Z][\w ]{2,40})?[\])]\s*[·:-]?\s*(?=\S)"
    r"|\s+(?=[A-Z{<(\[\"'\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af-]"
    r"|limit|rate|quota|too many|you |status code)"
    r"|\s*[:·-]\s+|\s\|\s(?=(?:\w{1,20}=)?\{)|, body:\s+|\s*$|\s*(?=</))"
    r"|HTTP/\d(?:\.\d)? (?P<headed>[1-5]\d\d) (?=[a-z][a-z0-9-]{1,40}:\s)"  # its headers follow
)
# <head><title>502 Bad Gateway</title>: a middleman's page
_MARKUP = re.compile(r"(?:<[^<>\n]{1,80}>\s*){1,8}")
_LOGFMT = re.compile(
    r"\blevel=\"?(?:error|fatal|ERROR|FATAL)\b|\bisError=true\b|\brawError=\S"
    r"|^\[[\w./:@-]{2,40}\] [^\n=\"']{0,200}\berror=\S"  # [gateway] run ended: error=…
    r"|^\s*(?:error|err)=\"[^\"\n]{4,400}\"\s*$|\s(?:error|err|reason)=[a-z]{2,20}(?:_[a-z]{2,20}){1,4}"
    r"(?=\s*$|\s(?:retry|resets?)_)"
    r"|^(?:\w{1,30}=(?:\"[^\"\n]{0,400}\"|'[^'\n]{0,400}'|[^\s=]{1,80})\s+){0,8}"
    r"(?:detail|reason|error|err)=\"[^\"\n]{8,400}\"\s*$"  # nothing but keys with values
)
# job=7 attempt=2 err=rate_limit: several keys, and one of them tells of an error
_KEYS = re.compile(r"(?<![\w(<.])[a-z][\w.]{0,30}=(?=[^\s=])", re.IGNORECASE)
_ERROR_KEY = re.compile(
    r"(?<![\w(<.])err(?:or)?(?:[_.]\w{1,12})?=(?!(?:none|null|nil|false|0|\"\"|'')(?!\w))[^\s=]",
    re.IGNORECASE,
)
_MERE = re.compile(r"\blevel=\"?(?:warn|info|debug|trace)", re.IGNORECASE)
_FEWEST_KEYS = 2
_LOGFMT_ERROR = re.compile(
    r"\b(?:error(?:[_.](?!param|type)\w+)?|err|cause|msg|detail|reason|output|stdout|stderr|rawError)="
    r"(?:\"(?P<quoted>(?:[^\"\\]|\\.){4,2000})\"|(?P<bare>\S[^=\n]{0,2000}?)(?=\s[\w.]{1,30}=|$))"
)
_RESET_KEY = re.compile(
    r"(?<![\w.])(?:retry|resets?)_?(?:after|at|delay|in)(?:_\w{1,8})?=[^\s=]{1,40}"
)
_STATUS_ANYWHERE = re.compile(
    r"(?:\bHTTP(?:/\d(?:\.\d)?)?|\b(?:error)?status(?:[ _]?code)?|error(?: code)?|'code'|\"code\""
    r"|\brejected|\bcode|<Response)(?:\W{1,4}|\sof\s)(?P<status>[45]\d\d)\b|^\W{0,3}(?P<first>[45]\d\d)\b",
    re.IGNORECASE,
)
# The first step is to acme.APIError: APIError: AcmeException - …: an answer that broke off
_BROKEN_OFF = re.compile(
    r"\b(?:[a-z]\w{0,40}\.){1,4}(?P<error>[A-Z]\w{1,60}(?:Error|Exception)): "
    r"(?:(?P=error): )?[A-Z]\w{1,40}Exception - "
)
# gh: We could not answer in time. (HTTP 504)
_ENDED = re.compile(r"\(HTTP (?P<status>[45]\d\d)\)$")
_PEEL = (_STAMP, _TAG, _NAMED, _MARKUP, _APOLOGY)
_BLANKS = re.compile(r"\s+")
# The value of a field: result: "You've hit your limit"
_VALUE = re.compile(r"(?P<mark>[\"'])(?P<value>(?:(?!(?P=mark))[^\\\n]){12,})(?P=mark)(?=\s|$)")
_ERRORS = (_LOGGED, ERROR_PREFIX)
_PEELS = 7


@dataclass(frozen=True, slots=True, kw_only=True)
class SpokenLine:
    """What a line says once its prefixes are peeled off.

    Args:
        text: The words, on one line, plain.
        is_error: Whether an error introduced them.
        status: The HTTP status among the prefixes.
        whole: The words with their prefixes, for banners that a prefix is part of.
    """

    text: str
    is_error: bool = False
    status: int | None = None
    whole: str = ""


def read_line(line: str) -> SpokenLine:
    """`line` (with what continues it) without ornaments, stamps and prefixes."""
    plain = _BLANKS.sub(" ", level(line)).strip()
    position = _skip(_ORNAMENTS, plain, 0)
    whole = plain[position:]
    if _LOGFMT.search(plain[:400]) or _has_error_key(plain[:2000]):
        parts = [found["quoted"] or found["bare"] for found in _LOGFMT_ERROR.finditer(plain)]
        if parts:
            parts += [found[0] for found in _RESET_KEY.finditer(plain)]
            inner = read_line(" ".join(parts).replace('\\"', '"'))
            return SpokenLine(text=inner.text, is_error=True, status=inner.status, whole=inner.text)
    is_error, position, status = _peeled(plain, _behind_answer(plain, position))
    if not is_error and (ended := _ENDED.search(plain)):
        is_error, status = True, int(ended["status"])
    text = _unquoted(plain, position)
    if is_error and status is None:
        status = status_anywhere(whole)
    return SpokenLine(text=text, is_error=is_error, status=status, whole=whole)


def status_anywhere(text: str) -> int | None:
    """The HTTP status of a failure that the beginning of `text` names."""
    found = _STATUS_ANYWHERE.search(text[:400])
    return int(found["status"] or found["first"]) if found else None


def _peeled(plain: str, position: int) -> tuple[bool, int, int | None]:
    """Whether an error introduces what stands at `position`; where it begins; its status."""
    is_error, is_mere, status = False, False, None
    for _ in range(_PEELS):
        if found := _LEVEL.match(plain, position):
            name = found["level"] or "ERROR"
            is_error = is_error or name in ("ERROR", "ERR", "FATAL", "CRITICAL")
            is_mere = name == "DEBUG"
        elif found := next((one for form in _ERRORS if (one := form.match(plain, position))), None):
            named = found.groupdict()
            if any(is_talk(words) for words in named.values() if words):
                break
            is_error = True
        elif found := _STATUS.match(plain, position):
            status = int(found["status"] or found["headed"])
            is_error = is_error or (status >= 400 and not is_mere)
        else:
            found = next((one for peel in _PEEL if (one := peel.match(plain, position))), None)
        if not found or found.end() == position:
            break
        position = _skip(_ORNAMENTS, plain, found.end())
    return is_error, position, status


def _unquoted(plain: str, position: int) -> str:
    """What stands at `position`; a value in quotation marks without them."""
    text = plain[position:]
    value = _VALUE.match(text) if position > 0 else None
    return _skipped(_ORNAMENTS, value["value"]) + text[value.end() :] if value else text


def _has_error_key(plain: str) -> bool:
    """Whether `plain` is a record of keys with their values, one of them an error."""
    if not _ERROR_KEY.search(plain) or _MERE.search(plain):
        return False
    return len(_KEYS.findall(plain)) >= _FEWEST_KEYS


def _behind_answer(plain: str, position: int) -> int:
    """Where an error begins that stands behind the answer that it broke off; else `position`."""
    found = _BROKEN_OFF.search(plain, position)
    return found.start() if found else position


def _skipped(pattern: re.Pattern[str], text: str) -> str:
    return text[_skip(pattern, text, 0) :]


def _skip(pattern: re.Pattern[str], text: str, position: int) -> int:
    found = pattern.match(text, position)
    return found.end() if found else position
