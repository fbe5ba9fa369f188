"""`mulligan dashboard`: a page that shows runs, targets and failures while they happen."""

from __future__ import annotations

import os
from contextlib import closing
from typing import TYPE_CHECKING

import click

from ..store_options import ENVIRONMENT, opened, store_option

if TYPE_CHECKING:
    from ...core.ports import Store
    from ...dead_letters.browse import DeadLetters

__all__ = ("command",)


@click.command(
    "dashboard",
    epilog="Exit codes: 0 stopped by Ctrl-C, 1 it could not start, 2 wrong usage.",
)
@click.option(
    "--host",
    default="127.0.0.1",
    show_default=True,
    metavar="ADDRESS",
    help="The address to listen on; beyond loopback the token is needed to read, too.",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65_535),
    metavar="N",
    help="The port; 0 for any.  [the first free one from 8765]",
)
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    help="Another host name that browsers use, such as that of a proxy.",
)
@click.option("--read-only", "is_read_only", is_flag=True, help="Show everything, change nothing.")
@click.option(
    "--private",
    "is_private",
    is_flag=True,
    help="Require the token to read on this machine, too: for machines with other users.",
)
@click.option("--no-open", "is_quiet", is_flag=True, help="Do not open the browser.")
@click.option(
    "--app",
    default="",
    metavar="MODULE",
    help="The module with the functions that dead letters are replayed with.",
)
@store_option
def command(
    host: str,
    port: int | None,
    names: tuple[str, ...],
    app: str,
    url: str | None,
    *,
    is_read_only: bool,
    is_private: bool,
    is_quiet: bool,
) -> int:
    """Show runs, plans, targets and failures on a page in the browser, as they happen.

    The page shows the runs of this user and the store given by --store or MULLIGAN_STORE. The
    printed link contains a token: with it the page can resume, cancel, block and replay. Without
    the token the page can be read on this machine, but changes nothing. Each start makes a new
    token, unless MULLIGAN_DASHBOARD_TOKEN is set.

    \b
    mulligan dashboard                   on this machine
    mulligan dashboard --read-only
    mulligan dashboard --host 0.0.0.0 --name agents.example.com
    """  # noqa: D301 -- \b is click's mark for lines that stay as they are
    from ...dashboard.runs import RunIndex
    from ...dashboard.server import listen, new_token, serve
    from ...dashboard.sources import Sources
    from .stats import store_of_figures

    address = url or os.environ.get(ENVIRONMENT, "")
    token = new_token()
    guards = opened(address, must_exist=False) if address else None
    with closing(listen(host, port)) as listening, closing(RunIndex()) as index:
        sources = Sources(
            index, guards=guards, counts=store_of_figures(url), letters=_letters(guards)
        )
        serve(
            sources,
            listening,
            token=token,
            store=address,
            app=app,
            names=names,
            is_read_only=is_read_only,
            is_private=is_private,
            is_opened=not is_quiet,
            started=lambda link: click.echo(
                f"mulligan: the dashboard is at {link}\nmulligan: Ctrl-C stops it", err=True
            ),
        )
    return 0


def _letters(guards: Store | None) -> DeadLetters | None:
    from ...dead_letters.browse import DeadLetters
    from ...stores.home import home

    if guards is not None:
        return DeadLetters(guards)
    return DeadLetters() if (home() / "mulligan.db").exists() else None
