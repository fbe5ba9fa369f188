"""Which lines a program merely shows: file contents, diffs, search results, quotes, code.

A banner that a tool printed looks exactly like a live one; only what stands around it tells.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ("is_frame", "is_trailer", "prose_words", "shown")

_FENCE = re.compile(r"\s{0,8}(?:```|~~~)")
_DIFF = re.compile(r"\s{0,8}(?:diff --git |@@ |@@$|--- \S|\+\+\+ \S)")
_DIFF_LINE = re.compile(r"[+\- @\\]|$|index |similarity |rename |new file|deleted file")
_TOOL = re.compile(
    r"\s{0,8}[⏺●•✻]\s{0,4}[A-Z]\w{1,40}\("
    r"|\s{0,8}[⏺●•]\s{0,4}(?:Ran|Read|Explored|Edited|Searched)\b"
)
_UNDER_TOOL = re.compile(r"\s{0,8}[⎿└]|\s{2,}\S")
_SHELL = re.compile(
    r"\s{0,8}(?:\S{0,60}[$%]|\+)\s+(?:cat|grep|egrep|rg|ag|head|tail|less|more|sed|awk|git|diff"
    r"|echo|printf|find|ls|jq|bat|zcat|journalctl|date|wc|man)\b"
)
_SHOWN_LINE = re.compile(
    r"\s{0,16}(?:"
    r"[\w./~-]{1,200}\.\w{1,8}(?::\d{1,7}){1,2}[:-]"  # file.py:12: found by a search
    r"|\d{1,7}\s{0,4}(?:→|\||:\s|\t)"  # 12→ a numbered listing
    r"|\|\s*\S"  # a table
    r"|(?:[a-z]{1,12}-){0,2}ratelimit(?:-[\w-]{1,40})?:\s"  # a header, read as one elsewhere
    r"|//|#\s|/\*|\*/|--\s|<!--"  # a comment, a heading
    r"|[+-]\s{0,2}[A-Za-z_]"  # a diff without its head, a list
    r"|[✓✔√☑]\s|(?:PASS|FAIL|PASSED|FAILED)\s+[\w./-]{1,120}\.\w{1,8}\b|(?:not )?ok \d"  # tests
    r"|(?:def|class|return|raise|elif|import|from|const|let|var|function|assert|except|static|export"
    r"|public|private|protected|interface|async|enum|struct|impl|pub|fn|func|namespace|\*\s@\w+)\s"
    r"|[\w$]{1,60}\??:\s[\w$.<>|?\[\]]{1,80}[;,]\s*$"  # key: Type;
    r"|(?:[A-Z]\w{1,60},\s{0,4}){1,20}$"  # names that are imported
    r")"
    r"|[^\n]{0,200}\)[^\n(){}]{0,60}\{\s*$"  # if (…) {
    # key: 'value' + an object that a runtime dumped under a stack trace
    r"|\s+(?:\w{1,40}: ['\[{]|(?:status|statusCode|code|errno|syscall): )"
    r"|\s+'[^\n]{0,400}'\s?[+,]\s*$",
    re.IGNORECASE,
)
# Amazon Q is having trouble:  0: unhandled error (ThrottlingException): a chain of causes
_CAUSE = re.compile(r"\s{1,8}\d{1,2}: \S")
# API request failed:  Status: 500  Body: {…}: what an error tells about itself
_DETAIL = re.compile(
    r"\s{1,8}(?:status|status code|body|response|code|message|reason): \S", re.IGNORECASE
)
_STACK = re.compile(
    r"\s{0,40}(?:File \"|\^+\s*$|Traceback |\[cause\]|[{}\[\])(]+[,;]?\s*$"
    r"|\w[\w.-]{0,40}:\s|…|\.\.\.|\d+:\s+0x)"
)
_FRAME = re.compile(r"\s{1,40}at\s+(?:async\s+)?[^\n]{0,200}?(?:\(|:\d+:\d+)")
# What programs say below a banner: advice, menus, totals.
_ADVICE = re.compile(
    r"\W{0,12}(?:/[a-z][\w-]*|https?://|\d\. |\? for|please\b|or\b|you can\b"
    r"|to (?:continue|increase|get|keep|use|resume|finish)\b|for (?:more|details|help)\b"
    r"|(?:upgrade|visit|see|learn|check|try|wait|contact|run|switch|add|press|resets?|get|buy"
    r"|purchase|subscribe|enable|consider|increase|reduce|go to|open|turn on)\b"
    r"|(?:errors?|failed|fatal|exiting|aborting)\b"
    r"|if (?:it|this|the|you)\b|your (?:limit|quota|plan|usage|session)\b|request id\b"
    r"|we apologi[sz]e|access\b|possible\b|esc\b|what do you want|stop and wait|claude code will"
    r"|(?:tokens|total|session|duration|changes|resume|usage)\b|reading additional|keep this"
    r"|enter to|(?:input|output|token) (?:tokens|counts)\b|to reduce\b"
    r"|- (?:ask|break|use|try|drop|add|remove|reduce|check|set|run)\b)",
    re.IGNORECASE,
)
# The list of tasks, the spinner that a terminal program keeps below all it says.
_TASKS = re.compile(r"\s{0,8}(?:[◼◻☐☒☑□▪▫✔✓]\s|\d{1,4} tasks?\b|[✻✽✶✢✳·]\s\w{2,20}(?:…|\sfor\s\d))")
_WORD = re.compile(r"[^\W\d_]{2,}")


def shown(lines: Iterable[str]) -> Iterator[bool]:
    """For each line, whether the program merely shows it."""
    in_fence = in_diff = under_tool = in_shell = in_chain = False
    above = ""
    for line in lines:
        head = line[:512]
        is_under = in_chain or above.endswith(":")
        in_chain = is_under and (_CAUSE.match(head) or _DETAIL.match(head)) is not None
        above = head.rstrip() or above
        if in_chain:
            yield in_fence or under_tool
            continue
        if _FENCE.match(head):
            in_fence = not in_fence
            yield True
            continue
        if _DIFF.match(head):
            in_diff = True
        elif in_diff and not _DIFF_LINE.match(head):
            in_diff = False
        if _TOOL.match(head):
            under_tool = True
            yield True
            continue
        if under_tool and head.strip() and not _UNDER_TOOL.match(head):
            under_tool = False
        if _SHELL.match(head):
            in_shell = True
        elif in_shell and not head.strip():
            in_shell = False
        yield in_fence or in_diff or under_tool or in_shell or _SHOWN_LINE.match(head) is not None


def is_frame(line: str) -> bool:
    """Whether `line` is a frame of a stack trace."""
    return _FRAME.match(line[:400]) is not None


def is_trailer(line: str) -> bool:
    """Whether `line` may follow a banner without making it part of an answer."""
    return (
        is_frame(line)
        or _TASKS.match(line[:200]) is not None
        or _STACK.match(line[:200]) is not None
        or _ADVICE.match(line[:200]) is not None
    )


def prose_words(line: str) -> int:
    """How many words of prose stand in `line`."""
    return len(_WORD.findall(line[:400]))
