"""Claude Code: ``claude -p``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .accounts import Credential, read_json, short_path
from .output_reader import EventReader, contents, mapping, number, text, total
from .program import ArgvGrammar, KnownProgram, cut, value_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .adapter import Launch
    from .output_reader import Event

__all__ = ("PROGRAM", "ClaudeAdapter", "ClaudeReader")

_TOKENS = (
    *("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
    "output_tokens",
)


class ClaudeAdapter(KnownProgram):
    """Measured with 2.1.325."""

    name = "claude"
    is_end_reported = True
    grammar = ArgvGrammar(
        values="""--agent --agents --append-system-prompt --append-system-prompt-file --autocompact
            --debug-file --effort --environment --fallback-model --input-format --json-schema
            --max-budget-usd --max-thinking-tokens --max-turns --model -n --name --output-format
            --permission-mode --permission-prompts --permission-prompt-tool --plugin-dir
            --plugin-url --remote-control-session-name-prefix --session-id --setting-sources
            --settings --system-prompt --system-prompt-file --system-prompt-snapshot""",
        lists="""--add-dir --allowedTools --allowed-tools --disallowedTools --disallowed-tools
            --betas --file --mcp-config --tools""",
        maybes="""--cloud -d --debug --from-pr --prompt-suggestions --remote-control -r --resume
            --teleport -w --worktree""",
        flags="""--allow-dangerously-skip-permissions --ax-screen-reader --bg --background --bare
            --brief --chrome -c --continue --dangerously-skip-permissions --desktop
            --disable-slash-commands --exclude-dynamic-system-prompt-sections --fork-session
            --forward-subagent-text -h --help --ide --include-hook-events
            --include-partial-messages --no-chrome --no-session-persistence -p --print
            --replay-user-messages --restricted --safe-mode --strict-mcp-config --tmux --verbose
            -v --version""",
    )
    asides = ("--help", "-h", "--version", "-v", "--bg", "--background", "--cloud", "--desktop")
    commands = """
        agents attach auth auto-mode config doctor gateway import install logs mcp
        migrate-installer plugin plugins purge respawn rm setup-token stop kill
        ultrareview update upgrade
    """
    headless = ("-p", "--print")
    interactive = ("--remote-control", "--teleport", "--tmux")
    usage = 'claude -p "…"'
    asked = ("claude", "-p", "{prompt}", "{args}")
    asked_on_stdin = ("claude", "-p", "{args}")
    resumed = ("--resume", "{session}", "-p", "{prompt}")
    formats = ("--output-format",)
    format = ("--output-format", "stream-json", "--verbose")
    live = ("stream-json",)
    sessions = ("--session-id", "--resume", "-r", "--continue", "-c", "--from-pr")
    session_values = ("--session-id", "--resume", "-r")
    session_option = "--session-id"
    forks = ("--fork-session",)
    unsaved = ("--no-session-persistence",)
    # The first attempt has already read the messages on stdin.
    prompts = ("--input-format", "--replay-user-messages")
    provider = "anthropic"
    keys = ("ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN")
    endpoints = ("ANTHROPIC_BASE_URL", "CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX")
    home_variable = "CLAUDE_CONFIG_DIR"
    folder = ".claude"
    models = ("--model",)
    model_variables = ("ANTHROPIC_MODEL",)
    retries_variable = "CLAUDE_CODE_MAX_RETRIES"
    retries = 3

    def file_credentials(self, environ: Mapping[str, str]) -> dict[str, Credential]:
        folder = environ.get(self.home_variable) or environ.get("HOME", "")
        account = text(read_json(f"{folder}/.claude.json"), "oauthAccount", "accountUuid")
        if not account:
            return {}
        label = f"login in {short_path(self.home(environ), environ)}"
        return {"anthropic": Credential(account, label)}


class ClaudeReader(EventReader):
    """`stream-json`, and the one object of `json`. In text it prints the result, nothing else."""

    lost = re.compile(r"No conversation found with session ID")
    session_key = "session_id"

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch)
        self._usage: dict[str, float] = {}
        self._total = 0.0
        self._is_told = False
        self._last, self._gap = "", ""
        self._argv = launch.argv

    def read(self, event: Event) -> None:
        match event.get("type"):
            case "system" if event.get("subtype") == "api_retry":
                self.retry(number(event, "retry_delay_ms") / 1000)
            case "assistant":
                self._assistant(event)
            case "user":
                for part in contents(event, "message", "content"):
                    self.tool_ended(text(part, "tool_use_id"))
            case "result":
                self._result(event)

    def _assistant(self, event: Event) -> None:
        message = mapping(event, "message")
        for part in contents(message, "content"):
            if part.get("type") == "tool_use":
                self.tool_began(text(part, "id"), text(part, "name"), part.get("input"))
            self._last = text(part, "text") or self._last
        if event.get("error") or event.get("isApiErrorMessage"):
            return
        self.worked()
        # Only the result event has the output tokens; until then count the request's tokens.
        name, tokens = text(message, "id"), total(message.get("usage"), *_TOKENS)
        self._total += tokens - self._usage.get(name, 0.0)
        self._usage[name] = tokens
        self.spent(tokens=self._total)

    def _result(self, event: Event) -> None:
        self._is_told, said = True, self._printed(event)
        cost = number(event, "total_cost_usd") if "total_cost_usd" in event else None
        self.spent(cost=cost, tokens=total(event.get("usage"), *_TOKENS))
        if said.strip():
            self.show("stdout", self._gap + said)
            # Background work can produce a second result; separate it from the first.
            self._gap = "\n" if said.endswith("\n") else "\n\n"

    def _printed(self, event: Event) -> str:
        """As its text form prints it: an answer with a line's end, a failure without."""
        found = event.get("errors")
        error = (
            next((each for each in found if isinstance(each, str)), "")
            if isinstance(found, list)
            else ""
        )
        match event.get("subtype"):
            case "error_during_execution":
                return "Execution error"
            case "error_max_turns":
                limit = re.search(r"\((\d{1,9})\)", error[:200])
                return f"Error: Reached max turns ({limit[1] if limit else ''})"
            case "error_max_budget_usd":
                budget = value_of(cut(self._argv, ClaudeAdapter.grammar), "--max-budget-usd")
                return f"Error: Exceeded USD budget ({budget})"
            case "error_max_structured_output_retries":
                return f"Error: {error or 'Failed to provide valid structured output'}"
            case _:
                said = text(event, "result")
                return said if said.endswith("\n") else said + "\n"

    def ended(self) -> None:
        # The line with the result was cut off; show the answer from the messages before it.
        if not self._is_told and self.is_broken and self._last:
            self.show("stdout", self._last + "\n")


PROGRAM = ClaudeAdapter(ClaudeReader)
