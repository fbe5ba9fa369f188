"""`mulligan completion`: print the completion script of a shell."""

from __future__ import annotations

import click

__all__ = ("command",)


@click.command("completion")
@click.argument("shell", metavar="SHELL", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of SHELL: bash, zsh or fish.

    \b
    bash   mulligan completion bash >> ~/.bashrc
    zsh    mulligan completion zsh >> ~/.zshrc
    fish   mulligan completion fish > ~/.config/fish/completions/mulligan.fish
    """  # noqa: D301 -- \b is click's mark for lines that stay as they are
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None  # noqa: S101 -- click knows the three that are offered
    click.echo(kind(ctx.find_root().command, {}, "mulligan", "_MULLIGAN_COMPLETE").source())
