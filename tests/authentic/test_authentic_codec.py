"""The signature of a payload: what it covers, where it stands, and what becomes of a payload
without it.
"""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from temporalio.api.common.v1 import Payload
from temporalio.api.failure.v1 import Failure
from temporalio.converter import (
    ActivitySerializationContext,
    DataConverter,
    SerializationContext,
    WorkflowSerializationContext,
)
from temporalio.exceptions import ApplicationError

from runtime.server.authentic import (
    EncryptionKeys,
    NotSigned,
    PayloadKey,
    Refusal,
    signed_converter,
)
from runtime.server.authentic.compression import COMPRESSED, LONG, decompressed

OWN, OTHER = PayloadKey(b"o" * 32), PayloadKey(b"x" * 32)


def workflow(name: str = "w", namespace: str = "n") -> WorkflowSerializationContext:
    """A context of the SDK's."""
    return WorkflowSerializationContext(namespace=namespace, workflow_id=name)


def activity(
    name: str | None = "turn-1",
    kind: str = "call_model",
    workflow_id: str = "w",
    *,
    local: bool = False,
) -> ActivitySerializationContext:
    """Another."""
    return ActivitySerializationContext(
        namespace="n",
        activity_id=name,
        activity_type=kind,
        activity_task_queue="q",
        workflow_id=workflow_id,
        workflow_type="t",
        is_local=local,
    )


def converter(context: SerializationContext, key: PayloadKey = OWN) -> DataConverter:
    """The converter of somebody who has ``key``, at a place."""
    return signed_converter(key).with_context(context)


async def refusal(
    payload: Payload, context: SerializationContext, key: PayloadKey = OWN
) -> Refusal | None:
    """Why it is not taken there; None if it is."""
    try:
        await converter(context, key).decode([payload], [str])
    except NotSigned as error:
        assert (error.type, error.non_retryable) == ("NotSigned", True)
        return error.refusal
    return None


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@given(value=json_values | st.binary())
async def test_a_value_comes_back(value: Any) -> None:
    """Any value, JSON or not, by the converter that signed it."""
    at = converter(workflow())
    assert await at.decode(await at.encode([value, value])) == [value, value]


@pytest.mark.parametrize("value", [{"a": [1, "é"]}, "text", 3])
async def test_json_is_shown_by_temporals_tools_as_before(value: Any) -> None:
    """No metadata but the encoding, without which they show base64, and data that any reader of
    JSON reads.
    """
    [payload] = await converter(workflow()).encode([value])
    assert dict(payload.metadata) == {"encoding": b"json/plain"}
    assert json.loads(payload.data) == value
    assert len(payload.data) - len(payload.data.rstrip()) == 72


LONG_TEXTS = ["word " * 2_000, "é" * 5_000, {"text": "line\n" * 3_000}, b"\0\1" * 4_000]


@pytest.mark.parametrize("value", LONG_TEXTS)
@pytest.mark.parametrize("encryption", [None, EncryptionKeys((("one", b"k" * 32),))])
async def test_what_is_long_is_compressed(value: Any, encryption: EncryptionKeys | None) -> None:
    """It comes back as it was, equal values are equal bytes, and each of these counts."""
    at = signed_converter(OWN, encryption).with_context(workflow())
    [payload], [again] = await at.encode([value]), await at.encode([value])
    assert payload == again
    assert payload.ByteSize() < 1_000
    assert await at.decode([payload]) == [value]
    for place in range(len(payload.data)):
        data = bytearray(payload.data)
        data[place] ^= 1
        changed = Payload(metadata=payload.metadata, data=bytes(data))
        with pytest.raises(NotSigned, match="does not have the signature"):
            await at.decode([changed])


async def test_what_is_short_or_hardly_would_be_shorter_stays_readable() -> None:
    """As JSON, to its last byte below the limit; and noise, whatever its length."""
    at = converter(workflow())
    values = ["x" * (LONG - 3), random.Random(0).randbytes(20_000), "x" * (LONG - 2)]
    payloads = await at.encode(values)
    told = [payload.metadata["encoding"] for payload in payloads]
    assert told == [b"json/plain", b"binary/plain", COMPRESSED]
    assert (json.loads(payloads[0].data), payloads[1].data) == (values[0], values[1])
    assert await at.decode(payloads) == values


TOO_LONG = zstandard.compress(Payload(data=b"x" * (9 << 20)).SerializeToString())
SAYS_TOO_MUCH = b"\x28\xb5\x2f\xfd\xe0" + (1 << 46).to_bytes(8, "little") + b"\x01\0\0"
SAYS_NOTHING = zstandard.ZstdCompressor(write_content_size=False).compress(b"x" * 100)


@pytest.mark.parametrize(
    "data",
    [b"", b"no frame", zstandard.compress(b"no payload"), TOO_LONG, SAYS_TOO_MUCH, SAYS_NOTHING],
)
def test_what_is_no_compressed_payload_is_told(data: bytes) -> None:
    """As one who sends the endpoint of ``holdfast codec`` something may find."""
    with pytest.raises(ValueError, match="no compressed payload"):
        decompressed(Payload(metadata={"encoding": COMPRESSED}, data=data))


@pytest.mark.parametrize("value", ["text", b"bytes", None])
async def test_what_is_changed_is_refused(value: Any) -> None:
    """Each byte of the data, of the signature and of the metadata counts."""
    [payload] = await converter(workflow()).encode([value])
    for place in range(len(payload.data)):
        data = bytearray(payload.data)
        data[place] ^= 1
        assert (
            await refusal(Payload(metadata=payload.metadata, data=bytes(data)), workflow())
            is not None
        )
    for name, text in payload.metadata.items():
        for place in range(len(text)):
            changed = bytearray(text)
            changed[place] ^= 1
            metadata = {**payload.metadata, name: bytes(changed)}
            assert (
                await refusal(Payload(metadata=metadata, data=payload.data), workflow()) is not None
            )
    assert (
        await refusal(
            Payload(metadata={**payload.metadata, "more": b""}, data=payload.data), workflow()
        )
        is not None
    )
    assert (
        await refusal(Payload(metadata=payload.metadata, data=payload.data + b" "), workflow())
        is not None
    )
    assert (
        await refusal(Payload(metadata=payload.metadata, data=b" " + payload.data), workflow())
        is not None
    )


@pytest.mark.parametrize(
    "data", [b'"hi"', b'"hi"' + b" " * 72, b"", b" " * 72, b"\t" * 300, b"no json"]
)
@pytest.mark.parametrize(
    "encoding",
    [b"json/plain", b"json/protobuf", b"binary/plain", b"binary/null", b"holdfast/refused", b""],
)
async def test_what_nobody_signed_is_refused(data: bytes, encoding: bytes) -> None:
    """Whatever it says that it is; also what stands in for a refused payload, and what only looks
    signed.
    """
    payload = Payload(metadata={"encoding": encoding} if encoding else {}, data=data)
    assert await refusal(payload, workflow()) in {Refusal.UNSIGNED, Refusal.OTHER_KEY}


async def test_another_key_is_called_so() -> None:
    """The error says what to do; it does not say the key."""
    [payload] = await converter(workflow(), OTHER).encode(["hi"])
    assert await refusal(payload, workflow()) is Refusal.OTHER_KEY
    with pytest.raises(
        NotSigned,
        match="signed with another key than this one: set HOLDFAST_KEY to the line in the file",
    ):
        await converter(workflow()).decode([payload])
    assert OTHER.text not in repr(OTHER)


PLACES: list[SerializationContext] = [
    workflow(),
    workflow("other"),
    workflow("w", "other"),
    activity(),
    activity("turn-2"),
    activity(workflow_id="other"),
    activity(None, "record_verdict", local=True),
    activity(None, "save_checkpoint", local=True),
    activity("record_verdict", "x"),
]


@pytest.mark.parametrize("made", PLACES)
async def test_a_payload_is_good_for_one_place(made: SerializationContext) -> None:
    """Not for another workflow, another namespace, or another activity of the same workflow."""
    [payload] = await converter(made).encode(["hi"])
    taken = [place for place in PLACES if await refusal(payload, place) is None]
    assert taken == [made]
    assert {await refusal(payload, place) for place in PLACES if place != made} == {
        Refusal.OTHER_PLACE
    }


async def test_both_sides_of_an_activity_agree() -> None:
    """The worker knows a local activity's number and its queue otherwise than the workflow does."""
    for one, other in [
        (
            activity(None, "record_verdict", local=True),
            activity("17", "record_verdict", local=True),
        ),
        (activity("turn-1", "call_model"), activity("turn-1", "")),
    ]:
        [payload] = await converter(one).encode(["hi"])
        assert await refusal(payload, other) is None


async def test_nothing_is_raised_before_the_conversion() -> None:
    """A codec that raised would fail the workflow task, each time anew."""
    codec = converter(workflow()).payload_codec
    assert codec is not None
    [payload] = await codec.decode([Payload(metadata={"encoding": b"json/plain"}, data=b'"hi"')])
    assert payload.metadata["encoding"] == b"holdfast/refused"


def test_a_place_has_one_converter_and_another_place_another() -> None:
    """The SDK asks for it with each payload, and a codec works out its place once."""
    own = signed_converter(OWN)
    places = [workflow("w"), workflow("v"), activity(), activity("turn-2"), activity(local=True)]
    made = [own.with_context(place) for place in places]
    equal = [workflow("w"), workflow("v"), activity(), activity("turn-2"), activity(local=True)]
    assert all(own.with_context(place) is one for place, one in zip(equal, made, strict=True))
    codecs = {id(one.payload_codec) for one in (own, *made)}
    assert len(codecs) == 1 + len(places)
    assert signed_converter(OTHER).with_context(places[0]) is not made[0]


@pytest.mark.parametrize("encryption", [None, EncryptionKeys([("k", b"1" * 32)])])
@pytest.mark.parametrize(
    ("error", "said"),
    [
        (
            ApplicationError("no \udcff", 3, type="ToolUnavailable", non_retryable=True),
            ("ToolUnavailable", "no \\udcff", [3], True),
        ),
        (ValueError("no \ud800 thing"), ("ValueError", "no \\ud800 thing", [], False)),
    ],
)
async def test_a_failure_is_told_though_its_words_are_no_unicode(
    encryption: EncryptionKeys | None, error: Exception, said: tuple[Any, ...]
) -> None:
    """Its type, details and whether it may pass stay, and so does what it was caused by."""
    made = signed_converter(OWN, encryption).with_context(activity())
    error.__cause__ = OSError("\udcff")
    failure = Failure()
    await made.encode_failure(error, failure)
    told = await made.decode_failure(failure)
    assert isinstance(told, ApplicationError)
    assert (told.type, told.message, [*told.details], told.non_retryable) == said
    assert isinstance(told.__cause__, ApplicationError)
    assert (told.__cause__.type, told.__cause__.message) == ("OSError", "\\udcff")
