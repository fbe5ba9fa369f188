"""Other people's words, made fit to be stored or shown.

Whatever a server, a program or an exception said passes `presentable` once, when it becomes
a Failure. Everything behind that point can be logged, printed and journaled as it stands.
"""

from __future__ import annotations

import re

__all__ = ("MASK", "clean", "mask", "presentable")

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
    *("pwd", "key", "credential", "sig", "session", "aiza", "akia", "asia", "eyj", "ya29", "://"),
)
_SUSPICIOUS_DASHED = ("sk-", "pk-", "rk-", "xox", "glpat-")
_SUSPICIOUS_SCORED = (
    *("sk_", "pk_", "rk_", "gho_", "ghp_", "ghs_", "ghu_", "ghr_", "github_pat_"),
    *("hf_", "gsk_", "npm_", "code_verifier"),
)
_NAMES = (
    r"(?:[a-z0-9_.-]{0,40}(?:api[_-]?key|apikey|access[_-]?key|secret|passw(?:or)?d|passphrase|pwd"
    r"|token(?!s)|credentials?|authorization|signature|session[_-]?id|private[_-]?key|cookie)"
    r"[a-z0-9_-]{0,40}|key|sig|auth|code_verifier)"
)
_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    # Authorization: Bearer x   Proxy-Authorization: Basic x   x-api-key: x   Cookie: a=b; c=d
    (re.compile(r"(?i)\b((?:set-)?cookie2?\s*[:=]\s*)[^\r\n]+"), rf"\1{MASK}"),
    (
        re.compile(r"(?i)\b((?:proxy-)?authorization[\"']?\s*[:=]\s*[\"']?)[^\r\n\"',}]+"),
        rf"\1{MASK}",
    ),
    (
        re.compile(
            r"(?i)\b((?:bearer|basic|token|apikey|digest|negotiate)\s+)[A-Za-z0-9._~+/=-]{8,}"
        ),
        rf"\1{MASK}",
    ),
    # "api_key": "x"   'password': 'x'   — a quoted name, then anything up to the closing quote
    (
        re.compile(
            rf"(?i)([\"']{_NAMES}[\"']\s*[:=]\s*)(?:\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'?|[^\s,}}\]]+)"
        ),
        rf'\1"{MASK}"',
    ),
    # password=x   token: x   ?key=x&…
    (
        re.compile(
            rf"(?i)(?<![A-Za-z0-9])({_NAMES}\s*[=:]\s*)(?!\s|\[masked)[\"']?[^\s&\"',;}}\])]+"
        ),
        rf"\1{MASK}",
    ),
    # scheme://user:secret@host
    (re.compile(r"(?i)\b([a-z][a-z0-9+.-]{0,20}://)[^\s/@\"']{1,512}@"), rf"\1{MASK}@"),
    # Keys that are known by their looks.
    (
        re.compile(
            r"\b(?:sk|pk|rk)[-_](?:[A-Za-z0-9]+[-_])*[A-Za-z0-9_-]{12,}"
            r"|\bgh[opsur]_[A-Za-z0-9]{16,}|\bgithub_pat_[A-Za-z0-9_]{20,}|\bglpat-[A-Za-z0-9_-]{16,}"
            r"|\bxox[abeprs]-[A-Za-z0-9-]{10,}|\bAIza[A-Za-z0-9_-]{30,}|\bya29\.[A-Za-z0-9_-]{16,}"
            r"|\b(?:AKIA|ASIA)[A-Z0-9]{16}\b|\b(?:hf|gsk|npm)_[A-Za-z0-9]{20,}"
            r"|\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?"
        ),
        MASK,
    ),
)


def clean(text: str, limit: int = 500) -> str:
    """`text` without control, escape and bidi characters, on one line, cut at `limit`."""
    # Cut before the work is done: a megabyte of noise costs no more than a line.
    text = text[: limit * 8]
    if not (text.isascii() and text.isprintable()):
        text = _CONTROLS.sub("", _ESCAPES.sub("", text).replace("\r\n", "\n"))
        text = _BLANKS.sub(" ", text)
    elif "  " in text:
        text = _BLANKS.sub(" ", text)
    text = text.strip()
    return text if len(text) <= limit else text[: limit - 1] + "…"


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
    cleaned = clean(text, limit * 4)
    masked = mask(cleaned)
    if masked is cleaned and len(masked) <= limit:
        return masked
    return clean(masked, limit)
