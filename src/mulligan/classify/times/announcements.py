"""Words that announce a time: "resets", "try again", "wieder verfügbar", "重置".

Each needs a time beside it that really parses, so the list may be broad. Most languages put the
time behind the word; some put the word last.
"""

from __future__ import annotations

import re

from ...core.lazy_pattern import lazy

__all__ = (
    "AFTER",
    "ANNOUNCED",
    "ASKS_CLOCK",
    "ASKS_LENGTH",
    "BARE_SECONDS",
    "GAP",
    "JOINERS",
    "WORD_LAST",
)

# What a program says about its own next try; the server's word is worth more.
_OWN = r"retrying|next (?:retry|try|attempt)|setting next backoff|will retry"
_ENGLISH = (
    r"resets?|resetting|refresh(?:es|ed)?|renew(?:s|al|ed)?|replenish(?:es|ed)?|restored?|unlock(?:s|ed)?"
    r"|tr(?:y|ies) (?:it )?again|try(?= (?:in|after|at|back)\b)|retry|come back|check back"
    r"|(?:be )?back|available(?: again)?|again(?= (?:in|at|on|after|from|by)\b)"
    r"|next (?:time|one)(?= (?:in|at|on)\b)|before(?= \d{4}-)"
    r"|resumes?|regain access|continu(?:e|es|ing)(?: automatically)?|wait(?:ing)?|until"
    r"|lift(?:s|ed)|unblock(?:s|ed)"
    r"|can (?:send|use|start|make|ask|access)"
    r"|requested(?=\s(?:an?\s)?\d{1,9}\s?(?:ms|s|seconds?|minutes?)\s(?:wait|delay)\b)"
    r"|(?:cycle|period|window|cooldown|block|ban|limit|quota|restriction)"
    r" (?:opens|ends|expires|starts|begins|clears)|cool-?down(?=\s*[:=]| (?:for|of) )"
    r"|cooling down|remaining(?=\s*[=:]\s*\d{1,4}[dhms])"
    r"|next (?:allowance|window|period|cycle|block|slot)"
    r"(?=:| (?:is|starts|begins|opens|at|in|on)\b)"
    r"|allowed(?= (?:again )?in )"
)
_GERMAN = (
    r"warten?(?: sie)?"
    r"|versuch\w*(?: es)?(?: (?:erneut|wieder|noch ?mal|später))?|(?:wieder|erneut) verfügbar"
    r"|zurückgesetzt|zurück|setzt sich|erneuert"
)
_SPANISH = (
    r"(?:int[eé]nta\w*|int[eé]ntelo|vuelv[ae]\w*)(?: a intentarlo)?(?: de nuevo| nuevamente)?"
    r"|restablec\w*|reinici\w*|renuev\w*|nuevo"
)
_PORTUGUESE = (
    r"tente(?: novamente| de novo)?|aguarde|espere|redefin\w*|renova\w*|dispon[ií]\w*|novamente"
)
_FRENCH = r"attendez|r[ée]essaye\w*|r[ée]initialis\w*|(?:de )?nouveau(?: disponible)?|renouvel\w*"
_ITALIAN = r"riprova\w*|ripristin\w*|reimposta\w*|azzera\w*"
_DUTCH = r"probeer(?: het)?(?: opnieuw)?|opnieuw"
_RUSSIAN = r"сброс\w*|повторите(?: попытку)?|попробуйте(?: снова| ещё раз)?|обнов\w*"
_EAST = (
    r"重[置试試设設]|[锁鎖]定|冷[却卻]|恢[复復]|刷新|解除|等[待候]|稍等|剩[余餘][时時][间間]|[还還][有需剩]"
    r"|リセット|再試行|再開|残り(?:時間)?|あと"
    r"|재설정|초기화|다시 시도|까지|남은 시간"
)

# A terminal may have wrapped the line at any blank, and put a border there.
ANNOUNCED = lazy(
    (
        rf"\b(?P<own>{_OWN})\b"
        rf"|\b(?:{_ENGLISH}|{_GERMAN}|{_SPANISH}|{_PORTUGUESE}|{_FRENCH}|{_ITALIAN}|{_DUTCH}|{_RUSSIAN})\b"
        r"|\b(?:x-)?rate-?limit-reset(?:-\w+)?\b|\b(?:quota_?)?resets?[_-]?(?:at|time|delay)\b"
        r"|\bresets?[_-]?(?:in|after)(?:_?(?:ms|seconds))?\b"
        r"|\bretry_?(?:after|in|delay)(?:_?(?:ms|seconds))?\b"
        rf"|limit reached(?=\s*\|)|{_EAST}"
    ).replace(" ", r"\s+"),
    re.IGNORECASE,
)

# Between the word and its time: "resets at", "will be available again on", "in about".
_BETWEEN = (
    *("again", "it", "is", "are", "be", "will", "on", "by", "after", "in", "within", "for"),
    *("of", "the", "to", "from", "until", "around", "about", "time", "using", "next", "occurs?"),
    *(
        "scheduled",
        "set",
        "expected",
        "starts",
        "begins",
        "opens",
        "erneut",
        "wieder",
        "am",
        "den",
        "der",
        "um",
        "ab",
        "gegen",
    ),
    *("es", "bis", "nach", "em", "às", "as", "até", "dia", "a", "las?", "el", "los", "en", "de"),
    *("dentro de", "após", "sobre", "partir de", "del", "dans", "à", "le", "vers", "il", "alle"),
    *("tra", "fra", "op", "om", "over", "через", "в", "на", "于", "在", "将", "會", "会", "に"),
    *("时间", "時間", "日時", "시각", "시간", r"\(?(?:utc|gmt)\)?(?=\s*:)"),
    "at(?! least| most)",
    *("l(?=')", "は", "에", r"\{?\s*seconds?(?=\s*[:=])", r"ms(?=\s*[:=])"),
)
JOINERS = lazy(
    r"(?:[\s:=|,(·\"'>*_@→⇒➜⏰-⏳🕐-🕧\\-]+"
    rf"|(?:{'|'.join(_BETWEEN).replace(' ', chr(92) + 's+')})(?![A-Za-zÀ-ÿ]))*",
    re.IGNORECASE,
)
# "resume using this model at …": a few words, no digit, no end of sentence, then a preposition.
GAP = lazy(r"[^\d.;!?{}]{0,48}?\b(?:at|on|in|after|until|um|am|às|a las|em|à|le)\s+(?=\S)")

# "After" asks for neither: "after 14:00", "after 5 minutes".
ASKS_LENGTH = lazy(
    r"\b(?:in|within|for|wait|em|en|dans|tra|fra|dentro de|через)\W*$", re.IGNORECASE
)
AFTER = lazy(r"\bafter\W*$", re.IGNORECASE)
ASKS_CLOCK = lazy(r"\b(?:at|on|à|às|as|las|um|ab|gegen|vers|alle|om)\W*$", re.IGNORECASE)
# Only here is a number without a unit a number of seconds, or of what the name says.
BARE_SECONDS = lazy(
    r"(?:retry|resets?|try again)[-_\s]?(?:after|in|delay)"
    r"(?:[\W_]{0,6}(?:seconds?|(?P<ms>ms)))?\W*$",
    re.IGNORECASE,
)

WORD_LAST = lazy(
    r"\b(?:left |remaining |to go )?(?:until|till|before|to) (?:(?:the|your|next|quota|limit|usage"
    r"|weekly|session|rate) ){0,3}(?:reset|refresh|renewal)s?\b"
    r"|zurückgesetzt|wieder verfügbar|erneut|\bweiter\b|réinitialis"
    r"|重[置试試设設]|恢[复復]|刷新|解除|可用|再[试試]|リセット|再開|再試行|利用可能|もう一度|再度|お試し|お待ち"
    r"|재설정|초기화|다시|기다"
    # 三十分钟后: the whole of what was said
    r"|(?<=[钟鐘时時间間秒天日周週月期])[后後](?=[\s。.!！)]{0,8}$)"
)
