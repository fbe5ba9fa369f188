"""Sends the requests of guarded HTTP clients, and keeps SDKs from repeating them.

A request is attempted under a guard that knows its effects. The last response is returned, never
raised, so that the caller's exception stays the SDK's own. An SDK that would repeat it by itself is
kept from it:

- a final response carries ``x-should-retry: false``, which the SDKs of OpenAI and Anthropic obey;
- after an exception, a request that says it is a repeat (``x-stainless-retry-count``), has the same
  body and comes from the same context gets the same exception again and is not sent.
"""

from __future__ import annotations

import copy
from contextlib import suppress
from contextvars import ContextVar
from dataclasses import replace
from hashlib import sha256
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

from ..calls.clock import world
from ..calls.context import key_around
from ..calls.notes import annotate, attach, story
from ..classify.classifier import classifier
from ..classify.objects import headers_of
from ..core.failure import Effects, Failure, Kind, Reach
from ..errors import FailedAnswer, NotAdmitted, SettingError
from ..once.api import new_key
from .effects import asks_a_model, effects_of, stated_effects
from .runtime_classes import runtime_class

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..api.guard import Guard
    from ..classify.classifier import Classifier
    from ..core.story import Story
    from .events import SseReader

__all__ = (
    "KEY_HEADER",
    "Exchange",
    "RequestAttempt",
    "RequestFacts",
    "Sender",
    "answer_error",
    "as_client_error",
    "hear",
    "heard",
    "is_final",
    "least",
    "read_once_error",
)

# Options of a guard that mean something for functions, and nothing for the requests of a client.
_FOR_FUNCTIONS = ("resume", "fallback", "verify", "dead_letters", "timeout_to")

KEY_HEADER = "Idempotency-Key"
# Redirects that answer a request which was carried out; 307 and 308 send it elsewhere undone.
_DONE = (301, 302, 303)
_PAIRS = {b"{": b"}", b"[": b"]"}
_REPEAT_HEADER = "x-stainless-retry-count"


class RequestFacts(NamedTuple):
    """What is known of a request before it is sent."""

    method: str
    url: str
    headers: Any  # anything with `get` that ignores case
    body: bytes  # as far as it is in memory


class _Ended(NamedTuple):
    """A request whose last attempt raised."""

    mark: tuple[str, str, int]
    error: Exception


# Where to put the stories of calls that end in this context or a child of it. For callers whose
# exception keeps no trace of the request, and who may wait in another task than the one that sends.
heard: ContextVar[list[Story] | None] = ContextVar("mulligan.heard", default=None)

# The last request of this context that ended with an exception: what an SDK may be about to repeat.
_ended: ContextVar[_Ended | None] = ContextVar("mulligan.ended", default=None)


class Sender:
    """Sends the requests of one guarded client; with `keys`, unsafe ones get a key.

    Raises:
        SettingError: The guard has options that mean nothing for a client.
    """

    def __init__(self, guard: Guard, *, keys: bool = False) -> None:
        options = guard._engine.options
        for name in _FOR_FUNCTIONS:
            if options.get(name) or (name == "fallback" and name in options):
                raise SettingError(
                    f"{name}= is for functions, and a wrapped client has requests: wrap the client "
                    f"with a guard without it, and call your function with guard.call"
                )
        self.guard, self.keys = guard, keys
        self._effects = options.get("effects")
        self._observe = options.get("observe") or headers_of
        known: Classifier = options.get("classifier") or classifier
        codes = guard.policy.codes
        self._classifier = known.adding(codes=codes) if codes else known
        self._guards: dict[tuple[Effects, bool], Guard] = {}

    def guard_for(self, effects: Effects, *, is_stream: bool) -> Guard:
        """The guard for requests with these effects; all of them share the target's state."""
        found = self._guards.get((effects, is_stream))
        if found is None:
            # A first attempt needs to know its limit and its key, too: hence the context.
            changed: Any = {"effects": effects, "context": True}
            if self.guard.target:
                changed["observe"] = self._observe
            if is_stream:
                changed["judge"] = None  # it looks at answers, and a stream has none
            found = self.guard.but(timeout_to="limit", **changed)
            self._guards[effects, is_stream] = found
        return found

    def judge(self, response: object) -> Failure | None:
        """The failure in a response whose body has been read; None for a success."""
        return self._classifier.judge(response, now=world().clock.wall())

    def classify(self, error: Exception) -> Failure:
        """What an exception of the client means."""
        return self._classifier.classify(error, now=world().clock.wall())

    def judge_event(self, headers: object, body: object) -> Failure | None:
        """The failure in an error event of a stream that began with a 200."""
        return self._classifier.classify_answer(200, headers, body, now=world().clock.wall())

    def effects_of(self, facts: RequestFacts) -> Effects:
        """What repeating the request does. A key of its own outranks what the guard was told."""
        said, key = stated_effects(), facts.headers.get(KEY_HEADER)
        if said is not None:
            return said
        if self._effects is not None and not key:
            return Effects.of(self._effects)
        return effects_of(facts.method, urlsplit(facts.url).path, key, facts.body)


class Exchange:
    """One request with all its attempts.

    Raises:
        Exception: The SDK repeats a request that has ended; it is not sent again.
    """

    def __init__(self, sender: Sender, facts: RequestFacts, *, is_stream: bool) -> None:
        self.sender = sender
        self._mark = (facts.method, facts.url, hash(facts.body))
        self._stop_repeats(facts)
        effects = sender.effects_of(facts)
        self.key = ""  # to be sent as Idempotency-Key, if not empty
        if sender.keys and effects is Effects.UNSAFE and facts.method in ("POST", "PATCH"):
            self.key, effects = _key(facts), Effects.KEYED
        self.guard = sender.guard_for(effects, is_stream=is_stream)
        self.asks_a_model = asks_a_model(facts.method, urlsplit(facts.url).path, facts.body)
        # The host and no more: paths carry tokens.
        self.name = f"{facts.method} {urlsplit(facts.url).hostname or ''}".rstrip()

    def _stop_repeats(self, facts: RequestFacts) -> None:
        ended = _ended.get()
        if ended is None:
            return
        if facts.headers.get(_REPEAT_HEADER, "0") == "0":
            _ended.set(None)  # another call
        elif ended.mark == self._mark:
            raise ended.error.with_traceback(None)

    def attempt(self, function: Callable[[float], Any]) -> RequestAttempt:
        return RequestAttempt(self.name, function)

    def judged(self, response: Any) -> Any:
        """`response`, if it is a success.

        Raises:
            FailedAnswer: It is not.
        """
        failure = self.sender.judge(response) or _cut_json(response)
        if failure is None:
            return response
        raise answer_error(failure, response)

    def lost(self, error: Exception, sent: object) -> Exception:
        """What an attempt raises for `error` of the client.

        If it is about another request than `sent`, that one was answered with a redirect: it may
        have been applied, whatever happened to the second.
        """
        last = getattr(error, "_request", None) or getattr(error, "request", None)
        if last is None or last is sent or last.method == getattr(sent, "method", ""):
            return error
        failure = self.sender.classify(error)
        over = answer_error(replace(failure, reach=Reach.MAYBE_APPLIED), None)
        over.__cause__ = error
        return over

    def returned(self, over: FailedAnswer) -> Any:
        """The response that the call ends with, told that it is the last one.

        Raises:
            Exception: There was none; this is what the client raised.
        """
        if over.answer is None and over.__cause__ is not None:
            raise self.raised(over.__cause__) from over  # type: ignore[arg-type]
        return is_final(over.answer, over)

    def raised(self, error: Exception) -> Exception:
        """`error`, which ends the call; a repeat of the request will get it, too."""
        hear(story(error))
        try:
            # Without its frames, which hold the request and more; the story comes along.
            twin = copy.copy(error)
        except Exception:
            twin = error
        _ended.set(_Ended(self._mark, twin))
        return error

    def broken(self, error: Exception, reader: SseReader | None) -> None:
        """A stream broke after content was handed over: its story says how much."""
        told = story(error)
        if told is None or reader is None:
            return
        because = f"the stream broke after {reader.delivered()}; not replayed"
        calls = tuple(reader.tool_calls)
        told = replace(told, because=because, delivered=reader.contents, tool_calls=calls)
        annotate(error, told, note=True)


class RequestAttempt:
    """One attempt as a guard calls it: stories show it as `name`.

    `function` sends the request; it is given the seconds that it may take.
    """

    def __init__(self, name: str, function: Callable[[float], Any]) -> None:
        self.__name__ = name
        self._function = function

    def __call__(self, _request: object, /, limit: float = inf) -> Any:
        return self._function(limit)


def least(*limits: float | None) -> float | None:
    """The shortest of these time limits; None if there is none."""
    found = min((each for each in limits if each is not None), default=inf)
    return None if found == inf else found


def read_once_error(request: Any, body: object, client: str) -> SettingError:
    """The refusal of a body that a second attempt could not send."""
    return SettingError(
        f"the body of this {request.method} is a {type(body).__name__}, which can be read only "
        f"once: a second attempt would send nothing; pass bytes, a list or a file that can seek, "
        f"or send it with the {client} that is not wrapped"
    )


def _cut_json(response: Any) -> Failure | None:
    """The failure of an answer that begins as JSON and does not end as such, or None."""
    if "json" not in str(response.headers.get("content-type", "")):
        return None
    body = getattr(response, "_content", None) or getattr(response, "_body", None)
    if not isinstance(body, bytes):
        return None
    first, last = body.lstrip()[:1], body.rstrip()[-1:]
    if _PAIRS.get(first, last) == last:
        return None
    said = f"a JSON body that ends after {len(body)} bytes without its {_PAIRS[first].decode()}"
    return Failure(
        kind=Kind.NETWORK, message=said, reach=Reach.MAYBE_APPLIED, because="the body is cut"
    )


def answer_error(failure: Failure, response: Any) -> FailedAnswer:
    """What an attempt raises whose response is a failure.

    Behind a redirect the first request may have been applied, whatever the last one met.
    """
    history = getattr(response, "history", ())
    if any(getattr(each, "status_code", None) in _DONE for each in history):
        failure = replace(failure, reach=Reach.MAYBE_APPLIED)
    error = FailedAnswer(failure, response)
    error.response = response  # type: ignore[attr-defined]  # where the gate looks for headers
    return error


def is_final(response: Any, over: Exception) -> Any:
    """`response` with the story of its call, and with the request not to repeat it."""
    told = story(over)
    hear(told)
    if told is not None:
        for each in (response, getattr(response, "request", None)):
            attach(each, told)
        extensions = getattr(response, "extensions", None)
        if isinstance(extensions, dict):
            extensions["mulligan"] = told
    with suppress(TypeError):  # aiohttp's headers cannot be changed; no SDK that obeys uses it
        response.headers["x-should-retry"] = "false"
    return response


def hear(told: Story | None) -> None:
    """Pass the story of a call to the listener of this context, if there is one."""
    listening = heard.get()
    if listening is not None and told is not None:
        listening.append(told)


def _key(facts: RequestFacts) -> str:
    """A key for this request: within an operation that has a key, the same whenever it is done."""
    around = key_around()
    if not around:
        return new_key()
    what = sha256(b"\0".join((facts.method.encode(), facts.url.encode(), facts.body)))
    return f"{around}-{what.hexdigest()[:16]}"


def as_client_error(refusal: NotAdmitted, client_error: type[Exception]) -> NotAdmitted:
    """`refusal` as an exception that is the client's own, too.

    Code around the client that goes on to another provider after a failed connection
    (``except httpx.ConnectError``, a fallback model) does so when the circuit is open.
    """
    error = _rebuilt(type(refusal), client_error, refusal.args, refusal.__dict__)
    error.__cause__, error.__suppress_context__ = refusal.__cause__, True
    return error


def _both(refusal: type[NotAdmitted], client_error: type[Exception]) -> Any:
    def reduce(self: Any) -> tuple[object, ...]:
        # Without its request, which cannot be pickled everywhere.
        state = {k: v for k, v in self.__dict__.items() if k not in ("_request", "request")}
        return _rebuilt, (refusal, client_error, self.args, state)

    return runtime_class(refusal, client_error, like=refusal, __reduce__=reduce)


def _rebuilt(
    refusal: type[NotAdmitted],
    client_error: type[Exception],
    args: tuple[object, ...],
    state: dict[str, Any],
) -> NotAdmitted:
    cls = _both(refusal, client_error)
    error: NotAdmitted = cls.__new__(cls)
    error.args = args
    error.__dict__.update({"_request": None, **state})
    return error
