"""IdempotencyMiddleware: executes each request with an Idempotency-Key once, on any ASGI server.

    take ──Mine──▶ execute ──2xx 3xx 400 404 422──▶ finish ──▶ respond
      │               ├──any other status──────────▶ drop ───▶ respond
      │               └──raised, cut, cancelled────▶ drop
      ├──Done──────▶ the kept response, marked as replayed
      ├──Busy──────▶ 409 with Retry-After
      ├──Mismatch──▶ 422
      └──no answer─▶ 503: without the store nothing is executed

The claim is a lease, renewed while the application runs: a server that is killed frees its keys,
and one that slept through a lease does not overwrite what its successor recorded.
"""

from __future__ import annotations

from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from ...calls.callables import ASYNC, function_kind
from ...core.duration import Duration, seconds
from ...errors import KeyReused, SettingError, StoreError
from ...once.claims import Busy, Done, Mine
from ...once.holder import KeyHold, OnceTerms
from ...shared.target import store_for
from ...stores.state_machine import Key
from ..problem import ProblemDocument
from .execution import Execution, claimed, log
from .kept_response import messages, why_not_kept
from .refusals import Refusals
from .request_key import BadKey, header_of, key_of, payload_fingerprint, request_place

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from ...core.ports import Store
    from .messages import App, Message, Receive, Scope, Send

__all__ = ("IdempotencyMiddleware",)

_DAY = 86_400.0
_MEGABYTE = 2**20

# Ways to send a body that only the server sees; an application that is not offered them sends it.
_UNSEEN = frozenset({"http.response.pathsend", "http.response.zerocopysend"})
_TRAILERS = "http.response.trailers"


class IdempotencyMiddleware:
    """Executes each request that carries an Idempotency-Key once, and replays its response.

    Follows draft-ietf-httpapi-idempotency-key-header-07. Requests without a key, requests of
    other methods, and websockets pass untouched. The application finds the key in
    ``scope["idempotency_key"]``.

    Args:
        app: The ASGI application.
        caller: (scope) → who makes the request: an account, a user, a tenant; may be a coroutine
            function. Keys of different callers never meet. None if the caller is not known: the
            request passes to the application, and its key is not used.
        store: Where keys and responses are kept: a store or its address. Default:
            ``MULLIGAN_STORE``, else this process's memory.
        required: Whether a request of these methods needs a key: a bool, or (scope) → bool.
        methods: The methods that the middleware is about.
        name: The service, where several share a store.
        ttl: How long a response is kept.
        lease: How long a server may be silent before another one may execute the request. It is
            renewed while the application runs, so it does not limit the application.
        max_request: The largest body of a request with a key, in bytes; a larger one gets a 413.
        max_response: The largest body that is kept, in bytes; repeats of a larger one get a 410.
        documentation: The address of your page about keys, for problem documents.
        strict: Whether a key without quotes is refused, as the draft has it.

    Raises:
        SettingError: An invalid option.
    """

    def __init__(
        self,
        app: App,
        *,
        caller: Callable[[Scope], str | Awaitable[str | None] | None],
        store: Store | str | None = None,
        required: bool | Callable[[Scope], bool] = False,
        methods: Iterable[str] = ("POST", "PATCH"),
        name: str = "http",
        ttl: Duration = _DAY,
        lease: Duration = 30.0,
        max_request: int = 10 * _MEGABYTE,
        max_response: int = _MEGABYTE,
        documentation: str = "",
        strict: bool = False,
    ) -> None:
        if not callable(caller):
            raise SettingError(
                f"caller needs a function (scope) → who makes the request; got {caller!r}"
            )
        if not callable(required) and not isinstance(required, bool):
            raise SettingError(f"required needs a bool or a function; got {required!r}")
        if function_kind(required) == ASYNC:
            raise SettingError("required needs a plain function; got a coroutine function")
        if isinstance(methods, str):
            raise SettingError(f"methods needs a list of methods; got {methods!r}")
        self._app, self._caller, self._required = app, caller, required
        self._methods = frozenset(each.upper() for each in methods)
        self._store, self._name = store_for(store), name
        self._ttl = seconds(ttl, name="ttl", least=1)
        self._lease = seconds(lease, name="lease", least=0.1)
        self._max_request = _size("max_request", max_request)
        self._max_response = _size("max_response", max_response)
        self._refusals, self._is_strict = Refusals(documentation), strict

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = await self._admitted(scope)
        if answer is None:
            await self._app(scope, receive, send)
        elif isinstance(answer, ProblemDocument):
            await answer(scope, receive, send)
        else:
            await self._once(*answer, scope, receive, send)

    async def _admitted(self, scope: Scope) -> ProblemDocument | tuple[str, str] | None:
        """The key and caller of a request; None if it passes untouched, or why it does not."""
        if scope["type"] != "http" or scope["method"] not in self._methods:
            return None
        try:
            key = key_of(scope["headers"], is_strict=self._is_strict)
        except BadKey as bad:
            return self._refusals.malformed(str(bad))
        if key is None:
            required = self._required
            if not (required(scope) if callable(required) else required):
                return None
            return self._refusals.missing()
        caller: Any = self._caller(scope)
        if isawaitable(caller):
            caller = await caller
        if caller is None:
            return None
        if not isinstance(caller, str) or not caller:
            raise SettingError(f"caller needs to return a name, or None; got {caller!r}")
        return key, caller

    async def _once(
        self, key: str, caller: str, scope: Scope, receive: Receive, send: Send
    ) -> None:
        body = await self._body(scope, receive)
        if body is None:
            return  # the client left before it had sent all of the request
        if isinstance(body, ProblemDocument):
            await body(scope, receive, send)
            return
        hold = KeyHold(self._terms(key, caller, scope, body))
        try:
            found = hold.known() or await claimed(hold)
        except KeyReused:
            await self._refusals.reused()(scope, receive, send)
        except StoreError as down:
            log("request %r was not executed: its key could not be checked (%s)", hold, down)
            await self._refusals.store_down()(scope, receive, send)
        else:
            if not isinstance(found, Mine):
                await self._replay(found, scope, receive, send)
                return

            async def replaced(successor: Busy | Done) -> None:
                await self._replay(successor, scope, receive, send)

            execution = Execution(hold, send, replaced, self._max_response)
            await execution.run(self._app, _seen(scope, key), _received(body, receive))

    async def _body(self, scope: Scope, receive: Receive) -> bytes | ProblemDocument | None:
        """The request's body, or why it is refused; None if its client has left."""
        stated = header_of(scope["headers"], b"content-length")
        # By its digits first: Python refuses to read a number of thousands of them.
        if stated.isdigit() and (len(stated) > 19 or int(stated) > self._max_request):
            return self._refusals.too_large(self._max_request)
        pieces: list[bytes] = []
        size = 0
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return None
            pieces.append(message.get("body", b""))
            size += len(pieces[-1])
            if size > self._max_request:
                return self._refusals.too_large(self._max_request)
            if not message.get("more_body", False):
                return b"".join(pieces)

    def _terms(self, key: str, caller: str, scope: Scope, body: bytes) -> OnceTerms:
        # Not the decoded path: /a%2Fb and /a/b may be two resources.
        raw = scope.get("raw_path") or scope["path"].encode("utf-8", "surrogatepass")
        path = raw.partition(b"?")[0]
        query = scope.get("query_string", b"")
        return OnceTerms(
            keys=self._store.keys,
            place=Key(self._name, request_place(key, caller, scope["method"], path)),
            key=key,
            fingerprint=payload_fingerprint(scope["headers"], query, body),
            lease=self._lease,
            ttl=self._ttl,
        )

    async def _replay(self, found: Busy | Done, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request that another one executes, or has executed."""
        if isinstance(found, Busy):
            await self._refusals.busy()(scope, receive, send)
        elif why := why_not_kept(found.value):
            await self._refusals.not_kept(why)(scope, receive, send)
        else:
            has_trailers = _TRAILERS in (scope.get("extensions") or {})
            for each in messages(found.value, has_trailers=has_trailers):
                await send(each)


def _seen(scope: Scope, key: str) -> Scope:
    """The scope that the application sees."""
    offered = scope.get("extensions") or {}
    extensions = {name: value for name, value in offered.items() if name not in _UNSEEN}
    return {**scope, "extensions": extensions, "idempotency_key": key}


def _received(body: bytes, receive: Receive) -> Receive:
    """A `receive` that begins with the body; whatever comes later, comes from the client."""
    waiting: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

    async def received() -> Message:
        return waiting.pop() if waiting else await receive()

    return received


def _size(name: str, value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise SettingError(f"{name} needs a number of bytes >= 0; got {value!r}")
    return value
