"""Text that a model wrote, made safe to print.

A terminal obeys what it is sent: control sequences can hide text, rewrite lines that were already
shown, set the clipboard or the window's title. Here they are removed; line feeds and tabs stay.
What a terminal would take for the text of a title or a link stays too: to a shell it is a command.
"""

from __future__ import annotations

import re

_UNSAFE = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"  # CSI: ECMA-48 section 5.4
    # Every other escape sequence, the beginnings and ends of strings among them (OSC, DCS, SOS, PM,
    # APC): what is between these is text.
    r"|\x1b[ -/]*[0-~]"
    # C0 but for tab and line feed, delete, C1; what is left of broken sequences
    r"|[\x00-\x08\x0b-\x1f\x7f-\x9f]"
    # bidirectional embeddings, overrides, isolates: Unicode annex 9
    r"|[\u202a-\u202e\u2066-\u2069]"
)
_SURROGATE = re.compile(r"[\ud800-\udfff]")


def clean(text: str) -> str:
    """``text`` without terminal control sequences; lone surrogates, which cannot be printed, become
    U+FFFD.
    """
    return _SURROGATE.sub("\ufffd", _UNSAFE.sub("", text))
