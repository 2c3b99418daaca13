"""The names of batches and jobs."""

from __future__ import annotations

import re

NAME_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$"
NAME_RULE = "letters, digits, '.', '_' and '-', a letter or digit first, at most 100"


def is_name(text: str) -> bool:
    """Whether ``text`` may name a batch or a job."""
    return re.fullmatch(NAME_PATTERN, text) is not None and not text.endswith("\n")
