"""Guarded views of SDK clients: openai, anthropic, google-genai.

Each is a client of the same kind on a guarded view of its HTTP client, with its own retries off.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from ..calls.notes import attach, story
from ..errors import SettingError
from . import httpx
from .runtime_classes import packages_of, runtime_class

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from .sender import Sender

__all__ = ("guarded_google", "guarded_stainless", "is_google", "is_stainless")


def is_stainless(client: object) -> bool:
    """Whether it is a client of openai or anthropic, which are made by the same generator."""
    is_known = packages_of(client) & {"openai", "anthropic"}
    return bool(is_known) and hasattr(client, "with_options")


def guarded_stainless(client: Any, sender: Sender) -> Any:
    """A view of an openai or anthropic client.

    Raises:
        SettingError: Its HTTP client is not one of httpx or httpx2.
    """
    inner = getattr(client, "_client", None)
    if not httpx.is_client(inner):
        raise SettingError(
            f"wrap needs the httpx client of {type(client).__name__}, and found a "
            f"{type(inner).__name__}; make it with http_client=guard.wrap(httpx2.Client())"
        )
    view = httpx.guarded(inner, sender)
    if view is inner and client.max_retries == 0:
        return client
    return client.with_options(http_client=view, max_retries=0)


def is_google(client: object) -> bool:
    """Whether it is a `google.genai.Client`."""
    cls = type(client)
    return cls.__module__.startswith("google.genai") and hasattr(client, "_api_client")


def guarded_google(client: Any, sender: Sender) -> Any:
    """A view of a google-genai client, for plain and for async calls."""
    known = client._api_client
    api = copy.copy(known)
    sync = httpx.guarded(known._httpx_client, sender)
    later = known._async_httpx_client
    if later is None:
        raise SettingError(
            "wrap needs the httpx clients of genai.Client, and this one sends async calls with "
            "google-auth; make it with http_options=HttpOptions(httpx_async_client=…)"
        )
    later = httpx.guarded(later, sender)
    if sync is known._httpx_client and later is known._async_httpx_client:
        return client
    api.__class__ = runtime_class(_Once, type(known), like=type(known))
    api._httpx_client, api._async_httpx_client, api._known = sync, later, known
    # Named in the options, too: without it, async calls go by aiohttp, which resends a lost POST.
    options = {"httpx_client": sync, "httpx_async_client": later, "retry_options": None}
    api._http_options = known._http_options.model_copy(update=options)
    view = _on(client, api)
    view._mulligan = client  # which closes the connections when it is collected
    return view


def _on(part: Any, api: Any) -> Any:
    """A copy of a client, or of a part of it, that calls by `api`."""
    view = copy.copy(part)
    if hasattr(view, "__del__"):  # the connections are the original's, which closes them
        cls = type(part)
        view.__class__ = runtime_class(_View, cls, like=cls)
    for name, value in vars(part).items():
        if name == "_api_client":
            setattr(view, name, api)
        elif hasattr(value, "_api_client"):
            setattr(view, name, _on(value, api))
    return view


class _View:
    """A copy of a client that closes nothing when it is collected."""

    def __del__(self) -> None: ...


class _Once:
    """An API client of google-genai that leaves retrying to its HTTP client."""

    _known: Any  # the client that it is a view of
    _request_once: Any
    _async_request_once: Any
    _streams: list[Any] | None = None  # the responses of one streamed call

    def _request(self, http_request: Any, http_options: Any = None, stream: Any = None) -> Any:  # noqa: ARG002 -- a call's own options may ask for retries
        return self._opened(self._request_once(http_request, bool(stream)))

    async def _async_request(
        self,
        http_request: Any,
        http_options: Any = None,  # noqa: ARG002 -- see above
        stream: Any = None,
    ) -> Any:
        return self._opened(await self._async_request_once(http_request, bool(stream)))

    def close(self) -> None:
        self._known.close()  # which knows what is its own to close

    async def aclose(self) -> None:
        await self._known.aclose()

    def __del__(self) -> None: ...

    def _opened(self, response: Any) -> Any:
        if self._streams is not None:
            self._streams.append(response.response_stream)
        return response

    # The exception for an error event carries no httpx response, hence no story: it is added here.

    def request_streamed(self, *args: Any, **kwargs: Any) -> Iterator[Any]:
        own = self._for_one_call()
        try:
            yield from super(_Once, own).request_streamed(*args, **kwargs)  # type: ignore[misc]
        except Exception as error:
            own._tell(error)
            raise

    async def async_request_streamed(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        own = self._for_one_call()
        items = await super(_Once, own).async_request_streamed(*args, **kwargs)  # type: ignore[misc]

        async def told() -> AsyncIterator[Any]:
            try:
                async for item in items:
                    yield item
            except Exception as error:
                own._tell(error)
                raise

        return told()

    def _for_one_call(self) -> _Once:
        own = copy.copy(self)
        own._streams = []
        return own

    def _tell(self, error: Exception) -> None:
        if self._streams and story(error) is None:
            attach(error, self._streams[-1].extensions.get("mulligan"))
