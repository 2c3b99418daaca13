"""The errors of the validators of a jobs file, whose texts are shown as they are."""

from __future__ import annotations

from typing import Final, LiteralString

from pydantic_core import PydanticCustomError

WRONG: Final = "holdfast"
WRONG_NUMBER: Final = "holdfast_number"
"""Kinds of errors of validators in this package; the second is of those that take numbers, too."""


def wrong(text: str, kind: LiteralString = WRONG) -> PydanticCustomError:
    """The error of a validator in this package: ``text`` is shown as it is."""
    return PydanticCustomError(kind, "{text}", {"text": text})
