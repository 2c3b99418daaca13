"""What came back of a call, as steps, failures and exchanges have it."""

from __future__ import annotations

from typing import Any, ClassVar

from pydantic import field_validator

from runtime.archive.allowed import allowed_headers
from runtime.archive.forms.base import Form, Sized
from runtime.base.values import StepRef, ToolCall, Value
from runtime.projection.segments import Segment, reply_segment


class StoredReply(Value):
    """What the model answered, in the form that all providers share.

    ``tokens`` is counted with the pinned encoding.
    """

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    thinking: tuple[dict[str, Any], ...] = ()
    finish_reason: str = "stop"
    response_id: str = ""
    refusal: str | None = None
    tokens: int = 0

    def segment(self, turn: int) -> Segment:
        """The segment by which this reply stands in later prompts."""
        return reply_segment(
            turn=turn,
            text=self.text,
            tool_calls=self.tool_calls,
            thinking=self.thinking,
            tokens=self.tokens,
        )


class Chunk(Value):
    """``size`` bytes of the response that arrived ``at_us`` microseconds after the request was
    sent.
    """

    at_us: int
    size: int


class Received(Value):
    """What a response began with: its status, and those of its headers that are on the
    allow-list.
    """

    status_code: int | None = None
    headers: dict[str, str] = {}


class NewReceived(Received):
    """What came back of the attempt whose key ``begin_attempt`` returned, to be archived.

    ``response`` is the body as received so far: of an error response, or of a stream that broke;
    ``chunks`` tell how it arrived.
    """

    attempt: str
    response: bytes = b""
    chunks: tuple[Chunk, ...] = ()

    _headers = field_validator("headers")(allowed_headers)


class ReceivedForm(Received, Form):
    """What came back of an ``attempt``.

    Parts: ``response``, ``chunks`` (pairs of integers: microseconds since the last, bytes).
    """

    attempt: StepRef
    response: Sized

    internal: ClassVar[frozenset[str]] = Form.internal | {"response"}
    derived: ClassVar[tuple[str, ...]] = ("ref", "response_digest", "response_bytes")

    @property
    def response_digest(self) -> str:
        """The digest of the response's bytes."""
        return self.response.digest

    @property
    def response_bytes(self) -> int:
        """The response's size."""
        return self.response.bytes
