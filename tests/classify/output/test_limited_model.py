"""Which model a limit is about."""

from __future__ import annotations

import re
from datetime import UTC

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mulligan.api.agent_output import load_packs, read_output
from mulligan.classify.output.meaning import LIMITED_MODELS, limited_model

NOW = 1_794_000_000.0


@pytest.mark.parametrize(("pattern", "example"), LIMITED_MODELS)
def test_each_wording_has_an_example_that_it_finds(pattern, example):
    assert re.search(pattern, example, re.IGNORECASE)
    assert limited_model(example)


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("Opus weekly limit reached ∙ resets Oct 20, 2pm", "opus"),
        ("Claude Opus 4 limit reached, now using Sonnet 4", "claude opus 4"),
        ("seven day opus limit reached", "opus"),
        ("■ You've hit your usage limit for gpt-5-codex. Switch to another model", "gpt-5-codex"),
        ("Rate limit reached for gpt-4o in organization org-x on tokens", "gpt-4o"),
        ("Rate limit reached for o3 on requests per min", "o3"),
        ("Rate limit reached for model `gpt-4o-mini`", "gpt-4o-mini"),
        ("You exceeded your quota for gemini 2.5 pro", "gemini 2.5 pro"),
        ("Limit reached for claude-opus-4-6", "claude-opus-4-6"),
        ("acme/qwen-3:free has been rate-limited upstream", "qwen-3"),
        # A program, a plan, a model that may still be asked.
        ("Your limit on claude-code is reached", ""),
        ("Rate limit exceeded on claude-max plan", ""),
        ("You've hit your session limit. Opus limit: 50% used", ""),
        ("Weekly limit reached (all models). Sonnet limit has 40% left", ""),
        ("You've hit your weekly limit · resets Monday", ""),
        ("You've hit your session limit · resets 3:45pm", ""),
        ("5-hour limit reached ∙ resets 2pm", ""),
        ("tier-1 rate limit", ""),
        ("You've hit your usage limit. Upgrade to Pro, or use gpt-5-mini", ""),
        ("This model's maximum context length is 102400 tokens", ""),
    ],
)
def test_what_a_message_names_is_read_and_nothing_else(text, model):
    assert limited_model(text) == model


@given(st.text())
def test_no_text_makes_it_raise(text):
    assert len(limited_model(text)) < 100


SPARK = "ERROR: You've hit your usage limit for GPT-5.3-Codex-Spark. Switch to another model now"
OWN = "You have exhausted your capacity on this model. Your quota will reset after 10m."


@pytest.mark.parametrize(
    ("agent", "text", "model"),
    [
        ("claude", "You've hit your Opus limit · resets 3:45pm", "opus"),
        ("claude", "You've hit your limit · resets 3:45pm", ""),
        ("codex", f"{SPARK}, or try again at 4:10 PM.", "gpt-5.3-codex-spark"),
        ("gemini", OWN, "this model"),
    ],
)
def test_the_failure_says_what_its_limit_is_about(agent, text, model):
    outcome = read_output(
        "", text, packs=load_packs().packs, now=NOW, zone=UTC, agent=agent, exit_code=1
    )
    assert outcome.failure is not None
    assert outcome.failure.kind.is_limit
    assert outcome.failure.model == model


def test_an_event_before_the_last_word_says_it_where_that_does_not():
    events = (
        '{"type":"system","subtype":"init","session_id":"s","mcp_servers":[]}\n'
        '{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","resetsAt":1794010000,'
        '"rateLimitType":"seven_day_opus"}}\n'
        '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,'
        '"result":"You\'ve hit your weekly limit"}\n'
    )
    outcome = read_output(
        events, packs=load_packs().packs, now=NOW, zone=UTC, agent="claude", exit_code=1
    )
    assert outcome.failure is not None
    assert outcome.failure.model == "opus"
