"""Values and places in a file as an error quotes them."""

from __future__ import annotations

import re

SHOWN_VALUE = 60
_PLAIN_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")


def key_path(location: tuple[str | int, ...]) -> str:
    """``location`` as a user would write it: ``jobs[1].budget.wall``."""
    path = ""
    for part in location:
        if isinstance(part, int):
            path += f"[{part}]"
        elif _PLAIN_KEY.fullmatch(part):
            path += f".{part}" if path else part
        else:
            path += f"[{shown(part)}]"
    return path


def shown(value: object) -> str:
    """``value`` as it is quoted in an error: escaped, on one line, at most ``SHOWN_VALUE``
    characters.
    """
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list):
        return "a list"
    # Python writes out no number of more than 4,300 digits.
    if isinstance(value, int) and abs(value) >= 10**SHOWN_VALUE:
        return f"a number of more than {SHOWN_VALUE} digits"
    if isinstance(value, str) and len(value) > SHOWN_VALUE:
        return ascii(value[:SHOWN_VALUE]) + "..."
    text = repr(value)
    # A terminal would obey what a file holds of control characters.
    return text if text.isprintable() and text.isascii() else ascii(value)
