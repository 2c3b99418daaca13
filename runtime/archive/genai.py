"""A run as OpenTelemetry spans by its semantic conventions for generative AI, in OTLP's JSON form.

The conventions are those of version 1.38 (status: development): one ``chat`` span for each call of
the model with the messages it was sent, a failed attempt's with ``error.type``, under one
``invoke_agent`` span for the run. Ids are made from the archive's keys, so that an export made
twice has the same ones.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from urllib.parse import unquote, urlsplit

from runtime.archive.calls import side_calls
from runtime.archive.export import Turns
from runtime.archive.forms import Attempt, Step, StoredReply
from runtime.archive.gaps import UNREADABLE, Gap, Readable, named_gap, readable
from runtime.archive.job import JobArchive
from runtime.archive.prompts import prompts
from runtime.base.native_arguments import read_arguments
from runtime.base.standings import DAMAGED, OPEN
from runtime.projection.segments import Role, Segment, thought_of

SCHEMA_URL = "https://opentelemetry.io/schemas/1.38.0"
# The numbers of OTLP's SpanKind and StatusCode.
_INTERNAL, _CLIENT = 1, 3
_ERROR = 2
_REQUEST = {
    "temperature": "gen_ai.request.temperature",
    "top_p": "gen_ai.request.top_p",
    "max_tokens": "gen_ai.request.max_tokens",
    "seed": "gen_ai.request.seed",
    "frequency_penalty": "gen_ai.request.frequency_penalty",
    "presence_penalty": "gen_ai.request.presence_penalty",
}
_PROVIDERS = {
    "azure": "azure.ai.openai",
    "azure_ai": "azure.ai.inference",
    "bedrock": "aws.bedrock",
    "gemini": "gcp.gemini",
    "vertex_ai": "gcp.vertex_ai",
    "mistral": "mistral_ai",
    "watsonx": "ibm.watsonx.ai",
    "xai": "x_ai",
}

Span = dict[str, Any]


def genai_lines(
    archive: JobArchive, run: str, turns: Turns | None, gaps: list[Gap]
) -> Iterator[dict[str, Any]]:
    """One OTLP ``TracesData`` a line: each finished or failed call of ``turns`` (None: all), then
    the run.

    Calls that cannot be read are left out, and what is the matter with them is put into ``gaps``:
    spans have no place for it.

    Raises:
        NotFound: if there is no such run.
    """
    held = readable(archive, run)
    gaps += held.gaps
    trace = _id(f"{archive.prefix}/{run}", 16)
    root = _id(f"{archive.prefix}/{run}#run", 8)
    first: str | None = None
    last = ""
    for of, side, turn, layout in _calls(archive, run, gaps):
        if turns is not None and not turns.hold(turn):
            continue
        try:
            step = of.find_step(side, turn)
            for attempt in of.attempts(side, turn):
                first = min(first or attempt.started_at, attempt.started_at)
                answered = step if step is not None and step.attempt.key == attempt.key else None
                span = _call(of, attempt, answered, layout)
                if span is not None:
                    ended = step.finished_at if step is not None else ""
                    last = max(last, attempt.started_at, ended)
                    yield _traces({"traceId": trace, "parentSpanId": root, **span})
        except UNREADABLE as error:
            gaps.append(named_gap(error, turn))
    if first is not None:
        yield _traces({"traceId": trace, "spanId": root, **_run(archive, run, held, first, last)})


def _calls(
    archive: JobArchive, run: str, gaps: list[Gap]
) -> Iterator[tuple[JobArchive, str, int, tuple[Segment, ...]]]:
    """Where each model call of a run is, with its prompt: the turns', then those that wrote
    summaries.
    """
    for turn, _, layout in prompts(archive, run, gaps=gaps):
        yield archive, run, turn, layout
    for call in side_calls(archive, run, gaps):
        try:
            shown = call.archive.turn_layout(call.run, call.turn) if call.attempts else None
        except UNREADABLE as error:
            gaps.append(named_gap(error, call.turn))
            continue
        if shown is not None:
            yield call.archive, call.run, call.turn, shown


def _call(
    archive: JobArchive, attempt: Attempt, step: Step | None, layout: Sequence[Segment]
) -> Span | None:
    """The span of one attempt; None for one in flight, whose end is not known."""
    failure = archive.failure(attempt.key) if step is None else None
    if step is None and failure is None:
        return None
    attributes: dict[str, Any] = {
        **_about(attempt),
        "gen_ai.conversation.id": unquote(archive.prefix),
        "gen_ai.system_instructions": _json(
            [_text(s.text) for s in layout if s.role is Role.SYSTEM]
        ),
        "gen_ai.input.messages": _json([_message(s) for s in layout if s.role is not Role.SYSTEM]),
        "holdfast.run": attempt.run,
        "holdfast.turn": attempt.turn,
        "holdfast.attempt.key": attempt.key,
        "holdfast.attempt.digest": attempt.digest,
    }
    # No span ends before it begins, also where the clock was set back meanwhile.
    span: Span = {
        "spanId": _id(attempt.key, 8),
        "name": f"chat {attributes['gen_ai.request.model']}",
        "kind": _CLIENT,
        "startTimeUnixNano": _nanoseconds(attempt.started_at),
    }
    if step is not None:
        attributes |= _answer(step)
        span["endTimeUnixNano"] = _nanoseconds(max(attempt.started_at, step.finished_at))
    elif failure is not None:
        attributes |= {
            "error.type": failure.error_type,
            "http.response.status_code": failure.status_code,
        }
        span["endTimeUnixNano"] = _nanoseconds(max(attempt.started_at, failure.failed_at))
        span["status"] = {"code": _ERROR, "message": failure.error_message}
    return {**span, "attributes": _attributes(attributes)}


def about_model(model: Mapping[str, Any]) -> dict[str, str]:
    """What the conventions call a call of ``model``, what litellm is called with."""
    provider, slash, name = str(model.get("name", "")).partition("/")
    return {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": _PROVIDERS.get(provider, provider),
        "gen_ai.request.model": name if slash else provider,
    }


def _about(attempt: Attempt) -> dict[str, Any]:
    place = urlsplit(attempt.url)
    return {
        **about_model(attempt.model),
        "server.address": place.hostname,
        "server.port": place.port or {"https": 443, "http": 80}.get(place.scheme),
        **{attribute: attempt.model.get(option) for option, attribute in _REQUEST.items()},
    }


def _answer(step: Step) -> dict[str, Any]:
    return {
        "gen_ai.output.messages": _json([_reply(step.reply)]),
        "gen_ai.response.id": step.reply.response_id or None,
        "gen_ai.response.finish_reasons": [step.reply.finish_reason],
        "gen_ai.usage.input_tokens": step.usage.prompt,
        "gen_ai.usage.output_tokens": step.usage.completion,
        "gen_ai.usage.cache_read.input_tokens": step.usage.cache_read,
        "gen_ai.usage.cache_creation.input_tokens": step.usage.cache_write,
        "http.response.status_code": step.status_code,
        "holdfast.step.key": step.ref.key,
        "holdfast.step.digest": step.ref.digest,
        "holdfast.cost_usd": step.cost_usd,
    }


def _run(archive: JobArchive, run: str, held: Readable, first: str, last: str) -> Span:
    batch, _, job = archive.prefix.partition("/")
    end = held.end
    status = DAMAGED if held.missing_end else OPEN
    attributes: dict[str, Any] = {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.name": unquote(job),
        "gen_ai.agent.id": unquote(archive.prefix),
        "gen_ai.conversation.id": unquote(archive.prefix),
        "holdfast.batch": unquote(batch),
        "holdfast.run": run,
        "holdfast.status": end.status if end is not None else status,
    }
    span: Span = {
        "name": f"invoke_agent {unquote(job)}",
        "kind": _INTERNAL,
        "startTimeUnixNano": _nanoseconds(first),
        "endTimeUnixNano": _nanoseconds((end.ended_at if end is not None else last) or first),
    }
    if end is not None and end.status == "failed":
        attributes["error.type"] = "JobFailed"
        span["status"] = {"code": _ERROR, "message": end.reason}
    return {**span, "attributes": _attributes(attributes)}


def _message(segment: Segment) -> dict[str, Any]:
    if segment.role is Role.TOOL:
        parts: list[dict[str, Any]] = [
            {"type": "tool_call_response", "id": segment.tool_call_id, "response": segment.text}
        ]
    else:
        thinking = [
            {"type": "reasoning", "content": thought_of(b) or str(b.get("data", ""))}
            for b in segment.thinking
        ]
        calls = [_tool_call(call.id, call.name, call.arguments) for call in segment.tool_calls]
        parts = [*thinking, *([_text(segment.text)] if segment.text else []), *calls]
    return {"role": segment.role.value, "parts": parts}


def _reply(reply: StoredReply) -> dict[str, Any]:
    return {**_message(reply.segment(0)), "finish_reason": reply.finish_reason}


def _tool_call(id: str, name: str, arguments: str) -> dict[str, Any]:
    try:
        value = read_arguments(arguments)
    except ValueError:
        value = arguments
    return {"type": "tool_call", "id": id, "name": name, "arguments": value}


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "content": text}


def _traces(span: Span) -> dict[str, Any]:
    resource = {"attributes": _attributes({"service.name": "holdfast"})}
    scope = {"scope": {"name": "holdfast"}, "schemaUrl": SCHEMA_URL, "spans": [span]}
    return {
        "resourceSpans": [{"resource": resource, "schemaUrl": SCHEMA_URL, "scopeSpans": [scope]}]
    }


def _attributes(values: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        {"key": name, "value": _any_value(value)}
        for name, value in values.items()
        if value is not None
    ]


def _any_value(value: Any) -> dict[str, Any]:
    """OTLP's JSON has integers as texts."""
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value}
    if isinstance(value, list):
        return {"arrayValue": {"values": [_any_value(item) for item in value]}}
    return {"stringValue": str(value)}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _id(text: str, size: int) -> str:
    # 16 bytes for a trace and 8 for a span, as OTLP has them; random ones would differ in each
    # export.
    return hashlib.sha256(text.encode()).digest()[:size].hex()


def _nanoseconds(time: str) -> str:
    moment = datetime.fromisoformat(time)
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - datetime(
        1970, 1, 1, tzinfo=UTC
    )
    # Whole numbers only: a float of seconds since 1970 has no nanoseconds.
    return str((since.days * 86_400 + since.seconds) * 10**9 + since.microseconds * 1000)
