"""Between headers, as they are stored, and the records that callers see."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from runtime.archive.container import ArchivedObject, Part
from runtime.archive.frames import compress
from runtime.archive.records import (
    Attempt,
    AttemptRecord,
    Chunk,
    EndRecord,
    Exchange,
    ExchangeRecord,
    Failure,
    FailureRecord,
    Step,
    StepRecord,
)
from runtime.archive.varints import read_varints, varint
from runtime.digests import canonical_json, digest_bytes
from runtime.projection.segments import Add, Keep, LayoutDelta, Reply
from runtime.values import StepRef

_SIGNED = b"holdfast archive end 1\0"
_END_FIELDS = tuple(EndRecord.model_fields)


def delta_shape(delta: LayoutDelta) -> list[list[Any]]:
    """A layout's delta without its segments, which the layout holds: ``[["keep", 0, 9], ["add", 2], ["reply"]]``."""
    shape: list[list[Any]] = []
    for part in delta.parts:
        match part:
            case Keep(start=start, stop=stop):
                shape.append(["keep", start, stop])
            case Add():
                if shape and shape[-1][0] == "add":
                    shape[-1][1] += 1
                else:
                    shape.append(["add", 1])
            case Reply():
                shape.append(["reply"])
    return shape


def attempt_fields(
    record: AttemptRecord, number: int, previous: StepRef | None, outcome: Mapping[str, StepRef]
) -> dict[str, Any]:
    """What an attempt's header says of the call. ``previous`` is the attempt before at the same turn.

    ``outcome`` is what came of that: what ``failed`` is its failure, what was ``answered`` something else.
    """
    return {
        **{name: reference(ref) for name, ref in outcome.items()},
        "kind": "attempt",
        "run": record.run,
        "turn": record.turn,
        "number": number,
        "previous": reference(previous),
        "temporal_attempt": record.temporal_attempt,
        **({"activity": record.activity} if record.activity else {}),
        "model": record.model,
        "parent": reference(record.parent),
        "delta": delta_shape(record.delta),
        "capture": record.capture.value,
        "method": record.method,
        "url": record.url,
        "headers": record.headers,
        "started_at": record.started_at,
        "request": {"digest": digest_bytes(record.request), "bytes": len(record.request)},
    }


def read_attempt(archived: ArchivedObject) -> Attempt:
    """The attempt that an object is."""
    header = archived.header
    return Attempt(
        activity=header.get("activity", ""),
        key=archived.key,
        digest=archived.digest,
        request_digest=header["request"]["digest"],
        request_bytes=header["request"]["bytes"],
        layout_digest=header["layout"]["digest"],
        segments=header["layout"]["segments"],
        **{
            name: header[name]
            for name in (
                "run", "turn", "number", "temporal_attempt", "model", "parent", "capture", "method", "url", "headers",
                "started_at",
            )
        },
    )  # fmt: skip


def step_fields(record: StepRecord, attempt: ArchivedObject) -> dict[str, Any]:
    """What a step's header says of the call. Nodes, effects and the definition are added by the archive."""
    return {
        "kind": "step",
        **record.model_dump(
            mode="json", exclude={"attempt", "response", "chunks", "nodes", *unsaid(record)}
        ),
        "attempt": {"key": attempt.key, "digest": attempt.digest},
        "parent": attempt.header["parent"],
        "capture": attempt.header["capture"],
        "started_at": attempt.header["started_at"],
        "response": {"digest": digest_bytes(record.response), "bytes": len(record.response)},
    }  # fmt: skip


def unsaid(record: StepRecord | EndRecord) -> set[str]:
    """What a header leaves out where there is nothing to say: most turns condense nothing, and few have slept."""
    silent = set() if record.condensations else {"condensations"}
    if isinstance(record, StepRecord):
        silent |= ({"interim"} if record.interim.empty else set()) | ({"prefix"} if record.prefix is None else set())
        silent |= set() if record.failed_attempts.attempts else {"failed_attempts"}
    return silent


def step_parts(record: StepRecord) -> tuple[Part, ...]:
    """The response as received, and how it arrived. The response is compressed against the reply's JSON, which it repeats."""
    reply = _reply_text(record.model_dump(mode="json", include={"reply"})["reply"])
    return _response_parts(record.response, record.chunks, reply)


def _response_parts(response: bytes, chunks: Sequence[Chunk], dictionary: bytes) -> tuple[Part, ...]:
    parts = []
    if response:
        parts.append(Part("response", compress(response, dictionary), len(response)))
    if chunks:
        out: list[bytes] = []
        last = 0
        for chunk in chunks:
            out += (varint(max(chunk.at_us - last, 0)), varint(chunk.size))
            last = max(chunk.at_us, last)
        times = b"".join(out)
        parts.append(Part("chunks", compress(times), len(times)))
    return tuple(parts)


def failure_fields(record: FailureRecord, attempt: ArchivedObject) -> dict[str, Any]:
    """What a failure's header says."""
    return {
        "kind": "failure",
        **record.model_dump(
            mode="json", exclude={"attempt", "response", "chunks", *(() if record.spent.attempts else ("spent",))}
        ),
        **{name: attempt.header[name] for name in ("run", "turn", "number")},
        "attempt": {"key": attempt.key, "digest": attempt.digest},
        "response": {"digest": digest_bytes(record.response), "bytes": len(record.response)},
    }


def failure_parts(record: FailureRecord) -> tuple[Part, ...]:
    """What was received before the attempt failed, and how it arrived."""
    return _response_parts(record.response, record.chunks, b"")


def exchange_fields(record: ExchangeRecord, attempt: ArchivedObject) -> dict[str, Any]:
    """What an exchange's header says."""
    return {
        "kind": "exchange",
        **record.model_dump(mode="json", exclude={"attempt", "response", "chunks"}),
        **{name: attempt.header[name] for name in ("run", "turn", "number")},
        "attempt": {"key": attempt.key, "digest": attempt.digest},
        "response": {"digest": digest_bytes(record.response), "bytes": len(record.response)},
    }


def exchange_parts(record: ExchangeRecord) -> tuple[Part, ...]:
    """What came back, and how it arrived; as a step's, where it is a reply."""
    reply = record.model_dump(mode="json", include={"reply"})["reply"]
    return _response_parts(record.response, record.chunks, b"" if reply is None else _reply_text(reply))


def read_exchange(archived: ArchivedObject) -> Exchange:
    """The exchange that an object is."""
    header = archived.header
    return Exchange(
        ref=StepRef(key=archived.key, digest=archived.digest),
        response_digest=header["response"]["digest"],
        response_bytes=header["response"]["bytes"],
        **{name: header[name] for name in Exchange.model_fields if name in header},
    )


def read_failure(archived: ArchivedObject) -> Failure:
    """The failure that an object is."""
    header = archived.header
    return Failure(
        ref=StepRef(key=archived.key, digest=archived.digest),
        response_digest=header["response"]["digest"],
        response_bytes=header["response"]["bytes"],
        **{name: header[name] for name in Failure.model_fields if name in header},
    )


def read_response(archived: ArchivedObject) -> bytes:
    """The response's bytes: a step's, or what a failed attempt received.

    Raises:
        ObjectCorrupt: if they cannot be read.
    """
    reply = archived.header.get("reply")
    return archived.frame("response", b"" if reply is None else _reply_text(reply))


def read_chunks(archived: ArchivedObject) -> tuple[Chunk, ...]:
    """How the response arrived.

    Raises:
        ObjectCorrupt: if it cannot be read.
    """
    numbers = read_varints(archived.frame("chunks"))
    chunks, at = [], 0
    for wait, size in zip(numbers[::2], numbers[1::2], strict=True):
        at += wait
        chunks.append(Chunk(at_us=at, size=size))
    return tuple(chunks)


def read_step(archived: ArchivedObject) -> Step:
    """The step that an object is."""
    header = archived.header
    return Step(
        ref=StepRef(key=archived.key, digest=archived.digest),
        response_digest=header["response"]["digest"],
        response_bytes=header["response"]["bytes"],
        **{name: header[name] for name in Step.model_fields if name in header},
    )


def read_end(archived: ArchivedObject) -> EndRecord:
    """The end that an object is."""
    return EndRecord(**{name: archived.header[name] for name in _END_FIELDS if name in archived.header})


def signed_text(key: str, header: Mapping[str, Any]) -> bytes:
    """The bytes of an end that are signed: its key, and its header without the signature."""
    fields = {name: value for name, value in header.items() if name not in {"signature", "parts"}}
    return _SIGNED + key.encode() + b"\0" + canonical_json(fields)


def reference(ref: StepRef | None) -> dict[str, str] | None:
    """A reference as a header has it."""
    return None if ref is None else {"key": ref.key, "digest": ref.digest}


def _reply_text(reply: dict[str, Any]) -> bytes:
    calls = "".join(call["arguments"] for call in reply["tool_calls"])
    return f"{reply['text']}{calls}".encode("utf-8", "surrogatepass")
