"""Text that is shown as it is: what somebody decides by, such as a command or a path."""

from __future__ import annotations

import json
import re

_BLANK = re.compile(
    # Printable, as Python has it, and drawn as nothing: what Unicode calls default ignorable, ...
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef"
    # ... a letter, a note and a pattern that are blank
    "\U00016fe4\U0001d159\u2800]"
)


def escaped(text: str) -> str:
    """``text`` on one line, with the escape that JSON has for each character that nobody would
    see.
    """
    return "".join(
        c if c.isprintable() and not _BLANK.match(c) else json.dumps(c)[1:-1] for c in text
    )
