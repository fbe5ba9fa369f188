"""`Guard.wrap`: a guarded view of a client, whatever library it is of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..errors import SettingError
from . import httpx
from .runtime_classes import packages_of
from .sender import Sender

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..api.guard import Guard

__all__ = ("wrap",)

# Clients that cannot be guarded once they are made, with the way that works.
_OTHER_WAYS = {
    "aiohttp": "make the session with middlewares=[mulligan.adapters.aiohttp.guarded(guard)]",
    "urllib3": "guard the function that calls it with guard.call",
    "litellm": "pass client=guard.wrap(openai.OpenAI()) to litellm.completion",
    "agents": "give the model openai_client=guard.wrap(openai.AsyncOpenAI())",
    "pydantic_ai": "give the provider http_client=guard.wrap(httpx2.AsyncClient())",
    "mcp": "connect with http_client=guard.wrap(httpx2.AsyncClient()), and let "
    "mulligan.adapters.mcp.guarded_session(session) read the hints of its tools",
}


def wrap(guard: Guard, client: Any, *, keys: bool = False) -> Any:
    """A view of `client` whose requests `guard` retries.

    Raises:
        SettingError: This kind of client cannot be guarded that way.
    """
    sender = Sender(guard, keys=keys)
    return _adapter(client)(client, sender)


def _adapter(client: Any) -> Callable[[Any, Sender], Any]:
    if isinstance(client, type):
        raise SettingError(
            f"wrap needs a client, and got the class {client.__name__}: make one first"
        )
    if httpx.is_client(client):
        return httpx.guarded
    from . import langchain, sdks

    if sdks.is_stainless(client):
        return sdks.guarded_stainless
    if sdks.is_google(client):
        return sdks.guarded_google
    if langchain.is_chat_model(client):
        return langchain.guarded_model
    if "requests" in packages_of(client) and hasattr(client, "get_adapter"):
        from . import requests

        return requests.guarded
    raise _unknown(client)


def _unknown(client: Any) -> SettingError:
    cls = type(client)
    for root in packages_of(client):
        if root in _OTHER_WAYS:
            return SettingError(
                f"wrap cannot guard a {root}.{cls.__name__} that is made: {_OTHER_WAYS[root]}"
            )
    return SettingError(
        f"wrap does not know {cls.__module__}.{cls.__name__}: it takes clients of httpx, httpx2, "
        f"requests, openai, anthropic and google-genai, and chat models of LangChain; guard the "
        f"function that calls it with guard.call"
    )
