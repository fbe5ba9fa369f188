"""The failure in an HTTP answer: from a status, headers and a body, or from a response object.

The kind comes from `status_kinds`. Explicit statements (`x-should-retry`, `is_retriable`, gRPC
push-back) override it: where two of them disagree, the one that forbids a retry is believed.
"""

from __future__ import annotations

from datetime import timedelta, timezone
from math import nan
from typing import TYPE_CHECKING

from ..core.failure import Failure, Kind
from ..core.hint import Hint
from ..core.redaction import presentable
from .bodies import NOTHING, Body, failing_fields, read_body, stated_retriable
from .headers import fold, read_clocks, read_retry_after
from .objects import response_evidence
from .quotas import Unit, exhausted, read_quotas
from .status_kinds import NO_WAIT, Verdict, reach_of, speaks_of_a_plan, verdict, weigh
from .times.fields import reset_in_fields
from .times.server_formats import may_state_time

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .quotas import Quota
    from .times.server_formats import ResetTime

__all__ = ("classify_response", "judge_evidence", "judge_response", "judge_words")

_UNKNOWN = Verdict(Kind.UNKNOWN, "an error that no rule knows")
_LIMITS = frozenset((Kind.RATE_LIMIT, Kind.QUOTA, Kind.BILLING))
# Windows from here on are a plan's, not a burst's.
_PLAN_WINDOW = 3600.0
_GITHUB_LEAST = 60.0
# z.ai's usage limits name the time of their reset, but not that it is Beijing's.
_ZAI_CODES = frozenset(("1308", "1310", "1316"))
_ZAI_ZONE = timezone(timedelta(hours=8))
_MOST_WORDS = 4096


def classify_response(
    status: int | None,
    headers: object = None,
    body: object = None,
    *,
    now: float,
    codes: Mapping[str, Kind] | None = None,
) -> Failure | None:
    """The failure in an HTTP answer, or None where it is none.

    Args:
        status: The HTTP status; None where only a body is known.
        headers: Any mapping or list of pairs; names in any case, str or bytes.
        body: Bytes, text, parsed JSON or None.
        now: Our wall clock in epoch seconds.
        codes: The caller's own codes in lower case; they win over what is built in.
    """
    said = read_body(body)
    if status is not None and status < 400 and not said.is_error:
        return None
    return judge_evidence(status, fold(headers), said, now=now, codes=codes)


def judge_response(
    result: object, *, now: float | None = None, codes: Mapping[str, Kind] | None = None
) -> Failure | None:
    """The failure in a response of httpx, requests, aiohttp or the like; None for anything else.

    A response is known by its shape: a status beside headers. Its body is looked at only where
    the client has read it already, so no stream is consumed.

    Args:
        result: What a call returned.
        now: Our wall clock in epoch seconds. Without it, instants are measured against the
            answer's own Date header, and are no hint where there is none; durations always are.
        codes: The caller's own codes in lower case.
    """
    try:
        evidence = response_evidence(result)
        if evidence is None:
            return None
        status, headers, body, text = evidence
        if status is not None and status < 400 and not body.is_error:
            return None
        clock = nan if now is None else now
        return judge_evidence(status, headers, body, text=text, now=clock, codes=codes)
    except Exception:  # noqa: BLE001 -- an object that only looks like a response is an answer
        return None


def judge_evidence(
    status: int | None,
    headers: Mapping[str, str],
    body: Body = NOTHING,
    *,
    text: str = "",
    now: float,
    codes: Mapping[str, Kind] | None = None,
) -> Failure:
    """The failure in evidence that has been collected already.

    Args:
        status: The HTTP status; None, or one below 400, where only the words know.
        headers: Folded headers.
        body: What the body said.
        text: Words that stood elsewhere, in an exception; the body's own go first.
        now: Our wall clock in epoch seconds.
        codes: The caller's own codes in lower case.
    """
    # A 200 with an error inside is judged by the status inside, where there is one.
    effective = status if status is not None and status >= 400 else body.status
    words = body.message or text
    lowered = words[:_MOST_WORDS].lower()
    hint = rejecting = None
    if headers or body.data is not None:
        hint, rejecting = _stated_hint(effective, headers, body, now)
    named = _codes(headers, body) if headers else body.codes
    found = verdict(effective, named, lowered, codes) or _UNKNOWN
    if found.is_retriable is not False:
        if hint is None and words and found.kind not in NO_WAIT:
            hint = _hint_in_words(words, lowered, headers, now, named)
        if hint is not None or found.kind in _LIMITS:
            found = weigh(
                found,
                status=effective,
                lowered=lowered,
                has_reset=hint is not None,
                is_plan=found.kind in _LIMITS and _is_plan(lowered, body, rejecting),
            )
    said, because = found.is_retriable, found.because
    if headers or body.data is not None:
        stated, clause = _statement(headers, body, found.kind, hint)
        if stated is not None:
            said, because = stated, clause
    if status is not None and status < 400:
        because = f"{because} in an answer with status {status}"
    return Failure(
        kind=found.kind,
        message=presentable(words),
        reach=reach_of(
            effective,
            found.kind,
            is_vague=found.is_vague and hint is None,
            is_under_way=found.is_under_way,
        ),
        hint=hint,
        status=status if status is not None else effective,
        code=None if body.code is None else presentable(body.code, 100),
        is_retriable=said,
        because=because,
        fields=() if body.data is None else _fields(effective, found.kind, body),
    )


# Sentences that stood alone and named no time, with what they mean. A server that is down says
# the same words to every attempt, and reading them is most of what a retry costs.
_judged: dict[tuple[int | None, str], Failure] = {}
_MOST_JUDGED = 256
_LONGEST_JUDGED = 200


def judge_words(status: int | None, text: str, *, now: float) -> Failure:
    """The failure in a status and a sentence, with neither headers nor a body.

    What was judged once is remembered, unless it named a time: that judgement depends on `now`.
    """
    found = _judged.get((status, text))
    if found is None:
        found = judge_evidence(status, {}, text=text, now=now)
        if found.hint is None and len(text) <= _LONGEST_JUDGED:
            if len(_judged) >= _MOST_JUDGED:
                _judged.clear()
            _judged[status, text] = found
    return found


def _is_plan(lowered: str, body: Body, rejecting: Quota | None) -> bool:
    if rejecting is not None and (
        rejecting.unit is Unit.SHARE or (rejecting.window or 0.0) >= _PLAN_WINDOW
    ):
        return True
    return any("perday" in name.lower() for name in body.quotas) or speaks_of_a_plan(lowered)


def _stated_hint(
    status: int | None, headers: Mapping[str, str], body: Body, now: float
) -> tuple[Hint | None, Quota | None]:
    """What headers and fields say about when, with the dimension that rejected the call."""
    hint = read_retry_after(headers, now=now) if headers else None
    if hint is None and "grpc-retry-pushback-ms" in headers:
        millis = headers["grpc-retry-pushback-ms"].strip()
        if millis.isascii() and millis.isdigit():
            hint = Hint.after(float(millis[:18]) / 1000, source="grpc-retry-pushback-ms")
    if hint is None and body.data is not None:
        clocks = read_clocks(headers, now=now)
        reset = reset_in_fields(body.data, now=clocks.theirs)
        hint = None if reset is None else reset.hint_by(clocks, _body_source(reset))
    stated = read_quotas(headers, now=now) if headers else ()
    rejecting = exhausted(stated) if stated else None
    if rejecting is not None and not rejecting.is_exhausted and status != 429:
        rejecting = None  # no quota is used up: its reset does not end this failure
    if hint is None and rejecting is not None:
        hint = rejecting.hint
    return hint, rejecting


def _body_source(reset: ResetTime) -> str:
    return f"body {reset.source.partition(':')[0]}"


def _hint_in_words(
    words: str, lowered: str, headers: Mapping[str, str], now: float, codes: tuple[str, ...]
) -> Hint | None:
    hint = None
    if may_state_time(lowered):
        from .times.reset_time import find_reset

        zone = _ZAI_ZONE if any(code in _ZAI_CODES for code in codes) else None
        clocks = read_clocks(headers, now=now)
        reset = find_reset(words[:_MOST_WORDS], now=clocks.theirs, zone=zone)
        hint = None if reset is None else reset.hint_by(clocks, f'"{reset.source}"')
    if hint is None and ("secondary rate limit" in lowered or "abuse detection" in lowered):
        # GitHub: at least a minute; clients that continue while limited may be banned.
        return Hint.after(_GITHUB_LEAST, source="GitHub's secondary limit, at least a minute")
    return hint


def _statement(
    headers: Mapping[str, str], body: Body, kind: Kind, hint: Hint | None
) -> tuple[bool | None, str]:
    """What was said explicitly about repeating, with the clause that says so (E-G7)."""
    said: list[tuple[bool, str]] = []
    should = headers.get("x-should-retry", "").strip().lower() if headers else ""
    if should in ("true", "false"):
        said.append((should == "true", f"header says x-should-retry={should}"))
    stated = stated_retriable(body.data)
    if stated is not None:
        said.append((stated, f"body says is_retriable={str(stated).lower()}"))
    pushback = headers.get("grpc-retry-pushback-ms") if headers else None
    if pushback is not None:
        # gRPC A6: a negative or malformed number means do not retry.
        allowed = pushback.strip().isascii() and pushback.strip().isdigit()
        said.append((allowed, f"push-back of {presentable(pushback, 20)} ms"))
    if not said:
        is_told_when = hint is not None and hint.source == "body retryDelay"
        if is_told_when and kind in (Kind.CLIENT, Kind.CONDITIONAL, Kind.UNKNOWN):
            return True, "body says when to retry (RetryInfo)"
        return None, ""
    return min(said, key=lambda one: one[0])


def _codes(headers: Mapping[str, str], body: Body) -> tuple[str, ...]:
    for name in ("x-amzn-errortype", "x-ms-error-code"):
        if name in headers:
            return (*body.codes, headers[name].partition(":")[0].strip().lower())
    return body.codes


def _fields(status: int | None, kind: Kind, body: Body) -> tuple[tuple[str, str], ...]:
    is_rejected = status in (400, 422) or kind is Kind.CLIENT
    return failing_fields(body.data) if is_rejected else ()
