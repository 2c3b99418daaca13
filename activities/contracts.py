"""What activities take and return: the only thing that workflows know of them.

No I/O and no heavy imports here, so workflow code may import it. Every value is small and bounded: inputs carry
what is new in the turn, never the prompt (DESIGN.md section 3).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from pydantic import Field

from runtime.context.sources import ReadRequest, ReadResult
from runtime.projection.segments import LayoutDelta
from runtime.redaction.rules import Redaction
from runtime.values import Compact, ModelReply, StepRef, Usage


class Contract(Compact):
    """A frozen value that crosses the activity boundary."""


class JobKey(Contract):
    """A job's name: its batch and its id in the batch."""

    batch: str
    job: str

    def __str__(self) -> str:
        return f"{self.batch}/{self.job}"


class ReplyForm(StrEnum):
    """How a model hands over its statement."""

    TOOL = "tool"
    SCRIPT = "script"


class JobBegin(Contract):
    """The begin of a run: the job's definition, which the archive keeps."""

    key: JobKey
    definition: dict[str, Any]


class TurnCall(Contract):
    """One turn's model call: how to make the prompt from the previous one, and what the step records beside it.

    ``parent`` is the step of the turn before. ``model`` is what litellm is called with (``name`` and options).
    ``execution`` and ``nodes`` are records of the turn before (JSON), archived and not interpreted here.
    ``reset_event_id`` is the event to which a Temporal reset takes the run back to before this call.
    """

    key: JobKey
    turn: int
    parent: StepRef | None = None
    layout: LayoutDelta
    model: dict[str, Any]
    form: ReplyForm = ReplyForm.TOOL
    encoding: str = "cl100k_base"
    reset_event_id: int
    execution: dict[str, Any] | None = None
    nodes: tuple[dict[str, Any], ...] = ()


class TurnReply(ModelReply):
    """What the model answered, where the archive holds it, and which attempt of the activity it was."""

    step: StepRef
    attempt: int = 1


class ReadBatch(Contract):
    """Sources to read in one activity: an effect of a statement, or all that are due at a tick."""

    workspace: str
    requests: tuple[ReadRequest, ...]
    encoding: str
    redact: Redaction = Redaction()


class ReadBatchResult(Contract):
    """One result for each request, in the same order."""

    results: tuple[ReadResult, ...]


class FileCall(Contract):
    """One ``open``/``os``/``pathlib`` call of a statement. ``operation`` is Monty's name for it (``Path.iterdir``, ``open``, ...)."""

    workspace: str
    operation: str
    path: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = Field(default_factory=dict)
    redact: Redaction = Redaction()


class FileCallResult(Contract):
    """The call's value (JSON; text, bytes as base64, a list of names, a stat), or the Python exception it raises."""

    value: Any = None
    encoding: str = "json"
    error_type: str | None = None
    error_message: str = ""


class ToolRequest(Contract):
    """One call of a job's tool. ``effect`` numbers the statement's effects from 0."""

    key: JobKey
    turn: int
    effect: int
    tool: str
    search_path: str
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = Field(default_factory=dict)
    redact: Redaction = Redaction()


class ToolResult(Contract):
    """The tool's return value as JSON, or the exception it raised."""

    value: Any = None
    error_type: str | None = None
    error_message: str = ""


class JobEnd(Contract):
    """The end of a run: the last step's digest chain closes with it."""

    key: JobKey
    turn: int
    parent: StepRef | None
    status: str
    reason: str
    result: Any = None
    usage: Usage = Usage()
    cost_usd: float = 0.0
    execution: dict[str, Any] | None = None
    nodes: tuple[dict[str, Any], ...] = ()
