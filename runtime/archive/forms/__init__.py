"""What each kind of stored object holds: one model for each, which is written, read, checked and
published.

A field of a step stands in ``step``, and nowhere else; it gets a default, which old objects have.
``New...`` is what a writer hands over; the archive adds what it knows itself. Imports pydantic and
the pure rooms only.
"""

from runtime.archive.forms.attempt import WITHOUT_MODEL, Attempt, Capture, NewAttempt
from runtime.archive.forms.base import Form
from runtime.archive.forms.end import End, NewEnd, Signature
from runtime.archive.forms.exchange import Exchange, ExchangeReason, NewExchange
from runtime.archive.forms.failure import Failure, NewFailure
from runtime.archive.forms.kinds import KINDS, check_header, json_schemas, opened
from runtime.archive.forms.others import (
    CheckpointForm,
    ClaimForm,
    Definition,
    Effect,
    ReplayForm,
    RunStart,
)
from runtime.archive.forms.received import Chunk, NewReceived, StoredReply
from runtime.archive.forms.step import NewStep, Step, StoredPrefix

__all__ = [
    "KINDS",
    "WITHOUT_MODEL",
    "Attempt",
    "Capture",
    "CheckpointForm",
    "Chunk",
    "ClaimForm",
    "Definition",
    "Effect",
    "End",
    "Exchange",
    "ExchangeReason",
    "Failure",
    "Form",
    "NewAttempt",
    "NewEnd",
    "NewExchange",
    "NewFailure",
    "NewReceived",
    "NewStep",
    "ReplayForm",
    "RunStart",
    "Signature",
    "Step",
    "StoredPrefix",
    "StoredReply",
    "check_header",
    "json_schemas",
    "opened",
]
