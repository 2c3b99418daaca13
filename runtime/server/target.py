"""Which Temporal server is meant.

Light: commands that end before they connect need not load Temporal's client.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Target:
    """The server that the user asked for.

    Fields that are None leave it to the profile and the environment.
    """

    address: str | None = None
    namespace: str | None = None
    profile: str | None = None
