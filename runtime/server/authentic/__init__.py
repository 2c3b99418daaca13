"""Authentic payloads: what a worker takes from a Temporal server was given by somebody who has the
state directory's key.

A local Temporal server asks nobody who they are, and tells every user of the machine its port. So
each payload is signed by the client or worker that makes it, and whoever takes one checks that: an
order, a signal, an update, a result. A payload that is unsigned, or signed with another key or for
another workflow, is refused by name.
"""

from runtime.server.authentic.codec import Refusal, SigningCodec
from runtime.server.authentic.converter import (
    NotSigned,
    in_activity,
    in_workflow,
    place_of_activity,
    signed_converter,
)
from runtime.server.authentic.encryption import (
    KEYS,
    EncryptionKeys,
    encryption_keys,
    kms_keys,
    missing_keys,
)
from runtime.server.authentic.key import KEY, PayloadKey, key_of

__all__ = [
    "KEY",
    "KEYS",
    "EncryptionKeys",
    "NotSigned",
    "PayloadKey",
    "Refusal",
    "SigningCodec",
    "encryption_keys",
    "in_activity",
    "in_workflow",
    "key_of",
    "kms_keys",
    "missing_keys",
    "place_of_activity",
    "signed_converter",
]
