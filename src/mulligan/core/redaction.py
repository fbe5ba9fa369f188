"""Redaction: masks secrets and control characters in text that is stored or shown.

Whatever a server, a program or an exception said passes `presentable` once, when it becomes
a Failure. Everything behind that point can be logged, printed and journaled as it stands.
"""

from __future__ import annotations

from .lazy_pattern import lazy
from .published_keys import PREFIXES, SHAPES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Sequence

__all__ = (
    "MASK",
    "SHORTEST_SECRET",
    "clean",
    "mask",
    "presentable",
    "printable",
    "secret_values",
    "take_secret_values_from",
)

MASK = "[masked]"

# Shorter values are words of every day; CI systems refuse to mask them, too.
SHORTEST_SECRET = 8

# ANSI/OSC sequences first, whole; then what is left of control and bidi characters.
_ESCAPES = lazy(
    r"\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?"  # OSC … BEL | ST
    r"|\x1b[PX^_][^\x1b]{0,4096}(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|[\x1b\x9b][\[()#;?]*[0-9;:]*[A-Za-z0-9=><~]?"  # CSI and the short ones
)
_CONTROLS = lazy(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff]"  # lone surrogates cannot be encoded
)
_BLANKS = lazy(r"[ \t\n]+")
_LONG_WORD = lazy(r"[A-Za-z0-9_.:/+=~-]{14}")

# One cheap look before the careful one: most messages contain none of these. Plain searches in
# lower case cost a microsecond, the same list as one pattern ten times that.
_SUSPICIOUS = (
    *("auth", "bearer", "basic", "digest", "negotiate", "cookie", "token", "secret", "pass"),
    *("pwd", "key", "credential", "sig", "session", "sid", "code=", "code_verifier", "webhooks"),
    "curl",
    "://",
)
_NAMES = (
    r"(?:[a-z0-9_.-]{0,40}(?:api[ _-]?keys?|(?:access|account|subscription|signing|encryption"
    r"|private|master)[_-]?key|secret|passw(?:or)?d|passphrase|pwd|token(?!s)|credentials?"
    r"|authorization|signature|session[_-]?id|phpsessid|cookies?)"
    r"[a-z0-9_-]{0,40}|[a-z0-9_.-]{0,40}[_-](?:key|pass)|code_verifier)"
)
# Words of every day: a secret's name in quotes or before an equals sign, prose before a colon.
_COMMON = r"(?:key|sig|sid|auth|pass|code)"
# A value: quoted, up to its closing quote, blanks and all; else up to the next delimiter. A
# backslash before a quote is JSON in JSON.
_LISTED = r"(?:\[[^\]]{0,500}\]?|\{[^}]{0,500}\}?)"
_QUOTED = (
    rf"(?:{_LISTED}|b?\"(?:[^\"\\]|\\.)*\"?|b?'(?:[^'\\]|\\.)*'?"
    r"|\\\"[^\"\\]*\\?\"?|\\'[^'\\]*\\?'?)"
)
_START = r"(?<![A-Za-z0-9])"  # \b takes a letter of any script for a part of the word
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # -----BEGIN PRIVATE KEY----- … to its end, or to ours
    (
        lazy(r"(?s)-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}-----|$)"),
        MASK,
    ),
    # Authorization: Bearer x   Proxy-Authorization: Digest a="b", c="d"   Cookie: a=b; c=d
    (lazy(rf"(?i){_START}((?:set-)?cookie2?\s*[:=]\s*)[^\r\n]+"), rf"\1{MASK}"),
    (
        lazy(rf"(?i){_START}((?:proxy-)?authorization\s*[:=]\s*digest\s)[^\r\n]+"),
        rf"\1{MASK}",
    ),
    (
        lazy(rf"(?i){_START}((?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?)[^\r\n\"',}}]+"),
        rf"\1{MASK}",
    ),
    (
        # A short word of letters alone is prose: "token provided", "basic authentication".
        lazy(
            rf"(?i){_START}((?:bearer|basic|token|apikey|digest|negotiate)\s+)"
            r"(?![a-z]{1,15}(?![A-Za-z0-9._~+/=|:-]))[A-Za-z0-9._~+/=|:-]{8,}"
        ),
        rf"\1{MASK}",
    ),
    # "api_key": "x"   ('x-api-key', 'x')   \"api_key\": \"x\"
    (
        lazy(
            rf"(?i)(\\?[\"'](?:{_NAMES}|{_COMMON})\\?[\"']\s*[:=,]\s*)(?:{_QUOTED}|[^\s,}}\]\"'\\]+)"
        ),
        rf'\1"{MASK}"',
    ),
    # password=x   token: x   ?key=x&…   api_key%3Dx   --api-key x   <password>x
    # — but not what a message says about a file: /etc/passwd: not executable
    (
        lazy(
            rf"(?i){_START}((?:{_NAMES}\s*(?:=>?|%3d)|(?<!/){_NAMES}\s*[:\uff1a]"
            rf"|{_COMMON}\s*(?:=|%3d))\s*)(?!\s|\[masked)(?:{_QUOTED}|[^\s&\"',;}}\])]+)"
        ),
        rf"\1{MASK}",
    ),
    (lazy(rf"(?i)(--?{_NAMES}\s)(?![\s-]|\[masked)\S+"), rf"\1{MASK}"),
    (lazy(rf"(?i)(<{_NAMES}>)[^<]+"), rf"\1{MASK}"),
    # curl -u alice:x
    (
        lazy(
            rf"(?i){_START}(curl\s(?:[^\n]{{0,400}}?\s)?(?:-u|--(?:proxy-)?user)[\s=]?\\?[\"']?)"
            r"[^\s:\"'\\]{1,100}:[^\s\"'\\]+"
        ),
        rf"\1{MASK}",
    ),
    # scheme://user:secret@host — up to the last @ before the path. A secret may contain slashes; a
    # port followed by a path with an @ in it is none, where the scheme is the web's.
    (
        lazy(
            rf"(?i){_START}([a-z][a-z0-9+.-]{{0,20}}://)"
            r"(?:(?<!http://)(?<!https://)[^\s/:@\"']{0,200}:[^\s\"']{1,2000}"
            r"|[^\s/:@\"']{0,200}:(?![0-9]{1,5}(?:/|$))[^\s\"']{1,2000}|[^\s/\"']{1,2000})@"
        ),
        rf"\1{MASK}@",
    ),
    # password is x   API key x is not valid   token 'x' expired   refreshToken => x
    # — where the value is not a plain word: it has a digit in it
    (
        lazy(
            r"(?i)((?:password|passphrase|key|token|secret) ?(?:provided|given|used|is|was|:)?:? "
            r"[\"']?)(?=[^\s0-9]{0,64}[0-9])[^\s\"']{8,}"
        ),
        rf"\1{MASK}",
    ),
    # Addresses that are secrets themselves.
    (
        lazy(
            r"(?i)(hooks\.slack\.com/services/|/api/webhooks/[0-9]+/|/bot(?=[0-9]{4,20}:))"
            r"[^\s/?\"']+(?:/[^\s?\"']+)?"
        ),
        rf"\1{MASK}",
    ),
)


def clean(text: str, limit: int = 500) -> str:
    """`text` without control, escape and bidi characters, on one line, cut at `limit`."""
    # Cut before the work is done: a megabyte of noise costs no more than a line.
    text = text[: limit * 8]
    if not (text.isascii() and text.isprintable()):
        text = _BLANKS.sub(" ", printable(text))
    elif "  " in text:
        text = _BLANKS.sub(" ", text)
    text = text.strip()
    return text if len(text) <= limit else text[: limit - 1] + "…"


def printable(text: str) -> str:
    """`text` without control, escape and bidi characters; lines and tabs stay."""
    return _CONTROLS.sub("", _ESCAPES.sub("", text).replace("\r\n", "\n"))


def mask(text: str) -> str:
    """`text` with everything that looks like a secret replaced by ``[masked]``.

    Three kinds: values known to be secret (`secret_values`), whatever stands beside a name that
    only secrets have, and keys that are known by their looks.
    """
    if len(text) < SHORTEST_SECRET and (not text or text.isalnum()):
        return text  # too short for a value, without room for a name beside one
    lowered = text.lower()
    is_suspicious = any(suspect in lowered for suspect in _SUSPICIOUS)
    for value in secret_values():
        if value in text:
            text = text.replace(value, MASK)
    if is_suspicious:
        for pattern, replacement in _RULES:
            text = pattern.sub(replacement, text)
    # Most messages have no word as long as a key, and are done after one search.
    if _LONG_WORD.search(text) is not None:
        for key in _published_keys(text):
            text = key.sub(MASK, text)
    return text


def _published_keys(text: str) -> list[re.Pattern[str]]:
    """The patterns of those kinds of keys whose prefix stands in `text`."""
    import re

    found = [re.escape(prefix) + tail for prefix, tail in PREFIXES.items() if prefix in text]
    found += [shape for part, shape in SHAPES if part in text]
    return [re.compile(_START + pattern) for pattern in found]


def presentable(text: str, limit: int = 500) -> str:
    """`text` cleaned, masked and cut: what may be stored, logged or shown.

    Masked before it is cut, so that a cut can never leave half a secret standing without the
    name that gave it away.
    """
    cleaned = clean(_whole_words(text, limit * 32), limit * 4 + 1)
    cleaned = _whole_words(cleaned, limit * 4)
    masked = mask(cleaned)
    if masked is cleaned and len(masked) <= limit:
        return masked
    return clean(masked, limit)


def _whole_words(text: str, limit: int) -> str:
    """`text` cut at `limit`, without the word that the cut went through.

    Half a secret may no longer look like one: the password of an address whose ``@`` is gone.
    """
    if len(text) <= limit:
        return text
    text = text[:limit]
    end = max(text.rfind(" "), text.rfind("\n"), text.rfind("\t"))
    return text[: end + 1] if end >= 0 else text


# The core reads no environment: who knows secret values installs a source for them, once
# (`config.secret_variables` does, for every front door).
_source: Callable[[], Sequence[str]] = tuple


def secret_values() -> Sequence[str]:
    """The values to mask, the longest first, so that none leaves the end of another standing."""
    return _source()


def take_secret_values_from(source: Callable[[], Sequence[str]]) -> None:
    """Ask `source` for the values from now on. It is called for each text that is masked."""
    global _source  # noqa: PLW0603 -- what must not be shown does not depend on who shows it
    _source = source
