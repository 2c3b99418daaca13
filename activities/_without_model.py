"""A turn for which no model is called: its reply is that of a record's step, or a statement that a
user wrote.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from activities.contracts import ReplyForm, TurnCall, TurnReply
from activities.record import ReplySource
from runtime.archive.forms import Capture, NewAttempt, NewStep, StoredReply
from runtime.archive.job import JobArchive
from runtime.archive.recorded import replied_at, turn_record
from runtime.archive.stores import ObjectStore
from runtime.archive.without_model import origin_of, request_without_model
from runtime.base.digests import canonical_json
from runtime.base.tokens import encoding
from runtime.base.values import ToolCall
from runtime.projection.replies import SCRIPT_CLOSE, SCRIPT_OPEN, TOOL_ARGUMENT, TOOL_NAME


def reply_without_model(
    store: ObjectStore, call: TurnCall, source: ReplySource, run: str, temporal_attempt: int
) -> TurnReply:
    """Archive the turn with the given reply, and return that.

    The usage is that of the call in which a model was asked for it, so that budgets run as they
    did.

    The step itself says that nothing was spent, and its request that no model was called. Where
    the statement goes on, whose clock stood there, its time is that of the record's reply; where a
    record answers for the world, it names the time of the record's clock.

    Raises:
        NotFound: if the record has no such turn.
        ArchiveError: if the archive cannot be read or written.
    """
    archive = JobArchive.of(store, call.key)
    reply, spent, request, at = _reply(store, call, source)
    # A try before may have archived the turn and died before it could say so.
    done = archive.find_step(run, call.turn)
    if done is None:
        now = at or datetime.now(UTC).isoformat()
        clock = datetime.fromtimestamp(source.clock, UTC).isoformat() if source.clock else ""
        capture = Capture.EDITED if source.statement is not None else Capture.REPLAYED
        attempt = archive.begin_attempt(
            NewAttempt(
                run=run,
                turn=call.turn,
                parent=call.parent,
                delta=call.layout,
                model=call.model,
                capture=capture,
                request=request,
                temporal_attempt=temporal_attempt,
                started_at=now,
                through=call.through,
            )
        )
        ref = archive.finish_step(
            NewStep.like(
                call,
                run=run,
                attempt=attempt,
                reply=reply,
                finished_at=now,
                clock=clock if clock != now else "",
            )
        )
        done = archive.step(ref)
    return TurnReply(
        **dict(done.reply),
        **spent,
        step=done.ref,
        attempt=temporal_attempt,
        at=replied_at(done),
    )


def _reply(
    store: ObjectStore, call: TurnCall, source: ReplySource
) -> tuple[StoredReply, dict[str, Any], bytes, str]:
    """The reply, what it is booked as, the request that says where it comes from, and the time that
    it keeps, if it does.
    """
    if source.statement is not None:
        return _edited(call, source.statement), {}, request_without_model(None), ""
    if source.source is None:
        raise ValueError("a given reply has no source")
    archive = JobArchive.of(store, source.source)
    step = turn_record(archive, source.source.run, call.turn).step
    origin = origin_of(store, step)
    spent = {"usage": origin.usage, "cost_usd": origin.cost_usd, "failed": origin.failed_attempts}
    at = step.finished_at if source.goes_on else ""
    return step.reply, spent, request_without_model(step.ref), at


def _edited(call: TurnCall, statement: str) -> StoredReply:
    """The reply in which a model would have written the statement."""
    count = encoding(call.encoding).count
    if call.form is ReplyForm.SCRIPT:
        text = f"{SCRIPT_OPEN}\n{statement}\n{SCRIPT_CLOSE}"
        return StoredReply(text=text, response_id="edited", tokens=count(text))
    arguments = canonical_json({TOOL_ARGUMENT: statement}).decode()
    calls = (ToolCall(id=f"edited_{call.turn}", name=TOOL_NAME, arguments=arguments),)
    return StoredReply(
        tool_calls=calls,
        finish_reason="tool_calls",
        response_id="edited",
        tokens=count(TOOL_NAME) + count(arguments),
    )
