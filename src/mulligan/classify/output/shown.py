"""Which lines a program only displays: file contents, diffs, search results, quotes, code.

A banner that a tool printed looks exactly like a live one; only the lines around it tell.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

from .stamps import STAMP, without_stamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = (
    "is_code",
    "is_fence",
    "is_frame",
    "is_survival",
    "is_test_report",
    "is_trailer",
    "outside",
    "prose_words",
    "shown",
    "without_history",
)

# ~~~~~^^^ is how Python marks a place in a trace.
_FENCE = re.compile(r"\s{0,8}(?:```|~~~(?!~{0,400}\s?\^))")
# A commit with its message is shown like its diff.
_DIFF = re.compile(
    r"\s{0,8}(?:diff --git |@@ |@@$|--- \S(?![^\n]{0,200}---\s*$)|\+\+\+ \S)"
    r"|commit [0-9a-f]{7,40}\b"
)
_DIFF_LINE = re.compile(
    r"[+\- @\\]|$|index |similarity |rename |new file|deleted file|Author: |Date: |Merge: "
)
# ## [1.4.0] - 2026-07-06   v1.4.0   ### Fixed: what stands in the list below is told of a release;
# en: the texts of a language
_RELEASE = re.compile(
    r"\s{0,3}(?:#{1,4}\s)?(?:\[?v?\d{1,4}\.\d{1,4}(?:\.\d{1,4})?\]?(?:\s[-—(]|\s*$)|change ?log\b"
    r"|what's new\b|(?:added|changed|fixed|removed)\s*$|[a-z]{2}(?:[-_][a-z]{2})?:\s*$)",
    re.IGNORECASE,
)
_ITEM = re.compile(r"\s{0,8}(?:[*•+-]|\d{1,2}\.)\s|\s{2,}\S|\s*$")
# A subagent's answer is told in a line of totals; what else stands under it is about the run.
_TOOL = re.compile(
    r"\s{0,8}[⏺●•✻]\s{0,4}(?!(?:Task|Agent)\()[A-Z]\w{1,40}\("
    # What "Read 2 files (ctrl+o to expand)" showed is folded away.
    r"|\s{0,8}[⏺●•]\s{0,4}(?:Ran(?! \d+ \w+ hook)|Read|Explored|Edited|Searched)\b"
    r"(?![^\n]{0,200}\(ctrl\+\w to expand\))"
)
_UNDER_TOOL = re.compile(r"\s{0,8}[⎿└]|\s{2,}\S")
# A tool has one answer; a second corner in its column is the program's own word.
_CORNER = re.compile(r"(?P<indent>\s{0,8})⎿")
_OUTSIDE = re.compile(r"\s{0,3}\S")
_SHELL = re.compile(
    r"(?![^\n]{0,400}\|\s*(?:claude|codex|gemini|opencode|qwen|copilot)\b)"
    r"\s{0,8}(?:\S{0,60}[$%]|[+>])\s+(?:cat|grep|egrep|rg|ag|head|tail|less|more|sed|awk|git|diff"
    r"|curl\b[^\n]{0,200}(?:localhost|127\.0\.0\.1)"
    r"|echo|printf|find|ls|jq|bat|zcat|journalctl|date|wc|man|gh (?:issue|pr) (?:list|view)"
    r"|(?:docker|kubectl|podman|gh run|pm2) (?:-\S+ )?(?:logs?|view))\b"
    # ==> app.log <==   -- Journal begins at …
    r"|==> [^\n]{1,200} <==$|-- (?:Logs|Journal) begins? "
)
# + claude -p go   $ make
_PROMPT = re.compile(r"\s{0,8}(?:\S{0,60}[$%]|\+)\s+\S")
_SHOWN_LINE = re.compile(
    r"\s{0,16}(?:"
    r"[\w./~-]{1,200}\.\w{1,8}(?::\d{1,7}){1,2}[:-]"  # file.py:12: found by a search
    # 12→ a numbered listing; 429: {"error": … is a status with its body
    r"|(?![45]\d\d \| [A-Z])"
    r"(?![45]\d\d: (?:(?-i:[A-Z])|\{[\"']|rate|too many|quota|limit|service|over|server|bad"
    r"|gateway|un))\d{1,7}\s{0,4}(?:→|\|(?!\S[^\n]{0,80}\|)|:\s|\t)"
    r"|(?:[*+-]|\d{1,2}\.)\s{1,3}(?:\*\*|`|\[[ x]\]\s)"  # - **markup**, - [x] a task
    r"|\|\s*\S"  # a table
    r"|(?:[a-z]{1,12}-){0,2}ratelimit(?:-[\w-]{1,40})?:\s"  # a header, read as one elsewhere
    # the title of an issue, a list of issues
    r"|(?:(?:issue|pr) )?(?:title|subject):\s"
    r"|(?:#\d{1,6}:?\s{1,4})?\[(?:bug|feature|question|docs|enhancement)[^\[\]\n]{0,20}\]"
    r"|//|#\s|/\*|\*/|--\s|<!--"  # a comment, a heading
    # 3f2a91c (HEAD) Mend the reset: a commit; errors.limit=…, msgid "…": a text to be translated
    r"|(?:[*|\\/] ){0,4}(?=[0-9a-f]{0,11}[a-f])(?=[a-f]{0,11}\d)[0-9a-f]{7,12} "
    r"(?:\([^()\n]{1,80}\) )?[A-Za-z]"
    r"|msg(?:id|str)(?:\[\d\])? \"|[a-z][\w-]{0,40}(?:\.[\w-]{1,40}){1,6}\s?=\s?[A-Z\"']"
    # detected "rate limit" in the output: a wrapper that quotes what it looks for
    r"|[^\n]{0,120}\b(?:detected|matched|found|looking for|searching for|contains)\b[^\n]{0,40}"
    r"[\"'`][^\n]{1,200}[\"'`] in (?:the |its |agent )?(?:output|logs?|std(?:err|out)|text|file)\b"
    # feat(acme): read the reset: a commit
    r"|(?:feat|fix|docs|chore|refactor|test|perf|ci|build|style)(?:\([\w./-]{1,40}\))?!?:\s"
    r"(?!(?:API )?Error\b)"
    # a diff without its head, a list; "- error Error: …" is how Next.js logs
    r"|(?!-\serror\s[\w\s\[]{0,60}(?:Error|Exception)\b\]?:)[+-](?:\s{1,3}\S|[A-Za-z_])"
    r"|[├└]──"  # a tree of files
    r"|[✖✗✘✔✓] [^\n]{1,300}\(\d{1,6}(?:\.\d{1,9})? ?m?s\)\s*$"  # a test with the time it took
    r"|[^│\n]{0,200}│[^│\n]{0,200}│[^│\n]{0,200}│"  # a row of a table
    # Error: expected 'Rate limit exceeded' but got 'ok'
    r"|[^\n]{0,60}\bexpected ['\"`]"
    # * 429 - `rate_limit_error`: a list of statuses
    r"|(?:printf?|log(?:ger|ging)?\.\w{1,10})\("
    r"|[*+•-]\s+`?[45]\d\d`?\s?(?:[-:(=]|—|–)"
    r"|[✓✔√☑]\s|(?:PASS|FAIL|PASSED|FAILED)\s+[\w./-]{1,120}\.\w{1,8}\b|(?:not )?ok \d"  # tests
    r"|(?-i:from|except|static|async|enum|namespace|\*\s@\w+)\s"
    r"|[\w$]{1,60}\??:\s[\w$.<>|?\[\]]{1,80}[;,]\s*$"  # key: Type;
    r"|(?:[A-Z]\w{1,60},\s{0,4}){1,20}$"  # names that are imported
    r")"
    r"|[^\n]{0,200}\)(?!:\s?\{)[^\n(){}]{0,60}\{\s*$"  # if (…) {
    # Limit reached, resets 5am -> is_limit=true: what a function made of a message
    r"|[^\n]{1,200} (?:->|=>|→) \w{1,40}=\w"
    # resets at {time}, try again in %s: a template, in which no time stands yet
    r"|[^\n]{0,200}\b(?:resets?|again|retry|wait|available)(?: \w{1,8}){0,2}[ :(]{1,3}"
    r"(?:\$?\{{1,2}\s?[a-z_$][\w$.?]{0,60}\s?(?:[}?(|!]|:[.\d<>^,])|%(?:\(\w{1,40}\))?[.\d]{0,4}[sdif]"
    r"|<(?:time|date|reset|duration|seconds|minutes|n|x)\b[^<>\n]{0,20}>)"
    # key: 'value' + an object that a runtime dumped under a stack trace
    r"|\s+(?:\w{1,40}: ['\[{]|(?:status|statusCode|code|errno|syscall): )"
    r"|\s+(?:'[^\n]{0,400}'|\"(?:[^\"\\\n]|\\.){0,400}\"|`[^\n]{0,400}`)\s?[+,]\s*$"
    r"|[\w./-]{1,200}\.py::"  # the name of a test
    r"|\s\*\s"  # a comment of several lines
    r"|\s{2,16}\d{1,6}\s[+-]\s",  # a numbered diff
    re.IGNORECASE,
)
# expect(x).toBe(1);   for _, tt := range tests {   } else {   #[test]: no program ends so
_CODE = re.compile(
    # not: export ACME_KEY=…, let us know, return to the menu
    r"\s{0,40}(?:(?!export [A-Z_\d]{1,60}=)(?:def|fn|func|function|class|async def|async function"
    r"|import|export|const|let|var|return|throw|raise|elif|impl|pub|struct|interface|public|private"
    r"|protected)\s(?=[^\n]{0,200}[(){}=;\[\"'])[\w(*{'\"\[$]"
    r"|(?:expect|assert\w{0,20}!?|it|test|describe|print(?:ln!?|f)?|console\.\w{1,10})\("
    r"|(?:from [\w.]{1,80} )?import [\w.*]{1,80}(?:(?: as |, )\w{1,80}){0,12},?\s*$"
    r"|[a-z_]\w{0,40}(?:\.\w{1,40}){1,4}\([^()\n]{0,200}[,{(\[]\s*$"  # its arguments stand below
    # if [ -z "$KEY" ]; then   echo '{"type": …'   fi: a shell's
    r"|(?:(?:el)?if|while) \[|(?:fi|done|esac|then|else)\s*$|(?:echo|printf) [\"']|exit \d\s*$"
    r"|assert\w{0,20} [\"']|[a-z_]\w{0,40}=['\"]{1,2}\{"
    r"|(?:if|for|while|switch|catch) \(|#\[\w|@\w[\w.]{0,60}(?:\(|$)"
    # svc.handle(ctx, body), unless it is a frame of a goroutine
    r"|(?!\S{0,80}(?:Error|Exception))[a-z_]\w{0,40}(?:\.\w{1,40}){1,4}"
    r"\((?!0x|\)|\.\.\.|\{)[^\n]*\);?\s*$|}\)[;,]|}\s?(?:else|catch)\b)"
    r"|[^\n\"']{0,120}(?:\s:=\s|(?:\)|\b[a-z]\w{0,30})\s=>\s[{(]|[\w)\]]\s={2,3}\s)"
    r"|[^\n]{1,200}\)\s?(?:;|=> \{|-> [\w\[\]]{1,40}:)\s*$"
)
# Amazon Q is having trouble:  0: unhandled error (ThrottlingException): a chain of causes
_CAUSE = re.compile(r"\s{1,8}\d{1,2}: \S")
# API request failed:  Status: 500  Body: {…}: what an error tells about itself
_DETAIL = re.compile(
    r"\s{1,8}(?:status|status code|body|response|code|\w{0,20}message|reason|request[_ ]id|endpoint"
    r"|url|model|provider|type): \S(?![^\n]{0,400},\s*$)",
    re.IGNORECASE,
)
_HEADED = re.compile(
    r"\W{0,8}(?:[A-Za-z]{1,20} ){0,3}errors?\b[^\n]{0,300}[^{\[(,]$", re.IGNORECASE
)
# acme.APIError: {   Error code: 429 - {: its body stands on the lines below
_OPENED = re.compile(
    r"[^\n]{0,400}(?:\w(?:Error|Exception)|\b(?:error|failed|[45]\d\d))\b[^\n]{0,80}"
    r"[:-] [\[{]{1,2}\s*$",
    re.IGNORECASE,
)
# The service answers in plain text. For example:
_EXAMPLE = re.compile(
    r"\b(?:for (?:example|instance)|examples?|e\.g\.?|such as|like (?:this|these|so)|looks? like"
    r"|(?:you|users?|they)(?:'ll| will)?(?: now)? see)\b[^:\n]{0,60}:\s*$",
    re.IGNORECASE,
)
# **Error output** over a block of code: the block is what failed
_ERROR_OUTPUT = re.compile(
    r"\W{0,8}(?:full )?(?:error(?: (?:output|message|log|details|text))?"
    r"|(?:\w{1,20} )?std(?:out|err))\W{0,6}$",
    re.IGNORECASE,
)
_STACK = re.compile(
    r"\s{0,40}(?:File \"|\^+\s*$|Traceback |Backtrace |\[cause\]|[{}\[\])(]+[,;]?\s*$"
    r"|\w[\w.-]{0,40}:\s|…|\.\.\.|\d+:\s+0x)"
)
_FRAME = re.compile(
    r"\s{0,8}(?:from )?[\w./-]{1,200}\.rb:\d{1,6}:in "
    r"|\s{1,40}at\s+(?!\d{1,2}(?::\d\d)?\s?[ap]m)(?:async\s+)?[^\n]{0,200}?(?:\(|:\d+:\d+)"
)
# What programs say below a banner: advice, menus, totals.
_ADVICE = re.compile(
    r"\W{0,12}(?:/[a-z][\w-]*|https?://|\d[.)] |\? for|please\b|or\b|you can\b"
    r"|to (?:continue|increase|get|keep|use|resume|finish|retry)\b|for (?:more|details|help)\b"
    r"|(?:upgrade|visit|see|learn|check|try|wait|contact|run|switch|add|press|resets?|get|buy"
    r"|purchase|subscribe|use|enable|consider|increase|reduce|go to|open|turn on)\b"
    r"|(?:errors?|failed|fatal|exiting|aborting|hint|suggestion|tip)\b"
    r"|(?:info\W{1,4})?(?:[\w-]{1,20} ){1,3}(?:terminated|exited)\b"
    r"|if (?:it|this|the|you)\b|your (?:limit|quota|plan|usage|session)\b|request id\b"
    r"|we apologi[sz]e|access\b|possible\b|esc\b|what do you want|stop and wait|claude code will"
    r"|(?:tokens|total|session|duration|changes|resume|usage)\b|reading additional|keep this"
    r"|enter to|(?:input|output|token) (?:tokens|counts)\b|to reduce\b"
    r"|- (?:ask|break|use|try|drop|add|remove|reduce|check|set|run)\b)",
    re.IGNORECASE,
)
# ╭── Bash ──╮: a tool that is called
_TOOL_BOX = re.compile(r"\s{0,8}╭─{2,}\s\w[\w ]{1,30}\s─{2,}╮")
# The list of tasks, the spinner, the prompt, the footer: what a terminal program keeps below.
_TASKS = re.compile(
    r"\s{0,8}(?:[◼◻☐☒☑□▪▫✔✓]\s|\d{1,4} tasks?\b|[✻✽✶✢✳·]\s\w{2,20}(?:…|\sfor\s\d)"
    r"|[⏵⏸]|[^\n]{0,80}\b(?:shift\+tab|ctrl\+\w|auto-compact|auto-update)\b"
    r"|[›❯※$]\s|[^\n]{0,60}·\s\d{1,3}% (?:context )?left\b)"
)
# [2026-07-06 12:00:00] [error] …   12:00:00 ERROR …: another error is not an answer
_LOGGED_ERROR = re.compile(rf"\s{{0,8}}{STAMP}\[?(?i:error|fatal|critical)\b")
_STATUS_LINE = re.compile(r"\s{0,8}HTTP/\d(?:\.\d)? \d{3}\b")
# 402 Payment Required   HTTP status code: 429
_LISTED = re.compile(r"([A-Za-z :|*-]{0,40})([45]\d\d)\b(?![.,:]?\d)")
_A_LIST = 3
_ERRS = re.compile(
    r"error|exception|fail|fatal|traceback|caused|stopp|abort|\b[45]\d\d\b", re.IGNORECASE
)
# … - Success   … so I wrote a test for it   BUILD SUCCESS
_SURVIVED = re.compile(
    r"[-:|]\s(?:success|succeeded|recovered|passed)\W*$|\[SUCCESS\]"
    r"|\b(?:request|call|job|task|run|build|upload|sync|retry) (?:has )?"
    r"(?:succeeded|passed|finished)\b|\bBUILD SUCCESS"
    r"|(?<!failed with )\bexit(?:ed)?(?: with)?(?: code)? 0\b|(?<!\d )\b200 OK\b|\bdone: \d"
    r"|\bcontinuing (?:without|with|past)\b"
    r"|\bassertions passed|\bcompleted successfully|\bfinished successfully"
    r"|\b(?:I|we)(?:'ve| have)?(?: (?:also|now|then))? (?:added|changed|fixed|lowered|moved"
    r"|raised|ran|reduced|removed|replaced|reran|retried|switched|updated|went on|wrote)\b"
    r"|\ball (?:the )?tests pass"
    # [141] assistant: …: a transcript in which it is somebody's turn
    r"|^\s{0,4}(?:\[\d{1,5}\] )?(?:assistant|user|human)(?: \w{1,20})?: ",
    re.IGNORECASE,
)
# FAIL src/a.test.ts > retries   AssertionError: …   --- FAIL: TestQuota   12:3  error  … no-undef
_TEST_REPORT = re.compile(
    r"\s{0,8}(?:(?-i:FAIL(?:ED)?)(?:\s{2,}\w|\s+[\w./\\-]{1,160}(?:\.\w{1,5}\b|::))"
    r"|--- FAIL: |not ok \d"
    r"|● [^\n]{1,200} › |={3,} (?:FAILURES|ERRORS|short test summary)|={3,} [^\n]{0,80}\d+ failed"
    r"|_{3,} [\w.\[\]-]{1,120} _{3,}|(?:E\s{3,})?AssertionError\b|Error: expect\("
    r"|assertion [^\n]{0,80}failed"
    r"|thread '[^']{0,80}::[^']{1,80}' panicked at|test result: FAILED|npm ERR! Test failed"
    r"|tests?(?: files| suites?)?:?\s+\d{1,6} (?:failed|failing)|error: test failed"
    r"|\d{1,6} (?:failing|tests? failed)\b|\d{1,6} (?:failed|passed)(?: \([\d.]{1,8}m?s?\))?$"
    r"|error TS\d{4}|error\[E\d{4}\]|[\w./-]{1,160}\.\w{1,5}(?::\d{1,6}){2}:? (?:error|warning)\b"
    r"|[\w./\\-]{1,160}\.\w{1,5}\(\d{1,6},\d{1,6}\): error|✖ \d{1,6} problems?"
    r"|\d{1,6}:\d{1,6}\s{2,}(?:error|warning)\s{2,}|Found \d{1,6} errors?\b"
    # PHPUnit, RSpec, Vitest, dotnet, Maven, mypy, golint
    r"|There (?:was|were) \d{1,6} (?:failures?|errors?):|Failed asserting that\b"
    r"|Failures:\s*$|Failure/Error:|[\w./-]{1,160}\.py:\d{1,6}: (?:error|note):"
    r"|[\w./-]{1,160}\.go(?::\d{1,6}){2}: exported\b|❯ \S{1,160}\.\w{1,6} \(\d"
    r"|× [^\n]{1,160} \d{1,7}m?s$|→ expected [^\n]{1,160}\bto (?:be|equal)\b"
    r"|Failed [\w.]{1,160} \[\d|\[ERROR\]\s{1,8}\w{1,80}\.\w{1,80}:\d)",
    re.IGNORECASE,
)
# A word of prose, no part of a path, an id or an expression. Chinese and Japanese have no blanks:
# two characters are a word.
_WORD = re.compile(
    r"[\u3040-\u30ff\u4e00-\u9fff]{2}"
    r"|(?<![^\s(\[\"'*`—-])[^\W\d_\u3040-\u30ff\u4e00-\u9fff]{2,}(?:['’]\w{1,3})?(?![^\s.,;:!?)\]\"'*`—-])"
)


def shown(lines: Iterable[str]) -> list[bool]:
    """For each line, whether the program merely shows it."""
    heads = [line[:512] for line in lines]
    reader = _Reader(heads)
    listed = [found.groups() if (found := _LISTED.match(head)) else None for head in heads]
    # Three statuses in the same words are a list of statuses, not a failure.
    counts = Counter(one[0] for one in set(listed) if one is not None)
    lists = {label for label, count in counts.items() if count >= _A_LIST}
    return [
        reader.is_shown(head) or (one is not None and one[0] in lists)
        for head, one in zip(heads, listed, strict=True)
    ]


def without_history(lines: Sequence[str]) -> list[str]:
    """Those of `lines` that stand in no diff, commit, changelog or file of a language."""
    reader, found = _Reader([]), []
    for line in lines:
        reader.is_shown(line[:512])
        if not reader.is_history:
            found.append(line)
    return found


def outside(lines: Sequence[str]) -> list[str]:
    """Those of `lines` that stand in no file, command, block or comment that a program shows."""
    heads = [line[:512] for line in lines]
    reader = _Reader(heads)
    found: list[str] = []
    for line, head in zip(lines, heads, strict=True):
        reader.is_shown(head)
        if not reader.is_inside:
            found.append(line)
    return found


class _Reader:
    """What the lines above say about the next one."""

    def __init__(self, heads: Sequence[str]) -> None:
        # Output that broke off in the middle of a block hides nothing below the opening.
        self._fences = sum(1 for head in heads if _FENCE.match(head)) // 2 * 2
        self._above = ""
        self._in_body = self._in_chain = self._in_example = self._in_fence = False
        self._in_diff = self._in_code = self._in_quotation = False
        self._under_tool = self._in_shell = self._in_release = self._is_after_blank = False
        self._corner: str | None = None
        self._heading = ""

    def is_shown(self, head: str) -> bool:
        """Whether the next line is merely shown."""
        self._follow_above(head)
        if not self._in_chain:
            if self._fences and _FENCE.match(head):
                self._fences -= 1
                is_error = _ERROR_OUTPUT.match(self._heading) is not None
                self._in_fence = not (self._in_fence or is_error)
                return True
            self._follow_tool(head)
            if _DIFF.match(head):
                self._in_diff = True
            elif self._in_diff and not _DIFF_LINE.match(head):
                self._in_diff = False
            if _SHELL.match(head):
                self._in_shell = True
            elif self._in_shell and (not head.strip() or _PROMPT.match(head)):
                self._in_shell = False
        self._in_release = _RELEASE.match(head) is not None or (
            self._in_release and _ITEM.match(head) is not None
        )
        is_below = bool(head.strip()) and head.startswith((" ", "\t", "}", ")"))
        self._in_code = is_code(head) or (self._in_code and is_below)
        if self._is_quoted or self._in_chain:
            return self._is_quoted
        is_inside = self._in_diff or self._in_shell or self._in_release or self._in_code
        return is_inside or _SHOWN_LINE.match(head) is not None or is_test_report(head)

    @property
    def is_history(self) -> bool:
        """Whether the last line stands in a diff, commit, changelog or file of a language."""
        return self._in_diff or self._in_release

    @property
    def is_inside(self) -> bool:
        """Whether the last line stands in something that is shown, whatever it says."""
        return self._is_quoted or self._in_diff or self._in_shell or self._in_code

    @property
    def _is_quoted(self) -> bool:
        return self._in_fence or self._under_tool or self._in_example or self._in_quotation

    def _follow_above(self, head: str) -> None:
        above = self._heading = self._above
        is_headed = above.endswith(":") or _HEADED.match(above) is not None
        if above.endswith(":") and _EXAMPLE.search(above[-200:]):
            self._in_example = True
        elif not head.strip():
            self._in_example = False
        is_quote = is_headed and prose_words(above) > 4 and not _ERRS.search(above)
        if head.strip():  # It says:⏎⏎> You've hit your limit
            self._in_quotation = head[0] == ">" and (self._in_quotation or is_quote)
        is_detail = _CAUSE.match(head) is not None or _DETAIL.match(head) is not None
        is_body = _OPENED.match(above) is not None or (self._in_body and above.strip() != "}")
        self._in_body = is_body and bool(head.strip())
        self._in_chain = self._in_body or (is_detail and (self._in_chain or is_headed))
        self._above = head.rstrip() or above

    def _follow_tool(self, head: str) -> None:
        corner = _CORNER.match(head)
        # What a tool printed stands deeper than what the program says next.
        is_next = self._is_after_blank and _OUTSIDE.match(head) is not None
        is_second = corner is not None and corner["indent"] == self._corner
        is_apart = corner is not None and (self._is_after_blank or is_second)
        self._is_after_blank = not head.strip()
        self._corner = corner["indent"] if corner is not None else self._corner
        if _TOOL.match(head):
            self._under_tool, self._corner = True, None
        elif head.strip() and (is_apart or is_next or not _UNDER_TOOL.match(head)):
            self._under_tool = False
        self._in_code = self._in_code and corner is None


def is_code(line: str) -> bool:
    """Whether `line` is source code, and no frame of a stack trace."""
    return _CODE.match(line[:400]) is not None and not is_frame(line)


def is_fence(line: str) -> bool:
    """Whether `line` opens or closes a block of code."""
    return _FENCE.match(line[:80]) is not None


def is_frame(line: str) -> bool:
    """Whether `line` is a frame of a stack trace."""
    return _FRAME.match(line[:400]) is not None


def is_test_report(line: str) -> bool:
    """Whether a test runner, a linter or a compiler wrote `line` about what it found wrong."""
    return _TEST_REPORT.match(without_stamp(line[:400])) is not None


def is_survival(line: str) -> bool:
    """Whether `line` tells that whatever failed above it was survived."""
    is_tool = _TOOL.match(line[:80]) or _TOOL_BOX.match(line[:200])
    return is_tool is not None or _SURVIVED.search(line[-400:]) is not None


def is_trailer(line: str) -> bool:
    """Whether `line` may follow a banner without making it part of an answer."""
    return (
        is_frame(line)
        or _TASKS.match(line[:200]) is not None
        or _STATUS_LINE.match(line[:80]) is not None
        or _LOGGED_ERROR.match(line[:120]) is not None
        or _STACK.match(line[:200]) is not None
        or _ADVICE.match(line[:200]) is not None
    )


def prose_words(line: str) -> int:
    """How many words of prose stand in `line`."""
    return len(_WORD.findall(line[:400]))
