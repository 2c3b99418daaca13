"""What came back of an attempt and is not its turn's reply."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from runtime.archive.forms.base import TimeIfKnown
from runtime.archive.forms.received import NewReceived, ReceivedForm, StoredReply
from runtime.base.values import Usage, Value


class ExchangeReason(StrEnum):
    """Why what came back of an attempt is not its turn's reply.

    ``FOLLOWED``: the call went on with another request, as after a redirect, or to fetch a reply
    that was not ready. ``SUPERSEDED``: another attempt at the turn was faster, and its reply is the
    turn's.
    """

    FOLLOWED = "followed"
    SUPERSEDED = "superseded"


class _ExchangeFields(Value):
    reason: ExchangeReason
    reply: StoredReply | None = None
    usage: Usage = Usage()
    cost_usd: float = 0.0
    finished_at: TimeIfKnown = ""


class NewExchange(_ExchangeFields, NewReceived):
    """What came back of an attempt, where that is not the turn's reply, to be archived.

    ``reply`` is there if it is one: it was paid for.
    """


class Exchange(_ExchangeFields, ReceivedForm):
    """What came back of an attempt and is not its turn's reply.

    Parts as a step's. ``reply`` is there if it is one.
    """

    kind: Literal["exchange"] = "exchange"
    run: str
    turn: int
    number: Annotated[int, Field(ge=1)]
