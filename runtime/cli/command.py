"""The class of every command of ``holdfast``."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, cast, get_args

import typer
from typer.core import TyperCommand

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
        # Once more: of what has been made of the words, an empty path is the dot.
        values, _, _ = self.make_parser(ctx).parse_args(args=words)
        taken = inspect.signature(self.callback, eval_str=True).parameters if self.callback else {}
        for one in self.get_params(ctx):
            value = values.get(one.name)
            # Of a list the items are looked at.
            empty = "" in (value if isinstance(value, list | tuple) else [value])
            if empty and (its := taken.get(str(one.name))) and _has_path(its.annotation):
                raise typer.BadParameter("expected a path, got ''", ctx=ctx, param=cast("Any", one))


def _has_path(hint: Any) -> bool:
    return hint is Path or any(map(_has_path, get_args(hint)))
