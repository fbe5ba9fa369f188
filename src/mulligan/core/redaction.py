"""Other people's words, made fit to be stored or shown.

Whatever a server, a program or an exception said passes `presentable` once, when it becomes
a Failure. Everything behind that point can be logged, printed and journaled as it stands.
"""

from __future__ import annotations

import re

__all__ = ("MASK", "clean", "mask", "presentable", "printable")

MASK = "[masked]"

# ANSI/OSC sequences first, whole; then what is left of control and bidi characters.
_ESCAPES = re.compile(
    r"\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?"  # OSC … BEL | ST
    r"|\x1b[PX^_][^\x1b]{0,4096}(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|[\x1b\x9b][\[()#;?]*[0-9;:]*[A-Za-z0-9=><~]?"  # CSI and the short ones
)
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"
    "\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff]"  # lone surrogates cannot be encoded
)
_BLANKS = re.compile(r"[ \t\n]+")

# One cheap look before the careful one: most messages contain none of these. Plain searches in
# lower case cost a microsecond, the same list as one pattern ten times that.
_SUSPICIOUS = (
    *("auth", "bearer", "basic", "digest", "negotiate", "cookie", "token", "secret", "pass"),
    *(
        "pwd",
        "key",
        "credential",
        "sig",
        "session",
        "aiza",
        "akia",
        "asia",
        "eyj",
        "ya29",
        "sg.",
        "sid",
        "code=",
        "hvs.",
        "webhooks",
        "://",
    ),
)
_SUSPICIOUS_DASHED = ("sk-", "pk-", "rk-", "xox", "glpat-", "xai-", "pplx-", "nvapi-", "tvly-")
_SUSPICIOUS_SCORED = (
    *("sk_", "pk_", "rk_", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_"),
    *("hf_", "gsk_", "npm_", "r8_", "whsec_", "dop_v1_", "code_verifier"),
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
        re.compile(
            r"(?s)-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,40}-----|$)"
        ),
        MASK,
    ),
    # Authorization: Bearer x   Proxy-Authorization: Digest a="b", c="d"   Cookie: a=b; c=d
    (re.compile(rf"(?i){_START}((?:set-)?cookie2?\s*[:=]\s*)[^\r\n]+"), rf"\1{MASK}"),
    (
        re.compile(rf"(?i){_START}((?:proxy-)?authorization\s*[:=]\s*digest\s)[^\r\n]+"),
        rf"\1{MASK}",
    ),
    (
        re.compile(rf"(?i){_START}((?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?)[^\r\n\"',}}]+"),
        rf"\1{MASK}",
    ),
    (
        # A word of letters alone is prose: "token provided", "basic authentication".
        re.compile(
            rf"(?i){_START}((?:bearer|basic|token|apikey|digest|negotiate)\s+)"
            r"(?![a-z]+(?![A-Za-z0-9._~+/=|:-]))[A-Za-z0-9._~+/=|:-]{8,}"
        ),
        rf"\1{MASK}",
    ),
    # "api_key": "x"   ('x-api-key', 'x')   \"api_key\": \"x\"
    (
        re.compile(
            rf"(?i)(\\?[\"'](?:{_NAMES}|{_COMMON})\\?[\"']\s*[:=,]\s*)(?:{_QUOTED}|[^\s,}}\]\"'\\]+)"
        ),
        rf'\1"{MASK}"',
    ),
    # password=x   token: x   ?key=x&…   api_key%3Dx   --api-key x   <password>x
    (
        re.compile(
            rf"(?i){_START}((?:{_NAMES}\s*(?:=>|[=:\uff1a]|%3d)|{_COMMON}\s*(?:=|%3d))\s*)(?!\s|\[masked)(?:{_QUOTED}|[^\s&\"',;}}\])]+)"
        ),
        rf"\1{MASK}",
    ),
    (re.compile(rf"(?i)(--?{_NAMES}\s)(?![\s-]|\[masked)\S+"), rf"\1{MASK}"),
    (re.compile(rf"(?i)(<{_NAMES}>)[^<]+"), rf"\1{MASK}"),
    # scheme://user:secret@host — up to the last @ before the path
    (
        re.compile(rf"(?i){_START}([a-z][a-z0-9+.-]{{0,20}}://)[^\s/\"']{{1,2000}}@"),
        rf"\1{MASK}@",
    ),
    # password is x   API key x is not valid   token 'x' expired   refreshToken => x
    # — where the value is no plain word: it has a digit in it
    (
        re.compile(
            r"(?i)((?:password|passphrase|key|token|secret) ?(?:provided|given|used|is|was|:)?:? "
            r"[\"']?)(?=[^\s0-9]{0,64}[0-9])[^\s\"']{8,}"
        ),
        rf"\1{MASK}",
    ),
    # Addresses that are secrets themselves.
    (
        re.compile(
            r"(?i)(hooks\.slack\.com/services/|/api/webhooks/[0-9]+/|/bot(?=[0-9]{4,20}:))"
            r"[^\s/?\"']+(?:/[^\s?\"']+)?"
        ),
        rf"\1{MASK}",
    ),
    # Keys that are known by their looks.
    (
        re.compile(
            rf"{_START}(?:(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{{12,}}"
            r"|gh[opsur]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}"
            r"|xox[abeprs]-[A-Za-z0-9-]{10,}|AIza[A-Za-z0-9_-]{10,}|ya29\.[A-Za-z0-9_-]{16,}"
            r"|(?:AKIA|ASIA)[A-Z0-9]{16}(?![A-Za-z0-9])|(?:hf|gsk|npm|r8|whsec|dop_v1)_[A-Za-z0-9]{16,}"
            r"|hvs\.[A-Za-z0-9_-]{16,}|(?:xai|pplx|nvapi|tvly)-[A-Za-z0-9_-]{16,}|SG\.[A-Za-z0-9_-]{16,}(?:\.[A-Za-z0-9_-]*)?"
            r"|eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?)"
        ),
        MASK,
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
    """`text` with everything that looks like a secret replaced by ``[masked]``."""
    if not _is_suspicious(text.lower()):
        return text
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text


def _is_suspicious(lowered: str) -> bool:
    for suspect in _SUSPICIOUS:
        if suspect in lowered:
            return True
    if "-" in lowered and any(suspect in lowered for suspect in _SUSPICIOUS_DASHED):
        return True
    return "_" in lowered and any(suspect in lowered for suspect in _SUSPICIOUS_SCORED)


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
