"""Prefixes with which programs introduce an error: "API Error:", "the run failed:", "curl: (28)".

Each row has a pattern for the words, a line that it introduces, and where such lines were seen. The
first row that matches at a place is taken. A line that none of them introduces counts only if it
begins with the words of a banner.
"""

from __future__ import annotations

from typing import NamedTuple

from ...core.lazy_pattern import lazy

__all__ = ("ERROR_PREFIX", "ERROR_PREFIXES", "ErrorPrefix")


class ErrorPrefix(NamedTuple):
    """How one kind of program introduces an error.

    Args:
        pattern: The words, upper or lower case; `told`, `who` and `stated` name words that people
            write.
        example: A line that they introduce.
        seen: Where such lines were seen.
    """

    pattern: str
    example: str
    seen: str


ERROR_PREFIXES = (
    ErrorPrefix(
        r"\[?(?:api|http|fatal|server|internal|unexpected|provider|model|stream|request|network"
        r"|unhandled)?\s?errors?\b(?:\s+(?:code|status))?\s*(?::(?!:)|[(·—-]|(?=\{)|(?=\d{3}\b"
        r"(?!\s(?:is|are|was|were|means?|indicates?|happens?|occurs?|can|should|and|or)\b)))\s*",
        "API Error: 529 overloaded",
        "Claude Code; OpenAI and Anthropic SDKs: Error code: 429 - {",
    ),
    ErrorPrefix(
        r"(?-i:(?:\d{1,2} )?(?:INVALID_ARGUMENT|DEADLINE_EXCEEDED|NOT_FOUND|PERMISSION_DENIED"
        r"|UNAVAILABLE|RESOURCE_EXHAUSTED|UNAUTHENTICATED|INTERNAL|FAILED_PRECONDITION|ABORTED))"
        r": ",
        "7 PERMISSION_DENIED: the API has not been used in project 1",
        "Google APIs over gRPC",
    ),
    ErrorPrefix(
        r"(?:fatal|panic):\s+",
        "panic: rate limit reached",
        "programs in Go; git",
    ),
    ErrorPrefix(
        r"curl: \((?:5|6|7|18|28|35|52|55|56|92)\)\s+",
        "curl: (28) Operation timed out",
        "curl",
    ),
    ErrorPrefix(
        r"(?:Caused by:?\s*)?[A-Za-z_$](?:[\w.$]|::){0,120}?(?:Error|Exception|Exhausted|Failure"
        r"|Fault|Unavailable|Timeout|(?<=[a-z])Failed)\b(?:\s*\[[^\]]{0,60}\])?(?:\s*(?::(?!:)"
        r"|-)|\s\()\s*",
        "litellm.RateLimitError: slow down",
        "litellm; google.api_core; OpenAI SDK; Java: Caused by:",
    ),
    ErrorPrefix(
        r"[A-Za-z_$][\w.$]{0,120}?(?:Error|Exception|LimitExceeded)\((?:code=)?['\"]",
        "BadRequestError('Error code: 400')",
        "exceptions as Python's repr prints them",
    ),
    ErrorPrefix(
        r"(?:[\w.]{1,40}:){0,2}RateLimitEvent\([^\n]{0,80}?(?=status='rejected')",
        "RateLimitEvent(rate_limit_info=RateLimitInfo(status='rejected', resets_at=1783364400))",
        "Claude Agent SDK for Python",
    ),
    ErrorPrefix(
        r"ResultMessage\((?=[^\n]{0,2000}\bis_error=True)[^\n]{0,2000}?\bresult=['\"]",
        "ResultMessage(subtype='success', is_error=True, result='API Error: 529')",
        "Claude Agent SDK for Python",
    ),
    ErrorPrefix(
        r"\([A-Za-z_$][\w.$]{0,60}?(?:Error|Exception)\)\s+",
        "(AI_APICallError) Rate limit reached",
        "AI SDK of Vercel",
    ),
    ErrorPrefix(
        r"\[?(?:failed(?! tests?\b)|(?:we(?:'re| are) )?unable|could not|couldn't|cannot|can't"
        r"|error(?! (?:handling|messages?|paths?|cases?|recovery|reporting)\b)|exception)\b"
        r"(?:[^:{}\"\n]|:(?!\s)){0,120}:\s+",
        "Failed to find label: not found",
        "Gemini CLI; gh; Error from provider (x): of opencode",
    ),
    ErrorPrefix(
        r"(?P<who>(?:[\w./@()#-]{1,40} |'[^'\n]{1,40}' |\"[^\"\n]{1,40}\" ){0,5}?)"
        r"(?:disconnected|closed|interrupted|abort(?:ed|ing)|stopp(?:ed|ing)|ended|terminated"
        r"|cancell?ed|exit(?:ed|ing)?|paus(?:ed|ing)|suspended|halt(?:ed|ing)|blocked|died|crashed"
        r"|quit|exhausted retries|retries exhausted|gave up|giving up)\b[^:{}\"'\n]{0,60}:\s+",
        "stream disconnected before completion: rate limit reached",
        "Codex; wrappers of agent programs: claude exited with code 1: …, Stopping: …",
    ),
    ErrorPrefix(
        r"(?P<stated>(?:[\w.'-]{1,30}+ \(?){0,6}?)(?:request (?:rejected|failed)|rejected|returned"
        r"|status(?:[ _]code)?|unexpected response|responded|answered|replied|success"
        r"|error(?= (?:HTTP|status|\d)))"
        r"(?: (?:with|was|is|of|status|code|HTTP)){0,3}[:\s(]{1,3}"
        r"(?=[45]\d\d(?:\)|: |, (?:body|message): | - |\s?\(| (?-i:[A-Z][a-z])| \{|$))",
        "Provider acme returned 400: bad parameters",
        "Claude Code; Codex; axios; Cohere; .NET: a word for an answer, and its status",
    ),
    ErrorPrefix(
        r"(?P<told>(?:[^:{}\"'`\n]|(?<=\w)'(?=\w)|`[^`\n]{1,40}`|\"[^\"\n]{1,60}\"(?=\s)"
        r"|'[^'\n]{1,80}'(?=\s)){0,80}\b(?:errors?|failed|failure|rejected|exception)\b(?: "
        r"(?:result|response|message|event|reply|stack))?(?:\s*\([^)\n]{0,60}\))?(?:\s+with\s+"
        r"[^:{}\n]{0,40})?:\s+)",
        "the run failed: rate limit reached",
        "wrappers of agent programs; axios",
    ),
    ErrorPrefix(
        r"(?!(?:the|an?|i|we|this|that|those|no|any|fix\w*|handl\w*) )(?:[\w-]{1,20}+ ){1,2}"
        r"(?:errors?|failed|failure) (?:after|before|because of|from|during|while|at|on|in|with"
        r"|for) (?:[^:{}\"'\n]|(?<=\w)'(?=\w)){1,40}:\s+",
        "Stream error after retries: rate limit reached",
        "labelled messages, November 2026",
    ),
    ErrorPrefix(
        r"(?:[^:\n{}\"']{0,20}(?:错误|異常|异常|出错|失败|エラー|오류)|(?:fehler|erreur|errore|erro|ошибка)\b)"
        r"[^:\n{}\"']{0,40}:\s*",
        "发生错误: 429",
        "labelled messages, November 2026",
    ),
    ErrorPrefix(
        r"(?:[\w.:/-]{1,30}+ ){0,6}(?:errors?|failed|failure) (?=\{\s?[\"'])",
        'error run failed {"message": "slow down"}',
        "loggers that put fields behind the message",
    ),
    ErrorPrefix(
        r"[^{}\"'\n]{0,80}?\s[—–|]\s'?(?:failed|failure|error)'?\s[—–|:]\s\"?",
        "task 12: acme/large — failed — You've hit your limit",
        "labelled messages, November 2026",
    ),
    ErrorPrefix(
        r"attempt \d{1,3} failed\b[^:{}\n]{0,60}?\. retrying\b[^:{}\n]{0,40}?\.\.\.\s+",
        "Attempt 3 failed with status 503. Retrying with backoff... ApiError: {}",
        "Gemini CLI",
    ),
    ErrorPrefix(
        r"unexpected (?:api )?(?:response|answer|reply):\s+",
        "Unexpected API Response: the model did not answer",
        "Cline",
    ),
    ErrorPrefix(
        r"\{?['\"]error['\"]\s*:\s*(?=\{)",
        "'error': {'message': 'slow down'}}",
        "a part of a printed body",
    ),
)

ERROR_PREFIX = lazy("(?i)" + "|".join(row.pattern for row in ERROR_PREFIXES))
