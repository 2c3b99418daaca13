"""Ed25519 signatures of runs' ends (RFC 8032), which anchor a chain outside the archive.

A signature is over the end's key and header, which names the last step by its digest, as each step
names the one before. Keys are PEM, or 32 bytes in base64; they are given as text or as the path of
a file. ``openssl genpkey -algorithm ed25519 -out signing.pem`` makes one, ``openssl pkey -in
signing.pem -pubout`` its public half.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from runtime.archive.forms import Signature
from runtime.base.digests import canonical_json
from runtime.base.errors import InputError
from runtime.base.places import expanded

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import (
        Ed25519PrivateKey,
        Ed25519PublicKey,
    )

SIGNING_KEY = "HOLDFAST_SIGNING_KEY"
PUBLIC_KEY = "HOLDFAST_PUBLIC_KEY"
_KEY_BYTES = 32
# What is signed begins with its kind, so that a signature of another kind never passes for one.
_SIGNED = b"holdfast archive end 1\0"

Signer = Callable[[bytes], Signature]
"""Signs a text."""


def signer_of(environment: Mapping[str, str] | None = None) -> Signer | None:
    """The signer with the key of ``HOLDFAST_SIGNING_KEY``; None if it is not set.

    Raises:
        InputError: if it is no ed25519 private key.
    """
    key = (os.environ if environment is None else environment).get(SIGNING_KEY)
    return None if not key else signer_with(_private_key(key))


def signer_with(key: Ed25519PrivateKey) -> Signer:
    """The signer with a key."""
    public = _text(key.public_key().public_bytes_raw())

    def sign(text: bytes) -> Signature:
        return Signature(algorithm="ed25519", public_key=public, value=_text(key.sign(text)))

    return sign


def signed_text(key: str, header: Mapping[str, Any]) -> bytes:
    """The bytes of an end that are signed: its key, and its header without the signature."""
    fields = {name: value for name, value in header.items() if name not in {"signature", "parts"}}
    # ``parts`` is added as the object is sealed, after it was signed.
    return _SIGNED + key.encode() + b"\0" + canonical_json(fields)


def is_valid(signature: Signature, text: bytes) -> bool:
    """Whether the signature is one of ``text`` by the key that it names; who holds that key is
    another question.
    """
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = Ed25519PublicKey.from_public_bytes(
            base64.b64decode(signature.public_key, validate=True)
        )
        key.verify(base64.b64decode(signature.value, validate=True), text)
    except (InvalidSignature, ValueError):
        return False
    return True


def trusted_keys(
    public: tuple[str, ...], environment: Mapping[str, str] | None = None
) -> frozenset[str]:
    """The public keys to believe, in base64: those given, ``HOLDFAST_PUBLIC_KEY``'s and the own
    signing key's.

    Raises:
        InputError: if one of them is no ed25519 key.
    """
    environment = os.environ if environment is None else environment
    texts = [*public, *filter(None, [environment.get(PUBLIC_KEY)])]
    keys = {_text(_public_key(text).public_bytes_raw()) for text in texts}
    # Who signs here trusts what was signed here, without being told the public half.
    if own := environment.get(SIGNING_KEY):
        keys.add(_text(_private_key(own).public_key().public_bytes_raw()))
    return frozenset(keys)


def fingerprint(public_key: str) -> str:
    """A public key in few characters: the start of the SHA-256 of its 32 bytes."""
    return "sha256:" + hashlib.sha256(base64.b64decode(public_key)).hexdigest()[:16]


def _private_key(text: str) -> Ed25519PrivateKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    data = _read(text, SIGNING_KEY)
    try:
        if data.lstrip().startswith(b"-----BEGIN"):
            key = load_pem_private_key(data, password=None)
        else:
            key = Ed25519PrivateKey.from_private_bytes(_raw(data))
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise InputError(
            f"{SIGNING_KEY} is no ed25519 private key (PEM without a password, or 32 bytes in"
            " base64)"
        )
    return key


def _public_key(text: str) -> Ed25519PublicKey:
    from cryptography.exceptions import UnsupportedAlgorithm
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    data = _read(text, "the public key")
    try:
        if data.lstrip().startswith(b"-----BEGIN"):
            key = load_pem_public_key(data)
        else:
            key = Ed25519PublicKey.from_public_bytes(_raw(data))
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PublicKey):
        raise InputError("the public key is no ed25519 public key (PEM, or 32 bytes in base64)")
    return key


def _read(text: str, what: str) -> bytes:
    """The key's text: ``text`` itself, or what is in the file that it names.

    Errors never repeat it.
    """
    if text.lstrip().startswith("-----BEGIN") or _looks_raw(text):
        return text.encode()
    try:
        return expanded(text).read_bytes()
    except (OSError, ValueError, InputError):
        raise InputError(
            f"{what} is neither a key nor the path of a file that can be read"
        ) from None


def _looks_raw(text: str) -> bool:
    try:
        return len(_raw(text.encode())) == _KEY_BYTES
    except ValueError:
        return False


def _raw(data: bytes) -> bytes:
    try:
        return base64.b64decode(data.strip(), validate=True)
    except binascii.Error as error:
        raise ValueError(str(error)) from None


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
