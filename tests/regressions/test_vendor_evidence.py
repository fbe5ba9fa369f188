"""What vendors say is read where they say it, and as they write it.

Three stories. litellm keeps the provider's headers on `litellm_response_headers`, and a response
with empty ones beside it: its Retry-After was not found, and the guard asked again too early.
"Limit 10,000, Used 9,900, Requested 500" was read as a limit of 10, so a 429 that passes within
seconds was final (`context_length`). An SDK that could not decode the JSON of an answer raised
`json.JSONDecodeError`, which was `unknown` while the documentation said `bad_answer`.
"""

from __future__ import annotations

import json
from datetime import UTC

import httpx
import pytest

import mulligan
from mulligan import Kind, Reach
from mulligan.api.agent_output import load_packs
from mulligan.classify.output.reader import read_output
from mulligan.testing import FaultServer, VirtualClock

NOW = 1_767_225_600.0


def litellm_error(headers: httpx.Headers) -> Exception:
    """litellm cannot live beside the SDKs that are tested here: names and shape of its own."""
    cls = type("RateLimitError", (Exception,), {"__module__": "litellm.exceptions"})
    error = cls("litellm.RateLimitError: AnthropicException - slow down")
    request = httpx.Request("POST", "https://litellm.ai")
    error.__dict__.update(
        status_code=429,
        message=str(error),
        llm_provider="anthropic",
        response=httpx.Response(429, request=request),
        litellm_response_headers=headers,
    )
    assert isinstance(error, Exception)
    return error


def test_the_retry_after_of_litellm_is_waited(drive):
    error = litellm_error(httpx.Headers({"Retry-After": "7"}))
    assert drive([error, "ok"])[1] == [7]


def test_the_quota_headers_of_litellm_are_overheard():
    headers = {
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "0",
        "anthropic-ratelimit-requests-reset": "2026-01-01T00:00:30Z",
    }
    failure = mulligan.classifier.classify(litellm_error(httpx.Headers(headers)), now=NOW)
    assert failure.hint is not None
    assert failure.hint.source == "anthropic-ratelimit-requests-reset"


@pytest.mark.parametrize(
    ("words", "kind", "wait"),
    [
        ("Limit 10,000, Used 9,900, Requested 500. Try again in 3s", Kind.RATE_LIMIT, 3),
        ("Limit 10,000, Used 9,900, Requested ~1,500", Kind.RATE_LIMIT, None),
        ("Limit 1,000,000, Requested 500,000", Kind.RATE_LIMIT, None),
        ("Limit 1.000.000, Requested 500.000", Kind.RATE_LIMIT, None),
        ("Limit 1 000 000, Requested 5 000", Kind.RATE_LIMIT, None),
        ("Limit 10_000, Requested 500", Kind.RATE_LIMIT, None),
        ("Limit: 30000, Used: 29000, Requested: 2000", Kind.RATE_LIMIT, None),
        ("Limit 10,000, Requested 12,500", Kind.CONTEXT_LENGTH, None),
        ("Limit 30000, Requested 40000", Kind.CONTEXT_LENGTH, None),
        ("Limit: 1,000,000 tokens per min. Requested: about 1,200,000", Kind.CONTEXT_LENGTH, None),
        ("Limit 10.5, Requested 11", Kind.RATE_LIMIT, None),
        ("Please try again in 1,200 seconds", Kind.RATE_LIMIT, 1200),
        ("Please try again in 1,200.5s", Kind.RATE_LIMIT, 1200.5),
    ],
)
def test_thousands_may_be_separated(words, kind, wait):
    body = {"error": {"message": words}}
    failure = mulligan.classifier.classify_answer(429, {}, body, now=NOW)
    assert failure is not None
    assert failure.kind is kind
    assert (failure.hint.floor if failure.hint else None) == wait


@pytest.mark.parametrize(
    "words",
    ["Limit 10,000, Used 9,900, Requested 500", "Limit 10,000, Requested 12,500"],
)
def test_programs_and_answers_are_read_alike(words):
    said = f"429 Rate limit reached for gpt-5 on tokens per min. {words}."
    answer = mulligan.classifier.classify_answer(429, {}, said, now=NOW)
    printed = read_output(
        f"Error: {said}", packs=load_packs().packs, exit_code=1, now=NOW, zone=UTC
    )
    assert answer is not None
    assert printed.failure is not None
    assert printed.failure.kind is answer.kind


def sdk_call(name, server):
    if name == "openai":
        import openai

        with openai.OpenAI(base_url=f"{server.url}/v1", api_key="k", max_retries=0) as gpt:
            gpt.chat.completions.create(model="m", messages=[{"role": "user", "content": "a"}])
    elif name == "anthropic":
        import anthropic

        with anthropic.Anthropic(base_url=server.url, api_key="k", max_retries=0) as claude:
            claude.messages.create(
                model="m", max_tokens=9, messages=[{"role": "user", "content": "a"}]
            )
    else:
        answer = httpx.post(f"{server.url}/v1/messages", headers={"x-api-key": "mulligan-me"})
        answer.json()


@pytest.mark.real
@pytest.mark.parametrize("name", ["openai", "anthropic", "httpx"])
def test_an_answer_that_an_sdk_cannot_decode_is_a_bad_answer(name):
    with FaultServer("badjson") as server:
        guard = mulligan.Guard(clock=VirtualClock(), attempts=1)
        with pytest.raises(json.JSONDecodeError) as caught:
            guard.call(sdk_call, name, server)
    failure = mulligan.classifier.classify(caught.value, now=NOW)
    assert (failure.kind, failure.reach) == (Kind.BAD_ANSWER, Reach.MAYBE_APPLIED)


def test_what_the_caller_itself_cannot_decode_is_unknown():
    with pytest.raises(json.JSONDecodeError) as caught:
        json.loads("{")
    assert mulligan.classifier.classify(caught.value, now=NOW).kind is Kind.UNKNOWN
