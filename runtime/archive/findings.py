"""What ``verify`` reports."""

from __future__ import annotations

from enum import StrEnum

from runtime.base.values import Value


class Severity(StrEnum):
    """Whether a finding means that the archive is not what was written."""

    DAMAGE = "damage"
    NOTE = "note"


class Fault(StrEnum):
    """What is wrong, or worth knowing, about an object."""

    CORRUPT = "corrupt"
    MISSING = "missing"
    ALTERED = "altered"
    MISPLACED = "misplaced"
    GAP = "gap"
    WIRE = "wire"
    LAYOUT = "layout"
    RESPONSE = "response"
    NODES = "nodes"
    EVENTS = "events"
    UNKNOWN = "unknown"
    UNFINISHED = "unfinished"
    UNCOVERED = "uncovered"
    HANDED_OVER = "handed-over"
    HISTORY = "history"
    UNANCHORED = "unanchored"
    DELETED = "deleted"


class Finding(Value):
    """One thing that ``verify`` found.

    ``turn`` is None for what belongs to no turn; ``key`` names the object.
    """

    fault: Fault
    severity: Severity
    run: str | None
    turn: int | None
    key: str
    message: str

    def __str__(self) -> str:
        where = "" if self.turn is None else f"turn {self.turn}: "
        return f"{where}{self.message} [{self.key}]"
