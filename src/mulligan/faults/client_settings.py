"""Environment and settings that point programs at the fault server.

Programs are configured by environment variables where possible. Codex reads its provider only from
a file, and Gemini must find in its settings that it logs in with a key: they get a separate home
folder, and the user's is not changed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import urlsplit

from ..errors import SettingError

__all__ = (
    "GEMINI_SETTINGS",
    "POINTERS",
    "Pointer",
    "codex_options",
    "codex_settings",
    "direct",
    "environment",
    "pointer_of",
    "settings",
)

# With a base URL in the environment Gemini (0.61) takes the login for a gateway's, then refuses it.
GEMINI_SETTINGS = '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Pointer:
    """How one SDK or program is pointed at the server."""

    name: str  # as `FaultServer.env` takes it
    url: str  # the variable that takes the base URL; empty if there is none
    key: str  # the variable that takes the key
    suffix: str = ""  # of the base URL, behind the server's address
    more: tuple[tuple[str, str], ...] = ()  # further variables, such as to turn telemetry off
    without: tuple[str, ...] = ()  # variables that must not be set: they would win over the key
    home: str = ""  # the variable that takes the folder of its settings, if it needs any
    file: str = ""  # the settings in that folder
    is_simple: bool = True  # whether the URL and the key are enough


_QUIET_CLAUDE = (
    ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
    ("DISABLE_AUTOUPDATER", "1"),
)
_QUIET_OPENCODE = (("OPENCODE_DISABLE_AUTOUPDATE", "1"), ("OPENCODE_DISABLE_MODELS_FETCH", "1"))

POINTERS = (
    Pointer(name="anthropic", url="ANTHROPIC_BASE_URL", key="ANTHROPIC_API_KEY"),
    Pointer(name="openai", url="OPENAI_BASE_URL", suffix="/v1", key="OPENAI_API_KEY"),
    Pointer(name="google-genai", url="GOOGLE_GEMINI_BASE_URL", key="GEMINI_API_KEY"),
    Pointer(name="litellm", url="OPENAI_BASE_URL", suffix="/v1", key="OPENAI_API_KEY",
            more=(("LITELLM_LOCAL_MODEL_COST_MAP", "True"),)),
    Pointer(name="claude", url="ANTHROPIC_BASE_URL", key="ANTHROPIC_API_KEY",
            more=_QUIET_CLAUDE, without=("ANTHROPIC_AUTH_TOKEN",)),
    # With a token instead of a key Claude Code takes itself for logged in to a plan, and words a
    # plan's limit as people see it.
    Pointer(name="claude-plan", url="ANTHROPIC_BASE_URL", key="CLAUDE_CODE_OAUTH_TOKEN",
            more=_QUIET_CLAUDE, without=("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"),
            is_simple=False),
    Pointer(name="codex", url="", key="MULLIGAN_KEY",
            home="CODEX_HOME", file="config.toml", is_simple=False),
    Pointer(name="gemini", url="GOOGLE_GEMINI_BASE_URL", key="GEMINI_API_KEY",
            more=(("GEMINI_TELEMETRY_ENABLED", "false"),),
            home="GEMINI_CLI_HOME", file=".gemini/settings.json", is_simple=False),
    Pointer(name="opencode", url="", key="MULLIGAN_KEY", more=_QUIET_OPENCODE, is_simple=False),
    Pointer(name="qwen", url="OPENAI_BASE_URL", suffix="/v1", key="OPENAI_API_KEY"),
    Pointer(name="copilot", url="COPILOT_PROVIDER_BASE_URL", suffix="/v1",
            key="COPILOT_PROVIDER_API_KEY", is_simple=False,
            more=(("COPILOT_PROVIDER_TYPE", "openai"), ("COPILOT_MODEL", "gpt-5"))),
)  # fmt: skip


def pointer_of(program: str) -> Pointer:
    """The pointer of that name, or a SettingError that lists them."""
    for pointer in POINTERS:
        if pointer.name == program:
            return pointer
    known = ", ".join(each.name for each in POINTERS)
    raise SettingError(f"no program is called {program!r}; known are {known}")


def environment(program: str, *, url: str, key: str) -> dict[str, str]:
    """The variables that point `program` at the server at `url`; see also `settings`."""
    pointer = pointer_of(program)
    found = {pointer.key: key, **dict(pointer.more)}
    if pointer.url:
        found[pointer.url] = url + pointer.suffix
    if program == "opencode":
        found["OPENCODE_CONFIG_CONTENT"] = json.dumps(_opencode_config(url, key))
    return found


def settings(program: str, url: str) -> str:
    """What the file in the program's own home says; empty if it needs none."""
    match program:
        case "codex":
            return "".join(f"{line}\n" for line in codex_settings(url))
        case "gemini":
            return GEMINI_SETTINGS
        case _:
            return ""


def direct(url: str, known: str = "") -> str:
    """``NO_PROXY`` with the server's host: a proxy cannot reach this machine's loopback."""
    host = urlsplit(url).hostname or ""
    return ",".join(filter(None, (host, known)))


def codex_settings(url: str) -> list[str]:
    """What makes Codex use the server as its provider: lines of its config.toml."""
    stem = "model_providers.mulligan"
    pairs = {
        "model_provider": "mulligan",
        f"{stem}.name": "mulligan",
        f"{stem}.base_url": f"{url}/v1",
        f"{stem}.env_key": "MULLIGAN_KEY",
        f"{stem}.wire_api": "responses",
    }
    return [f'{key} = "{value}"' for key, value in pairs.items()]


def codex_options(url: str) -> list[str]:
    """The same as arguments: ``-c KEY=VALUE`` each."""
    return [part for line in codex_settings(url) for part in ("-c", line)]


def _opencode_config(url: str, key: str) -> dict[str, object]:
    """The configuration that makes opencode use the server, as ``mulligan/gpt-5``."""
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "mulligan",
        "options": {"baseURL": f"{url}/v1", "apiKey": key},
        "models": {"gpt-5": {"name": "gpt-5"}},
    }
    return {"model": "mulligan/gpt-5", "autoupdate": False, "provider": {"mulligan": provider}}
