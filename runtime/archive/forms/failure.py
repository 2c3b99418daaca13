"""An attempt that failed."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, Literal

from pydantic import Field

from runtime.archive.forms.base import TimeIfKnown
from runtime.archive.forms.received import NewReceived, ReceivedForm
from runtime.base.values import Failed, LeftOut, Value


class _FailureFields(Value):
    error_type: str
    error_message: str
    spent: Annotated[Failed, LeftOut(attrgetter("empty"))] = Failed()
    failed_at: TimeIfKnown = ""


class NewFailure(_FailureFields, NewReceived):
    """An attempt that failed, to be archived: what came back until then, and the error as Temporal
    was told.

    ``spent`` is what the attempt used, and the wait for the next one with it.
    """


class Failure(_FailureFields, ReceivedForm):
    """What came back of an attempt that failed, and what it ``spent``.

    Parts: ``response`` and ``chunks``, as a step's.
    """

    kind: Literal["failure"] = "failure"
    run: str
    turn: int
    number: Annotated[int, Field(ge=1)]
