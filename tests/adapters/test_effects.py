from __future__ import annotations

import pytest

import mulligan
from mulligan.adapters.effects import effects_of, stated_effects

MODEL = b'{"model": "m", "messages": []}'
SERVER_TOOLS = b'{"model": "m", "tools": [{"type": "mcp", "server_url": "https://x"}]}'


@pytest.mark.parametrize(
    ("method", "path", "key", "body", "effects"),
    [
        ("GET", "/invoices", None, b"", "read"),
        ("HEAD", "/invoices", None, b"", "read"),
        ("OPTIONS", "/", None, b"", "read"),
        ("get", "/invoices", None, b"", "read"),
        ("PUT", "/invoices/1", None, b"{}", "idempotent"),
        ("DELETE", "/invoices/1", None, b"", "idempotent"),
        ("POST", "/invoices", None, b"{}", "unsafe"),
        ("PATCH", "/invoices/1", None, b"{}", "unsafe"),
        ("POST", "/invoices", "7f", b"{}", "keyed"),
        ("POST", "/v1/messages", None, MODEL, "idempotent"),
        ("POST", "/v1/messages/count_tokens", None, MODEL, "idempotent"),
        ("POST", "/v1/chat/completions", None, MODEL, "idempotent"),
        ("POST", "/v1/responses", None, MODEL, "idempotent"),
        ("POST", "/v1/embeddings", None, MODEL, "idempotent"),
        ("POST", "/openai/deployments/d/chat/completions", None, MODEL, "idempotent"),
        ("POST", "/v1beta/models/gemini-3:generateContent", None, b"{}", "idempotent"),
        ("POST", "/v1beta/models/gemini-3:streamGenerateContent", None, b"{}", "idempotent"),
        ("POST", "/model/a.b-1/converse-stream", None, b"{}", "idempotent"),
        # A chat that is no model's, a survey, a batch: each is done twice if it is sent twice.
        ("POST", "/v1/messages", None, b'{"to": "all", "text": "hi"}', "unsafe"),
        ("POST", "/channels/7/messages", None, MODEL, "unsafe"),
        ("POST", "/v1/responses", None, b'{"answers": [1, 2]}', "unsafe"),
        ("POST", "/v1/messages/batches", None, MODEL, "unsafe"),
        ("POST", "/v1beta/models/m:tuneModel", None, b"{}", "unsafe"),
        # The provider does more than answering.
        ("POST", "/v1/responses", None, b'{"model": "m", "conversation": "c1"}', "unsafe"),
        ("POST", "/v1/messages", None, b'{"model": "m", "mcp_servers": []}', "unsafe"),
        ("POST", "/v1/responses", None, SERVER_TOOLS, "unsafe"),
        # … unless a person writes about it.
        (
            "POST",
            "/v1/messages",
            None,
            b'{"model": "m", "x": "say \\"conversation\\":"}',
            "idempotent",
        ),
    ],
)
def test_what_repeating_a_request_does(method, path, key, body, effects):
    assert effects_of(method, path, key, body) == effects


def test_the_caller_says_it_for_a_block():
    assert stated_effects() is None
    with mulligan.effects("read"):
        assert stated_effects() == "read"
        with mulligan.effects(mulligan.Effects.UNSAFE):
            assert stated_effects() == "unsafe"
        assert stated_effects() == "read"
    assert stated_effects() is None


def test_effects_that_do_not_exist_are_refused():
    with (
        pytest.raises(
            mulligan.SettingError,
            match=r"^effects needs one of read, idempotent, keyed, unsafe; got 'safe'$",
        ),
        mulligan.effects("safe"),  # type: ignore[arg-type]
    ):
        pass
