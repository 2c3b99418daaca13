"""What litellm looks for keys in, where it makes an error of what a provider said, shortened.

It does so by one regular expression, some of whose parts take the square of a text's length, in the
event loop and without letting go of the interpreter: of an error of a megabyte, minutes in which
no job of the worker goes on and no heartbeat is sent. What is archived is what came, and masked by
us; of the words of an error more than these are shown nowhere.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from activities._captured import current

MOST = 8_192
"""Characters of such a text that are read."""

_PATTERN = "_SECRET_RE"
"""The expression, as all of litellm that uses it has it from one module."""


def shorten_errors() -> None:
    """Have litellm read no more of a text than that. A release without the expression is left as
    it is.
    """
    module: Any = import_module("litellm.litellm_core_utils.secret_redaction")
    if (pattern := getattr(module, _PATTERN, None)) is not None:
        setattr(module, _PATTERN, _Shortening(pattern))


class _Shortening:
    """A pattern that reads the beginning of a text, and leaves out the rest."""

    def __init__(self, pattern: Any) -> None:
        self._pattern = pattern

    def sub(self, replacement: str, text: str) -> str:
        # A call that other code of this process makes with litellm is left as it is.
        if current.get() is not None and len(text) > MOST:
            text = f"{text[:MOST]}…"
        return str(self._pattern.sub(replacement, text))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._pattern, name)
