"""How a job stands that has not ended, or of which nobody can say, where jobs are listed."""

from __future__ import annotations

OPEN = "open"
"""It began, and has not ended; no server was asked for more."""

QUEUED = "queued"
"""It waits for a place in its batch."""

RUNNING = "running"
"""Somebody works for it."""

WAITING = "waiting"
"""It has begun, and can do nothing until something comes: an approval, a time, a grant."""

PAUSED = "paused"
"""It has begun, and a user had it stop for a while."""

UNDER_WAY = (QUEUED, RUNNING, WAITING, PAUSED)
"""What a server says of a job that has not ended."""

GOING_ON = frozenset({OPEN, *UNDER_WAY})
"""What is said of a job that has not ended."""

DAMAGED = "damaged"
"""Its end cannot be read."""


AWAITED_ROLE = "role:"
"""Before the name of a role that no worker has; a queue has no colon in its name."""


def waiting_for(queue: str) -> str:
    """What a job does whose call no worker takes: ``waits for a worker with --queue gpu``, or
    ``--roles sandboxes``.
    """
    role = queue.removeprefix(AWAITED_ROLE)
    return f"waits for a worker with {'--queue' if role == queue else '--roles'} {role}"
