"""A data converter for a client that has workflows of its own beside Holdfast's: each side's
payloads are as they are alone.

The SDK tells whose a payload is: jobs' workflows are called ``holdfast/...``. What a workflow gives
to a job that it starts as a child is the job's, and so is what the child gives back.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, cast

from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    ActivitySerializationContext,
    DataConverter,
    PayloadCodec,
    PayloadConverter,
    SerializationContext,
    WithSerializationContext,
    WorkflowSerializationContext,
)

from runtime.server.authentic.codec import SigningCodec
from runtime.server.authentic.converter import signed_converter
from runtime.server.authentic.encryption import EncryptionKeys
from runtime.server.authentic.key import PayloadKey

OURS = "holdfast/"
"""How the ids of Holdfast's workflows begin."""


def shared_converter(
    theirs: DataConverter, key: PayloadKey, encryption: EncryptionKeys | None = None
) -> DataConverter:
    """``theirs``, but for what belongs to Holdfast's workflows: that is signed with ``key``, and
    checked; with ``encryption`` also encrypted, but for the messages of failures, whose form is
    the client's own.
    """
    if is_shared(theirs):
        return theirs
    own, ours = theirs.payload_converter_class, signed_converter(key).payload_converter_class

    # The SDK makes converters of their class, and gives it no arguments.
    class Shared(_Converter):
        def __init__(self) -> None:
            super().__init__(own(), ours())

    codec = _Codec(theirs.payload_codec, SigningCodec(key, encryption=encryption))
    return dataclasses.replace(theirs, payload_converter_class=Shared, payload_codec=codec)


def is_shared(converter: DataConverter) -> bool:
    """Whether a client with this converter understands what Holdfast's workflows are given."""
    return isinstance(converter.payload_codec, _Codec | SigningCodec)


def _is_ours(context: SerializationContext) -> bool:
    match context:
        case (
            WorkflowSerializationContext(workflow_id=name)
            | ActivitySerializationContext(workflow_id=name)
        ):
            return (name or "").startswith(OURS)
        case _:
            return False


class _Converter(PayloadConverter, WithSerializationContext):
    def __init__(self, theirs: PayloadConverter, ours: PayloadConverter) -> None:
        self._theirs = theirs
        self._ours = ours

    def to_payloads(self, values: Sequence[Any]) -> list[Payload]:
        """See ``PayloadConverter``."""
        return self._theirs.to_payloads(values)

    def from_payloads(
        self, payloads: Sequence[Payload], type_hints: list[type] | None = None
    ) -> list[Any]:
        """See ``PayloadConverter``."""
        return self._theirs.from_payloads(payloads, type_hints)

    def with_context(self, context: SerializationContext) -> _Converter:
        """The converter of those whose payload it is."""
        whose = self._ours if _is_ours(context) else self._theirs
        return cast(_Converter, _in(whose, context))


class _Codec(PayloadCodec, WithSerializationContext):
    def __init__(self, theirs: PayloadCodec | None, ours: SigningCodec) -> None:
        self._theirs = theirs
        self._ours = ours

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """See ``PayloadCodec``."""
        return list(payloads) if self._theirs is None else await self._theirs.encode(payloads)

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """See ``PayloadCodec``."""
        return list(payloads) if self._theirs is None else await self._theirs.decode(payloads)

    def with_context(self, context: SerializationContext) -> _Codec:
        """The codec of those whose payload it is."""
        whose = self._ours if _is_ours(context) else self._theirs
        return self if whose is None else cast(_Codec, _in(whose, context))


def _in(part: PayloadConverter | PayloadCodec, context: SerializationContext) -> object:
    return part.with_context(context) if isinstance(part, WithSerializationContext) else part
