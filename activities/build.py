"""This build: Holdfast's version, and a digest of the code that replays a job's history."""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.metadata import version
from pathlib import Path

from runtime.base.values import Value
from runtime.job.checkpoint import INTERPRETER
from runtime.job.replay_version import REPLAY_VERSION

ROOMS = (
    "workflows",
    *(
        f"runtime/{room}"
        for room in ("base", "history", "context", "interpreter", "projection", "job")
    ),
    *(
        f"activities/{module}.py"
        for module in (
            "contracts",
            "batch_contracts",
            "finish_contracts",
            "sub_job_contracts",
            "record",
            "verdicts",
            "brief",
        )
    ),
)
"""What workflow code is made of: directories and files below the root of the packages."""

_ROOT = Path(__file__).resolve().parent.parent


class Build(Value):
    """A build of Holdfast.

    ``id`` changes with each line of workflow code, ``replay_version`` where histories replay no
    more.
    """

    version: str
    id: str
    replay_version: int
    interpreter: str


@cache
def code_digest() -> str:
    """Twelve digits of the SHA-256 of workflow code, file by file: read once a process, in a few
    milliseconds.
    """
    digest = hashlib.sha256()
    for room in ROOMS:
        place = _ROOT / room
        # Sorted, and with the length before the bytes: the digest is of these files and no other
        # split.
        for path in sorted(place.rglob("*.py")) if place.is_dir() else [place]:
            data = path.read_bytes()
            digest.update(f"{path.relative_to(_ROOT).as_posix()}\0{len(data)}\0".encode() + data)
    return digest.hexdigest()[:12]


@cache
def this_build() -> Build:
    """The build that this process runs."""
    installed = version("holdfast")
    return Build(
        version=installed,
        id=f"{installed}+{code_digest()}",
        replay_version=REPLAY_VERSION,
        interpreter=INTERPRETER,
    )
