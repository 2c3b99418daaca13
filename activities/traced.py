"""Spans of activities and of what they write, sent to a collector by OpenTelemetry's protocol.

A run is a trace, whose id is the run's. In it a turn is a span, from when its call was first asked
for until a model had answered; below it are the attempts at the call, the statement's effects and
what else is of that turn, each with what it wrote to the archive. What is of no turn, such as the
begin of the job, stands beside the turns. Activities that a worker does for itself (local ones)
have none.

Ids are made from run and turn (``runtime/base/trace_ids.py``) where Temporal's own interceptor
(``temporalio.contrib.opentelemetry``) hands them on in headers: those would stand in the history
with every activity, put a batch of thousands of jobs into one trace, and end where a job was given
by a process without traces. So workflow code sends nothing, at a replay or otherwise, and a history
is the same with traces and without.

No span holds text: no prompt, reply, argument, result or message of an error.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from typing import Any, cast

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.id_generator import IdGenerator, RandomIdGenerator
from opentelemetry.trace import (
    NonRecordingSpan,
    Span,
    SpanContext,
    SpanKind,
    StatusCode,
    TraceFlags,
    Tracer,
    get_current_span,
    set_span_in_context,
    use_span,
)
from temporalio import activity
from temporalio.exceptions import ApplicationError
from temporalio.worker import ActivityInboundInterceptor, ExecuteActivityInput, Interceptor

from activities.contracts import (
    SummaryCall,
    ToolRequest,
    TurnCall,
    TurnReply,
    WorkspaceChange,
)
from runtime.archive.genai import about_model
from runtime.archive.stores import ObjectStore
from runtime.base.errors import InputError
from runtime.base.trace_ids import trace_id, turn_span_id

SEND_SECONDS = 5.0
"""How long sending one batch of spans may take, with what is tried again, and how long a process
that ends waits for its last ones; what is not sent then is dropped.
"""

SEND_VARIABLE = "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT"
"""OpenTelemetry's own variable for another time than that, in seconds."""

_log = logging.getLogger(__name__)

_ids: ContextVar[tuple[int, int | None] | None] = ContextVar("_ids", default=None)
"""The trace, and the span if it is not any, that the next span without a parent is to have."""


@dataclass(frozen=True)
class Traces:
    """What makes this process's spans and sends them."""

    provider: TracerProvider
    tracer: Tracer
    seconds: float
    is_theirs: bool = False
    """The provider is somebody else's, who ends it."""
    _stores: dict[int, _SpannedStore] = field(default_factory=dict)

    @classmethod
    def to(cls, endpoint: str) -> Traces:
        """What sends them to the URL ``endpoint``, in the background.

        Raises:
            InputError: if ``OTEL_EXPORTER_OTLP_TRACES_TIMEOUT`` is no number of seconds.
        """
        seconds = _send_seconds()
        provider = TracerProvider(
            resource=Resource.create(
                {"service.name": "holdfast", "service.version": version("holdfast")}
            ),
            id_generator=_Ids(),
            # The commands end themselves, without what is registered for the exit.
            shutdown_on_exit=False,
        )
        sender = tell_losses(OTLPSpanExporter(endpoint=endpoint, timeout=seconds))
        provider.add_span_processor(BatchSpanProcessor(sender))
        return cls(provider, provider.get_tracer("holdfast", version("holdfast")), seconds)

    @classmethod
    def through(cls, provider: TracerProvider) -> Traces:
        """What gives them to somebody's provider, with its resource, sampler and processors."""
        tracer = provider.get_tracer("holdfast", version("holdfast"))
        # A provider keeps a tracer for each name, so its other spans keep its own ids.
        cast(Any, tracer).id_generator = _Ids()
        return cls(provider, tracer, SEND_SECONDS, is_theirs=True)

    @property
    def interceptor(self) -> Interceptor:
        """What makes the spans of activities."""
        return _Traced(self.tracer)

    def store(self, store: ObjectStore) -> ObjectStore:
        """``store`` with a span for each object that is written."""
        # One for each: what is kept of a store is kept by it. A wrapper keeps its store, and so
        # the store's identity, for good.
        made: Any = self._stores.setdefault(id(store), _SpannedStore(store, self.tracer))
        return cast(ObjectStore, made)

    def flush(self) -> None:
        """Send what is there, for as long as one batch may take."""
        self._within(self.provider.force_flush)

    def end(self) -> None:
        """Send what is left, for as long as one batch may take; nothing is sent afterwards."""
        if not self.is_theirs:
            self._within(self.provider.shutdown)

    def _within(self, send: Callable[[], object]) -> None:
        leaving = threading.Thread(target=send, daemon=True)
        leaving.start()
        leaving.join(self.seconds)


def _send_seconds() -> float:
    said = os.environ.get(SEND_VARIABLE) or str(SEND_SECONDS)
    try:
        seconds = float(said)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < threading.TIMEOUT_MAX:
        raise InputError(f"{SEND_VARIABLE} {said!r}: expected a number of seconds")
    return seconds


class _Ids(IdGenerator):
    """Random ids, but for those that are asked for by ``_ids``."""

    def __init__(self) -> None:
        self._random = RandomIdGenerator()

    def generate_trace_id(self) -> int:
        wanted = _ids.get()
        return self._random.generate_trace_id() if wanted is None else wanted[0]

    def generate_span_id(self) -> int:
        wanted = _ids.get()
        return (wanted and wanted[1]) or self._random.generate_span_id()


def tell_losses(sender: SpanExporter) -> SpanExporter:
    """``sender``, with a warning when spans begin to be lost, and not with each batch."""
    return _Told(sender)


class _Told(SpanExporter):
    def __init__(self, inner: SpanExporter) -> None:
        self._inner = inner
        self._lost = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        result = self._inner.export(spans)
        lost = result is not SpanExportResult.SUCCESS
        if lost and not self._lost:
            _log.warning("traces cannot be sent to HOLDFAST_TRACES: they are lost, jobs go on")
        self._lost = lost
        return result

    def shutdown(self) -> None:
        self._inner.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._inner.force_flush(timeout_millis)


@dataclass(frozen=True)
class _Traced(Interceptor):
    tracer: Tracer

    def intercept_activity(self, next: ActivityInboundInterceptor) -> ActivityInboundInterceptor:
        """See ``Interceptor``."""
        return _Spanned(next, self.tracer)


class _Spanned(ActivityInboundInterceptor):
    def __init__(self, next: ActivityInboundInterceptor, tracer: Tracer) -> None:
        super().__init__(next)
        self._tracer = tracer

    async def execute_activity(self, input: ExecuteActivityInput) -> Any:
        argument = input.args[0] if input.args else None
        info = activity.info()
        if info.is_local:
            return await self.next.execute_activity(input)
        turn = _turn_of(argument)
        try:
            with self._attempt(info, argument, turn) as span:
                result = await self.next.execute_activity(input)
                if isinstance(result, TurnReply):
                    span.set_attributes(_answered(result, info.attempt))
        except BaseException as error:
            # A turn ends with an answer or with its last attempt; an attempt that is followed is no
            # end.
            if isinstance(argument, TurnCall) and _is_last(error, info):
                self._turn(info, argument, _kind(error))
            raise
        if isinstance(argument, TurnCall):
            self._turn(info, argument, None)
        return result

    @contextmanager
    def _attempt(self, info: activity.Info, argument: Any, turn: int | None) -> Iterator[Span]:
        """The span of one attempt at an activity."""
        run = info.workflow_run_id or ""
        name, kind, about = _named(info, argument)
        began = _nanoseconds(info.started_time)
        with _as_ids(run, None):
            span = self._tracer.start_span(
                name,
                context=_below(run, turn),
                kind=kind,
                attributes={**_of_attempt(info), **about, **_of_job(info, argument, turn)},
                start_time=began,
            )
        try:
            # Nothing below it is written into it by the library: a message may hold anything.
            with use_span(span, record_exception=False, set_status_on_exception=False):
                yield span
        except BaseException as error:
            _failed(span, _kind(error))
            raise
        finally:
            # Never before it began: the two times are of different clocks, the server's and this
            # machine's.
            span.end(max(time.time_ns(), began))

    def _turn(self, info: activity.Info, call: TurnCall, error: str | None) -> None:
        """The span of a turn that a model has answered, or will not answer; whoever makes it again
        after a crash gives it the same id.
        """
        run = info.workflow_run_id or ""
        began = _nanoseconds(info.scheduled_time)
        with _as_ids(run, int(turn_span_id(run, call.turn), 16)):
            span = self._tracer.start_span(
                f"turn {call.turn}",
                context=Context(),
                attributes={**_of_job(info, call, call.turn), "holdfast.attempts": info.attempt},
                start_time=began,
            )
        if error is not None:
            _failed(span, error)
        span.end(max(time.time_ns(), began))


def _turn_of(argument: Any) -> int | None:
    """The turn that an activity is of, by its argument; None if it is of none."""
    turn = getattr(argument, "turn", None)
    return turn if isinstance(turn, int) and turn > 0 else None


@contextmanager
def _as_ids(run: str, span: int | None) -> Iterator[None]:
    token = _ids.set((int(trace_id(run), 16), span))
    try:
        yield
    finally:
        _ids.reset(token)


def _below(run: str, turn: int | None) -> Context:
    """Where a span stands: in the turn's, or in none."""
    if turn is None:
        return Context()
    parent = SpanContext(
        int(trace_id(run), 16),
        int(turn_span_id(run, turn), 16),
        is_remote=True,
        trace_flags=TraceFlags(TraceFlags.SAMPLED),
    )
    return set_span_in_context(NonRecordingSpan(parent), Context())


def _named(info: activity.Info, argument: Any) -> tuple[str, SpanKind, dict[str, Any]]:
    """What a span of the activity is called, its kind and what the conventions say of it."""
    match argument:
        case TurnCall(given=None) | SummaryCall():
            about: dict[str, Any] = about_model(argument.model)
            if isinstance(argument, SummaryCall):
                about["holdfast.summary"] = True
            return f"chat {about['gen_ai.request.model']}", SpanKind.CLIENT, about
        case WorkspaceChange(tool=None, operation=name) | ToolRequest(tool=name):
            pass
        case WorkspaceChange(tool=ToolRequest(tool=name)):
            pass
        case _:
            return info.activity_type, SpanKind.INTERNAL, {}
    about = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": name,
        "holdfast.effect": argument.effect,
    }
    return f"execute_tool {name}", SpanKind.INTERNAL, about


def _of_attempt(info: activity.Info) -> dict[str, Any]:
    waited = info.started_time - info.current_attempt_scheduled_time
    return {
        "holdfast.activity": info.activity_id,
        "holdfast.attempt": info.attempt,
        "holdfast.queue": info.task_queue,
        "holdfast.queue.wait_seconds": max(waited.total_seconds(), 0.0),
    }


def _of_job(info: activity.Info, argument: Any, turn: int | None) -> dict[str, Any]:
    key = getattr(argument, "key", None)
    batch, job = getattr(key, "batch", None), getattr(key, "job", None)
    about = {
        "holdfast.batch": batch,
        "holdfast.job": job,
        "gen_ai.conversation.id": str(key) if batch and job else None,
        "holdfast.workflow": info.workflow_id,
        "holdfast.run": info.workflow_run_id,
        "holdfast.turn": turn,
    }
    return {name: value for name, value in about.items() if value is not None}


def _answered(reply: TurnReply, attempt: int) -> dict[str, Any]:
    """What a model's answer took; of one that the archive had already, only that it did."""
    if reply.attempt != attempt:
        return {"holdfast.from_archive": True}
    return {
        "gen_ai.response.finish_reasons": [reply.finish_reason],
        "gen_ai.usage.input_tokens": reply.usage.prompt,
        "gen_ai.usage.output_tokens": reply.usage.completion,
        "gen_ai.usage.cache_read.input_tokens": reply.usage.cache_read,
        "holdfast.cost_usd": reply.cost_usd,
    }


def _kind(error: BaseException) -> str:
    """The kind of an error, never its message."""
    own = error.type if isinstance(error, ApplicationError) else None
    return own or type(error).__name__


def _failed(span: Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(StatusCode.ERROR)


def _is_last(error: BaseException, info: activity.Info) -> bool:
    """Whether the server will give the activity to nobody else after this error."""
    # Cancelled: by the server's wish for good, by the end of this worker for another one's try.
    if not isinstance(error, Exception):
        why = activity.cancellation_details()
        return why is not None and why.cancel_requested
    policy = info.retry_policy
    most = policy.maximum_attempts if policy is not None else 0
    refused = policy.non_retryable_error_types if policy is not None else None
    return (
        (isinstance(error, ApplicationError) and error.non_retryable)
        or 0 < most <= info.attempt
        or _kind(error) in (refused or ())
    )


def _nanoseconds(at: datetime) -> int:
    return int(at.timestamp() * 1e9)


class _SpannedStore:
    """A store whose writes are spans below that of the activity which makes them."""

    def __init__(self, inner: ObjectStore, tracer: Tracer) -> None:
        self._inner, self._tracer = inner, tracer

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """See ``ObjectStore``."""
        if not get_current_span().is_recording():
            return self._inner.put_if_absent(key, data)
        with self._tracer.start_as_current_span(
            "archive put", record_exception=False, set_status_on_exception=False
        ) as span:
            span.set_attributes({"holdfast.archive.key": key, "holdfast.archive.bytes": len(data)})
            try:
                written = self._inner.put_if_absent(key, data)
            except Exception as error:
                _failed(span, _kind(error))
                raise
            span.set_attribute("holdfast.archive.written", written)
            return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __str__(self) -> str:
        return str(self._inner)
