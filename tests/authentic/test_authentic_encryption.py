"""The encryption of payloads: what it hides, which keys open it, and that it is an option."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from temporalio.api.common.v1 import Payload
from temporalio.converter import WorkflowSerializationContext

from runtime.base.errors import InputError
from runtime.server.authentic import (
    EncryptionKeys,
    NotSigned,
    PayloadKey,
    Refusal,
    encryption_keys,
    signed_converter,
)
from runtime.server.authentic.encryption import ENCRYPTED, KEY_ID, KEYS

SIGNS = PayloadKey(b"o" * 32)
OLD, NEW = ("old", b"1" * 32), ("new", b"2" * 32)
WORD = "a goal that nobody else may read"


def text(*keys: tuple[str, bytes]) -> str:
    return "\n".join(f"{name} {base64.b64encode(key).decode()}" for name, key in keys)


async def encoded(value: object, *keys: tuple[str, bytes], workflow: str = "w") -> Payload:
    place = WorkflowSerializationContext(namespace="n", workflow_id=workflow)
    encryption = EncryptionKeys(keys) if keys else None
    (payload,) = await signed_converter(SIGNS, encryption).with_context(place).encode([value])
    return payload


async def decoded(payload: Payload, *keys: tuple[str, bytes], workflow: str = "w") -> object:
    place = WorkflowSerializationContext(namespace="n", workflow_id=workflow)
    encryption = EncryptionKeys(keys) if keys else None
    (value,) = await signed_converter(SIGNS, encryption).with_context(place).decode([payload])
    return value


@given(st.text() | st.binary() | st.none() | st.lists(st.integers()))
async def test_what_is_encrypted_comes_back(value: object) -> None:
    """Any value, and of it nothing is in the payload but its length."""
    payload = await encoded(value, NEW)
    assert payload.metadata["encoding"] == ENCRYPTED
    assert set(payload.metadata) == {"encoding", KEY_ID, "holdfast-signature"}
    assert await decoded(payload, NEW) == value


async def test_the_same_in_the_same_place_is_the_same() -> None:
    """A replay gives the bytes of the history; in another workflow, or another text, all differ."""
    first = await encoded(WORD, NEW)
    assert first == await encoded(WORD, NEW)
    assert first.data != (await encoded(WORD, NEW, workflow="v")).data
    assert first.data[:12] != (await encoded(WORD + "s", NEW)).data[:12]
    assert WORD.encode() not in first.SerializeToString()


async def test_keys_are_changed_while_jobs_run() -> None:
    """The first key encrypts; what was encrypted before, or not at all, is still read."""
    before, plain = await encoded(WORD, OLD), await encoded(WORD)
    assert (await encoded(WORD, NEW, OLD)).metadata[KEY_ID] == b"new"
    assert await decoded(before, NEW, OLD) == await decoded(plain, NEW, OLD) == WORD


@pytest.mark.parametrize("keys", [(), (OLD,), (("new", b"3" * 32),)])
async def test_without_the_key_it_is_refused(keys: tuple[tuple[str, bytes], ...]) -> None:
    """Without keys, with another, or another of the same id, it is refused by name."""
    payload = await encoded(WORD, NEW)
    with pytest.raises(NotSigned) as caught:
        await decoded(payload, *keys)
    assert caught.value.refusal is Refusal.OTHER_CIPHER
    assert KEYS in caught.value.message


async def test_an_encrypted_payload_belongs_to_its_place() -> None:
    """In another workflow, or changed by a bit, it is not taken."""
    payload = await encoded(WORD, NEW)
    with pytest.raises(NotSigned) as caught:
        await decoded(payload, NEW, workflow="v")
    assert caught.value.refusal is Refusal.OTHER_PLACE
    changed = Payload(
        metadata=payload.metadata, data=bytes([payload.data[0] ^ 1]) + payload.data[1:]
    )
    with pytest.raises(NotSigned):
        await decoded(changed, NEW)


def test_keys_from_the_environment_and_a_file(tmp_path: Path) -> None:
    """Lines of the variable, or of a file that it names and that not all may read."""
    assert encryption_keys({}) is None
    assert encryption_keys({KEYS: text(NEW)}) == EncryptionKeys((NEW,))
    file = tmp_path / "keys"
    file.write_text(f"# since May\n{text(NEW, OLD)}\n")
    file.chmod(0o640)
    assert encryption_keys({KEYS: str(file)}) == EncryptionKeys((NEW, OLD))
    file.chmod(0o644)
    with pytest.raises(InputError, match="open to all users"):
        encryption_keys({KEYS: str(file)})


@pytest.mark.parametrize(
    "wrong", ["a b", "a", "no/id " + "A" * 43 + "=", text(NEW) + " more", text(NEW, NEW), "/none"]
)
def test_keys_that_are_none(wrong: str) -> None:
    """What is no key is refused, and not shown."""
    with pytest.raises(InputError) as caught:
        encryption_keys({KEYS: wrong})
    assert base64.b64encode(NEW[1]).decode() not in str(caught.value)
