"""Frameworks whose adapter is more than a guarded HTTP client."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from claude_agent_sdk import ClaudeAgentOptions, ResultError, ResultMessage
from langchain_anthropic import ChatAnthropic
from langchain_openai import ChatOpenAI
from pydantic_ai import Agent, ModelHTTPError
from pydantic_ai.messages import ModelResponse, TextPart
from pydantic_ai.models.function import FunctionModel

import mulligan
from mulligan.adapters.claude_agent_sdk import guarded_query
from mulligan.adapters.pydantic_ai import GuardedModel

pytestmark = pytest.mark.real


# claude-agent-sdk, with the program that it brings


def ask(server: Any, home: Any, guard: mulligan.Guard) -> list[Any]:
    env = {**server.env("claude"), "HOME": str(home), "CLAUDE_CONFIG_DIR": str(home)}
    options = ClaudeAgentOptions(env=env, cwd=str(home), model="claude-sonnet-4-5")

    async def main() -> list[Any]:
        return [message async for message in guarded_query(guard, prompt="hi", options=options)]

    return asyncio.run(main())


def test_a_session_that_failed_is_resumed(fault_server, tmp_path, clock):
    fault_server.set("529x3, ok")
    messages = ask(fault_server, tmp_path, mulligan.Guard("claude", attempts=3))
    failed, done = (each for each in messages if isinstance(each, ResultMessage))
    assert (failed.is_error, done.is_error) == (True, False)
    assert failed.session_id == done.session_id
    assert fault_server.totals.requests == 4  # three of the program's own, then the resumed one


def test_what_cannot_pass_is_asked_by_the_program_alone(fault_server, tmp_path, clock):
    """Ten requests in 150 seconds without a bound on its own retries."""
    fault_server.set("auth")
    with pytest.raises(ResultError) as caught:
        ask(fault_server, tmp_path, mulligan.Guard("claude", attempts=3))
    story = mulligan.story(caught.value)
    assert story is not None
    assert (story.attempts, story.ending) == (1, "final")
    assert fault_server.totals.requests == 3


# pydantic-ai without an HTTP client


def overloaded(times: int) -> tuple[FunctionModel, list[int]]:
    asked: list[int] = []

    def answer(_messages: Any, _info: Any) -> ModelResponse:
        asked.append(len(asked) + 1)
        if len(asked) <= times:
            raise ModelHTTPError(503, "m", {"error": {"message": "overloaded"}})
        return ModelResponse(parts=[TextPart("hi")])

    return FunctionModel(answer), asked


def test_a_guarded_model_is_asked_again(clock):
    model, asked = overloaded(2)
    agent = Agent(GuardedModel(model, mulligan.Guard("model")))
    assert asyncio.run(agent.run("hi")).output == "hi"
    assert asked == [1, 2, 3]


def test_a_guarded_model_raises_what_the_model_raised(clock):
    model, asked = overloaded(9)
    agent = Agent(GuardedModel(model, mulligan.Guard("model", attempts=3)))
    with pytest.raises(ModelHTTPError) as caught:
        asyncio.run(agent.run("hi"))
    story = mulligan.story(caught.value)
    assert story is not None
    assert story.attempts == len(asked) == 3


# LangChain


def test_a_guarded_copy_of_a_chat_model_leaves_the_model_alone(fault_server, clock):
    settings: Any = {"base_url": f"{fault_server.url}/v1", "api_key": "k", "model": "m"}
    model = ChatOpenAI(**settings)
    before = model.root_client
    guard = mulligan.Guard("model", attempts=4)
    view = guard.wrap(model)
    assert type(view) is ChatOpenAI
    assert model.root_client is before
    fault_server.set("503x2, ok")
    assert view.invoke("hi").content
    fault_server.set("503x2, ok")
    assert "".join(str(chunk.content) for chunk in view.stream("hi"))
    fault_server.set("503x2, ok")
    assert asyncio.run(view.ainvoke("hi")).content
    assert fault_server.totals.requests == 9


def test_models_that_share_an_http_client_are_guarded_one_by_one(fault_server, clock):
    """langchain-anthropic keeps one HTTP client for all models of an address."""
    settings: Any = {"base_url": fault_server.url, "api_key": "k", "model": "m", "max_retries": 0}
    guarded = mulligan.Guard("model", attempts=4).wrap(ChatAnthropic(**settings))
    alone = ChatAnthropic(**settings)
    fault_server.set("503")
    for model, requests in ((alone, 1), (guarded, 4)):
        fault_server.clear()
        with pytest.raises(Exception):  # noqa: B017, PT011 -- of a class that LangChain makes
            model.invoke("hi")
        assert fault_server.totals.requests == requests


def test_a_model_whose_http_client_cannot_be_reached_is_refused():
    from langchain_core.language_models import FakeListChatModel

    with pytest.raises(mulligan.SettingError, match=r"^wrap cannot reach the HTTP client of Fake"):
        mulligan.Guard("model").wrap(FakeListChatModel(responses=["hi"]))


# LangGraph


def test_what_a_guard_has_judged_is_not_retried_by_a_layer_outside(fault_server, clock):
    import httpx

    fault_server.set("503")
    with httpx.Client() as plain:
        answer = mulligan.Guard("api", attempts=2).wrap(plain).get(f"{fault_server.url}/invoices")
        with pytest.raises(httpx.HTTPStatusError) as judged:
            answer.raise_for_status()
        with pytest.raises(httpx.HTTPStatusError) as unjudged:
            plain.get(f"{fault_server.url}/invoices").raise_for_status()
    assert not mulligan.is_unjudged(judged.value)
    assert mulligan.is_unjudged(unjudged.value)
    assert mulligan.is_unjudged(ConnectionResetError())
    assert not mulligan.is_unjudged(ValueError("a bug"))
