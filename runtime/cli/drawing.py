"""Tables on a terminal that redraw themselves, and leave nothing behind."""

from __future__ import annotations

from collections.abc import Callable

from rich.console import Console, RenderableType
from rich.live import Live

from runtime.cli.output import stdout


def table_console() -> Console:
    """Where they are drawn: what jobs and models say is shown as it is, without any markup."""
    return Console(file=stdout(), highlight=False, markup=False, emoji=False)


def begin_drawing(console: Console, drawn: Callable[[], RenderableType], per_second: int) -> Live:
    """Draw what ``drawn`` gives, so often, until the result is stopped."""
    live = Live(
        console=console,
        refresh_per_second=per_second,
        transient=True,
        get_renderable=drawn,
        # Others' words are led elsewhere before the table begins (``own_terminal``).
        redirect_stdout=False,
        redirect_stderr=False,
    )
    live.start()
    return live
