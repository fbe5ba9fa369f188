"""Clients, SDKs and frameworks that ask a model once, with their own retries as they come.

Each is a function of a server's address and a guard, or None for no guard; it asks one question,
plain or streamed, and returns what came of it.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import aiohttp
import anthropic
import httpx
import httpx2
import openai
import requests
from google import genai
from google.genai import types

from mulligan.adapters.aiohttp import guarded

if TYPE_CHECKING:
    from collections.abc import Callable

    from mulligan import Guard

    Ask = Callable[[str, Guard | None], Any]

__all__ = ("PLAIN", "STREAMED")

MESSAGES: Any = [{"role": "user", "content": "hi"}]
QUESTION = {"model": "m", "max_tokens": 9, "messages": MESSAGES}
# A stream that goes silent is given up by the client's own read timeout; others have time.
_SILENCE, _TIMEOUT = 3.0, 30.0


def _httpx2(guard: Guard | None, timeout: float = _TIMEOUT) -> httpx2.Client:
    client = httpx2.Client(timeout=timeout)
    return client if guard is None else guard.wrap(client)


def _async_httpx2(guard: Guard | None, timeout: float = _TIMEOUT) -> httpx2.AsyncClient:
    client = httpx2.AsyncClient(timeout=timeout)
    return client if guard is None else guard.wrap(client)


# HTTP clients


def _plain_httpx(url: str, guard: Guard | None) -> Any:
    client = httpx.Client(timeout=_TIMEOUT)
    with client if guard is None else guard.wrap(client) as view:
        return view.post(f"{url}/v1/messages", json=QUESTION).raise_for_status()


def _streamed_httpx(url: str, guard: Guard | None) -> Any:
    body = {**QUESTION, "stream": True}
    with (
        _httpx2(guard, _SILENCE) as client,
        client.stream("POST", f"{url}/v1/messages", json=body) as response,
    ):
        return len(list(response.iter_bytes()))


def _plain_async_httpx2(url: str, guard: Guard | None) -> Any:
    async def main() -> Any:
        async with _async_httpx2(guard) as client:
            return (await client.post(f"{url}/v1/messages", json=QUESTION)).raise_for_status()

    return asyncio.run(main())


def _plain_requests(url: str, guard: Guard | None) -> Any:
    session = requests.Session()
    with session if guard is None else guard.wrap(session) as view:
        view.post(f"{url}/v1/messages", json=QUESTION, timeout=_TIMEOUT).raise_for_status()


def _plain_aiohttp(url: str, guard: Guard | None) -> Any:
    async def main() -> Any:
        middlewares = [] if guard is None else [guarded(guard)]
        async with (
            aiohttp.ClientSession(middlewares=middlewares) as session,
            session.post(f"{url}/v1/messages", json=QUESTION) as response,
        ):
            response.raise_for_status()
            return await response.json()

    return asyncio.run(main())


# SDKs. Their HTTP client is guarded, and they keep their retries: the worst that a user can do.


def _plain_anthropic(url: str, guard: Guard | None) -> Any:
    with anthropic.Anthropic(base_url=url, api_key="k", http_client=_httpx2(guard)) as client:
        return client.messages.create(model="m", max_tokens=9, messages=MESSAGES)


def _streamed_anthropic(url: str, guard: Guard | None) -> Any:
    http = _httpx2(guard, _SILENCE)
    with anthropic.Anthropic(base_url=url, api_key="k", http_client=http) as client:
        stream = client.messages.create(model="m", max_tokens=9, messages=MESSAGES, stream=True)
        return len(list(stream))


def _plain_async_anthropic(url: str, guard: Guard | None) -> Any:
    async def main() -> Any:
        http = _async_httpx2(guard)
        async with anthropic.AsyncAnthropic(base_url=url, api_key="k", http_client=http) as client:
            return await client.messages.create(model="m", max_tokens=9, messages=MESSAGES)

    return asyncio.run(main())


def _streamed_async_anthropic(url: str, guard: Guard | None) -> Any:
    async def main() -> Any:
        http = _async_httpx2(guard, _SILENCE)
        async with (
            anthropic.AsyncAnthropic(base_url=url, api_key="k", http_client=http) as client,
            client.messages.stream(model="m", max_tokens=9, messages=MESSAGES) as stream,
        ):
            return await stream.get_final_message()

    return asyncio.run(main())


def _openai(url: str, guard: Guard | None, timeout: float = _TIMEOUT) -> openai.OpenAI:
    http = _httpx2(guard, timeout)
    return openai.OpenAI(base_url=f"{url}/v1", api_key="k", http_client=http)


def _plain_chat(url: str, guard: Guard | None) -> Any:
    with _openai(url, guard) as client:
        return client.chat.completions.create(model="m", messages=MESSAGES)


def _streamed_chat(url: str, guard: Guard | None) -> Any:
    with _openai(url, guard, _SILENCE) as client:
        return len(list(client.chat.completions.create(model="m", messages=MESSAGES, stream=True)))


def _plain_responses(url: str, guard: Guard | None) -> Any:
    with _openai(url, guard) as client:
        return client.responses.create(model="m", input="hi")


def _streamed_responses(url: str, guard: Guard | None) -> Any:
    with _openai(url, guard, _SILENCE) as client:
        return len(list(client.responses.create(model="m", input="hi", stream=True)))


def _google(url: str, guard: Guard | None, timeout: float = _TIMEOUT) -> genai.Client:
    retries = types.HttpRetryOptions(attempts=3, initial_delay=0.01, max_delay=0.02, jitter=0.01)
    options = types.HttpOptions(base_url=url, retry_options=retries, timeout=round(timeout * 1000))
    client = genai.Client(api_key="k", http_options=options)
    return client if guard is None else guard.wrap(client)


def _plain_google(url: str, guard: Guard | None) -> Any:
    with _google(url, guard) as client:
        return client.models.generate_content(model="m", contents="hi")


def _streamed_google(url: str, guard: Guard | None) -> Any:
    with _google(url, guard, _SILENCE) as client:
        return len(list(client.models.generate_content_stream(model="m", contents="hi")))


def _plain_async_google(url: str, guard: Guard | None) -> Any:
    async def main() -> Any:
        client = _google(url, guard)
        try:
            return await client.aio.models.generate_content(model="m", contents="hi")
        finally:
            await client.aio.aclose()

    return asyncio.run(main())


# Frameworks, as their users set them up


def _plain_pydantic_ai(url: str, guard: Guard | None) -> Any:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    async def main() -> Any:
        async with _async_httpx2(guard) as http:
            provider = OpenAIProvider(base_url=f"{url}/v1", api_key="k", http_client=http)
            return (await Agent(OpenAIChatModel("m", provider=provider)).run("hi")).output

    return asyncio.run(main())


def _plain_langchain_openai(url: str, guard: Guard | None) -> Any:
    from langchain_openai import ChatOpenAI

    with _httpx2(guard) as http:
        settings: Any = {"base_url": f"{url}/v1", "api_key": "k", "http_client": http}
        return ChatOpenAI(model="m", **settings).invoke("hi")


def _plain_langchain_anthropic(url: str, guard: Guard | None) -> Any:
    from langchain_anthropic import ChatAnthropic

    settings: Any = {"model": "m", "base_url": url, "api_key": "k", "default_request_timeout": 5}
    model = ChatAnthropic(**settings)
    with model._client:  # noqa: SLF001 -- LangChain closes it never
        return (model if guard is None else guard.wrap(model)).invoke("hi")


def _plain_langgraph(url: str, guard: Guard | None) -> Any:
    """A node with a retry policy around a chat model: by default, three times three requests."""
    from langgraph.graph import END, START, MessagesState, StateGraph
    from langgraph.types import RetryPolicy

    import mulligan

    settings: Any = {} if guard is None else {"retry_on": mulligan.is_unjudged}
    policy = RetryPolicy(initial_interval=0.01, max_interval=0.01, jitter=False, **settings)

    def ask(_state: Any) -> Any:
        return {"messages": [_plain_langchain_openai(url, guard)]}

    graph: Any = StateGraph(MessagesState)
    graph.add_node("ask", ask, retry_policy=policy)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", END)
    return graph.compile().invoke({"messages": [("user", "hi")]})


def _plain_openai_agents(url: str, guard: Guard | None) -> Any:
    from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled

    set_tracing_disabled(disabled=True)

    async def main() -> Any:
        client = openai.AsyncOpenAI(
            base_url=f"{url}/v1", api_key="k", http_client=_async_httpx2(guard)
        )
        async with client:
            model = OpenAIChatCompletionsModel(model="m", openai_client=client)
            return (await Runner.run(Agent(name="a", model=model), "hi")).final_output

    return asyncio.run(main())


PLAIN: dict[str, Ask] = {
    "httpx": _plain_httpx,
    "httpx2 async": _plain_async_httpx2,
    "requests": _plain_requests,
    "aiohttp": _plain_aiohttp,
    "anthropic": _plain_anthropic,
    "anthropic async": _plain_async_anthropic,
    "openai chat": _plain_chat,
    "openai responses": _plain_responses,
    "google-genai": _plain_google,
    "google-genai async": _plain_async_google,
    "pydantic-ai": _plain_pydantic_ai,
    "ChatOpenAI": _plain_langchain_openai,
    "ChatAnthropic": _plain_langchain_anthropic,
    "LangGraph": _plain_langgraph,
    "openai-agents": _plain_openai_agents,
}
STREAMED: dict[str, Ask] = {
    "httpx2": _streamed_httpx,
    "anthropic": _streamed_anthropic,
    "anthropic async": _streamed_async_anthropic,
    "openai chat": _streamed_chat,
    "openai responses": _streamed_responses,
    "google-genai": _streamed_google,
}
