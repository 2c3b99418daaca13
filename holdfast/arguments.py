"""What a caller gave that is no path, or no text, told before anything begins."""

from __future__ import annotations

import os
from typing import Any

from runtime.base.errors import InputError
from runtime.base.quoted import shown

_WORDS = {os.PathLike: "a path", str: "a text", bool: "True or False", type(None): "None"}


def check_type(name: str, value: object, *kinds: Any) -> None:
    """Check the argument ``name``; a path is a ``PathLike`` or a text.

    Raises:
        InputError: it is of none of these ``kinds``.
    """
    taken = (*kinds, str) if os.PathLike in kinds else kinds
    if not isinstance(value, taken):
        words = " or ".join(_WORDS[kind] for kind in kinds)
        raise InputError(f"{name}: expected {words}, got {shown(value)}")
