"""What callers hand to the archive and get back from it. Imports pydantic and the pure rooms only."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import Any, Literal

from pydantic import field_validator

from runtime.archive.allowed import allowed_headers, clean_model, clean_url
from runtime.context.interim import Interim
from runtime.digests import digest_of
from runtime.history.condensed import CondensationRecord
from runtime.projection.prefix import Prefix
from runtime.projection.prices import Prices, prompt_cost
from runtime.projection.segments import LayoutDelta, Segment, reply_segment
from runtime.values import Failed, StepRef, ToolCall, Usage, Value


class Capture(StrEnum):
    """What the recorded request and response bytes are.

    ``WIRE``: the bytes that the HTTP transport sent and received. ``HANDED_OVER``: the request as handed to a
    provider that has no wire, or whose wire cannot be captured. The second is never shown as the first.
    ``REPLAYED`` and ``EDITED``: no model was called; the reply is that of another run's step, or a user's statement.
    """

    WIRE = "wire"
    HANDED_OVER = "handed-over"
    REPLAYED = "replayed"
    EDITED = "edited"


GIVEN = frozenset({Capture.REPLAYED, Capture.EDITED})
"""Captures of turns for which no model was called."""


class AttemptRecord(Value):
    """One attempt at a turn's model call: the request, as it is about to be sent.

    ``delta`` makes this turn's layout from the parent's; ``layout_digest`` is checked if given (see
    ``layout_digest``). ``temporal_attempt`` is Temporal's attempt number of the activity, from 1, and ``activity`` its id.
    ``started_at`` is ISO 8601 in UTC. Headers that are not on the allow-list, secret-looking model options and secrets in the URL's
    query are left out or masked here, whatever the caller passes.
    """

    run: str
    turn: int
    parent: StepRef | None
    delta: LayoutDelta
    layout_digest: str | None = None
    model: dict[str, Any]
    capture: Capture
    request: bytes
    method: str = "POST"
    url: str = ""
    headers: dict[str, str] = {}
    temporal_attempt: int = 1
    activity: str = ""
    started_at: str

    _headers = field_validator("headers")(allowed_headers)
    _url = field_validator("url")(clean_url)
    _model = field_validator("model")(clean_model)


class ReplyRecord(Value):
    """What the model answered, in the form that all providers share. ``tokens`` is counted with the pinned encoding."""

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
            turn=turn, text=self.text, tool_calls=self.tool_calls, thinking=self.thinking, tokens=self.tokens
        )


class Chunk(Value):
    """``size`` bytes of the response that arrived ``at_us`` microseconds after the request was sent."""

    at_us: int
    size: int


class PrefixRecord(Value):
    """How much of a prompt stood as in the one before, in tokens of the job's encoding (see ``projection.prefix``).

    ``broken`` is the kind and origin of the first segment that moved in front of the tail, ``reason`` what moved it, ``lost``
    the tokens that had to be written to the provider's cache anew and ``lost_usd`` what that cost more than reading them.
    ``estimated_usd`` is the whole prompt's price if the cache served the stable part. US dollars are 0 for an unknown price.
    """

    share: float
    stable: int
    new: int
    tail: int
    broken: str = ""
    reason: str = ""
    lost: int = 0
    lost_usd: float = 0.0
    estimated_usd: float = 0.0

    @classmethod
    def of(cls, prefix: Prefix, prices: Prices, reason: str) -> PrefixRecord:
        """The record of a prompt's prefix; ``reason`` counts only where something moved."""
        broken = prefix.broken
        moved = "" if broken is None else f"{broken.kind} {broken.origin}"
        cost = prompt_cost(prices, stable=prefix.stable, new=prefix.new, tail=prefix.tail)
        return cls(
            share=round(prefix.share, 4),
            stable=prefix.stable,
            new=prefix.new,
            tail=prefix.tail,
            broken=moved,
            reason=reason if moved else "",
            lost=prefix.lost,
            lost_usd=round(prefix.lost * prices.rewrite * prices.usd, 9),
            estimated_usd=round(cost * prices.usd, 9),
        )


class StepRecord(Value):
    """A finished turn. ``attempt`` is the key that ``begin_attempt`` returned; it holds the request and the parent.

    ``response`` is the body as received, ``chunks`` how it arrived. ``execution`` is the record of the statement
    before. ``nodes`` are records of live nodes by their ``obj_id``: all of them or those that changed since the
    parent step; one with ``"removed": true`` is gone. ``failed_attempts`` are the turn's others. ``reset_event_id`` is where a Temporal reset goes back to
    before this call.
    """

    run: str
    turn: int
    attempt: str
    reply: ReplyRecord
    response: bytes
    chunks: tuple[Chunk, ...] = ()
    status_code: int | None = None
    headers: dict[str, str] = {}
    usage: Usage = Usage()
    cost_usd: float = 0.0
    failed_attempts: Failed = Failed()
    execution: dict[str, Any] | None = None
    nodes: tuple[dict[str, Any], ...] = ()
    condensations: tuple[CondensationRecord, ...] = ()
    events: tuple[dict[str, Any], ...] | None = None
    interim: Interim = Interim()
    prefix: PrefixRecord | None = None
    reset_event_id: int = 0
    finished_at: str = ""

    _headers = field_validator("headers")(allowed_headers)


class FailureRecord(Value):
    """An attempt that failed: what came back until then, and the error. ``attempt`` is the key of ``begin_attempt``.

    ``response`` is the body as received so far: of an error response, or of a stream that broke. ``error_type`` and
    ``error_message`` are those that Temporal was told. ``spent`` is what the attempt used, and the wait for the next one with it.
    """

    attempt: str
    response: bytes = b""
    chunks: tuple[Chunk, ...] = ()
    status_code: int | None = None
    headers: dict[str, str] = {}
    error_type: str
    error_message: str
    spent: Failed = Failed()
    failed_at: str = ""

    _headers = field_validator("headers")(allowed_headers)


class ExchangeReason(StrEnum):
    """Why what came back of an attempt is not its turn's reply.

    ``FOLLOWED``: the call went on with another request, as after a redirect, or to fetch a reply that was not ready.
    ``SUPERSEDED``: another attempt at the turn was faster, and its reply is the turn's.
    """

    FOLLOWED = "followed"
    SUPERSEDED = "superseded"


class ExchangeRecord(Value):
    """What came back of an attempt, where that is not the turn's reply. ``reply`` is there if it is one: it was paid for."""

    attempt: str
    reason: ExchangeReason
    reply: ReplyRecord | None = None
    response: bytes = b""
    chunks: tuple[Chunk, ...] = ()
    status_code: int | None = None
    headers: dict[str, str] = {}
    usage: Usage = Usage()
    cost_usd: float = 0.0
    finished_at: str = ""

    _headers = field_validator("headers")(allowed_headers)


class Signature(Value):
    """A signature of a run's end; key and value in base64. See ``signing``."""

    algorithm: Literal["ed25519"]
    public_key: str
    value: str


class EndRecord(Value):
    """The end of a run, which closes its chain of steps. ``parent`` is the last step, ``turn`` its turn."""

    run: str
    turn: int
    parent: StepRef | None
    status: str
    reason: str = ""
    result: Any = None
    usage: Usage = Usage()
    cost_usd: float = 0.0
    execution: dict[str, Any] | None = None
    nodes: tuple[dict[str, Any], ...] = ()
    condensations: tuple[CondensationRecord, ...] = ()
    events: tuple[dict[str, Any], ...] | None = None
    ended_at: str = ""


class Attempt(Value):
    """An attempt as archived, without its bytes. ``number`` counts the attempts at this turn in this run, from 1."""

    key: str
    digest: str
    run: str
    turn: int
    number: int
    temporal_attempt: int
    activity: str = ""
    model: dict[str, Any]
    parent: StepRef | None
    capture: Capture
    method: str
    url: str
    headers: dict[str, str]
    started_at: str
    request_digest: str
    request_bytes: int
    layout_digest: str
    segments: int


class Failure(Value):
    """An attempt's failure as archived, without its bytes."""

    ref: StepRef
    run: str
    turn: int
    number: int
    attempt: StepRef
    status_code: int | None
    headers: dict[str, str]
    error_type: str
    error_message: str
    spent: Failed = Failed()
    failed_at: str
    response_digest: str
    response_bytes: int


class Exchange(Value):
    """What came back of an attempt and is not its turn's reply, as archived, without its bytes."""

    ref: StepRef
    run: str
    turn: int
    number: int
    attempt: StepRef
    reason: ExchangeReason
    reply: ReplyRecord | None
    status_code: int | None
    headers: dict[str, str]
    usage: Usage
    cost_usd: float
    finished_at: str
    response_digest: str
    response_bytes: int


class Step(Value):
    """A step as archived, without its bytes.

    ``nodes`` are the records of those that changed, in a keyframe of all; ``changed`` names those that did.
    ``effects`` are the keys and digests of the recorded tool results of the statement before. ``definition`` is the
    job's definition at the time, in keyframes.
    """

    ref: StepRef
    run: str
    turn: int
    parent: StepRef | None
    attempt: StepRef
    keyframe: bool
    reply: ReplyRecord
    status_code: int | None
    headers: dict[str, str]
    usage: Usage
    cost_usd: float
    failed_attempts: Failed = Failed()
    execution: dict[str, Any] | None
    nodes: tuple[dict[str, Any], ...]
    condensations: tuple[CondensationRecord, ...] = ()
    events: tuple[dict[str, Any], ...] | None = None
    interim: Interim = Interim()
    prefix: PrefixRecord | None = None
    changed: tuple[str, ...]
    nodes_digest: str
    effects: dict[str, str]
    definition: StepRef | None
    reset_event_id: int
    started_at: str
    finished_at: str
    capture: Capture
    response_digest: str
    response_bytes: int


def layout_digest(layout: Sequence[Segment]) -> str:
    """The digest of a layout: that of the list of its segments' digests."""
    return digest_of([segment.digest for segment in layout])
