"""A pack that somebody made, or that an earlier release wrote: it is what it says, or damaged."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from archive_jobs import Written, blocks, write_run

from runtime.archive import keys
from runtime.archive.container import (
    HEADER_DICTIONARY,
    ArchivedObject,
    Part,
    header,
    seal,
    unchecked,
    unseal,
)
from runtime.archive.findings import Fault
from runtime.archive.frames import compress, decompress
from runtime.archive.job import JobArchive
from runtime.archive.packing import pack_before
from runtime.archive.stores import MemoryStore
from runtime.archive.stores.directory import DirectoryStore
from runtime.archive.stores.pack_form import Pack
from runtime.archive.stores.packed import PackedStore
from runtime.archive.varints import read_varint, varint
from runtime.archive.verify import damage, verify_job
from runtime.base.digests import canonical_json
from runtime.base.errors import ObjectCorrupt
from tests.releases.record import Release, releases

JOB = "nightly/long"
RUN = f"{JOB}/turns/a/"
PACK = f"{JOB}/packs/a/0000000"
TURN = "0000007"


@pytest.fixture
def inner() -> MemoryStore:
    """A job of 33 turns, 31 of them in a pack."""
    inner = MemoryStore()
    written = Written(JobArchive(PackedStore(inner), "nightly", "long"))
    write_run(written, "a", range(1, 34), None, blocks(random.Random(2), 3, 100))
    return inner


def faults(inner: MemoryStore) -> dict[str, Fault]:
    archive = JobArchive(PackedStore(inner), "nightly", "long")
    return {one.key: one.fault for one in damage(verify_job(archive))}


def resealed(inner: MemoryStore, fields: dict[str, Any], parts: Sequence[Part]) -> MemoryStore:
    """With another pack in the place of the one that was there, and a digest that fits."""
    inner.replace(PACK, seal(PACK, header(fields, tuple(parts)), tuple(parts))[0])
    return inner


def told(inner: MemoryStore) -> tuple[dict[str, Any], list[Part]]:
    archived = unseal(PACK, inner.get(PACK))
    fields = {name: value for name, value in archived.header.items() if name != "parts"}
    return fields, list(archived.parts())


@pytest.mark.parametrize(
    "change",
    [
        lambda fields: fields | {"more": 1},
        lambda fields: fields | {"objects": dict([*fields["objects"].items()][1:])},
        lambda fields: fields | {"objects": dict.fromkeys(fields["objects"], 5)},
        lambda fields: fields | {"objects": {turn: ["x"] for turn in fields["objects"]}},
        lambda fields: fields | {"objects": {turn: ["step"] * 2 for turn in fields["objects"]}},
        lambda fields: fields | {"objects": 5},
        lambda fields: fields | {"objects": None},
        lambda fields: {"kind": "interval"},
        lambda fields: fields | {"kind": "step"},
    ],
)
def test_a_pack_whose_header_says_another_thing_is_damaged(
    inner: MemoryStore, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    """Each thing that it may say it must say, and nothing else."""
    fields, parts = told(inner)
    assert faults(inner) == {}
    found = faults(resealed(inner, change(fields), parts))
    assert found[PACK] is Fault.CORRUPT


def with_entries(inner: MemoryStore, change: Callable[[list[bytes]], list[bytes]]) -> MemoryStore:
    """With other entries of one turn, compressed as they were."""
    fields, parts = told(inner)
    like = b""
    for number, part in enumerate(parts):
        size, start = read_varint(part.stored, 0)
        known = HEADER_DICTIONARY + like
        text = decompress(part.stored[start : start + size], known)
        like = like or text
        if part.name == TURN:
            frame = compress(b"\n".join(change(text.split(b"\n"))), known)
            data = varint(len(frame)) + frame + bytes(part.stored[start + size :])
            parts[number] = Part(TURN, data, len(data))
    return resealed(inner, fields, parts)


def entry(lines: list[bytes], **changes: Any) -> list[bytes]:
    return [canonical_json({**json.loads(lines[0]), **changes}), *lines[1:]]


DEEP = b"[" * 50_000 + b"]" * 50_000


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda lines: [*lines, b"{}"],
        lambda lines: lines[:-1],
        lambda lines: [b"[]", *lines[1:]],
        lambda lines: [b"x", *lines[1:]],
        lambda lines: [DEEP, *lines[1:]],
        lambda lines: entry(lines, digest=5),
        lambda lines: entry(lines, digest="sha256:12"),
        lambda lines: entry(lines, digest="sha256:" + "x" * 64),
        lambda lines: entry(lines, stored=[["wire", -1]]),
        lambda lines: entry(lines, stored=[["wire", 10**12]]),
        lambda lines: entry(lines, stored=[[["x"], 1]]),
        lambda lines: entry(lines, stored=5),
        lambda lines: entry(lines, again=5),
        lambda lines: entry(lines, again=[["p", None, 1]]),
        lambda lines: entry(lines, again=[[RUN, 7, 1]]),
        lambda lines: entry(lines, again=[["nobody/nothing/turns/a/", 1, 1]]),
        lambda lines: entry(lines, whole="x"),
        lambda lines: entry(lines, whole=10**12),
        lambda lines: [lines[0], DEEP, *lines[2:]],
        lambda lines: [lines[0], b"{}", *lines[2:]],
        lambda lines: [lines[0], b"[]", *lines[2:]],
    ],
)
def test_entries_that_say_another_thing_hide_their_turn_alone(
    inner: MemoryStore, change: Callable[[list[bytes]], list[bytes]]
) -> None:
    """Whoever reads one of its objects is told that it is damaged."""
    before = {key: PackedStore(inner).get(key) for key in PackedStore(inner).list(RUN)}
    store = PackedStore(with_entries(inner, change))
    assert list(store.list(RUN)) == list(before)
    hidden = set()
    for key, data in before.items():
        try:
            assert unseal(key, store.get(key)).digest == unseal(key, data).digest
        except ObjectCorrupt:
            hidden.add(key)
    assert hidden
    assert {keys.parse_turn_key(key).turn for key in hidden} == {int(TURN)}  # type: ignore[union-attr]
    assert hidden <= faults(inner).keys()


def test_a_pack_that_leaves_out_a_name_is_found(inner: MemoryStore) -> None:
    """Its turn's entries speak of more."""
    fields, parts = told(inner)
    objects = {**fields["objects"], TURN: fields["objects"][TURN][1:]}
    found = faults(resealed(inner, {**fields, "objects": objects}, parts))
    assert found[keys.step_key(JOB, "a", int(TURN))] is Fault.CORRUPT


def test_bytes_between_the_parts_of_a_turn_are_found(inner: MemoryStore) -> None:
    """A turn has what its entries speak of, and nothing behind it."""
    fields, parts = told(inner)
    more = [
        Part(part.name, bytes(part.stored) + b"more", part.size + 4) if part.name == TURN else part
        for part in parts
    ]
    found = faults(resealed(inner, fields, more))
    assert {keys.parse_turn_key(key).turn for key in found} >= {int(TURN)}  # type: ignore[union-attr]


def sealed_1(key: str, fields: dict[str, Any], parts: dict[str, bytes]) -> bytes:
    """An object as format 1 has it."""
    listed = [[name, len(data), len(data)] for name, data in parts.items()]
    frame = compress(canonical_json({**fields, "parts": listed}), HEADER_DICTIONARY)
    body = b"HFA\x01" + varint(len(frame)) + frame + b"".join(parts.values())
    return body + hashlib.sha256(key.encode() + b"\0" + body).digest()


@pytest.mark.parametrize("release", releases(), ids=lambda release: release.name)
def test_a_pack_of_format_1_is_read(release: Release, tmp_path: Path) -> None:
    """Each part is an object as it stood alone; with a field or a name too much it is none."""
    path = next(one for one in release.unpack(tmp_path) if one.name == "rich")
    raw, inner = DirectoryStore(path), MemoryStore()
    for key in raw.list("nightly/licences/"):
        inner.put_if_absent(key, raw.get(key))
    run = "nightly/licences/turns/a/"
    own = {key: raw.get(key) for key in raw.list(run) if "/0000032." in key or "/0000033." in key}
    parts = {key.removeprefix(run): data for key, data in own.items()}
    pack = "nightly/licences/packs/a/0000032"
    whole = sealed_1(pack, {"kind": "interval"}, parts)
    inner.put_if_absent(pack, whole)
    store = PackedStore(inner)
    pack_before(store, run, 64)
    assert not own.keys() & set(inner.list(run))
    assert {key: store.get(key) for key in own} == own
    archive = JobArchive(store, "nightly", "licences")
    assert damage(verify_job(archive)) == damage(verify_job(JobArchive(raw, "nightly", "licences")))
    for fields, given in (({"kind": "interval", "more": 1}, parts), ({"kind": "x"}, parts)):
        with pytest.raises(ObjectCorrupt):
            Pack(pack, sealed_1(pack, fields, given))
    with pytest.raises(ObjectCorrupt):
        Pack(pack, sealed_1(pack, {"kind": "interval"}, {**parts, "00001/0000132.step": b"x"}))


@pytest.mark.parametrize(
    "parts", [[["a", 1], ["a", 0]], [[["x"], 1]], [["a"]], 5, [5], [["a", 1, 1, 1]]]
)
def test_an_object_whose_parts_make_no_sense_is_damaged(parts: Any) -> None:
    """Whatever its digest says."""
    text = canonical_json({"kind": "step", "parts": parts})
    frame = compress(text, HEADER_DICTIONARY)
    body = b"HFA\x02" + varint(len(frame)) + frame + b"\x01\x00x" + bytes(32)
    data = body + hashlib.sha256(body).digest()[:8]
    for read in (unseal, unchecked):
        with pytest.raises(ObjectCorrupt):
            read("k", data)


def test_a_frame_of_more_than_its_part_says_is_not_decompressed() -> None:
    """A kilobyte may say a gigabyte."""
    large = compress(bytes(1 << 24))
    archived = _object([["x", 5]], large)
    with pytest.raises(ObjectCorrupt, match="more than 5 bytes"):
        archived.frame("x")


def _object(parts: list[list[Any]], stored: bytes) -> ArchivedObject:
    given = (Part(parts[0][0], stored, parts[0][1]),)
    return unseal("k", seal("k", header({"kind": "step"}, given), given)[0])
