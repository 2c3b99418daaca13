"""Addresses in the archive: ``holdfast://JOB@N`` is turn N of a job, as views and jobs files name
it.
"""

from __future__ import annotations

import re

SCHEME = "holdfast://"

ARCHIVED = re.compile(
    r"holdfast://(?P<job>[^@\s]+?)(?:@(?P<turn>\d{1,9})(?:/effect/(?P<effect>\d{1,6})"
    r"(?:/(?P<stream>stdout|stderr))?)?)?/?"
)
"""What a view may show: a job, one of its turns, an effect of a turn, what a command printed."""

WORKSPACE_OF = re.compile(r"holdfast://(?P<job>[^@\s]+)@(?P<turn>\d{1,9})/?")
"""The workspace of a job after a turn."""
