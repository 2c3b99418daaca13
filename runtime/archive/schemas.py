"""What the header of each kind of object holds, as pydantic models; ``json_schemas`` publishes them.

Writers do not use these: they make headers from records. ``verify`` checks every header against them.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from runtime.archive.container import FORMAT, ArchivedObject
from runtime.archive.records import Capture, PrefixRecord, ReplyRecord, Signature
from runtime.context.interim import Interim
from runtime.digests import canonical_json
from runtime.errors import ObjectCorrupt
from runtime.history.condensed import CondensationRecord
from runtime.values import Failed, StepRef, Usage

Digest = Annotated[str, Field(pattern="^sha256:[0-9a-f]{64}$")]
Count = Annotated[int, Field(ge=0)]


class Header(BaseModel):
    """Fields that every header may have. ``parts``: name, stored size and size of each binary part, in order."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    parts: list[tuple[str, Count, Count]] = []


class Sized(BaseModel):
    """The digest and the size in bytes of a request or a response."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    digest: Digest
    bytes: Count


class LayoutSize(Sized):
    """The digest of a layout (of the list of its segments' digests), the size of its document, and its segments."""

    segments: Count


class DefinitionHeader(Header):
    """A job's definition; ``number`` counts from 1. ``run`` was begun by the ``order``, by which no other may begin."""

    kind: Literal["definition"]
    number: int
    definition: dict[str, Any]
    order: str = ""
    run: str = ""


class RunHeader(Header):
    """A run was started at ``turn``, from the step ``parent`` or from nothing. ``claims``: by which it is a replay.

    ``definition`` is the job's at the time; ``earlier`` are the heads of the job's runs before, as far as no other start names them.
    """

    kind: Literal["run"]
    run: str
    turn: int
    parent: StepRef | None
    started_at: str
    claims: dict[str, Digest] = {}
    definition: StepRef | None = None
    earlier: dict[str, Digest] = {}


class AttemptHeader(Header):
    """A request, before its call; ``activity`` is the id of the activity that makes it. Parts: ``recipe`` (or ``recipe.zst``), ``wire``, ``layout``.

    ``delta`` makes the layout from the parent's: ``["keep", start, stop]``, ``["add", count]``, ``["reply"]``. ``base``
    is the attempt that the recipe is relative to; without one it is flat, and ``sources`` names the attempts whose
    literals it uses: ``[run's prefix, turn, number, …]``, each turn as the difference to the one before.
    ``level`` tells how often its oldest literals were rewritten. ``previous`` is the attempt before at this turn,
    ``failed`` the record of how that failed, ``answered`` that of what came back of it otherwise, if there is one. ``start`` is the digest of the run's start, at its first turn.
    """

    kind: Literal["attempt"]
    run: str
    turn: int
    number: Annotated[int, Field(ge=1)]
    previous: StepRef | None
    failed: StepRef | None = None
    answered: StepRef | None = None
    start: Digest | None = None
    temporal_attempt: int
    activity: str = ""
    model: dict[str, Any]
    parent: StepRef | None
    delta: list[
        tuple[Literal["keep"], Count, Count] | tuple[Literal["add"], Count] | tuple[Literal["reply"]]
    ]  # fmt: skip
    layout: LayoutSize
    request: Sized
    capture: Capture
    method: str
    url: str
    headers: dict[str, str]
    started_at: str
    base: str | None
    level: Count
    sources: list[list[str | int]] | None


class StepHeader(Header):
    """A reply, after its call. Parts: ``response``, ``chunks`` (pairs of integers: microseconds since the last, bytes).

    ``nodes`` are the records of the nodes that ``changed``, in a ``keyframe`` of all; ``nodes_digest`` is that of
    the digests of all. ``effects`` are the tool results of the statement before, ``checkpoints`` the job's state between the two turns,
    ``beside`` the calls since then that no other record names (see ``naming``), ``definition`` the job's at the time. ``failed_attempts``
    is what the turn's others used.
    """

    kind: Literal["step"]
    run: str
    turn: int
    parent: StepRef | None
    attempt: StepRef
    keyframe: bool
    capture: Capture
    reply: ReplyRecord
    response: Sized
    status_code: int | None
    headers: dict[str, str]
    usage: Usage
    cost_usd: float
    failed_attempts: Failed = Failed()
    execution: dict[str, Any] | None
    nodes: list[dict[str, Any]]
    condensations: list[CondensationRecord] = []
    events: list[dict[str, Any]] | None = None
    interim: Interim = Interim()
    prefix: PrefixRecord | None = None
    changed: list[str]
    nodes_digest: Digest
    effects: dict[str, Digest]
    checkpoints: dict[str, Digest] = {}
    beside: dict[str, Digest] = {}
    definition: StepRef | None
    reset_event_id: int
    started_at: str
    finished_at: str


class FailureHeader(Header):
    """What came back of an attempt that failed, and what it ``spent``. Parts: ``response`` and ``chunks``, as a step's."""

    kind: Literal["failure"]
    run: str
    turn: int
    number: Annotated[int, Field(ge=1)]
    attempt: StepRef
    response: Sized
    status_code: int | None
    headers: dict[str, str]
    error_type: str
    error_message: str
    spent: Failed = Failed()
    failed_at: str


class ExchangeHeader(Header):
    """What came back of an attempt and is not its turn's reply. Parts as a step's. ``reply`` is there if it is one."""

    kind: Literal["exchange"]
    run: str
    turn: int
    number: Annotated[int, Field(ge=1)]
    attempt: StepRef
    reason: Literal["followed", "superseded"]
    reply: ReplyRecord | None
    response: Sized
    status_code: int | None
    headers: dict[str, str]
    usage: Usage
    cost_usd: float
    finished_at: str


class EffectHeader(Header):
    """The result of a tool call of a turn's statement, or of readings. ``uses``: what the store keeps for all jobs that it shows."""

    kind: Literal["effect"]
    run: str
    turn: int
    effect: Count
    value: dict[str, Any]
    uses: dict[str, Digest] = {}


class EndHeader(Header):
    """The end of a run. ``signature`` is over the key and all other fields (see ``signing``)."""

    kind: Literal["end"]
    run: str
    turn: int
    parent: StepRef | None
    status: str
    reason: str
    result: Any
    usage: Usage
    cost_usd: float
    execution: dict[str, Any] | None
    nodes: list[dict[str, Any]]
    condensations: list[CondensationRecord] = []
    events: list[dict[str, Any]] | None = None
    nodes_digest: Digest
    effects: dict[str, Digest]
    checkpoints: dict[str, Digest] = {}
    beside: dict[str, Digest] = {}
    definition: StepRef | None = None
    ended_at: str
    signature: Signature | None = None


class CheckpointHeader(Header):
    """A job's state after a turn. Parts: ``state``, JSON of the version that it names. ``parent`` is the turn's step."""

    kind: Literal["checkpoint"]
    run: str
    turn: int
    parent: StepRef
    interpreter: str
    state: Sized


class ReplayHeader(Header):
    """A replay was ordered."""

    kind: Literal["replay"]
    id: str
    order: dict[str, Any]
    ordered_at: str


class ClaimHeader(Header):
    """A run is the replay ``id``. ``order`` is the digest of what was ordered."""

    kind: Literal["claim"]
    id: str
    run: str
    order: Digest


KINDS: dict[str, type[Header]] = {
    "definition": DefinitionHeader,
    "run": RunHeader,
    "attempt": AttemptHeader,
    "step": StepHeader,
    "failure": FailureHeader,
    "exchange": ExchangeHeader,
    "effect": EffectHeader,
    "end": EndHeader,
    "checkpoint": CheckpointHeader,
    "replay": ReplayHeader,
    "claim": ClaimHeader,
}


def json_schemas() -> dict[str, dict[str, Any]]:
    """The JSON Schema of each kind's header, by kind."""
    return {
        kind: {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": f"urn:holdfast:archive:{FORMAT}:{kind}",
            **model.model_json_schema(),
        }
        for kind, model in KINDS.items()
    }


def check_header(archived: ArchivedObject) -> None:
    """Check that an object's header is one of its kind, in canonical JSON.

    Raises:
        ObjectCorrupt: if it is not.
    """
    model = KINDS.get(str(archived.header.get("kind")))
    if model is None:
        raise ObjectCorrupt(f"{archived.key}: there is no kind {archived.header.get('kind')!r}")
    # Lone surrogates, which Python strings may have and JSON parsers refuse, are of no concern to a schema.
    text = archived.header_bytes.decode("utf-8", "surrogatepass").encode("utf-8", "replace")
    try:
        model.model_validate_json(text)
    except ValueError as error:
        raise ObjectCorrupt(f"{archived.key}: its header is none of a {archived.header['kind']}: {error}") from error
    if canonical_json(archived.header) != archived.header_bytes:
        raise ObjectCorrupt(f"{archived.key}: its header is not canonical JSON")
