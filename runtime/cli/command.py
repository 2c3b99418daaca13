"""The class of every command of ``holdfast``."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperArgument, TyperCommand, TyperOption

from runtime.cli.deleted import reading

_PYDANTICS = "Value error, "


class Command(TyperCommand):
    """A command whose errors of choices are told without the word that pydantic puts before them,
    which is for programs; and that takes no empty text, as of a variable which is not set, for the
    path of the directory in which it is given.
    """

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """See ``TyperCommand``."""
        words = list(args)
        try:
            rest = super().parse_args(ctx, args)
        except typer.BadParameter as error:
            error.message = error.message.removeprefix(_PYDANTICS)
            raise
        if any(word == "" or word.endswith("=") for word in words):
            self._check_paths(ctx, words)
        return rest

    def invoke(self, ctx: Any) -> Any:
        """See ``TyperCommand``."""
        with reading():
            return super().invoke(ctx)

    def _check_paths(self, ctx: Any, words: list[str]) -> None:
        """Raises:
        BadParameter: if a path is an empty text.
        """
        # Once more: of what was made of the words a path no longer tells it from the dot.
        values, _, _ = self.make_parser(ctx).parse_args(args=words)
        for one in self.get_params(ctx):
            # Of a list the items are looked at.
            if isinstance(one, TyperOption | TyperArgument) and _is_path(one):
                value = values.get(one.name)
                if "" in (value if isinstance(value, list | tuple) else [value]):
                    raise typer.BadParameter("expected a path, got ''", ctx=ctx, param=one)


def _is_path(one: TyperOption | TyperArgument) -> bool:
    return one.type_descriptor.envvar_list_splitter is not None
