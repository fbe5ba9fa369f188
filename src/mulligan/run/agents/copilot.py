"""GitHub Copilot CLI: ``copilot -p``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .output_reader import EventReader, mapping, number, text
from .program import ArgvGrammar, KnownProgram

if TYPE_CHECKING:
    from .adapter import Launch
    from .output_reader import Event

__all__ = ("PROGRAM", "CopilotAdapter", "CopilotReader")


class CopilotAdapter(KnownProgram):
    """Measured with 1.0.102. Its own retries have no option: six requests, counted."""

    name = "copilot"
    is_end_reported = True
    grammar = ArgvGrammar(
        values="""-i --interactive -p --prompt --model --reasoning-effort --context --auto-tier
            --agent -n --name --session-id -C --log-dir --extension-sdk-path --log-level --stream
            --output-format --add-dir --attachment --disable-mcp-server --add-github-mcp-toolset
            --add-github-mcp-tool --plugin-dir --additional-mcp-config --mcp-github-auth
            --max-autopilot-continues --mode --environment-host --environment-compute-id
            --dynamic-retrieval --enable-mcp-server --max-ai-credits --usage-output-file""",
        lists="""--allow-tool --deny-tool --available-tools --excluded-tools --allow-url
            --deny-url""",
        maybes="-r --resume --connect --share --bash-env --mouse -w --worktree",
        flags="""-v --version --fleet --trust-folder -s --silent --disable-client-telemetry
            --enable-memory --continue --allow-all-tools --allow-all-paths --disallow-temp-dir
            --banner --screen-reader --plain-diff --share-gist --disable-builtin-mcps
            --enable-all-github-mcp-tools --allow-all-mcp-server-instructions --allow-all-urls
            --allow-all --yolo --autopilot --plan --experimental --acp --remote --remote-export
            --assisted-approval --no-custom-instructions --no-auto-update --no-ask-user --no-color
            --no-experimental --no-bash-env --no-mouse --no-remote --no-remote-export
            --no-eager-powershell-resolution -h --help""",
    )
    asides = ("--help", "-h", "--version", "-v", "--acp")
    commands = """
        app login help init config update version workflow sessions memories plugin
        mcp skill instruction lsp sandbox completion
    """
    headless = ("-p", "--prompt")
    interactive = ("-i", "--interactive", "--connect")
    usage = 'copilot -p "…"'
    asked = ("copilot", "-p", "{prompt}", "{args}")
    resumed = ("--resume={session}", "-p", "{prompt}")
    formats = ("--output-format",)
    format = ("--output-format", "json")
    live = ("json", "text")
    sessions = ("--session-id", "--resume", "-r", "--continue")
    session_values = ("--session-id", "--resume", "-r")
    session_option = "--session-id"
    prompts = ("--attachment", "--name", "-n")
    keys = ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN", "COPILOT_PROVIDER_API_KEY")
    provider = "github"
    endpoints = ("COPILOT_PROVIDER_BASE_URL",)
    home_variable = "COPILOT_HOME"
    folder = ".copilot"
    models = ("--model",)
    model_variables = ("COPILOT_MODEL",)


class CopilotReader(EventReader):
    """`--output-format json`. In text answers and tools go to stdout, errors to stderr."""

    lost = re.compile(r"Error: No session, task, or name matched")
    session_key = "sessionId"

    def __init__(self, launch: Launch) -> None:
        super().__init__(launch)
        self._calls: dict[str, Event] = {}
        self._is_silent = "-s" in launch.argv or "--silent" in launch.argv

    def read(self, event: Event) -> None:
        data = mapping(event, "data")
        match event.get("type"):
            case "assistant.turn_retry":
                self.retry()
            case "assistant.message":
                self.worked()
                said = text(data, "content")
                self.show("stdout", said + "\n\n" if said else "")
            case "tool.execution_start":
                self.tool_began(
                    text(data, "toolCallId"), text(data, "toolName"), data.get("arguments")
                )
                self._calls[text(data, "toolCallId")] = data
            case "tool.execution_complete":
                self.tool_ended(text(data, "toolCallId"))
                self._tool(self._calls.pop(text(data, "toolCallId"), {}), data)
            case "session.info" if data.get("infoType") == "model_retry":
                self._aside(f"● {text(data, 'message')}")
            case "assistant.usage":
                cost = data.get("cost")
                self.also_spent(
                    cost=None if cost is None else number(data, "cost"),
                    tokens=number(data, "inputTokens") + number(data, "outputTokens"),
                )
            case "session.error":
                self.show("stderr", text(data, "message") + "\n")

    def _tool(self, asked: Event, done: Event) -> None:
        command = text(asked, "arguments", "command")
        is_well = (
            done.get("success") is not False and number(done, "shellExecution", "exitCode") == 0
        )
        sign = "●" if is_well else "✗"
        name = text(asked, "arguments", "description") or text(asked, "toolTitle")
        if not command:
            self._aside(f"{sign} {name or text(asked, 'toolName')}")
            return
        output = [line for line in text(done, "result", "content").splitlines() if line.strip()]
        count = sum(not line.startswith("<shellId:") for line in output)
        found = f"{count} line{'s' * (count > 1)}…" if count else "No Content"
        self._aside(f"{sign} {name} (shell)\n  │ {command}\n  └ {found}")

    def _aside(self, said: str) -> None:
        if not self._is_silent:
            self.show("stdout", said + "\n\n")


PROGRAM = CopilotAdapter(CopilotReader)
