"""What a running job is at."""

from __future__ import annotations

from enum import StrEnum


class Phase(StrEnum):
    """What a job does now, as ``JobWorkflow.progress`` tells it."""

    STARTING = "starting"
    READING = "reading"
    CONDENSING = "condensing"
    MODEL = "model"
    EXECUTING = "executing"
    APPROVAL = "waiting for approval"
    GRANT = "waiting for a slice of the batch's budget"
    PAUSED = "paused"
    ASLEEP = "asleep"
    ENDING = "ending"
