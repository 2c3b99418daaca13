"""How a process of ours is started: with our code, whatever is on the path or in the current
directory.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from runtime.base.host_trouble import NoProcess

_ROOMS = Path(__file__).resolve().parents[2] / "holdfast" / "rooms.py"


def command(module: str, *, path: bool = False) -> list[str]:
    """The command that runs ``main`` of ``module``.

    With ``path``, the environment's PYTHONPATH counts, as for others' code.
    """
    # -I leaves out PYTHONPATH and the current directory, -P the directory alone.
    return [sys.executable, "-P" if path else "-I", str(_ROOMS), module]


@contextmanager
def starting() -> Iterator[None]:
    """Tells what keeps a process from being started as the host's trouble.

    Raises:
        NoProcess: if it is not started.
    """
    try:
        yield
    except OSError as error:
        raise NoProcess(f"no process can be started: {error}") from error


def bound_memory(most: int) -> None:
    """Bound this process to ``most`` bytes of address space, where the system lets it. What needs
    more is to be expected to crash, and leaves no core, which would be as large.
    """
    # Elsewhere it is bounded more narrowly already, or the system bounds no address space.
    with suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
