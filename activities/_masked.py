"""The secrets that only a worker knows, by value, kept out of what is archived and sent: the one
place that all calls pass.

What comes from outside was masked where it came in; this is for a value that a statement put
together from parts.
"""

from __future__ import annotations

from typing import Any

from activities.contracts import GroupMaterial, JobEnd, TurnCall
from runtime.base.digests import digest_of
from runtime.base.redaction.redactor import Redactor, redactor_of
from runtime.base.redaction.rules import Redaction
from runtime.context.material import Material
from runtime.job.condensed import CondensationOutcome
from runtime.projection.segments import Add, LayoutDelta, Segment, SegmentKind


def masked_call(call: TurnCall) -> TurnCall:
    """``call`` with its new segments, and what came of the turn before, masked.

    A reply stays: it was masked when it came, and its thinking is signed.
    """
    redactor = redactor_of(call.redact)
    parts = [_part(part, redactor) for part in call.layout.parts]
    return call.model_copy(
        update={"layout": LayoutDelta(parts=tuple(parts)), **_between_calls(call, redactor)}
    )


def masked_end(end: JobEnd) -> JobEnd:
    """``end`` with its result, its reason and what came of the last turn masked."""
    redactor = redactor_of(end.redact)
    told = {
        "result": redactor.value(end.result),
        "reason": redactor.text(end.reason),
        "remarks": redactor.text(end.remarks),
    }
    return end.model_copy(update=told | _between_calls(end, redactor))


def masked_material(order: GroupMaterial) -> Material:
    """What a group is summed up from, masked: notes, and what members are, statements made."""
    plain = redactor_of(order.redact).value(order.material.model_dump())
    return Material.model_validate(plain)


def masked_order(order: dict[str, Any]) -> dict[str, Any]:
    """A sub-job's order with the goal and the result's schema masked, which a statement made."""
    spec = order["spec"]
    redactor = redactor_of(Redaction.model_validate(spec["redact"]))
    masked = {**spec, **{name: redactor.value(spec[name]) for name in ("goal", "result")}}
    return order if masked == spec else {**order, "spec": masked, "definition": digest_of(masked)}


def _between_calls(call: TurnCall | JobEnd, redactor: Redactor) -> dict[str, Any]:
    condensations = [redactor.value(one.model_dump()) for one in call.condensations]
    return {
        "execution": redactor.value(call.execution),
        "nodes": redactor.value(call.nodes),
        "events": redactor.value(call.events),
        "condensations": tuple(map(CondensationOutcome.model_validate, condensations)),
    }


def _part(part: Any, redactor: Redactor) -> Any:
    if not isinstance(part, Add) or part.segment.kind is SegmentKind.REPLY:
        return part
    text = redactor.text(part.segment.text)
    return part if text == part.segment.text else Add(segment=_with_text(part.segment, text))


def _with_text(segment: Segment, text: str) -> Segment:
    return Segment.model_validate(segment.model_dump() | {"text": text})
