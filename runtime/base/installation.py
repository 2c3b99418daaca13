"""How Holdfast is installed: from its source tree, and not by its name, under which the package
index has another program.
"""

from __future__ import annotations


def installing(extra: str = "") -> str:
    """What to do to have Holdfast installed, with an ``extra`` of its distribution if one is
    named.
    """
    tree = f"'.[{extra}]'" if extra else "."
    return f"in Holdfast's source tree: pip install -c requirements.lock -e {tree}"
