"""Which variables of the environment hold a secret, by their names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

SHORTEST = 12
"""A value with fewer characters is no key, and masking it would hit ordinary words."""

# A session or a signature is a secret in a URL or a header; among variables a desktop's session is
# one, which is called by ordinary words.
_SECRET = re.compile(
    r"(key|token|secret|password|passwd|credentials?|auth(orization)?|cookie)$", re.IGNORECASE
)


def secret_variables(environment: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The names and values of those whose name ends like that of a secret."""
    for name, setting in environment.items():
        # One that was made of a file ends as that does, and nobody repeats the line's end.
        value = setting.strip()
        if _SECRET.search(name) and len(value) >= SHORTEST and not is_path(value):
            yield name, value


def is_path(value: str) -> bool:
    """Whether a value is the path of what is there, as of a key's file: such a one is no secret,
    and stands in many a prompt. A key in base64 may begin with a slash too.
    """
    return os.path.isabs(value) and os.path.exists(value)  # noqa: PTH110, PTH117 - it may hold a NUL
