"""The class of every command of ``holdfast``."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperCommand

_PYDANTICS = "Value error, "


class Command(TyperCommand):
    """A command whose errors of choices are told without the word that pydantic puts before them,
    which is for programs.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See ``TyperCommand``."""
        try:
            return super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix(_PYDANTICS)
            raise
