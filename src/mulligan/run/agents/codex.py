"""Codex: ``codex exec``."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.redaction import presentable
from .accounts import Credential, read_json, short_path
from .output_reader import EventReader, mapping, text, total
from .program import ArgvGrammar, KnownProgram, given, value_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .accounts import AgentAccount
    from .adapter import LaunchRequest, Stream
    from .output_reader import Event
    from .program import Argument

__all__ = ("PROGRAM", "CodexAdapter", "CodexReader")

# Requests that were refused are cheap to send again; a stream that broke costs its tokens again.
_REQUESTS, _STREAMS = 2, 1


class CodexAdapter(KnownProgram):
    """Measured with 0.166.0. Options of ``exec`` stand before its own ``resume``."""

    name = "codex"
    is_end_reported = True
    grammar = ArgvGrammar(
        values="""-c --config --enable --disable --remote --remote-auth-token-env -m --model
            --local-provider -p --profile -s --sandbox -C --cd --add-dir -a --ask-for-approval
            --thread-source --cyber-access-program --output-schema --color -o
            --output-last-message""",
        lists="-i --image",
        flags="""--strict-config --oss --approve-for-me --dangerously-bypass-approvals-and-sandbox
            --yolo --full-auto --dangerously-bypass-hook-trust --worktree --search --no-alt-screen
            --no-daemon --skip-git-repo-check --ephemeral --ignore-user-config --ignore-rules
            --json --experimental-json --last --all -h --help -V --version""",
    )
    asides = ("--help", "-h", "--version", "-V")
    commands = """
        agents login logout mcp mcp-server plugin app-server remote-control completion
        update doctor sandbox debug apply a queue archive delete migrate-rollouts
        migrate-nfs-db unarchive cloud exec-server features help review
    """
    usage = 'codex exec "…"'
    subcommands = ("exec", "e")
    asked = ("codex", "exec", "{args}", "--", "{prompt}")
    asked_on_stdin = ("codex", "exec", "{args}", "-")
    resumed_last = ("resume", "{session}", "{prompt}")
    formats = ("--json", "--experimental-json")
    format = ("--json",)
    sessions = ("--last", "--all")
    unsaved = ("--ephemeral",)
    # The first attempt has already received them.
    prompts = ("-i", "--image")
    keys = ("CODEX_API_KEY", "OPENAI_API_KEY")
    is_file_first = True
    provider = "openai"
    endpoints = ("OPENAI_BASE_URL",)
    home_variable = "CODEX_HOME"
    folder = ".codex"

    def check(self, parts: tuple[Argument, ...]) -> None:
        if not self.place(parts):
            raise self.refused("without exec is interactive")

    def is_saved(self, parts: tuple[Argument, ...]) -> bool:
        # ``resume`` does not take the options of ``review``.
        behind = [part.values[0] for part in parts[self.place(parts) :] if not part.name]
        return behind[:1] != ["review"] and super().is_saved(parts)

    def is_live(self, parts: tuple[Argument, ...]) -> bool:  # noqa: ARG002 -- both of its forms are
        return True

    def bounds(self, parts: tuple[Argument, ...], wish: LaunchRequest) -> tuple[str, ...]:
        # Its retries are settings of the provider, and the built-in providers cannot be changed:
        # 0.166 refuses to start if one tries. So they are bounded only for a provider that the user
        # has described, in config.toml or by ``-c``; those of the others are counted.
        known, asked = self._in_use(parts, wish.environ), wish.own_retries
        stem = f"model_providers.{known.get('model_provider')}."
        if not any(name.startswith(stem) for name in known):
            return ()
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

    def account(self, command: tuple[str, ...], environ: Mapping[str, str], /) -> AgentAccount:
        found = super().account(command, environ)
        named = self._in_use(self._read(command)[1], environ).get("model_provider")
        if not isinstance(named, str) or named in {"", "openai"}:
            return found
        # The user configured another provider, with its own key and endpoint.
        provider, secret = presentable(named, 80), f"{named} {found.secret}"
        return found._replace(provider=provider, secret=secret)

    def file_credentials(self, environ: Mapping[str, str]) -> dict[str, Credential]:
        file = f"{self.home(environ)}/auth.json"
        kept, label = read_json(file), short_path(file, environ)
        key, account = text(kept, "OPENAI_API_KEY"), text(kept, "tokens", "account_id")
        if environ.get("CODEX_API_KEY") or not (key or account):
            return {}
        return {"openai": Credential(key or account, label if key else f"login in {label}")}

    def model_option(self, parts: tuple[Argument, ...]) -> str:
        for setting in reversed(self._settings(parts)):
            name, _, value = setting.partition("=")
            if name.strip() == "model" and not super().model_option(parts):
                return value.strip().strip("\"'")
        return super().model_option(parts)

    def _settings(self, parts: tuple[Argument, ...]) -> list[str]:
        return [each for part in parts for each in part.values if part.name in ("-c", "--config")]

    def _in_use(self, parts: tuple[Argument, ...], environ: Mapping[str, str]) -> dict[str, object]:
        """The settings in use: those of config.toml and of a profile, then those of ``-c``."""
        known: dict[str, object] = {}
        if not given(parts, "--ignore-user-config"):
            profile = value_of(parts, "-p", "--profile")
            for name in ("config", *([f"{profile}.config"] if profile else [])):
                known |= _flat(_file(Path(self.home(environ), f"{name}.toml")))
        for setting in self._settings(parts):
            name, _, value = setting.partition("=")
            known[name.strip()] = value.strip().strip("\"'")
        return known


_TOOLS = ("command_execution", "mcp_tool_call", "web_search", "file_change", "collab_tool_call")
_RECONNECTING = re.compile(r"(?:ERROR: )?Reconnecting\.\.\.")
_SESSION_LINE = re.compile(r"session id: (\S+)")


class CodexReader(EventReader):
    """`--json`. In text its progress goes to stderr, only the last message to stdout."""

    lost = re.compile(r"Error: .{0,200}no rollout found")

    _last = _error = ""

    def read(self, event: Event) -> None:
        match event.get("type"):
            case "thread.started":
                self.session(event.get("thread_id"))
                self.show("stderr", f"session id: {text(event, 'thread_id')}\n")
            case "item.started":
                self._began(mapping(event, "item"))
            case "item.completed":
                self._completed(mapping(event, "item"))
            case "error":
                self._failed(text(event, "message"))
            case "turn.failed":
                self._failed(text(event, "error", "message"))
            case "turn.completed":
                tokens = total(event.get("usage"), "input_tokens", "output_tokens")
                self.spent(tokens=tokens)
                self.show("stderr", f"tokens used\n{int(tokens):,}\n")
                self.show("stdout", self._last + "\n" if self._last else "")

    def _began(self, item: Event) -> None:
        self.worked()
        if item.get("type") in _TOOLS:
            self.tool_began(text(item, "id"), text(item, "type"), item)
        if item.get("type") == "command_execution":
            self.show("stderr", f"exec\n{text(item, 'command')}\n")

    def _completed(self, item: Event) -> None:
        self.tool_ended(text(item, "id"))
        match item.get("type"):
            case "error":
                self.show("stderr", f"warning: {text(item, 'message')}\n")
                return
            case "agent_message":
                self._last = text(item, "text")
                self.show("stderr", f"codex\n{self._last}\n")
            case "reasoning":
                self.show("stderr", f"thinking\n{text(item, 'text')}\n")
            case "command_execution":
                code = item.get("exit_code")
                ended = "succeeded" if code == 0 else f"exited {code}"
                output = text(item, "aggregated_output").rstrip("\n")
                self.show("stderr", f" {ended}:\n" + (output + "\n" if output else ""))
        self.worked()

    def _failed(self, message: str) -> None:
        if _RECONNECTING.match(message):
            self.retry()
        if message and message != self._error:
            self._error = message
            self.show("stderr", f"ERROR: {message}\n")

    def words(self, stream: Stream, line: str) -> None:
        if stream != "stderr":
            return
        if _RECONNECTING.match(line):
            self.retry()
        elif found := _SESSION_LINE.fullmatch(line):
            self.session(found[1])


def _file(path: Path) -> Mapping[str, object]:
    import tomllib

    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        # Codex itself reports what is wrong with the file.
        return {}


def _flat(found: Mapping[str, object], stem: str = "") -> dict[str, object]:
    flat: dict[str, object] = {}
    for name, value in found.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{stem}{name}.")
        else:
            flat[stem + name] = value
    return flat


PROGRAM = CodexAdapter(CodexReader)
