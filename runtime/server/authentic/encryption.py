"""The encryption of payloads, an option of the codec that signs them.

AES-256-GCM-SIV (RFC 8452) with a nonce made of the text and of where it belongs: the same payload
in the same place is the same bytes, so that what a replay gives is what stands in the history, and
the mode is made for nonces that come twice. Payloads say by id with which key they are encrypted,
so keys can be changed while jobs run. What passes no codec stays readable: ids, types, times,
search attributes, task queues.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
import stat
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCMSIV
from google.protobuf.message import DecodeError, Message
from temporalio.api.common.v1 import Payload

from runtime.base.errors import InputError
from runtime.server.authentic.kms import PREFIX, KmsKey

KEYS = "HOLDFAST_ENCRYPTION_KEYS"
"""The environment variable with the keys, or with the path of their file: ``ID KEY`` a line, 32
bytes in base64 each, or ``ID kms:KEY WRAPPED`` (``runtime/server/authentic/kms.py``). The first
encrypts; the others are for what was encrypted before.
"""

ENCRYPTED = b"holdfast/encrypted"
"""The encoding of an encrypted payload."""

KEY_ID = "holdfast-key"
"""The metadata that says which key it is."""

# As RFC 8452 has them.
_BYTES, _NONCE = 32, 12
_ID = re.compile(r"[A-Za-z0-9._-]{1,32}")


class NoKey(Exception):
    """The key is not there; the exception's only argument is its id."""


class NotDecrypted(Exception):
    """The bytes were not encrypted with the key of that id."""


@dataclass(frozen=True, repr=False)
class EncryptionKeys:
    """Keys by their ids; the first is the one that encrypts."""

    keys: tuple[tuple[str, bytes], ...]

    def encrypted(self, payload: Payload, scope: bytes) -> Payload:
        """The payload, metadata and data, in another that says nothing of it but its length."""
        # Metadata is a map: only so are equal payloads equal bytes, and a replay's those of the
        # history.
        name, data = self.sealed(payload.SerializeToString(deterministic=True), scope)
        return Payload(metadata={"encoding": ENCRYPTED, KEY_ID: name.encode()}, data=data)

    def decrypted(self, payload: Payload) -> Payload:
        """The payload that was encrypted.

        Raises:
            NoKey: if its key is none of these.
            NotDecrypted: if the key is another of that id, or the bytes were changed.
        """
        name = key_id(payload)
        try:
            return Payload.FromString(self.opened(name, payload.data))
        except DecodeError as error:
            raise NotDecrypted(name) from error

    def sealed(self, text: bytes, scope: bytes, about: bytes = b"") -> tuple[str, bytes]:
        """The id of the first key, and the text encrypted with it: the same bytes for the same text
        and ``scope``, the place where it belongs. ``about`` is what it is opened with.
        """
        name, key = self.keys[0]
        mac = hmac.new(key, b"holdfast nonce\0" + scope, hashlib.sha256)
        mac.update(text)
        nonce = mac.digest()[:_NONCE]
        return name, nonce + AESGCMSIV(key).encrypt(nonce, text, name.encode() + about)

    def opened(self, name: str, data: bytes, about: bytes = b"") -> bytes:
        """The text that was encrypted with the key of an id.

        Raises:
            NoKey: if that is none of these.
            NotDecrypted: if the key is another of that id, or the bytes were changed.
        """
        key = dict(self.keys).get(name)
        if key is None:
            raise NoKey(name)
        nonce, rest = data[:_NONCE], data[_NONCE:]
        try:
            return AESGCMSIV(key).decrypt(nonce, rest, name.encode() + about)
        except (InvalidTag, ValueError) as error:
            raise NotDecrypted(name) from error


def is_encrypted(payload: Payload) -> bool:
    """Whether it is one that ``EncryptionKeys`` made."""
    return payload.metadata.get("encoding") == ENCRYPTED


def key_id(payload: Payload) -> str:
    """The id of the key that an encrypted payload needs."""
    return payload.metadata.get(KEY_ID, b"").decode("utf-8", "replace")


def missing_keys(message: Message, keys: EncryptionKeys | None) -> set[str]:
    """The ids of keys that some payload within ``message`` needs and that are not there."""
    known = set() if keys is None else {name for name, _ in keys.keys}
    return {key_id(one) for one in payloads_in(message) if is_encrypted(one)} - known


def payloads_in(message: Message) -> Iterator[Payload]:
    """All payloads within a message, such as an event of a history."""
    if isinstance(message, Payload):
        yield message
        return
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            values = [one for one in value.values() if isinstance(one, Message)]
        else:
            values = [value] if isinstance(value, Message) else list(value)
        for one in values:
            yield from payloads_in(one)


def encryption_keys(environment: Mapping[str, str] | None = None) -> EncryptionKeys | None:
    """The keys of ``HOLDFAST_ENCRYPTION_KEYS``; None if it is not set: nothing is encrypted.

    A key that KMS wrapped is unwrapped there, which may take seconds.

    Raises:
        InputError: if a line is no key, an id comes twice, or the file cannot be read, or others
            may read it; if KMS does not unwrap a key.
    """
    written = _lines(environment)
    if written is None:
        return None
    lines, where = written
    # All lines are looked at before KMS is asked for any.
    read = [(line[0], _parsed(line, where)) for line in lines]
    if not read or len({name for name, _ in read}) < len(read):
        raise InputError(f"{where}: expected a line 'ID KEY' for each key, and each id once")
    return EncryptionKeys(
        tuple(
            (name, key if isinstance(key, bytes) else key.kms.unwrapped(name, key.wrapped))
            for name, key in read
        )
    )


def kms_keys() -> dict[str, KmsKey]:
    """The keys that KMS has wrapped, by their ids: where each is unwrapped.

    Raises:
        InputError: as ``encryption_keys``, but nothing is asked of KMS.
    """
    lines, where = _lines(os.environ) or ([], "")
    read = [(line[0], _parsed(line, where)) for line in lines]
    return {name: key.kms for name, key in read if isinstance(key, _Wrapped)}


@dataclass(frozen=True)
class _Wrapped:
    kms: KmsKey
    wrapped: bytes


def _lines(environment: Mapping[str, str] | None) -> tuple[list[list[str]], str] | None:
    """The words of each line, and where they stand; None if no keys are given."""
    setting = (os.environ if environment is None else environment).get(KEYS)
    if not setting:
        return None
    # A key's line has a blank between id and key; a path is taken to have none.
    text, where = (setting, KEYS) if " " in setting.strip() else (_read(setting), setting)
    return [line.split() for line in text.splitlines() if line.strip() and line[0] != "#"], where


def is_key_id(name: str) -> bool:
    """Whether a key may be called so."""
    return _ID.fullmatch(name) is not None


def _parsed(line: list[str], where: str) -> bytes | _Wrapped:
    if len(line) == 3 and is_key_id(line[0]) and line[1].startswith(PREFIX):
        try:
            kms = KmsKey.parsed(line[1])
        except InputError as error:
            raise InputError(f"{where}: {line[0]}: {error}") from None
        if wrapped := _bytes(line[2]):
            return _Wrapped(kms, wrapped)
    key = _bytes(line[1]) if len(line) == 2 else b""
    if len(key) != _BYTES or not is_key_id(line[0]):
        shown = line[0] if is_key_id(line[0]) else "a line"
        raise InputError(
            f"{where}: {shown} is no key: expected 'ID KEY', the key {_BYTES} bytes in base64, or"
            " 'ID kms:KEY WRAPPED', such as 'holdfast keys ID' gives"
        )
    return key


def _bytes(text: str) -> bytes:
    """What a text is the base64 of; nothing where it is of none."""
    try:
        return base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        return b""


def _read(path: str) -> str:
    try:
        about = Path(path).stat()
        # A secret that Kubernetes mounts is root's, and may be read by the pod's group.
        if stat.S_IMODE(about.st_mode) & 0o007:
            raise InputError(f"the keys {path} are open to all users: chmod o= {path}")
        return Path(path).read_text("ascii", "replace")
    except OSError as error:
        raise InputError(f"{KEYS}: {path} cannot be read: {error.strerror}") from error
