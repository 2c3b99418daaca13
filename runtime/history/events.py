"""The events of a job: one frozen value for each thing that happened (docs/design.md section 6).

Three families. *Shown* events become messages of the prompt: messages, actions, their results,
summaries. *Meta* events change which events are shown: condensations and requests for one.
*Runtime* events record what the job did and are never messages. ``UnknownEvent`` keeps an event
that a later release wrote, byte for byte in meaning.

Every event has an ``id``, unique in its log and given by the caller (never random, so that a replay
gives the same), and the ``turn`` in which it happened. ``v`` is the version of the event's JSON
form.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, TypeGuard

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag

from runtime.base.values import ToolCall, Value
from runtime.history.content import Content

EVENT_VERSION = 1


class MessageSource(StrEnum):
    """Who wrote a message."""

    SYSTEM = "system"
    GOAL = "goal"
    USER = "user"
    FRAMEWORK = "framework"
    AGENT = "agent"


class RequestSource(StrEnum):
    """Who or what asked for a condensation."""

    MODEL = "model"
    USER = "user"
    EVENTS = "events"
    TOKENS = "tokens"
    WINDOW = "window"


class RepairReason(StrEnum):
    """Why the View differs from what the log's event asked for.

    ``REJECTED_*``: a condensation had no effect.
    """

    CALL_WITHOUT_RESULT = "call_without_result"
    RESULT_WITHOUT_CALL = "result_without_call"
    SECOND_RESULT = "second_result"
    DUPLICATE_CALL = "duplicate_call"
    BATCH_BROKEN = "batch_broken"
    BATCH_FORGOTTEN = "batch_forgotten"
    DUPLICATE_EVENT = "duplicate_event"
    WIDENED = "widened"
    PINNED_KEPT = "pinned_kept"
    UNKNOWN_IGNORED = "unknown_ignored"
    OFFSET_MOVED = "offset_moved"
    REJECTED_UNKNOWN = "rejected_unknown"
    REJECTED_PENDING = "rejected_pending"
    REJECTED_EMPTY = "rejected_empty"
    REJECTED_ID_TAKEN = "rejected_id_taken"


class BaseEvent(Value):
    """What all events share."""

    id: str
    turn: int
    v: Literal[1] = 1


class MessageEvent(BaseEvent):
    """A message: the system prompt, the goal, a user's or the framework's words, or the agent's own
    prose.
    """

    type: Literal["message"] = "message"
    source: MessageSource
    content: Content


class ActionEvent(BaseEvent):
    """One statement or tool call of a model's reply.

    Actions of one reply share ``llm_response_id``: a *batch*.

    ``tool_call_id`` is ``None`` for a statement in a ``<script>`` block. ``thinking_blocks`` are
    the provider's, unaltered; the first action of a reply carries them. ``source`` is the exact
    statement, ``text`` the reply's text, ``tool_calls`` the reply's native calls; the one whose id
    is ``tool_call_id`` belongs to this action.
    """

    type: Literal["action"] = "action"
    llm_response_id: str
    tool_call_id: str | None = None
    thinking_blocks: tuple[dict[str, Any], ...] = ()
    source: str = ""
    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()


class ResultEvent(BaseEvent):
    """What answers an action: the call ``tool_call_id``, or, without an id, the last action without
    one.
    """

    tool_call_id: str | None = None
    content: Content = ()


class ObservationEvent(ResultEvent):
    """An action's outcome."""

    type: Literal["observation"] = "observation"


class UserRejectObservation(ResultEvent):
    """A user refused the action; ``content`` gives the reason."""

    type: Literal["user_reject"] = "user_reject"


class AgentErrorEvent(ResultEvent):
    """The action could not be carried out as written; ``content`` tells the model why."""

    type: Literal["agent_error"] = "agent_error"


class CondensationSummaryEvent(BaseEvent):
    """What stands in the View in place of forgotten events, until a later condensation names its
    id.
    """

    type: Literal["condensation_summary"] = "condensation_summary"
    summary: str


class CondensationRequest(BaseEvent):
    """Somebody asked for a condensation; unhandled until the next one that takes effect."""

    type: Literal["condensation_request"] = "condensation_request"
    source: RequestSource = RequestSource.USER
    reason: str = ""


class Condensation(BaseEvent):
    """Forgets events of the View, and may put a summary in their place.

    ``summary_offset`` is an index into the View as it is after forgetting; ``None`` is where the
    first forgotten event stood. ``llm_response_id`` names the model reply that wrote the summary,
    ``condenser`` who decided.
    """

    type: Literal["condensation"] = "condensation"
    forgotten_event_ids: tuple[str, ...] = ()
    summary: str | None = None
    summary_offset: int | None = None
    llm_response_id: str | None = None
    condenser: str = ""
    reason: str = ""

    @property
    def summary_event_id(self) -> str:
        """The id of the event that holds the summary: ``<condensation id>-summary``."""
        return f"{self.id}-summary"

    @property
    def summary_event(self) -> CondensationSummaryEvent | None:
        """The event that stands in the View for what was forgotten, or ``None`` without a
        summary.
        """
        if self.summary is None:
            return None
        return CondensationSummaryEvent(
            id=self.summary_event_id, turn=self.turn, summary=self.summary
        )


class HistoryRepaired(BaseEvent):
    """The View left something out or changed a condensation: which events, caused by which, and
    why.
    """

    type: Literal["history_repaired"] = "history_repaired"
    reason: RepairReason
    cause: str
    event_ids: tuple[str, ...] = ()
    detail: str = ""


class StatementExecuted(BaseEvent):
    """A statement ran to its end; ``status`` is the execution's."""

    type: Literal["statement_executed"] = "statement_executed"
    statement_id: str
    execution_id: str
    status: str


class MethodCalled(BaseEvent):
    """A method of a node was called.

    Arguments are short reprs; digests are the node's, before and after.
    """

    type: Literal["method_called"] = "method_called"
    obj_id: str
    obj_type: str
    method: str
    args: tuple[str, ...] = ()
    kwargs: dict[str, str] = Field(default_factory=dict)
    before_digest: str
    after_digest: str


class NodeChanged(BaseEvent):
    """A node's state changed; ``delta`` says how, in a short line."""

    type: Literal["node_changed"] = "node_changed"
    obj_id: str
    delta: str


class TickApplied(BaseEvent):
    """A tick of kind ``tick_kind`` changed a node."""

    type: Literal["tick_applied"] = "tick_applied"
    obj_id: str
    tick_kind: str
    delta: str


class AsyncPayloadPrepared(BaseEvent):
    """A background activity finished an update for a node; it waits for a tick."""

    type: Literal["async_payload_prepared"] = "async_payload_prepared"
    obj_id: str
    payload_meta: dict[str, Any] = Field(default_factory=dict)


class AsyncPayloadApplied(BaseEvent):
    """A tick applied a prepared update to its node."""

    type: Literal["async_payload_applied"] = "async_payload_applied"
    obj_id: str
    payload_meta: dict[str, Any] = Field(default_factory=dict)
    delta: str


class GroupRecomputed(BaseEvent):
    """A group's summary was computed anew."""

    type: Literal["group_recomputed"] = "group_recomputed"
    group_id: str
    delta: str


class UnknownEvent(BaseModel):
    """An event of a type or version that this release does not know: kept whole, never shown."""

    # The fields of a later release stay, and are written out again as they came.
    model_config = ConfigDict(frozen=True, extra="allow")

    id: str
    turn: int = 0
    type: str
    v: int = EVENT_VERSION


Result = ObservationEvent | UserRejectObservation | AgentErrorEvent
ShownEvent = MessageEvent | ActionEvent | Result | CondensationSummaryEvent
KnownEvent = (
    MessageEvent
    | ActionEvent
    | ObservationEvent
    | UserRejectObservation
    | AgentErrorEvent
    | CondensationSummaryEvent
    | CondensationRequest
    | Condensation
    | HistoryRepaired
    | StatementExecuted
    | MethodCalled
    | NodeChanged
    | TickApplied
    | AsyncPayloadPrepared
    | AsyncPayloadApplied
    | GroupRecomputed
)
RESULT_TYPES: frozenset[type] = frozenset(
    {ObservationEvent, UserRejectObservation, AgentErrorEvent}
)
SHOWN_TYPES: frozenset[type] = RESULT_TYPES | {MessageEvent, ActionEvent, CondensationSummaryEvent}
KNOWN_TYPES: frozenset[str] = frozenset(
    event_type.model_fields["type"].default for event_type in KnownEvent.__args__
)


def _tag(data: Any) -> str:
    """The union's tag of JSON data or of an event: ``known``, or ``unknown`` for a later type or
    version.
    """
    if isinstance(data, dict):
        ours = data.get("type") in KNOWN_TYPES and data.get("v", EVENT_VERSION) == EVENT_VERSION
        return "known" if ours else "unknown"
    return "unknown" if isinstance(data, UnknownEvent) else "known"


Event = Annotated[
    Annotated[Annotated[KnownEvent, Field(discriminator="type")], Tag("known")]
    | Annotated[UnknownEvent, Tag("unknown")],
    Discriminator(_tag),
]


def is_result(event: object) -> TypeGuard[Result]:
    """Whether ``event`` answers an action."""
    return type(event) in RESULT_TYPES


def is_shown(event: object) -> TypeGuard[ShownEvent]:
    """Whether ``event`` is of a kind that becomes a message."""
    return type(event) in SHOWN_TYPES
