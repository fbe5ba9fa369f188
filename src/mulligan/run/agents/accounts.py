"""Which account of which provider a program uses.

Limits belong to an account, not to a program: two programs with one key of one provider share it.
An account is identified by its credential, which is hashed before it is stored, or by the login
that the program keeps in a file. If the provider cannot be determined, the account counts as used
by this program only.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = (
    "AgentAccount",
    "Credential",
    "endpoint",
    "family_provider",
    "file_entries",
    "key_credentials",
    "provider_of_option",
    "read_json",
    "short_path",
)


class AgentAccount(NamedTuple):
    """An account at a provider; programs that use the same one share its limits.

    Args:
        provider: The provider's name, fit to be shown; the program's own where it is not known.
        secret: Identifies the account. Hashed before it is stored, never shown.
        label: Where the credential was found, for people; nothing secret.
        model: The model that the command or the environment names; empty for the default.
    """

    provider: str
    secret: str
    label: str
    model: str = ""


class Credential(NamedTuple):
    """A key, or an account's id, that a program sends to a provider, and where it was found."""

    secret: str
    label: str


# Provider → environment variables that hold its keys.
_KEYS = {
    "anthropic": """ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN ANTHROPIC_OAUTH_TOKEN
        CLAUDE_CODE_OAUTH_TOKEN""",
    "openai": "CODEX_API_KEY OPENAI_API_KEY",
    "google": "GEMINI_API_KEY GOOGLE_API_KEY GOOGLE_GENERATIVE_AI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
    "deepseek": "DEEPSEEK_API_KEY",
    "dashscope": "DASHSCOPE_API_KEY",
    "opencode": "OPENCODE_API_KEY",
    "cline": "CLINE_API_KEY",
    "continue": "CONTINUE_API_KEY",
    "github": "COPILOT_GITHUB_TOKEN GH_TOKEN GITHUB_TOKEN",
}
_PROVIDERS = {name: provider for provider, names in _KEYS.items() for name in names.split()}

# Provider names used by programs, where they differ from ours.
_ALIASES = {"gemini": "google", "openai-codex": "openai", "github-copilot": "github"}

_FAMILIES = {
    "anthropic": ("claude", "opus", "sonnet", "haiku"),
    "openai": ("gpt", "chatgpt", "codex", "o1", "o3", "o4"),
    "google": ("gemini",),
    "deepseek": ("deepseek",),
}

# The endpoint that a program uses by default.
_USUAL = frozenset({"api.anthropic.com", "api.openai.com", "generativelanguage.googleapis.com"})

# A file with a login has a few kilobytes; Claude keeps its history beside it.
_LARGEST = 4_000_000


def provider_of_option(name: str) -> str:
    """The provider that a program calls `name`; empty if it is not known."""
    name = _ALIASES.get(name.lower(), name.lower())
    return name if name in _KEYS else ""


def family_provider(model: str) -> str:
    """The provider that makes the models called like `model`; empty if that is not known."""
    name = model.lower()
    found = [each for each, words in _FAMILIES.items() if name.startswith(words)]
    return found[0] if found else ""


def key_credentials(names: tuple[str, ...], environ: Mapping[str, str]) -> dict[str, Credential]:
    """The credentials in variables, by provider; of several, the first of `names`."""
    found: dict[str, Credential] = {}
    for name in names:
        provider, value = _PROVIDERS.get(name), environ.get(name)
        if provider and value:
            found.setdefault(provider, Credential(value, name))
    return found


def file_entries(file: str, environ: Mapping[str, str]) -> dict[str, Credential]:
    """The credentials in a file with an entry for each provider, as opencode and pi keep them.

    A key may be the name of a variable that holds it. Login tokens are renewed hourly and do not
    identify an account, so a login is used only if it names its account.
    """
    label, found = short_path(file, environ), {}
    for name, entry in read_json(file).items():
        provider = provider_of_option(name)
        if not provider or not isinstance(entry, dict):
            continue
        key, account = entry.get("key"), entry.get("accountId") or entry.get("account_id")
        if isinstance(key, str) and key:
            found[provider] = Credential(environ.get(key, key), label)
        elif isinstance(account, str):
            found[provider] = Credential(account, f"login in {label}")
    return found


def endpoint(names: tuple[str, ...], environ: Mapping[str, str]) -> str:
    """Where requests go instead of to the provider's usual endpoint; empty if they go there."""
    found = []
    for name in names:
        value = environ.get(name, "").strip().rstrip("/")
        bare = value.partition("://")[2] or value
        bare = bare.removesuffix("/v1")
        if bare and bare.lower() not in _USUAL:
            found.append(bare)
    return " ".join(found)


def read_json(path: str) -> dict[str, object]:
    """The JSON object in a file of another program; empty if there is none that can be read."""
    try:
        with open(path, "rb") as file:  # noqa: PTH123 -- pathlib is not loaded for this
            if os.fstat(file.fileno()).st_size > _LARGEST:
                return {}
            found = json.loads(file.read(_LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def short_path(path: str, environ: Mapping[str, str]) -> str:
    """`path` as people write it, with ``~`` for their home."""
    home = environ.get("HOME", "")
    return f"~{path[len(home) :]}" if home and path.startswith(f"{home}/") else path
