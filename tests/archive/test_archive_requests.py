"""Requests are stored as what is new in them, and any of them is put together from few objects."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import get_ident
from types import FrameType, SimpleNamespace
from typing import Any

import pytest
import zstandard
from archive_jobs import Written, blocks, chat, write_run
from archive_plans import store_plans
from hypothesis import given, settings
from hypothesis import strategies as st

from runtime.archive import frames
from runtime.archive.container import Part
from runtime.archive.difference import Copy, Literal, difference
from runtime.archive.frames import compress, decompress
from runtime.archive.job import JobArchive
from runtime.archive.recipe import (
    Extent,
    absorb,
    compose,
    decode_extents,
    decode_ops,
    encode_extents,
    encode_ops,
    solid,
)
from runtime.archive.requests import MOST_READS, RequestReader, plan
from runtime.archive.stores import MemoryStore
from runtime.archive.varints import read_varints, varint
from runtime.base.digests import digest_bytes
from runtime.base.errors import ObjectCorrupt
from tests.tiers.tiers import examples

_LINES = [b"%d: a line that is long enough to be worth a copy of its own\n" % n for n in range(12)]
documents = st.lists(
    st.sampled_from([*_LINES, b"short", b'{"role": "user", "content": "', b"\\n"]), max_size=20
).map(b"".join)


class CountingStore(MemoryStore):
    """A memory store that counts what is read from it."""

    reads = 0

    def get(self, key: str) -> bytes:
        self.reads += 1
        return super().get(key)


@given(old=documents, new=documents)
def test_a_difference_makes_the_new_from_the_old(old: bytes, new: bytes) -> None:
    """Copies and literals cover the new document exactly, and what they copy is there."""
    made, position = [], 0
    for op in difference(old, new):
        made.append(
            old[op.offset : op.offset + op.length]
            if isinstance(op, Copy)
            else new[position : position + op.length]
        )
        position += op.length
    assert b"".join(made) == new


@given(versions=st.lists(documents, min_size=1, max_size=8), absorbed=st.integers(0, 7))
def test_recipes_say_the_same_in_every_form(versions: list[bytes], absorbed: int) -> None:
    """A chain of versions is put together from extents; stored relative, stored flat and after
    absorption alike.
    """
    literals: dict[str, bytes] = {}
    extents: tuple[Extent, ...] = ()
    old = b""
    for number, new in enumerate(versions):
        key = f"{number}"
        ops = solid(extents, difference(old, new))
        assert decode_ops(encode_ops(ops)) == [ops]
        extents = compose(extents, ops, key)
        starts = [0, *(sum(o.length for o in ops[: i + 1]) for i in range(len(ops)))]
        literals[key] = b"".join(
            new[starts[i] : starts[i + 1]] for i, o in enumerate(ops) if not isinstance(o, Copy)
        )
        assert b"".join(literals[s][o : o + n] for s, o, n in extents) == new
        old = new
    sources = sorted({e.source for e in extents} - {key})
    assert decode_extents(encode_extents(extents, sources, key), sources, key) == [extents]
    taken, stretches = absorb(extents, frozenset(sources[:absorbed]), key)
    literals[key] = b"".join(old[a:b] for a, b in stretches)
    assert b"".join(literals[s][o : o + n] for s, o, n in taken) == old
    assert not {e.source for e in taken} & set(sources[:absorbed])


def calls_over(extents: int) -> int:
    """The calls of Python functions by which a turn follows so many extents that stay."""
    parent = [Extent(f"{n}", 0, 200) for n in range(extents)]
    calls = 0

    def note(frame: FrameType, event: str, _: Any) -> None:
        nonlocal calls
        # Of the recipe alone: garbage that is collected meanwhile may call something, too.
        calls += event == "call" and frame.f_globals["__name__"].startswith("runtime.")

    sys.setprofile(note)
    try:
        compose(parent, solid(parent, [Copy(0, 200 * extents - 50), Literal(80)]), "new")
    finally:
        sys.setprofile(None)
    return calls


def test_what_stays_is_not_gone_through() -> None:
    """A recipe takes the same calls over 500 extents as over 10."""
    assert calls_over(500) == calls_over(10)


@given(data=st.binary(max_size=2000), dictionary=st.binary(max_size=300))
def test_frames_come_back(data: bytes, dictionary: bytes) -> None:
    """What is compressed with a dictionary is decompressed with it."""
    assert decompress(compress(data, dictionary), dictionary) == data


def test_frames_of_one_dictionary_have_one_decompressor(monkeypatch: pytest.MonkeyPatch) -> None:
    """Making one takes ten times as long as a small frame does. After a damaged frame there is
    another, and each thread has its own.
    """
    made: list[int] = []

    def counted(**parameters: Any) -> zstandard.ZstdDecompressor:
        made.append(get_ident())
        return zstandard.ZstdDecompressor(**parameters)

    monkeypatch.setattr(
        frames, "zstandard", SimpleNamespace(**vars(zstandard) | {"ZstdDecompressor": counted})
    )
    dictionary = random.Random(4).randbytes(900)
    texts = [dictionary[n : n + 300] for n in range(50)]
    packed = [compress(text, dictionary) for text in texts]

    def all_of_them() -> list[bytes]:
        return [decompress(frame, dictionary) for frame in packed]

    assert all_of_them() == texts
    assert len(made) == 1
    with pytest.raises(ValueError, match="not a zstd frame"):
        decompress(packed[0][:-1], dictionary)
    with ThreadPoolExecutor(1) as another:
        assert all_of_them() == another.submit(all_of_them).result() == texts
    assert len(made) == 3
    assert len(set(made)) == 2


def test_a_large_frame_refers_to_the_far_end_of_its_dictionary() -> None:
    """The window spans megabytes: a repetition of the dictionary's first bytes is found."""
    dictionary = random.Random(3).randbytes(3 << 20)
    data = dictionary[:200_000] + dictionary[-200_000:]
    frame = compress(data, dictionary)
    assert len(frame) < 2000
    assert decompress(frame, dictionary) == data


@pytest.mark.slow
@pytest.mark.parametrize(
    "layout",
    [
        pytest.param(lambda: chat(random.Random(5), 900), id="chat"),
        pytest.param(lambda: blocks(random.Random(6)), id="blocks"),
    ],
)
def test_any_turn_is_read_with_at_most_forty_reads(
    layout: Callable[[], Callable[..., list]],
) -> None:  # type: ignore[type-arg]
    """For a chat that grows and for a projection that changes, over 200 turns, each turn opens with
    40 reads at most.
    """
    store = CountingStore()
    written = Written(JobArchive(store, "b", "j"))
    write_run(written, "r", range(1, 201), None, layout())
    worst = 0
    for turn in range(1, 201):
        store.reads = 0
        key = f"b/j/turns/r/{turn // 100:05d}/{turn:07d}.attempt-001"
        request = RequestReader(store.get).request(key)
        assert request.wire == written.requests["r", turn]
        worst = max(worst, store.reads)
    assert 20 < worst <= MOST_READS


@pytest.mark.slow
def test_a_changing_block_costs_little_more_than_itself() -> None:
    """A 40 kB projection in which a 1 kB block of random letters changes is stored in under 1.0 kB
    a turn.
    """
    store = MemoryStore()
    written = Written(JobArchive(store, "b", "j"))
    write_run(written, "r", range(1, 301), None, blocks(random.Random(7)))
    sizes = []
    for turn in range(2, 301):
        archived = RequestReader(store.get).object(
            f"b/j/turns/r/{turn // 100:05d}/{turn:07d}.attempt-001"
        )
        sizes.append(sum(len(archived.part(name)) for name in ("wire", "recipe", "recipe.zst")))
    assert sum(sizes) / len(sizes) < 1000


def test_a_request_is_hashed_from_where_it_is_new() -> None:
    """However long it is: what it has in common with the one before was hashed then."""
    wire, parent, hashed = b"{", None, []
    for turn in range(1, 40):
        wire += b'{"turn": %d, "said": "%s"}, ' % (turn, b"word " * 200)
        # Behind the transcript stands what is the same in each request.
        whole = wire + b'"tools": []}'
        key = f"b/j/turns/r/00000/{turn:07d}.attempt-001"
        planned = plan(key, parent, whole, b"", flat=turn % 32 == 0)
        assert planned.digest == digest_bytes(whole)
        hashed.append(len(whole) - (0 if parent is None else parent.begun.length))
        parent = planned.request
    assert max(hashed[1:]) < 2_100


@settings(max_examples=examples(15))
@given(seed=st.integers(0, 1 << 30))
def test_any_history_of_requests_comes_back(seed: int) -> None:
    """Requests that grow, shrink, shuffle and repeat over 60 turns come back from fresh reads, in
    bounded reads.
    """
    rng = random.Random(seed)
    objects = {}
    parent, old = None, [b"".join(rng.choices(_LINES, k=5))]
    for turn in range(60):
        new = [line for line in old if rng.random() < 0.9]
        for _ in range(rng.randrange(4)):
            new.insert(
                rng.randrange(len(new) + 1), b"%d %s\n" % (turn, rng.randbytes(30).hex().encode())
            )
        if rng.random() < 0.1:
            rng.shuffle(new)
        wire, layout = b"".join(new), b"".join(line.upper() for line in new)
        key = f"b/j/turns/r/00000/{turn:07d}.attempt-001"
        planned = plan(key, parent, wire, layout, flat=turn % 32 == 0)
        assert planned.digest == digest_bytes(wire)
        objects[key] = planned
        parent, old = planned.request, new
        assert parent.place.reads <= MOST_READS
    # What a reader finds in the objects is what the writer planned.
    store = MemoryStore()
    store_plans(store, objects)
    for key, planned in objects.items():
        read = RequestReader(store.get).request(key)
        assert (read.wire, read.layout) == (planned.request.wire, planned.request.layout)
        assert read.place.reads == planned.request.place.reads
        assert dict(read.place.levels) == dict(planned.request.place.levels)


def test_a_recipe_makes_no_more_than_a_document_has() -> None:
    """One that takes the whole of the one before a few times, and so each in its chain, would fill
    the memory; and so would one that takes a stretch over and over.
    """
    extents: tuple[Extent, ...] = (Extent("a", 0, 1), Extent("b", 0, 1))
    with pytest.raises(ValueError, match="more than 1,048,576 stretches"):
        for _ in range(12):
            whole = sum(extent.length for extent in extents)
            extents = compose(extents, [Copy(0, whole)] * 100, "c")
    store, key = MemoryStore(), "b/j/turns/r/00000/0000001.attempt-001"
    planned = plan(key, None, b"x" * (1 << 20), b"")
    extents = tuple(Extent(key, 0, 1 << 20) for _ in range(1_025))
    recipe = encode_extents(extents, (), key) + encode_extents((), (), key)
    kept = [part for part in planned.parts if not part.name.startswith("recipe")]
    parts = (*kept, Part("recipe", recipe, len(recipe)))
    store_plans(store, {key: replace(planned, parts=parts)})
    with pytest.raises(ObjectCorrupt, match="more than 1073741824 bytes"):
        RequestReader(store.get).wire(key)


def test_a_number_has_a_bound() -> None:
    """One of megabytes would take hours to read."""
    with pytest.raises(ValueError, match="63 bits"):
        read_varints(b"\xff" * 10 + b"\x01")
    assert read_varints(varint((1 << 63) - 1)) == [(1 << 63) - 1]


def test_an_attempt_with_the_header_of_none_is_damage() -> None:
    """Its digest fits, and whoever puts requests together says so, as all others do."""
    store, key = MemoryStore(), "b/j/turns/r/00000/0000001.attempt-001"
    planned = plan(key, None, b"x", b"y")
    store_plans(store, {key: replace(planned, fields={**planned.fields, "level": "x"})})
    with pytest.raises(ObjectCorrupt, match="is none of a attempt: level"):
        RequestReader(store.get).request(key)
