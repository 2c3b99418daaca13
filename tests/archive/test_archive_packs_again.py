"""A text that requests take over from earlier ones stands once in the packs of a job."""

from __future__ import annotations

import random
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, cast

import pytest
from archive_jobs import Written, chat, segment, write_run
from test_archive_document import reader

from runtime.archive import keys, requests
from runtime.archive.container import ArchivedObject, header, seal, unseal
from runtime.archive.findings import Fault
from runtime.archive.frames import decompress
from runtime.archive.job import JobArchive
from runtime.archive.lifecycle.deletion import Wish, delete_jobs
from runtime.archive.packing import pack_before
from runtime.archive.stores import MemoryStore, ObjectStore, open_store
from runtime.archive.stores.directory import DirectoryStore
from runtime.archive.stores.pack_form import Pack, _wrote_first
from runtime.archive.stores.packed import PackedStore
from runtime.archive.verify import damage, verify_job
from runtime.base.errors import ObjectCorrupt
from runtime.projection.segments import Segment
from tests.releases.record import releases

JOB = "nightly/long"
RUN = f"{JOB}/turns/a/"
PACK = f"{JOB}/packs/a/0000000"
TURNS = 130
TEXT = 600


@pytest.fixture(scope="module")
def alone() -> Written:
    """A chat of 130 turns, and one that went back to turn 50 of it and on to turn 130, each object
    at its own place.

    Few reads are allowed, so what was taken over once is taken over again soon.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(requests, "MOST_READS", 9)
        patch.setattr(requests, "_LEAST_ROOM", 3)
        written = Written(JobArchive(MemoryStore(), "nightly", "long"))
        written.archive.write_definition({"goal": "g"})
        write_run(written, "a", range(1, TURNS + 1), None, chat(random.Random(5), TEXT))
        branch = written.refs["a", 50]
        write_run(written, "b", range(51, TURNS + 1), branch, chat(random.Random(6), TEXT))
    return written


def copied(written: Written) -> MemoryStore:
    return copied_of(cast("MemoryStore", written.archive.store))


@pytest.fixture
def inner(alone: Written) -> MemoryStore:
    """The same with all closed turns in packs."""
    inner = copied(alone)
    for run in "ab":
        pack_before(PackedStore(inner), f"{JOB}/turns/{run}/", TURNS, every=True)
    return inner


def archive_on(inner: MemoryStore) -> JobArchive:
    return JobArchive(PackedStore(inner), "nightly", "long")


def copied_of(store: MemoryStore) -> MemoryStore:
    made = MemoryStore()
    for key in store.list(""):
        made.put_if_absent(key, store.get(key))
    return made


def faults(archive: JobArchive) -> dict[str, Fault]:
    return {one.key: one.fault for one in damage(verify_job(archive))}


def taking_over(written: Written) -> dict[str, list[str]]:
    """The attempts that took text over, and from which."""
    return _taking_over(written.archive.store)


@cache
def _taking_over(store: ObjectStore) -> dict[str, list[str]]:
    headers = {
        key: unseal(key, store.get(key)).header for key in store.list("") if "attempt" in key
    }
    return {
        key: keys.attempts_in(header["absorbed"])
        for key, header in headers.items()
        if header.get("absorbed")
    }


def leaning(inner: MemoryStore) -> dict[str, tuple[str, ...]]:
    """The attempts in packs that are stored against others, and which."""
    return {key: entry.again for key, entry in _entries(inner).items() if entry.again}


def entries(inner: MemoryStore) -> dict[str, int]:
    """The stored bytes of the text of these."""
    found = _entries(inner)
    return {key: len(found[key].stored["wire"]) for key in leaning(inner)}


def _entries(inner: MemoryStore) -> dict[str, Any]:
    packs = [Pack(name, inner.get(name)) for name in inner.list(f"{JOB}/packs/")]
    return {key: pack._entry(key) for pack in packs for key in pack.names}


@pytest.mark.slow
def test_text_that_is_taken_over_stands_once(alone: Written, inner: MemoryStore) -> None:
    """Also what was taken over before, and what another run of the job has."""
    took, store = taking_over(alone), alone.archive.store
    levels = {key: unseal(key, store.get(key)).header["level"] for key in took}
    assert set(levels.values()) == {1, 2}
    assert any(key.startswith(f"{JOB}/turns/b/") and RUN in took[key][0] for key in took)
    packed = {key for key in took if turn_of(key) < TURNS // 32 * 32}
    stored = entries(inner)
    assert stored.keys() == packed
    for key in packed:
        text = unseal(key, store.get(key)).frame("wire", requests.WIRE_DICTIONARY)
        # Its own new turn is there, and those of the ones between; of each other where that is.
        between = sum(source in took for source in took[key])
        assert len(text) > 3 * TEXT
        assert stored[key] < (1 + between) * 1.2 * TEXT + 40 * len(took[key])


@pytest.mark.slow
def test_who_reads_cannot_tell_that_it_stands_once(alone: Written, inner: MemoryStore) -> None:
    """Keys, digests, requests and findings are those of an archive without packs."""
    archive, store = archive_on(inner), alone.archive.store
    for key in store.list(""):
        data = archive.store.get(key)
        assert unseal(key, data).digest == unseal(key, store.get(key)).digest
        assert unseal(key, data).parts() == unseal(key, store.get(key)).parts()
    for (run, turn), request in alone.requests.items():
        assert archive.wire_request(run, turn) == request
    assert list(archive.store.list("")) == list(store.list(""))
    assert verify_job(archive) == verify_job(alone.archive)


@pytest.mark.slow
def test_another_reader_reads_what_stands_once(alone: Written, inner: MemoryStore) -> None:
    """The one of docs/archive.md."""
    other = reader().Archive(inner.get)
    names = other.unpack(list(inner.list("")))
    assert names == list(alone.archive.store.list(""))
    for place, ref in alone.refs.items():
        header, _, digest = other.object(ref.key)
        assert digest == ref.digest
        assert other.documents(header["attempt"]["key"])[0] == alone.requests[place]
        assert other.response(ref.key) == alone.responses[place]


@pytest.mark.slow
def test_text_that_is_gone_is_told_where_it_is_repeated(alone: Written, inner: MemoryStore) -> None:
    """And nothing else of the packs that repeat it; with it back, nothing is told."""
    data = inner.get(PACK)
    inner.discard(PACK)
    archive = archive_on(inner)
    found = faults(archive)
    lost = {key for key in alone.archive.store.list(RUN) if turn_of(key) < 32}
    hidden = {key for key, first in leaning(inner).items() if lost & {*first}}
    assert hidden
    assert {key for key, fault in found.items() if fault is Fault.CORRUPT} >= hidden
    for key in set(archive.store.list("")) - hidden:
        unseal(key, archive.store.get(key))
    for key in hidden:
        with pytest.raises(ObjectCorrupt, match=key):
            archive.store.get(key)
    inner.put_if_absent(PACK, data)
    assert faults(archive_on(inner)) == {}


def test_text_that_cannot_be_read_is_stored_again(alone: Written) -> None:
    """An attempt whose source is damaged as it is packed keeps its own text."""
    inner = copied(alone)
    key, sources = next(iter(taking_over(alone).items()))
    inner.replace(sources[0], inner.get(sources[0])[:-1])
    store = PackedStore(inner)
    pack_before(store, RUN, TURNS, every=True)
    assert key not in entries(inner)
    assert store.get(key) == alone.archive.store.get(key)
    assert list(inner.list(sources[0])) == [sources[0]]


def test_nothing_goes_that_cannot_be_read_in_its_pack(alone: Written) -> None:
    """A pack that was written while a source of its text was there, which is gone since: what it
    can no longer give stays at its own place.
    """
    inner = copied(alone)
    store = PackedStore(inner)
    pack_before(store, RUN, TURNS, every=True)
    second = f"{JOB}/packs/a/0000032"
    data = inner.get(second)
    loose = copied(alone)
    for key in list(loose.list(RUN)):
        if turn_of(key) < 32:
            loose.discard(key)
    loose.put_if_absent(second, data)
    PackedStore(loose).pack(RUN, 32)
    gone = {key for key in alone.archive.store.list(RUN) if turn_of(key) < 32}
    leans = leaning(inner)
    hidden = {key for key in Pack(second, data).names if gone & {*leans.get(key, ())}}
    assert hidden
    assert {key for key in loose.list(RUN) if 32 <= turn_of(key) < 64} == hidden
    for key in hidden:
        assert PackedStore(loose).get(key) == alone.archive.store.get(key)


class Told:
    """Attempts that say what a test has them say."""

    def __init__(self, **absorbed: list[str]) -> None:
        self.absorbed, self.asked = absorbed, list[str]()

    def header(self, key: str) -> dict[str, Any]:
        self.asked.append(key)
        absorbed = self.absorbed.get(f"t{turn_of(key)}", [])
        return {"absorbed": keys.grouped_attempts(absorbed)} if absorbed else {}

    def text(self, key: str) -> bytes:
        raise AssertionError(key)


def attempt(turn: int, job: str = JOB) -> str:
    return keys.attempt_key(job, "a", turn, 1)


def absorbing(key: str, absorbed: Any, level: int = 1) -> ArchivedObject:
    fields = {"kind": "attempt", "absorbed": absorbed, "level": level}
    return unseal(key, seal(key, header(fields))[0])


def test_headers_that_lead_in_a_circle_end() -> None:
    """Only attempts of earlier turns, of the same job, are looked at, and each once."""
    told = Told(
        t30=[attempt(20), attempt(29)],
        t29=[attempt(20), attempt(30)],
        t20=[attempt(20), attempt(3)],
    )
    absorbed = [attempt(29), attempt(30), attempt(30), attempt(40), attempt(41), attempt(1, "x/y")]
    archived = absorbing(attempt(40), keys.grouped_attempts(absorbed))
    assert _wrote_first(archived, told) == [attempt(3)]
    assert sorted(told.asked) == [attempt(3), attempt(20), attempt(29), attempt(30)]
    dense = Told(**{f"t{n}": [attempt(m) for m in range(1, n)] for n in range(2, 60)})
    archived = absorbing(attempt(60), keys.grouped_attempts(attempt(m) for m in range(1, 60)))
    assert _wrote_first(archived, dense) == [attempt(1)]
    assert len(dense.asked) == 59


@pytest.mark.parametrize(
    "absorbed", [5, [5], [["p", None, 1]], [["p", 1]], [["p", 1.5, 1]], "x", {"a": 1}]
)
def test_a_header_that_makes_no_sense_costs_no_pack(alone: Written, absorbed: Any) -> None:
    """The object is stored as it is."""
    inner = copied(alone)
    key = keys.attempt_key(JOB, "a", 10, 2)
    archived = unseal(attempt(10), inner.get(attempt(10)))
    fields = {**archived.header, "absorbed": absorbed}
    del fields["parts"]
    data, _ = seal(key, header(fields, archived.parts()), archived.parts())
    inner.put_if_absent(key, data)
    store = PackedStore(inner)
    assert store.pack(RUN, 0)
    assert store.get(key) == data


def test_a_text_leans_on_none_that_leans_on_others(alone: Written, inner: MemoryStore) -> None:
    """A pack in which one does was made by somebody else: it is damaged, and reading it ends."""
    leans = leaning(inner)
    assert not {one for first in leans.values() for one in first} & leans.keys()
    one, other = sorted(key for key in leans if key.startswith(RUN) and turn_of(key) < 32)[:2]
    pack = Pack(PACK, inner.get(PACK))
    forged = PackedStore(inner)
    made = _entries(inner)
    entry_of = {
        one: made[one]._replace(again=(other,)),
        other: made[other]._replace(again=(one,)),
    }
    pack._entry = lambda key: entry_of.get(key, made.get(key))  # type: ignore[method-assign]
    forged._remember(PACK, pack)
    for key in (one, other):
        with pytest.raises(ObjectCorrupt):
            unseal(key, forged.get(key))


@pytest.mark.slow
def test_a_prompt_that_changes_in_many_places_is_packed(tmp_path: Path) -> None:
    """Each of its attempts takes over that of the turn before, and so on back to the first."""
    rng = random.Random(1)
    base = ["".join(rng.choices("abcdefgh ", k=60)) for _ in range(160)]

    def layout(turn: int, previous: object, reply: object) -> list[Segment]:
        return [segment(f"{text}\n({turn} turns ago)", f"node:{n}") for n, text in enumerate(base)]

    inner = MemoryStore()
    written = Written(JobArchive(PackedStore(inner), "nightly", "long"))
    write_run(written, "a", range(1, 131), None, layout)
    levels = [
        unseal(key, PackedStore(inner).get(key)).header["level"]
        for key in PackedStore(inner).list(RUN)
        if "attempt" in key
    ]
    assert max(levels) > 60
    fresh = archive_on(inner)
    for (run, turn), request in written.requests.items():
        assert fresh.wire_request(run, turn) == request
    assert faults(fresh) == {}


def harmed_text(inner: MemoryStore, pack: str, key: str) -> bytes:
    """A pack in which a text is another one, which decompresses as well as it did."""
    data = inner.get(pack)
    stored = bytes(Pack(pack, data)._entry(key).stored["wire"])
    at = data.index(stored)
    for place in range(len(stored) - 1, 0, -1):
        other = stored[:place] + bytes([stored[place] ^ 1]) + stored[place + 1 :]
        with suppress(ValueError):
            if decompress(other, requests.WIRE_DICTIONARY) != decompress(
                stored, requests.WIRE_DICTIONARY
            ):
                return data[:at] + other + data[at + len(stored) :]
    raise AssertionError("no byte can be changed")


def test_nothing_leans_on_a_text_that_is_not_the_one(alone: Written) -> None:
    """A byte of a pack changed, and then more turns are packed: they keep their own texts, and all
    is as it was when the byte is back.
    """
    inner = copied(alone)
    store = PackedStore(inner)
    assert store.pack(RUN, 0)
    whole = inner.get(PACK)
    source = next(
        source
        for key, sources in taking_over(alone).items()
        if 32 <= turn_of(key) < 64 and key.startswith(RUN)
        for source in sources
        if turn_of(source) < 32 and source not in taking_over(alone)
    )
    inner.replace(PACK, harmed_text(inner, PACK, source))
    # Whoever remembers the pack as it was must not let anything go for it, either.
    assert store.pack(RUN, 32)
    inner.replace(PACK, whole)
    assert faults(JobArchive(PackedStore(copied_of(inner)), "nightly", "long")) == {}
    for key in alone.archive.store.list(RUN):
        assert unseal(key, PackedStore(inner).get(key)).digest


def test_a_text_put_back_beside_its_pack_serves_those_that_repeat_it(
    alone: Written, inner: MemoryStore
) -> None:
    """Its pack is damaged, and it stands at its own place again."""
    key, source = next(
        (key, one)
        for key, first in leaning(inner).items()
        for one in first
        if turn_of(key) > 32 and turn_of(one) < 32 and one.startswith(RUN)
    )
    inner.replace(PACK, harmed_text(inner, PACK, source))
    with pytest.raises(ObjectCorrupt):
        PackedStore(inner).get(key)
    inner.put_if_absent(source, alone.archive.store.get(source))
    for _ in range(2):
        assert unseal(key, PackedStore(inner).get(key)).digest


def test_a_deletion_of_what_stands_once_leaves_nothing(inner: MemoryStore) -> None:
    """The last turns go first, so what is repeated is there as long as who repeats it."""
    store = PackedStore(inner)
    own = list(store.list(f"{JOB}/"))
    wish = Wish("alice", "2026-05-01T00:00:00+00:00", "asked for")
    (done,) = delete_jobs(store, [JOB], wish, tell=lambda _: None)
    assert list(inner.list(f"{JOB}/")) == []
    assert list(done.tombstone.own) == own
    assert done.objects == len(own)


@pytest.mark.parametrize("release", releases(), ids=lambda release: release.name)
def test_a_job_of_an_earlier_release_goes_on_in_packs(release: object, tmp_path: Path) -> None:
    """Its objects of format 1 stand in one pack with those that come after them, as they were."""
    path = next(one for one in release.unpack(tmp_path) if one.name == "rich")  # type: ignore[attr-defined]
    raw = DirectoryStore(path)
    before = {key: raw.get(key) for key in raw.list("nightly/licences/")}
    assert {data[:4] for data in before.values()} == {b"HFA\x01"}
    store = open_store(str(path))
    archive = JobArchive(store, "nightly", "licences")
    written = Written(archive)
    last = [step.ref for step in archive.steps("a") if step.run == "a"][-1]
    write_run(written, "a", range(35, 70), last, chat(random.Random(1)))
    (pack,) = [name for name in raw.list("nightly/licences/packs/a/") if name.endswith("32")]
    assert raw.get(pack).startswith(b"HFA\x02")
    of_both = Pack(pack, raw.get(pack)).names
    assert {turn_of(key) for key in of_both} == set(range(32, 64))
    assert of_both & before.keys()
    for key, data in before.items():
        assert store.get(key) == data
    fresh = JobArchive(open_store(str(path)), "nightly", "licences")
    for (run, turn), request in written.requests.items():
        assert fresh.wire_request(run, turn) == request
    assert faults(fresh) == {}
    other = reader().Archive(raw.get)
    for key in other.unpack(list(raw.list("nightly/"))):
        assert other.object(key)[2] == unseal(key, store.get(key)).digest


def turn_of(key: str) -> int:
    place = keys.parse_turn_key(key)
    return -1 if place is None else place.turn
