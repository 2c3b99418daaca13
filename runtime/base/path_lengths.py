"""How long the paths of a workspace may be, on every host and in every tree of its versions."""

from __future__ import annotations

import os

MOST_DIRECTORIES = 200
"""So many names may a path have: what walks a tree calls itself for each of them."""

MOST_PATH_BYTES = 3072
"""Below a directory of any host a path must stay within the kernel's 4,096."""

MOST_NAME_BYTES = 255
"""The longest name that file systems take."""


def too_long(path: str) -> str:
    """Why no version can hold a path; empty if one can."""
    names = os.fsencode(path).split(b"/")
    if len(names) > MOST_DIRECTORIES:
        return f"{MOST_DIRECTORIES} directories deep or more"
    if sum(map(len, names)) + len(names) - 1 > MOST_PATH_BYTES:
        return f"longer than {MOST_PATH_BYTES:,} bytes as a path"
    if max(map(len, names)) > MOST_NAME_BYTES:
        return f"longer than {MOST_NAME_BYTES} bytes as a name"
    return ""
