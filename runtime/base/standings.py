"""How a job stands that has not ended, or of which nobody can say, where jobs are listed."""

from __future__ import annotations

OPEN = "open"
"""It began, and has not ended; no server was asked for more."""

QUEUED = "queued"
"""It waits for a place in its batch."""

DAMAGED = "damaged"
"""Its end cannot be read."""
