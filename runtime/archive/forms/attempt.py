"""A request, stored before its call."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, field_validator

from runtime.archive.allowed import allowed_headers, clean_model, clean_url
from runtime.archive.forms.base import Count, Digest, Form, Sized, Time
from runtime.base.values import LeftOut, StepRef, Value
from runtime.projection.segments import Add, Keep, LayoutDelta, Reply


class Capture(StrEnum):
    """What the recorded request and response bytes are.

    ``WIRE``: the bytes that the HTTP transport sent and received. ``HANDED_OVER``: the request as
    handed to a provider that has no wire, or whose wire cannot be captured. The second is never
    shown as the first. ``REPLAYED`` and ``EDITED``: no model was called; the reply is that of
    another run's step, or a user's statement.
    """

    WIRE = "wire"
    HANDED_OVER = "handed-over"
    REPLAYED = "replayed"
    EDITED = "edited"


WITHOUT_MODEL = frozenset({Capture.REPLAYED, Capture.EDITED})
"""Captures of turns for which no model was called."""

Change = (
    tuple[Literal["keep"], Count, Count] | tuple[Literal["add"], Count] | tuple[Literal["reply"]]
)
"""One piece of a layout's delta, without its segments, which the layout holds."""


class LayoutSize(Sized):
    """The digest of a layout (of the list of its segments' digests), the size of its document, and
    its segments.
    """

    segments: Count


class _AttemptFields(Value):
    run: str
    turn: int
    temporal_attempt: int = 1
    activity: Annotated[str, LeftOut()] = ""
    model: dict[str, Any]
    parent: StepRef | None
    capture: Capture
    method: str = "POST"
    url: str = ""
    headers: dict[str, str] = {}
    started_at: Time


class NewAttempt(_AttemptFields):
    """One attempt at a turn's model call, to be archived: the request, as it is about to be sent.

    ``delta`` makes this turn's layout from the parent's. ``temporal_attempt`` is Temporal's attempt
    number of the activity, from 1, and ``activity`` its id. ``started_at`` is ISO 8601 in UTC.
    Headers that are not on the allow-list, secret-looking model options and secrets in the URL's
    query are left out or masked here, whatever the caller passes. ``through`` is what the start of
    its run has, if this is the first.
    """

    delta: LayoutDelta
    request: bytes
    through: tuple[str, ...] = ()

    _headers = field_validator("headers")(allowed_headers)
    _url = field_validator("url")(clean_url)
    _model = field_validator("model")(clean_model)


class Attempt(_AttemptFields, Form):
    """A request, before its call; ``activity`` is the id of the activity that makes it.

    Parts: ``recipe`` (or ``recipe.zst``), ``wire``, ``layout``.

    ``number`` counts the attempts at this turn in this run, from 1. ``delta`` makes the layout from
    the parent's: ``["keep", start, stop]``, ``["add", count]``, ``["reply"]``. ``base`` is the
    attempt that the recipe is relative to; without one it is flat, and ``sources`` names the
    attempts whose literals it uses: ``[run's prefix, turn, number, …]``, each turn as the
    difference to the one before. ``level`` tells how often its oldest literals were rewritten, and
    ``absorbed``, in the form of ``sources``, of which attempts.
    ``previous`` is the attempt before at this turn, ``failed`` the record of how that failed,
    ``answered`` that of what came back of it otherwise, if there is one. ``start`` is the digest of
    the run's start, at its first turn.
    """

    kind: Literal["attempt"] = "attempt"
    number: Annotated[int, Field(ge=1)]
    previous: StepRef | None
    failed: Annotated[StepRef | None, LeftOut()] = None
    answered: Annotated[StepRef | None, LeftOut()] = None
    start: Annotated[Digest | None, LeftOut()] = None
    delta: tuple[Change, ...]
    layout: LayoutSize
    request: Sized
    base: str | None
    level: Count
    sources: tuple[tuple[str | int, ...], ...] | None
    absorbed: Annotated[tuple[tuple[str | int, ...], ...], LeftOut()] = ()

    internal: ClassVar[frozenset[str]] = Form.internal | {
        "previous", "failed", "answered", "start", "delta", "layout", "request", "base", "level",
        "sources", "absorbed",
    }  # fmt: skip
    derived: ClassVar[tuple[str, ...]] = (
        "key", "digest", "request_digest", "request_bytes", "layout_digest", "segments"
    )  # fmt: skip

    @property
    def key(self) -> str:
        """Where it is."""
        return self.ref.key

    @property
    def digest(self) -> str:
        """The object's own."""
        return self.ref.digest

    @property
    def request_digest(self) -> str:
        """The digest of the request's bytes."""
        return self.request.digest

    @property
    def request_bytes(self) -> int:
        """The request's size."""
        return self.request.bytes

    @property
    def layout_digest(self) -> str:
        """The digest of the list of the layout's segments' digests."""
        return self.layout.digest

    @property
    def segments(self) -> int:
        """How many segments the layout has."""
        return self.layout.segments


def changes_of(delta: LayoutDelta) -> tuple[Change, ...]:
    """A layout's delta without its segments: ``(("keep", 0, 9), ("add", 2), ("reply",))``."""
    changes: list[Change] = []
    for part in delta.parts:
        match part:
            case Keep(start=start, stop=stop):
                changes.append(("keep", start, stop))
            case Add():
                added = 0
                if changes and changes[-1][0] == "add":
                    _, added = changes.pop()  # type: ignore[misc]
                changes.append(("add", added + 1))
            case Reply():
                changes.append(("reply",))
    return tuple(changes)
