"""What Temporal's list shows of each job and can be searched by: six attributes, on servers that
have them.

The embedded server gets them when it starts. Elsewhere an administrator adds them, or jobs run
without: ``temporal operator search-attribute create --name HoldfastStatus --type Keyword``, and so
on.
"""

from __future__ import annotations

from enum import StrEnum


class Attribute(StrEnum):
    """The attributes, by their names on the server."""

    BATCH = "HoldfastBatch"
    JOB = "HoldfastJob"
    STATUS = "HoldfastStatus"
    MODEL = "HoldfastModel"
    TURNS = "HoldfastTurns"
    COST = "HoldfastCostUsd"


TYPES = {
    Attribute.BATCH: "KEYWORD",
    Attribute.JOB: "KEYWORD",
    Attribute.STATUS: "KEYWORD",
    Attribute.MODEL: "KEYWORD",
    Attribute.TURNS: "INT",
    Attribute.COST: "DOUBLE",
}
"""Their types, as Temporal calls them."""
