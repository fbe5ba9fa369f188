"""Continue: ``cn -p``.

Its ``--resume`` does not bring back what a failed run has done (1.5.47), so it is not used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .program import ArgvGrammar, KnownProgram

if TYPE_CHECKING:
    from .program import Argument

__all__ = ("PROGRAM", "ContinueAdapter")


class ContinueAdapter(KnownProgram):
    """Measured with 1.5.47. Its own retries have no option, and it says nothing of them."""

    name = "continue"
    module = "cn"
    can_resume = False
    grammar = ArgvGrammar(
        values="""--config --org --rule --mcp --model --prompt --allow --ask --exclude --agent
            --format --fork""",
        flags="""-v --version --readonly --auto --verbose --beta-status-tool -p --print --silent
            --resume --beta-subagent-tool -h --help""",
    )
    commands = "ls checks review login logout serve remote"
    headless = ("-p", "--print")
    usage = 'cn -p "…"'
    asked = ("cn", "-p", "{prompt}", "{args}")
    asked_on_stdin = ("cn", "-p", "{args}")
    keys = ("CONTINUE_API_KEY",)
    home_variable = "CONTINUE_GLOBAL_DIR"
    folder = ".continue"

    def is_live(self, parts: tuple[Argument, ...]) -> bool:  # noqa: ARG002 -- none of its forms is
        return False


PROGRAM = ContinueAdapter()
