"""What the shell completes: names of jobs and batches, from an archive that is a directory of this
machine.

Nothing else is asked: a completion that waits for a network, or says why there is none, is worse
than none.
"""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from urllib.parse import unquote

from runtime.base.home import state_home
from runtime.cli.stores import VARIABLE

MOST = 200
"""So many names are offered at most; whoever wants more types another letter."""


def job_names(incomplete: str) -> list[str]:
    """What names a job and begins with ``incomplete``: ``BATCH/ID``, and ids that only one batch
    has.
    """
    known = [(unquote(batch), unquote(job)) for batch in _folders("") for job in _folders(batch)]
    ids = Counter(job for _, job in known)
    names = [
        *(f"{batch}/{job}" for batch, job in known),
        *(job for job, count in ids.items() if count == 1),
    ]
    return [name for name in names if name.startswith(incomplete)][:MOST]


def batch_names(incomplete: str) -> list[str]:
    """The batches whose names begin with ``incomplete``."""
    return [name for name in map(unquote, _folders("")) if name.startswith(incomplete)][:MOST]


def _folders(below: str) -> list[str]:
    try:
        root = Path(os.environ.get(VARIABLE) or state_home().archive)
        return sorted(
            one.name for one in os.scandir(root / below) if one.is_dir() and one.name[0] not in "._"
        )
    # Whatever is wrong is told by the command itself, not while its name is typed.
    except Exception:  # noqa: BLE001
        return []
