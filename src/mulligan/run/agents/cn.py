"""Continue: ``cn -p``.

Its ``--resume`` does not bring back what a failed run has done (1.5.47), so it is not used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .argv import Grammar
from .program import Program

if TYPE_CHECKING:
    from .argv import Part

__all__ = ("PROGRAM", "Continue")


class Continue(Program):
    """Measured with 1.5.47. Its own retries have no option, and it says nothing of them."""

    name = "continue"
    module = "cn"
    can_resume = False
    grammar = Grammar(
        values="""--config --org --rule --mcp --model --prompt --allow --ask --exclude --agent
            --format --fork""",
        flags="""-v --version --readonly --auto --verbose --beta-status-tool -p --print --silent
            --resume --beta-subagent-tool -h --help""",
    )
    commands = "ls checks review login logout serve remote"
    headless = ("-p", "--print")
    usage = 'cn -p "…"'
    keys = ("CONTINUE_API_KEY",)
    places = ("CONTINUE_GLOBAL_DIR",)
    folder = ".continue"

    def is_live(self, parts: tuple[Part, ...]) -> bool:  # noqa: ARG002 -- none of its forms is
        return False


PROGRAM = Continue()
