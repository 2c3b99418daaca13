"""What each command of ``holdfast`` says of itself when it is asked for help, as Markdown.

``python -m docs_tools.cli`` prints it; ``--write`` puts it between the marks of ``docs/cli.md``.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
from pathlib import Path
from unittest.mock import patch

from benchmarks.blocks import hand_over
from runtime.cli.main import app, main

DOCUMENT = Path(__file__).parent.parent / "docs" / "cli.md"
BLOCK = "commands"


def commands() -> str:
    """A section for each command, in the order of ``holdfast --help``."""
    names = [str(command.name) for command in app.registered_commands]
    for group in app.registered_groups:
        inner = group.typer_instance
        if inner is not None:
            names += [f"{group.name} {one.name}" for one in inner.registered_commands]
    return "\n\n".join(f"## `{name}`\n\n```text\n{_help(name)}\n```" for name in names)


def _help(name: str) -> str:
    """What ``holdfast NAME --help`` prints on a terminal of 100 columns."""
    printed = io.StringIO()
    with (
        # Else the page would differ with the terminal that it is written on.
        patch.dict(os.environ, {"COLUMNS": "100", "NO_COLOR": "1"}),
        contextlib.redirect_stdout(printed),
    ):
        main([*name.split(), "--help"])
    return "\n".join(line.rstrip() for line in printed.getvalue().strip().splitlines())


if __name__ == "__main__":
    hand_over(commands(), BLOCK, DOCUMENT if "--write" in sys.argv[1:] else None)
