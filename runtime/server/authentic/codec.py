"""The codec that signs each payload as it leaves, and checks it as it arrives; of long ones, what
they are compressed to.

A signature is an HMAC-SHA256 (RFC 2104), cut to 128 bits, over the payload's data and metadata and
over where it belongs: the namespace and the workflow's id, and for an activity its id as well. So a
signed payload can be given neither to another workflow nor as the result of another activity. What
the SDK does not tell a codec is not bound: the run, since a reset takes payloads over into another;
whether a payload is an input, a signal or a result, which their types tell apart; a local
activity's number, of which its type stands in. Search attributes pass no codec, nor does the
message of a failure: whoever can make the server fail an activity can end a run, and what a run
says of its end is checked by its archive.

Temporal's CLI and its web UI show a payload as it is only where it has no metadata but its
encoding. So the signature of JSON stands behind it as 72 characters of white space, four of which
are a byte; that of anything else stands in the metadata.
"""

from __future__ import annotations

import hmac
import itertools
import logging
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from functools import cached_property

from temporalio.api.common.v1 import Payload
from temporalio.converter import (
    ActivitySerializationContext,
    PayloadCodec,
    SerializationContext,
    WithSerializationContext,
    WorkflowSerializationContext,
)

from runtime.server.authentic.compression import compressed, decompressed
from runtime.server.authentic.encryption import (
    KEYS,
    EncryptionKeys,
    NoKey,
    NotDecrypted,
    is_encrypted,
    key_id,
)
from runtime.server.authentic.key import KEY, PayloadKey

REFUSED = "holdfast/refused"
"""The encoding of what stands in for a payload that is not authentic: its data says why, for
``NotSigned``.
"""

REASON = "reason"
"""The metadata that says which ``Refusal`` it is."""

SIGNATURE = "holdfast-signature"
"""The metadata that holds the signature of a payload that is no JSON."""

_MAC_BYTES = 16
_SYMBOLS = " \t\n\r"
_WHITE = [bytes(map(ord, symbols)) for symbols in itertools.product(_SYMBOLS, repeat=4)]
"""Each byte as white space, which JSON may have behind its value."""
# The key's name, which is two bytes, and the code: four characters a byte.
_WHITE_BYTES = 4 * (2 + _MAC_BYTES)

_log = logging.getLogger(__name__)
_TOLD = 256
"""Refusals that are logged, each once; somebody who gives more would fill a disk."""
_told: set[str] = set()


class Refusal(StrEnum):
    """Why a payload is not taken."""

    UNSIGNED = "is not signed: it was not given by Holdfast"
    OTHER_KEY = (
        f"is signed with another key than this one: set {KEY} to the line in the file 'key' of the"
        " state directory in which the jobs were started, or HOLDFAST_HOME to that directory"
    )
    OTHER_PLACE = (
        "does not have the signature that it would have here: it was changed, or belongs elsewhere"
    )
    OTHER_CIPHER = (
        f"is encrypted with a key that is not here: set {KEYS} to the keys that the jobs were"
        " started with, and those that came since"
    )

    @property
    def may_be_ours(self) -> bool:
        """Whether who gave the payload may be this user, with a key that is not here."""
        return self in {Refusal.OTHER_KEY, Refusal.OTHER_CIPHER}


class SigningCodec(PayloadCodec, WithSerializationContext):
    """Signs with ``key`` for a ``scope``, the place that the SDK's context tells; ``about`` names
    that for people.
    """

    def __init__(
        self,
        key: PayloadKey,
        scope: tuple[str, ...] = (),
        about: str = "a payload",
        encryption: EncryptionKeys | None = None,
    ) -> None:
        self._key = key
        self._encryption = encryption
        self._parts = scope
        self._about = about

    @cached_property
    def _scope(self) -> bytes:
        # The SDK makes a codec for each context of each payload, and uses every other one.
        return _joined(part.encode("utf-8", "surrogatepass") for part in self._parts)

    def with_context(self, context: SerializationContext) -> SigningCodec:
        """The codec for payloads of one workflow or activity."""
        match context:
            case WorkflowSerializationContext():
                scope = ("workflow", context.namespace, context.workflow_id)
                about = f"a payload of workflow {context.workflow_id}"
                return SigningCodec(self._key, scope, about, self._encryption)
            case ActivitySerializationContext():
                workflow, name = context.workflow_id or "", context.activity_id or ""
                # The number of a local activity is the worker's alone.
                kind, own = (
                    ("local", context.activity_type or "")
                    if context.is_local
                    else ("activity", name)
                )
                about = (
                    f"a payload of activity {own or context.activity_type} of workflow {workflow}"
                )
                place = (kind, context.namespace, workflow, own)
                return SigningCodec(self._key, place, about, self._encryption)
            case _:
                return self

    async def encode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """The payloads, compressed where they are long, encrypted where there are keys, and
        signed.
        """
        return [self._signed(self._closed(compressed(payload))) for payload in payloads]

    async def decode(self, payloads: Sequence[Payload]) -> list[Payload]:
        """The payloads that are authentic, as they are; others are replaced by what ``NotSigned``
        is raised for.

        Nothing is raised here: the SDK would fail the whole workflow task, each time anew.
        """
        return [
            self._opened(payload)
            if (refusal := self._refusal(payload)) is None
            else self._refused(refusal)
            for payload in payloads
        ]

    def _closed(self, payload: Payload) -> Payload:
        """A payload, encrypted where there are keys."""
        keys = self._encryption
        return payload if keys is None else keys.encrypted(payload, self._scope)

    def _opened(self, payload: Payload) -> Payload:
        """An authentic payload, decrypted if it is encrypted, and as it was before it was
        compressed.
        """
        if not is_encrypted(payload):
            return decompressed(payload)
        try:
            if self._encryption is not None:
                return decompressed(self._encryption.decrypted(payload))
        except (NoKey, NotDecrypted):
            pass
        return self._refused(Refusal.OTHER_CIPHER, f" (the key {key_id(payload)!r})")

    def _signed(self, payload: Payload) -> Payload:
        signature = self._key.name + self._mac(payload, payload.data)
        if _is_json(payload):
            return Payload(metadata=payload.metadata, data=payload.data + _white(signature))
        return Payload(metadata={**payload.metadata, SIGNATURE: signature}, data=payload.data)

    def _refusal(self, payload: Payload) -> Refusal | None:
        if _is_json(payload):
            data, signature = payload.data[:-_WHITE_BYTES], payload.data[-_WHITE_BYTES:]
            if len(signature) < _WHITE_BYTES or signature.strip(_SYMBOLS.encode()):
                return Refusal.UNSIGNED
            written: Callable[[bytes], bytes] = _white
        else:
            data, signature = payload.data, payload.metadata.get(SIGNATURE, b"")
            if not signature:
                return Refusal.UNSIGNED
            written = bytes
        if hmac.compare_digest(signature, written(self._key.name + self._mac(payload, data))):
            return None
        ours = signature.startswith(written(self._key.name))
        return Refusal.OTHER_PLACE if ours else Refusal.OTHER_KEY

    def _mac(self, payload: Payload, data: bytes) -> bytes:
        mac = self._key.mac()
        mac.update(self._scope + _metadata(payload.metadata))
        mac.update(data)
        return mac.digest()[:_MAC_BYTES]

    def _refused(self, refusal: Refusal, more: str = "") -> Payload:
        message = f"{self._about} {refusal}{more}"
        if message not in _told and len(_told) < _TOLD:
            _told.add(message)
            _log.warning("refused: %s", message)
        metadata = {"encoding": REFUSED.encode(), REASON: refusal.name.encode()}
        return Payload(metadata=metadata, data=message.encode("utf-8", "backslashreplace"))


def _is_json(payload: Payload) -> bool:
    return payload.metadata.get("encoding", b"").startswith(b"json/")


def _white(signature: bytes) -> bytes:
    return b"".join(map(_WHITE.__getitem__, signature))


def _metadata(metadata: Mapping[str, bytes]) -> bytes:
    """The metadata that are signed."""
    if len(metadata) == 1 and metadata.get("encoding") == _PLAIN:
        return _PLAIN_METADATA
    # A map comes out of protobuf in any order.
    names = [name for name in sorted(metadata) if name != SIGNATURE]
    return _joined(text for name in names for text in (name.encode(), metadata[name]))


def _joined(parts: Iterable[bytes]) -> bytes:
    """Texts as one that says how many they are and how long each is: no two lists of texts give the
    same.
    """
    texts = list(parts)
    return struct.pack(">I", len(texts)) + b"".join(
        struct.pack(">I", len(text)) + text for text in texts
    )


_PLAIN = b"json/plain"
_PLAIN_METADATA = _joined((b"encoding", _PLAIN))
"""That of nearly all payloads."""
