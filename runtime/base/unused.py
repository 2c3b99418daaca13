"""What libraries load with the rest and no process of ours uses."""

from __future__ import annotations

import sys

_COMMAND_LINES = ("httpx._main",)
"""httpx's own command line, which brings click, rich and pygments with it: 83 modules and 6 MB of
each worker. It is an extra, without which httpx goes.
"""


def leave_out() -> None:
    """From now on, in this process, where it is not there already."""
    for name in _COMMAND_LINES:
        # What is None there cannot be imported.
        sys.modules.setdefault(name, None)  # type: ignore[arg-type]
