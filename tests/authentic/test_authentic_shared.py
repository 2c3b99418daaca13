"""A client with workflows of its own beside jobs: each side's payloads are as they would be
alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest
from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    ActivitySerializationContext,
    DataConverter,
    PayloadCodec,
    SerializationContext,
    WorkflowSerializationContext,
)

from runtime.server.authentic import NotSigned, PayloadKey, signed_converter
from runtime.server.authentic.shared import is_shared, shared_converter
from workflows.messages import BatchOrder

KEY = PayloadKey(b"k" * 32)
OWN = WorkflowSerializationContext(namespace="n", workflow_id="review-1")
JOB = WorkflowSerializationContext(namespace="n", workflow_id="holdfast/b/j")


def in_activity(workflow: str) -> ActivitySerializationContext:
    """An activity of a workflow."""
    return ActivitySerializationContext(
        namespace="n",
        activity_id="1",
        activity_type="a",
        activity_task_queue="q",
        workflow_id=workflow,
        workflow_type="w",
        is_local=False,
    )


class Backwards(PayloadCodec):
    """A codec of somebody else."""

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(metadata={"encoding": b"json/backwards"}, data=payload.data[::-1])
            for payload in payloads
        ]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        return [
            Payload(metadata={"encoding": b"json/plain"}, data=payload.data[::-1])
            for payload in payloads
        ]


@dataclass
class Plain:
    """What a project gives its workflows."""

    name: str


async def crossed(
    converter: DataConverter, context: SerializationContext, value: Any
) -> tuple[Payload, Any]:
    """A value's payload, and what is read out of it."""
    there = converter.with_context(context)
    (payload,) = await there.encode([value])
    (back,) = await there.decode([payload], [type(value)])
    return payload, back


@pytest.mark.parametrize("context", [OWN, in_activity("review-1")])
@pytest.mark.parametrize("codec", [None, Backwards()])
async def test_what_is_not_of_jobs_stays_as_it_was(
    codec: PayloadCodec | None, context: SerializationContext
) -> None:
    """Byte for byte, with their converter and their codec."""
    theirs = replace(DataConverter.default, payload_codec=codec)
    expected = await crossed(theirs, context, Plain("x"))
    assert await crossed(shared_converter(theirs, KEY), context, Plain("x")) == expected


@pytest.mark.parametrize("context", [JOB, in_activity("holdfast/b/j")])
@pytest.mark.parametrize("codec", [None, Backwards()])
async def test_what_is_of_jobs_is_signed(
    codec: PayloadCodec | None, context: SerializationContext
) -> None:
    """As a client of Holdfast alone does it, so that commands and workers understand it."""
    shared = shared_converter(replace(DataConverter.default, payload_codec=codec), KEY)
    order = BatchOrder(batch="b")
    assert await crossed(shared, context, order) == await crossed(
        signed_converter(KEY), context, order
    )


async def test_what_is_of_jobs_and_not_signed_is_refused() -> None:
    """Whoever has no key cannot give a job anything through such a client either."""
    (unsigned,) = await DataConverter.default.encode([{"batch": "b"}])
    with pytest.raises(NotSigned, match="is not signed"):
        await (
            shared_converter(DataConverter.default, KEY)
            .with_context(JOB)
            .decode([unsigned], [BatchOrder])
        )


def test_a_converter_is_shared_once() -> None:
    """Given again, it stays."""
    shared = shared_converter(DataConverter.default, KEY)
    assert not is_shared(DataConverter.default)
    assert is_shared(shared)
    assert shared_converter(shared, KEY) is shared
