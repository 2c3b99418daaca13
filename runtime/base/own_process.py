"""How a process of ours is started: with our code, whatever is on the path or in the current
directory.
"""

from __future__ import annotations

import sys
from pathlib import Path

_ROOMS = Path(__file__).resolve().parents[2] / "holdfast" / "rooms.py"


def command(module: str, *, path: bool = False) -> list[str]:
    """The command that runs ``main`` of ``module``.

    With ``path``, the environment's PYTHONPATH counts, as for others' code.
    """
    # -I leaves out PYTHONPATH and the current directory, -P the directory alone.
    return [sys.executable, "-P" if path else "-I", str(_ROOMS), module]
