from __future__ import annotations

import builtins
import http.client
import importlib
import ssl
import subprocess
import sys
import urllib.error

import openai
import pytest

from mulligan.classify.exceptions import classify_exception
from mulligan.classify.known_exceptions import KNOWN, find
from mulligan.core.failure import Failure, Kind, Reach

NOW = 1_794_772_800.0

# Where the classes of a root package are defined; websockets is not installed here.
PLACES = {
    "builtins": ["builtins"],
    "http": ["http.client"],
    "urllib": ["urllib.error"],
    "ssl": ["ssl"],
    "asyncio": ["asyncio"],
    "subprocess": ["subprocess"],
    "anyio": ["anyio"],
    "trio": ["trio"],
    "httpx": ["httpx", "httpcore"],  # one table serves the client with its transport
    "httpx2": ["httpx2", "httpcore2"],
    "httpcore": ["httpx", "httpcore"],
    "httpcore2": ["httpx2", "httpcore2"],
    "aiohttp": ["aiohttp", "aiohttp.client_exceptions"],
    "requests": ["requests.exceptions"],
    "urllib3": ["urllib3.exceptions"],
    "botocore": ["botocore.exceptions"],
    "openai": ["openai", "openai._exceptions", "anthropic", "anthropic._exceptions"],
    "anthropic": ["openai", "openai._exceptions", "anthropic", "anthropic._exceptions"],
}


@pytest.mark.parametrize("root", PLACES)
def test_every_known_name_exists_where_it_is_said_to(root):
    modules = [importlib.import_module(name) for name in PLACES[root]]
    for name in KNOWN[root]:
        found = [vars(module)[name] for module in modules if name in vars(module)]
        assert found, f"{root} has no {name}"
        assert all(issubclass(cls, BaseException) for cls in found)


@pytest.mark.parametrize("root", sorted(set(PLACES) - {"openai", "anthropic"}))
def test_every_class_of_a_known_name_is_found(root):
    for place in PLACES[root]:
        for name, cls in vars(importlib.import_module(place)).items():
            if name in KNOWN[root] and cls.__module__.partition(".")[0] == root:
                assert find(cls) is KNOWN[root][name]


def test_the_nearest_base_decides():
    assert find(ssl.SSLWantReadError) is KNOWN["ssl"]["SSLError"]
    assert find(http.client.RemoteDisconnected) is not None
    assert find(urllib.error.HTTPError) is KNOWN["urllib"]["URLError"]
    assert find(builtins.ValueError) is None


# litellm 1.106 wants openai < 3 and cannot live beside the clients that are tested here. These
# classes are ours, with the names, bases, package and made-up statuses of the real ones; the real
# ones, in an environment of their own, gave the same results (litellm 1.106.2, November 2026).
def litellm(name: str, base: type[Exception], status: int) -> Exception:
    fields = {"__module__": "litellm.exceptions", "__init__": Exception.__init__}
    error = type(name, (base,), fields)(f"litellm.{name}: x")
    error.__dict__.update(status_code=status, message=str(error), llm_provider="x", model="x")
    assert isinstance(error, Exception)
    return error


@pytest.mark.parametrize(
    ("name", "base", "status", "kind", "reach"),
    [
        ("Timeout", openai.APITimeoutError, 408, Kind.TIMEOUT, Reach.MAYBE_APPLIED),
        ("APIConnectionError", openai.APIConnectionError, 500, Kind.NETWORK, Reach.MAYBE_APPLIED),
        ("InternalServerError", openai.InternalServerError, 500, Kind.SERVER, Reach.MAYBE_APPLIED),
        ("RateLimitError", openai.RateLimitError, 429, Kind.RATE_LIMIT, Reach.ANSWERED),
        ("AuthenticationError", openai.AuthenticationError, 401, Kind.AUTH, Reach.ANSWERED),
        ("BudgetExceededError", Exception, 422, Kind.BILLING, Reach.NEVER_SENT),
        (
            "ContextWindowExceededError",
            openai.BadRequestError,
            400,
            Kind.CONTEXT_LENGTH,
            Reach.ANSWERED,
        ),
        (
            "ContentPolicyViolationError",
            openai.BadRequestError,
            400,
            Kind.CONTENT_POLICY,
            Reach.ANSWERED,
        ),
    ],
)
def test_litellms_names_know_better_than_its_statuses(name, base, status, kind, reach):
    failure: Failure = classify_exception(litellm(name, base, status), now=NOW)
    assert (failure.kind, failure.reach) == (kind, reach)


@pytest.mark.real
def test_reading_an_error_loads_no_client_and_nothing_heavy():
    heavy = "asyncio email http json logging openai random socket ssl threading typing_extensions"
    script = (
        "import sys, mulligan.classify.classifier as c;"
        "c.classifier.classify(ConnectionResetError('x'), now=0.0);"
        f"print([name for name in {heavy.split()!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.strip() == "[]"
