"""How Codex is told to retry less.

Its retries are settings of the provider in use, and the built-in providers cannot be changed: 0.166
refuses to start if one tries. So they are bounded only for a provider that the user has described,
in config.toml or by ``-c``; for the others they stay as they are, and are counted.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .adapter import LaunchRequest

__all__ = ("bounds", "provider_in_use")

# Requests that were refused are cheap to send again; a stream that broke costs its tokens anew.
_REQUESTS, _STREAMS = 2, 1


def bounds(
    settings: Iterable[str], profile: str, wish: LaunchRequest, *, is_config_read: bool
) -> tuple[str, ...]:
    """The options that bound the retries of the provider in use, less those that are set."""
    known = _in_use(settings, profile, wish.environ, is_config_read=is_config_read)
    provider = known.get("model_provider")
    stem = f"model_providers.{provider}."
    if not isinstance(provider, str) or not any(name.startswith(stem) for name in known):
        return ()
    asked = wish.own_retries
    wanted = {
        "request_max_retries": _REQUESTS if asked is None else asked,
        "stream_max_retries": _STREAMS if asked is None else min(asked, _STREAMS),
    }
    return tuple(
        part
        for name, value in wanted.items()
        if stem + name not in known
        for part in ("-c", f"{stem}{name}={value}")
    )


def provider_in_use(
    settings: Iterable[str], profile: str, environ: Mapping[str, str], *, is_config_read: bool
) -> str:
    """The provider that the user chose for Codex; empty for the built-in one."""
    known = _in_use(settings, profile, environ, is_config_read=is_config_read)
    found = known.get("model_provider")
    return found if isinstance(found, str) else ""


def _in_use(
    settings: Iterable[str], profile: str, environ: Mapping[str, str], *, is_config_read: bool
) -> dict[str, object]:
    """The settings in use: those of config.toml, then those of ``-c``."""
    known: dict[str, object] = {}
    if is_config_read:
        home = environ.get("CODEX_HOME") or f"{environ.get('HOME', '')}/.codex"
        for name in ("config", *([f"{profile}.config"] if profile else [])):
            known |= _flat(_file(Path(home, f"{name}.toml")))
    for setting in settings:
        name, _, value = setting.partition("=")
        known[name.strip()] = value.strip().strip("\"'")
    return known


def _file(path: Path) -> Mapping[str, object]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        # Codex will say what is wrong with it better than we can.
        return {}


def _flat(found: Mapping[str, object], stem: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in found.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{stem}{name}.")
        else:
            flat[stem + name] = value
    return flat
