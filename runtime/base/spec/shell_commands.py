"""What a shell command runs, as far as its text tells: so that patterns can speak of it. Pure.

It is no shell: variables, scripts and quotes can hide a command. So whoever asks takes the
strictest answer for all readings, and keeps in mind that a command may do more than it says.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

MOST_PARTS = 1_000
"""Commands in one text that are looked at."""

_REDIRECTION = re.compile(r"\d*[<>]&[\d-]|&>+")
_BETWEEN = re.compile(r"[;&|\n()`]")
_BEFORE = re.compile(
    r"""^(?:(?:\$|!|\{|then|do|else|elif|if|while|until|time|exec|command|builtin"""
    r"""|nohup|env|sudo)\s+"""
    r"""|[A-Za-z_]\w*=(?:"[^"]*"|'[^']*'|[^\s"'])*\s+)+"""
)
"""What may stand before the name of what is run."""


def readings(command: str) -> tuple[str, ...]:
    """The texts by which a command may be known, with single spaces: the whole of it, each of the
    commands in it, and each of these without what stands before its name.

    Raises:
        ValueError: if there are too many.
    """
    # Behind ``>`` there is a file, behind ``&`` another command.
    parts = _BETWEEN.split(_REDIRECTION.sub(">", command))
    if len(parts) > MOST_PARTS:
        raise ValueError(f"more than {MOST_PARTS:,} commands in one")
    spaced = [" ".join(text.split()) for text in (command, *parts)]
    # With and without: a pattern may speak of ``sudo`` or of what it runs.
    named = [text for one in spaced for text in (one, _BEFORE.sub("", one))]
    return tuple(dict.fromkeys(text for text in named if text))


def matches(reading: str, pattern: str) -> bool:
    """Whether a pattern of the shell (``*``, ``?``, ``[...]``) fits a reading from end to end."""
    return fnmatchcase(reading, pattern)
