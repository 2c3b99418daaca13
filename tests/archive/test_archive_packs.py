"""In a directory closed turns stand in few files, and nobody who reads can tell."""

from __future__ import annotations

import base64
import random
import signal
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from archive_jobs import Written, blocks, failure_record, segment, write_run

from runtime.archive import keys
from runtime.archive.catalog import all_jobs
from runtime.archive.container import Part, header, seal, unseal
from runtime.archive.findings import Fault
from runtime.archive.forms import NewEnd
from runtime.archive.gaps import readable
from runtime.archive.heads import head_of, shared_digests
from runtime.archive.job import JobArchive
from runtime.archive.lifecycle.copying import copy_archive
from runtime.archive.lifecycle.deletion import Wish, delete_jobs
from runtime.archive.packing import pack_before
from runtime.archive.reader import JobReader
from runtime.archive.stores import (
    MemoryStore,
    ObjectStore,
    check_store,
    create_encrypted,
    open_existing,
    open_store,
)
from runtime.archive.stores.directory import DirectoryStore
from runtime.archive.stores.pack_form import packed
from runtime.archive.stores.packed import PackedStore
from runtime.archive.verify import damage, examine_job, verify_job
from runtime.base.errors import ArchiveError, ObjectCorrupt
from tests.forks.scripts import Scripts

TURNS = 70
JOB = "nightly/long"
RUN = f"{JOB}/turns/a/"
PACKS = [f"{JOB}/packs/a/0000000", f"{JOB}/packs/a/0000032"]
LAST = f"{JOB}/packs/a/0000064"
WISH = Wish("alice", "2026-05-01T00:00:00+00:00", "asked for")


def written_on(store: ObjectStore, turns: int = TURNS) -> Written:
    """A job of so many turns, each with an effect, turn 7 with a failed attempt and a late one."""
    written = Written(JobArchive(store, "nightly", "long"))
    archive, layout_at, parent = written.archive, blocks(random.Random(3), 3, 100), None
    archive.write_definition({"goal": "g"})
    for turn in range(1, turns + 1):
        if turn == 7:
            layout = layout_at(turn, archive.layout(parent), archive.reply_segment(parent))
            archive.fail_attempt(failure_record(written.begin("a", turn, parent, layout)))
            attempt = written.begin("a", turn, parent, layout, attempt=2)
            parent = written.finish("a", turn, attempt)
        else:
            parent = write_run(written, "a", range(turn, turn + 1), parent, layout_at)
        archive.write_effect("a", turn, 0, {"turn": turn})
    return written


ALONE = MemoryStore()
check_store(ALONE, "memory")
WRITTEN = written_on(ALONE)
KEYS = list(ALONE.list(""))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What stands in the directory of an archive with packs, by key."""
    root = tmp_path_factory.mktemp("packs") / "archive"
    written_on(open_store(str(root)))
    raw = DirectoryStore(root)
    return {key: raw.get(key) for key in raw.list("")}


def inside(objects: dict[str, bytes]) -> MemoryStore:
    """A store that holds some objects as they stand in a directory."""
    store = MemoryStore()
    for key, data in objects.items():
        store.put_if_absent(key, data)
    return store


def archive_on(inner: MemoryStore) -> JobArchive:
    return JobArchive(PackedStore(inner), "nightly", "long")


def faults(archive: JobArchive) -> dict[str, Fault]:
    return {one.key: one.fault for one in damage(verify_job(archive))}


def turn_of(key: str) -> int:
    place = keys.parse_turn_key(key)
    return -1 if place is None else place.turn


@pytest.mark.slow
def test_closed_intervals_stand_in_one_file_each(made: dict[str, bytes]) -> None:
    """The interval that is under way, and what belongs to no turn, stand at their own places."""
    assert [key for key in made if keys.packed_prefix(key)] == PACKS
    assert [key for key in KEYS if key in made] == [
        key for key in KEYS if keys.parse_turn_key(key) is None or turn_of(key) >= 64
    ]


@pytest.mark.slow
def test_who_reads_cannot_tell(made: dict[str, bytes]) -> None:
    """Keys, bytes, requests, responses, findings and the head are those of an archive without."""
    store = PackedStore(inside(made))
    assert {key: store.get(key) for key in store.list("")} == {key: ALONE.get(key) for key in KEYS}
    archive = JobArchive(store, "nightly", "long")
    for (run, turn), request in WRITTEN.requests.items():
        assert archive.wire_request(run, turn) == request
        assert archive.wire_response(run, turn) == WRITTEN.responses[run, turn]
    assert archive.nodes(WRITTEN.refs["a", 40]) == WRITTEN.archive.nodes(WRITTEN.refs["a", 40])
    heads = [
        head_of(
            [examine_job(JobArchive.of(one, job)) for job in all_jobs(one)],
            shared_digests(one),
            archive=None,
            made_at="",
            signer=None,
        )
        for one in (store, ALONE)
    ]
    assert heads[0] == heads[1]
    assert verify_job(archive) == verify_job(WRITTEN.archive)


def test_every_listing_is_as_without(made: dict[str, bytes]) -> None:
    """Whatever prefix is listed: of jobs, runs, hundreds, turns, kinds, and ends within names."""
    store = PackedStore(inside(made))
    prefixes = {key[:cut] for key in KEYS for cut in range(len(key) + 1)}
    prefixes |= {f"{JOB}/packs/", f"{JOB}/packs/a/", f"{RUN}00009/", f"{RUN}00000/0000099.", "x/"}
    assert {
        prefix for prefix in prefixes if list(store.list(prefix)) != list(ALONE.list(prefix))
    } == set()
    assert list(store.folders(f"{JOB}/turns/")) == ["a"]


@pytest.mark.slow
def test_a_turn_takes_few_files_and_blocks(tmp_path: Path) -> None:
    """Of 200 turns with three objects each: 8 turns stand alone, 192 in six packs."""
    taken = {}
    for name, opened in (("packs", open_store), ("alone", lambda url: DirectoryStore(Path(url)))):
        root = tmp_path / name
        written_on(opened(str(root)), 200)
        files = [path for path in root.rglob("*") if path.is_file() and "nightly" in path.parts]
        taken[name] = len(files), sum(-(-path.stat().st_size // 4096) for path in files)
    # Beside the turns: a definition and a run's start; turn 7 has two objects more.
    assert taken["alone"][0] == 2 + 200 * 3 + 2
    # Turns 192 to 200 are those of the interval that is under way.
    assert taken["packs"][0] == 2 + 9 * 3 + 6
    assert taken["packs"][1] * 3 < taken["alone"][1]


def test_a_pack_is_the_same_whoever_packs(tmp_path: Path, made: dict[str, bytes]) -> None:
    """Also when many do so at once, and in whatever order they come."""
    store = PackedStore(inside({key: ALONE.get(key) for key in KEYS}))
    with ThreadPoolExecutor(8) as threads:
        for done in [threads.submit(pack_before, store, RUN, TURNS) for _ in range(16)]:
            done.result()
    pack_before(store, RUN, TURNS)
    assert {key: store.inner.get(key) for key in store.inner.list("")} == made


_WORKER = """
import sys
from test_archive_packs import go_on
go_on(sys.argv[1])
"""


def go_on(url: str) -> None:
    """What a worker does that finds a job at some turn of 70."""
    archive = JobArchive(open_store(url), "nightly", "long")
    written, layout_at, parent = Written(archive), blocks(random.Random(3), 3, 100), None
    archive.write_definition({"goal": "g"})
    for turn in range(1, TURNS + 1):
        if (step := archive.find_step("a", turn)) is not None:
            parent = step.ref
            continue
        parent = write_run(written, "a", range(turn, turn + 1), parent, layout_at)


@pytest.mark.kill
@pytest.mark.parametrize(
    "point",
    [
        "archive.pack.before_put",
        "archive.pack.before_put:2",
        "archive.pack.after_put",
        "archive.pack.after_put:2",
        "archive.pack.mid_removal",
        "archive.pack.mid_removal:40",
        "archive.pack.mid_removal:62",
    ],
)
def test_a_kill_while_turns_are_packed_loses_nothing(
    python: Scripts, tmp_path: Path, point: str
) -> None:
    """What stands there after the kill is whole; what was left is packed with a later keyframe."""
    url = str(tmp_path / "archive")

    def work(**failpoint: str) -> int:
        done = python(_WORKER, url, **failpoint)
        assert done.said == ""
        return done.code

    assert work(HOLDFAST_FAILPOINT=point) == -signal.SIGKILL
    killed = JobArchive(open_existing(url), "nightly", "long")
    before = [step.ref for step in killed.steps()]
    assert len(before) == (64 if ":2" in point else 32)
    assert faults(killed) == {}
    assert work() == 0
    after = JobArchive(open_existing(url), "nightly", "long")
    assert [step.ref for step in after.steps()][: len(before)] == before
    assert [step.turn for step in after.steps()] == list(range(1, TURNS + 1))
    assert verify_job(after) == []
    raw = DirectoryStore(tmp_path / "archive")
    # The last keyframe is at turn 64: of what was killed there, the next one takes care.
    pack_before(after.store, RUN, TURNS)
    assert list(raw.list(f"{JOB}/packs/")) == PACKS
    assert [key for key in raw.list(RUN) if turn_of(key) < 64] == []


def test_a_writer_that_is_late_loses(made: dict[str, bytes]) -> None:
    """To an object that is packed nobody writes another; one that a killed writer left counts for
    nothing, and goes.
    """
    inner = inside(made)
    store = PackedStore(inner)
    key = keys.step_key(JOB, "a", 40)
    assert not store.put_if_absent(key, b"other")
    assert key not in set(inner.list(""))
    inner.put_if_absent(key, b"other")
    assert store.get(key) == ALONE.get(key)
    assert PackedStore(inner).get(key) == ALONE.get(key)
    assert list(store.list(key)) == [key]
    assert faults(archive_on(inner)) == {}
    pack_before(store, RUN, TURNS)
    assert inside(made)._objects == inner._objects


def test_what_comes_late_stands_beside_its_pack(made: dict[str, bytes]) -> None:
    """A reply that lost its race, long after: it is listed and read with its turn."""
    store = PackedStore(inside(made))
    archive = JobArchive(store, "nightly", "long")
    parent = WRITTEN.refs["a", 9]
    late = Written(archive).begin("a", 10, parent, [segment("again")])
    assert [one.key for one in archive.attempts("a", 10)] == [
        keys.attempt_key(JOB, "a", 10, number) for number in (1, 2)
    ]
    assert store.inner.get(late) == store.get(late)
    pack_before(store, RUN, TURNS)
    assert store.inner.get(late) == store.get(late)
    assert faults(archive) == {}


class _Between(MemoryStore):
    """Something else happens before it answers."""

    then: Callable[[], object] | None = None

    def _happens(self) -> None:
        then, self.then = self.then, None
        if then is not None:
            then()

    def get(self, key: str) -> bytes:
        try:
            return super().get(key)
        finally:
            self._happens()

    def list(self, prefix: str) -> Iterator[str]:
        listed = super().list(prefix)
        self._happens()
        return listed

    def put_if_absent(self, key: str, data: bytes) -> bool:
        self._happens()
        return super().put_if_absent(key, data)


def test_what_is_packed_meanwhile_is_read_listed_and_not_written_again() -> None:
    """Between the look at an object's own place and that at its pack, or before either."""
    key = keys.step_key(JOB, "a", 40)

    def loose() -> tuple[PackedStore, _Between]:
        inner = _Between()
        for one in KEYS:
            inner.put_if_absent(one, ALONE.get(one))
        return PackedStore(inner), inner

    for prefix in ("", f"{JOB}/", RUN, f"{RUN}00000/", key):
        store, inner = loose()
        inner.then = lambda: pack_before(PackedStore(inner), RUN, TURNS)  # noqa: B023
        assert list(store.list(prefix)) == list(ALONE.list(prefix))
    store, inner = loose()
    inner.then = lambda: pack_before(PackedStore(inner), RUN, TURNS)
    assert store.get(key) == ALONE.get(key)
    assert store.get(key) == ALONE.get(key)
    store, inner = loose()
    inner.then = lambda: pack_before(PackedStore(inner), RUN, TURNS)
    assert not store.put_if_absent(key, b"other")
    assert store.get(key) == ALONE.get(key)


@pytest.mark.slow
@pytest.mark.parametrize("pack", PACKS)
@pytest.mark.parametrize("seed", range(5))
def test_a_byte_of_a_pack_that_changed_is_found(
    made: dict[str, bytes], pack: str, seed: int
) -> None:
    """``verify`` names the pack, and what it damaged; other turns are read as ever."""
    names = unseal(pack, made[pack]).names
    turn = random.Random(f"{pack}{seed}").choice(names[1:])
    archive = archive_on(inside(made | {pack: flipped(made[pack], pack, turn, seed)}))
    found = faults(archive)
    assert found[pack] is Fault.CORRUPT
    damaged = {key for key, fault in found.items() if fault is Fault.CORRUPT} - {pack}
    assert {turn_of(key) for key in damaged} == {int(turn)}
    assert len(readable(archive, "a").steps) >= TURNS - 1


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
def test_a_byte_of_a_pack_s_first_turn_that_changed_is_found(
    made: dict[str, bytes], seed: int
) -> None:
    """It hides its turn, or all of the pack; nothing but what was written is read."""
    pack = PACKS[0]
    turn = unseal(pack, made[pack]).names[0]
    store = PackedStore(inside(made | {pack: flipped(made[pack], pack, turn, seed)}))
    found = faults(JobArchive(store, "nightly", "long"))
    assert found[pack] is Fault.CORRUPT
    for key in KEYS:
        if found.get(key) is not Fault.CORRUPT:
            assert store.get(key) == ALONE.get(key)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_whatever_is_done_to_a_pack_is_told(made: dict[str, bytes], seed: int) -> None:
    """Bytes that change, go or come, at any place."""
    rng, pack = random.Random(seed), PACKS[seed % 2]
    data = bytearray(made[pack])
    at = rng.randrange(len(data))
    for _ in range(rng.randrange(1, 4)):
        what = rng.randrange(3)
        if what == 0:
            data[at : at + rng.randrange(1, 9)] = rng.randbytes(rng.randrange(9))
        elif what == 1:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        else:
            del data[at:]
    store = PackedStore(inside(made | {pack: bytes(data)}))
    found = faults(JobArchive(store, "nightly", "long"))
    assert found.get(pack) is (Fault.CORRUPT if bytes(data) != made[pack] else None)
    for key in set(store.list(RUN)) - found.keys():
        assert unseal(key, store.get(key)).digest == unseal(key, ALONE.get(key)).digest
    # What is damaged keeps nobody from deleting it.
    delete_jobs(store, [JOB], WISH, tell=lambda _: None)
    assert list(store.inner.list(f"{JOB}/")) == []


def flipped(data: bytes, pack: str, turn: str, seed: int) -> bytes:
    """A pack with one byte of one turn changed."""
    part = bytes(unseal(pack, data).part(turn))
    harmed = bytearray(data)
    harmed[data.index(part) + random.Random(seed).randrange(len(part))] ^= 1
    return bytes(harmed)


def _without(objects: dict[str, bytes], pack: str) -> dict[str, bytes]:
    return {key: data for key, data in objects.items() if key != pack}


def _cut(objects: dict[str, bytes], pack: str) -> dict[str, bytes]:
    return objects | {pack: objects[pack][:-1]}


def _swapped(objects: dict[str, bytes], pack: str) -> dict[str, bytes]:
    return objects | dict(zip(PACKS, (objects[PACKS[1]], objects[PACKS[0]]), strict=True))


def _moved(objects: dict[str, bytes], pack: str) -> dict[str, bytes]:
    """Sealed anew at another place, as somebody could who knows the form."""
    archived = unseal(pack, objects[pack])
    return objects | {PACKS[1]: seal(PACKS[1], archived.header_bytes, archived.parts())[0]}


@pytest.mark.parametrize("harm", [_without, _cut, _swapped, _moved])
def test_a_pack_that_is_not_the_one_is_found(
    made: dict[str, bytes], harm: Callable[[dict[str, bytes], str], dict[str, bytes]]
) -> None:
    """One that is gone, cut, in the place of another, or that holds another's turns."""
    archive = archive_on(inside(harm(made, PACKS[0])))
    hidden = set(PACKS if harm is _swapped else PACKS[1:] if harm is _moved else PACKS[:1])
    lost = {key for key in KEYS if turn_of(key) >= 0 and keys.pack_key(RUN, turn_of(key)) in hidden}
    rest = {key: ALONE.get(key) for key in KEYS if key not in lost}
    found = faults(archive)
    told = {} if harm is _without else dict.fromkeys(hidden, Fault.CORRUPT)
    # The rest is told as it is where these objects stood alone, and are gone.
    without = faults(archive_on(inside(rest)))
    assert found == told | without
    assert keys.step_key(JOB, "a", max(map(turn_of, lost))) in without
    assert {gap.turn for gap in readable(archive, "a").gaps} == {*map(turn_of, lost)}


class NoAttempts:
    """For what takes over no text."""

    def text(self, key: str) -> bytes:
        raise AssertionError(key)

    header = text


def test_what_a_pack_has_too_much_is_told_as_without(made: dict[str, bytes]) -> None:
    """An object that was added to a pack is one that no record names."""
    extra = keys.effect_key(JOB, "a", 5, 9)
    archive = WRITTEN.archive
    other = JobArchive(MemoryStore(), "nightly", "long")
    other.write_effect("a", 5, 9, {"value": 1})
    more = other.store.get(extra)
    objects = {key: ALONE.get(key) for key in KEYS if 0 <= turn_of(key) < 32} | {extra: more}
    sealed = packed(PACKS[0], sorted(objects.items()), NoAttempts())
    assert sealed is not None
    found = faults(archive_on(inside(made | {PACKS[0]: sealed})))
    beside = MemoryStore()
    for key in archive.store.list(""):
        beside.put_if_absent(key, archive.store.get(key))
    beside.put_if_absent(extra, more)
    assert found == faults(JobArchive(beside, "nightly", "long")) == {extra: Fault.UNCOVERED}


def test_large_and_damaged_objects_stay_where_they_are() -> None:
    """A large one saves no room in a pack; a damaged one is told of at its own key."""
    inner = MemoryStore()
    written = written_on(inner, 31)
    archive = written.archive
    archive.write_effect("a", 3, 1, {"value": random.Random(1).randbytes(100_000).hex()})
    large, broken = keys.effect_key(JOB, "a", 3, 1), keys.step_key(JOB, "a", 9)
    inner.replace(broken, inner.get(broken)[:-1])
    store = PackedStore(inner)
    pack_before(store, RUN, 32)
    assert list(inner.list(RUN)) == [large, broken]
    assert broken in faults(archive_on(inner))
    assert not store.pack(RUN, 0)


class _Told(MemoryStore):
    """Notes what is put and what goes, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[str, str]] = []

    def put_if_absent(self, key: str, data: bytes) -> bool:
        self.calls.append(("put", key))
        return super().put_if_absent(key, data)

    def discard(self, key: str) -> None:
        self.calls.append(("discard", key))
        super().discard(key)


def test_nothing_goes_for_a_pack_whose_name_may_not_last(made: dict[str, bytes]) -> None:
    """Who put it may have been killed before its directory was synced: it is put again first, which
    syncs, though it is there.
    """
    inner = _Told()
    for key, data in ({key: ALONE.get(key) for key in KEYS} | made).items():
        inner.put_if_absent(key, data)
    inner.calls.clear()
    assert PackedStore(inner).pack(RUN, 0)
    assert inner.calls[0] == ("put", PACKS[0])
    assert {call for call, _ in inner.calls[1:]} == {"discard"}


def test_what_stands_there_now_counts_and_not_what_is_remembered(made: dict[str, bytes]) -> None:
    """A pack is lost, and its turns are put back one by one: they stay, and are packed again."""
    inner = inside(made)
    store = PackedStore(inner)
    key = keys.step_key(JOB, "a", 20)
    assert store.get(key) == ALONE.get(key)
    inner.discard(PACKS[0])
    for one in KEYS:
        if 0 <= turn_of(one) < 32:
            inner.put_if_absent(one, ALONE.get(one))
    pack_before(store, RUN, TURNS, every=True)
    assert inside(made)._objects == inner._objects


def test_a_good_copy_counts_where_a_pack_is_damaged(made: dict[str, bytes]) -> None:
    """Beside the pack, or in its place, also for who read the damaged one before."""
    data = made[PACKS[0]]
    at = data.index(bytes(unseal(PACKS[0], data).part("0000020")))
    # In its entries.
    harmed = data[: at + 40] + bytes([data[at + 40] ^ 1]) + data[at + 41 :]
    key, inner = keys.step_key(JOB, "a", 20), inside(made | {PACKS[0]: harmed})
    store = PackedStore(inner)
    with pytest.raises(ObjectCorrupt):
        unseal(key, store.get(key))
    inner.put_if_absent(key, ALONE.get(key))
    assert store.get(key) == ALONE.get(key)
    inner.discard(key)
    inner.replace(PACKS[0], made[PACKS[0]])
    assert store.get(key) == ALONE.get(key)


def test_beside_a_pack_that_cannot_be_read_nothing_is_written(made: dict[str, bytes]) -> None:
    """Else a second answer would stand where the first one is known to be."""
    data = bytearray(made[PACKS[0]])
    # The magic of the header's frame.
    data[7] ^= 1
    inner = inside(made | {PACKS[0]: bytes(data)})
    with pytest.raises(ObjectCorrupt):
        PackedStore(inner).put_if_absent(keys.step_key(JOB, "a", 20), b"other")
    assert keys.step_key(JOB, "a", 20) not in set(inner.list(""))


def test_a_pack_is_bounded() -> None:
    """What would make it longer stays at its own place, and is read there."""
    inner = MemoryStore()
    archive = written_on(inner, 31).archive
    for number in range(1, 151):
        text = random.Random(number).randbytes(20_000).hex()
        archive.write_effect("a", 3, number, {"value": text})
    whole = {key: inner.get(key) for key in inner.list("")}
    store = PackedStore(inner)
    assert store.pack(RUN, 0)
    assert 1 << 20 < len(inner.get(PACKS[0])) < (2 << 20) + (64 << 10)
    assert {key: store.get(key) for key in store.list("")} == whole
    assert len(list(inner.list(RUN))) > 10
    assert not store.pack(RUN, 0)


def test_packing_that_was_broken_off_is_taken_up_at_the_runs_end() -> None:
    """Also behind an interval that is packed: a walk back does not come by it."""
    inner = inside({key: ALONE.get(key) for key in KEYS})
    store = PackedStore(inner)
    assert store.pack(RUN, 32)
    pack_before(store, RUN, TURNS)
    assert list(inner.list(f"{JOB}/packs/")) == PACKS[1:]
    pack_before(store, RUN, TURNS, every=True)
    assert list(inner.list(f"{JOB}/packs/")) == PACKS


@pytest.mark.parametrize("parts", [(), (Part("00000/0000001.step", b"x", 1),)])
def test_a_pack_of_nothing_or_with_more_is_none(
    made: dict[str, bytes], parts: tuple[Part, ...]
) -> None:
    """``verify`` names it."""
    extra = f"{JOB}/packs/a/0000064"
    fields = {"kind": "interval"} if not parts else {"kind": "interval", "more": 1}
    sealed_pack = seal(extra, header(fields, parts), parts)[0]
    assert faults(archive_on(inside(made | {extra: sealed_pack})))[extra] is Fault.CORRUPT


class _NoRoom(MemoryStore):
    def put_if_absent(self, key: str, data: bytes) -> bool:
        if keys.packed_prefix(key):
            raise ArchiveError("no room")
        return super().put_if_absent(key, data)


def test_a_failure_to_pack_is_no_failed_turn(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, and all stays at its own place."""
    inner = _NoRoom()
    written_on(PackedStore(inner), 40)
    assert "are not packed: no room" in caplog.text
    assert len([key for key in inner.list(RUN) if key.endswith(".step")]) == 40


@pytest.mark.slow
@pytest.mark.parametrize("turn", [20, 40, 64])
def test_a_run_goes_on_from_a_packed_turn(made: dict[str, bytes], turn: int) -> None:
    """As a reset does: its requests are put together from packed ones, its own turns are packed,
    and those of the run before stay.
    """
    inner = inside(made)
    store = PackedStore(inner)
    written = Written(JobArchive(store, "nightly", "long"))
    layout_at = blocks(random.Random(9), 3, 100)
    write_run(written, "b", range(turn + 1, turn + 41), WRITTEN.refs["a", turn], layout_at)
    fresh = archive_on(inner)
    assert [(step.run, step.turn) for step in fresh.steps("b")] == [
        ("a" if number <= turn else "b", number) for number in range(1, turn + 41)
    ]
    for (run, number), request in written.requests.items():
        assert fresh.wire_request(run, number) == request
    assert faults(fresh) == {}
    # What it begins with is packed with all of its interval.
    assert list(inner.list(f"{JOB}/packs/a/")) == [*PACKS, LAST][: 2 + turn // 64]
    assert list(inner.list(f"{JOB}/packs/b/")) == [
        keys.pack_key(f"{JOB}/turns/b/", first)
        for first in range((turn + 1) // 32 * 32, (turn + 40) // 32 * 32, 32)
    ]


def test_an_end_has_what_was_left_packed(made: dict[str, bytes]) -> None:
    """Where a worker was killed after a keyframe, and the job ended before the next; and the turns
    of the last interval.
    """
    store = PackedStore(inside({key: ALONE.get(key) for key in KEYS}))
    JobArchive(store, "nightly", "long").write_end(
        NewEnd(run="a", turn=TURNS, parent=WRITTEN.refs["a", TURNS], status="succeeded")
    )
    assert list(store.inner.list(f"{JOB}/packs/")) == [*PACKS, LAST]
    assert list(store.inner.list(RUN)) == []
    assert [key for key in store.list("") if key != keys.end_key(JOB, "a")] == KEYS
    assert list(store.folders(f"{JOB}/turns/")) == ["a"]


@pytest.mark.slow
def test_a_run_that_another_goes_on_from_is_packed_whole() -> None:
    """With the first step of the next, also as a copy: it has no end of its own. A fork's first
    step is no reason, nor a summary's, which are of the run that goes on.
    """
    alone = MemoryStore()
    check_store(alone, "memory")
    written, blocks_at = written_on(alone), blocks(random.Random(9), 3, 100)
    target = PackedStore(MemoryStore())
    check_store(target, "memory")
    parent = written.refs["a", TURNS]
    copy_archive(alone, target, all_jobs(alone), everything=True, tell=lambda _: None)
    going = Written(JobArchive(target, "nightly", "long"))
    fork = Written(JobArchive(target, "nightly", "fork"))
    write_run(going, keys.side_run("a", "summary-71"), range(71, 72), parent, blocks_at)
    write_run(fork, "c", range(TURNS + 1, TURNS + 2), parent, blocks_at)
    assert list(target.inner.list(f"{JOB}/packs/")) == PACKS
    first = write_run(going, "b", range(TURNS + 1, TURNS + 3), parent, blocks_at)
    assert first is not None
    copy = PackedStore(MemoryStore())
    check_store(copy, "memory")
    copy_archive(target, copy, all_jobs(target), everything=True, tell=lambda _: None)
    for store in (target, copy):
        assert list(store.inner.list(f"{JOB}/packs/")) == [*PACKS, LAST]
        assert list(store.inner.list(RUN)) == []
        assert faults(JobArchive(store, "nightly", "long")) == {}
        assert (
            JobArchive(store, "nightly", "long").wire_request("b", TURNS + 2)
            == (going.requests["b", TURNS + 2])
        )


def test_so_is_one_of_a_job_that_is_called_turns() -> None:
    """As a part of the keys is."""
    store = PackedStore(MemoryStore())
    written = Written(JobArchive(store, "nightly", "turns"))
    layout_at = blocks(random.Random(9), 3, 100)
    parent = write_run(written, "a", range(1, 21), None, layout_at)
    write_run(written, "b", range(21, 22), parent, layout_at)
    assert list(store.inner.list("nightly/turns/packs/")) == ["nightly/turns/packs/a/0000000"]


@pytest.mark.parametrize("parent", ["x", 3, {"k": 1}])
def test_a_copy_goes_on_where_a_first_step_names_no_parent(parent: object) -> None:
    """``verify`` tells of it, there and here."""
    source, target = MemoryStore(), PackedStore(MemoryStore())
    for store in (source, target):
        check_store(store, "memory")
    written = written_on(source, 20)
    write_run(written, "b", range(21, 22), written.refs["a", 20], blocks(random.Random(9), 3, 100))
    key = keys.step_key(JOB, "b", 21)
    step = unseal(key, source.get(key))
    source.remove(key)
    parts = tuple(step.parts())
    source.put_if_absent(key, seal(key, header({**step.header, "parent": parent}, parts), parts)[0])
    copy_archive(source, target, all_jobs(source), everything=True, tell=lambda _: None)
    assert target.get(key) == source.get(key)


def test_a_run_that_ends_before_its_first_step_has_the_one_before_packed() -> None:
    """As where a call fails right after a job went on in another run."""
    target = PackedStore(MemoryStore())
    written = written_on(target)
    archive = JobArchive(target, "nightly", "long")
    archive.write_end(
        NewEnd(run="b", turn=TURNS + 1, parent=written.refs["a", TURNS], status="failed")
    )
    assert list(target.inner.list(f"{JOB}/packs/")) == [*PACKS, LAST]


@pytest.mark.parametrize(("turns", "packs"), [(2, []), (5, PACKS[:1])])
def test_a_short_run_is_packed_as_it_ends(turns: int, packs: list[str]) -> None:
    """From eight objects on, and a copy of it likewise; until then it stands alone, also as a copy.

    It reads as before, and goes as a whole.
    """

    def copied(source: ObjectStore) -> PackedStore:
        target = PackedStore(MemoryStore())
        check_store(target, "memory")
        copy_archive(source, target, all_jobs(source), everything=True, tell=lambda _: None)
        return target

    alone = MemoryStore()
    check_store(alone, "memory")
    refs = written_on(alone, turns).refs
    going = copied(alone)
    assert list(going.inner.list(f"{JOB}/packs/")) == []
    end = NewEnd(run="a", turn=turns, parent=refs["a", turns], status="succeeded")
    JobArchive(alone, "nightly", "long").write_end(end)
    JobArchive(going, "nightly", "long").write_end(end)
    for store in (going, copied(alone), copied(going)):
        assert list(store.inner.list(f"{JOB}/packs/")) == packs
        assert bool(list(store.inner.list(RUN))) == (not packs)
        assert {key: store.get(key) for key in store.list("")} == {
            key: alone.get(key) for key in alone.list("")
        }
        assert faults(JobArchive(store, "nightly", "long")) == {}
        assert JobReader(store, "nightly", "long").runs_that_called() == ["a"]
        delete_jobs(store, [JOB], WISH, tell=lambda _: None)
        assert list(store.inner.list(f"{JOB}/")) == []


def test_a_copy_packs_an_end_in_an_interval_without_a_step() -> None:
    """Where the first call of an interval failed until the job gave up."""
    alone = MemoryStore()
    check_store(alone, "memory")
    written = written_on(alone, 31)
    archive, parent = written.archive, written.refs["a", 31]
    for attempt in range(1, 6):
        layout = (segment(f"try {attempt}"),)
        archive.fail_attempt(
            failure_record(written.begin("a", 32, parent, layout, attempt=attempt))
        )
    archive.write_end(NewEnd(run="a", turn=32, parent=parent, status="failed"))
    target = PackedStore(MemoryStore())
    check_store(target, "memory")
    copy_archive(alone, target, all_jobs(alone), everything=True, tell=lambda _: None)
    assert list(target.inner.list(f"{JOB}/packs/")) == PACKS
    assert list(target.inner.list(RUN)) == []


def test_a_deleted_job_leaves_no_pack(made: dict[str, bytes]) -> None:
    """Nor one that is damaged; its tombstone is as that of a job without packs."""
    inner = inside(made | {PACKS[1]: made[PACKS[1]][:-1]})
    for store in (PackedStore(inside(made)), PackedStore(inner)):
        (done,) = delete_jobs(store, [JOB], WISH, tell=lambda _: None)
        assert list(store.inner.list(f"{JOB}/")) == []
        assert list(store.list(f"{JOB}/")) == []
        assert all_jobs(store) == []
        if store.inner is not inner:
            own = [key for key in KEYS if key.startswith(f"{JOB}/")]
            assert list(done.tombstone.own) == own
            assert done.objects == len(own)


@pytest.mark.kill
@pytest.mark.parametrize("nth", [1, 20, 21, 22, 60, 180])
def test_a_deletion_that_is_killed_amid_packs_goes_on(
    python: Scripts, tmp_path: Path, nth: int
) -> None:
    """The rest goes when the deletion is given again."""
    url = str(tmp_path / "archive")
    written_on(open_store(url))
    code = (
        "import sys\n"
        "from test_archive_packs import *\n"
        "delete_jobs(open_existing(sys.argv[1]), [JOB], WISH, tell=lambda _: None)"
    )
    done = python(code, url, HOLDFAST_FAILPOINT=f"archive.delete.mid_job:{nth}")
    assert done.code == -signal.SIGKILL, done.said
    store = open_existing(url)
    delete_jobs(store, [JOB], WISH, tell=lambda _: None)
    assert list(DirectoryStore(tmp_path / "archive").list(f"{JOB}/")) == []


@pytest.mark.slow
@pytest.mark.parametrize("nested", [False, True])
def test_a_copy_packs_what_it_brings(made: dict[str, bytes], nested: bool) -> None:
    """From an archive with packs or without, into a directory; elsewhere each object alone."""
    source = PackedStore(inside(made)) if nested else ALONE
    target, plain = PackedStore(MemoryStore()), MemoryStore()
    for one in (target, plain):
        check_store(one, "memory")
        copied = copy_archive(
            source, one, all_jobs(source), everything=True, tell=lambda _: None, compare=True
        )
        assert copied.whole
    assert {key: target.inner.get(key) for key in target.inner.list("")} == made
    assert {key: plain.get(key) for key in plain.list("")} == {key: ALONE.get(key) for key in KEYS}


def test_a_copy_tells_of_a_damaged_pack(made: dict[str, bytes]) -> None:
    """By its key; what can be read of it comes along."""
    data = bytearray(made[PACKS[0]])
    data[-100] ^= 1
    source, target = PackedStore(inside(made | {PACKS[0]: bytes(data)})), MemoryStore()
    check_store(target, "memory")
    copied = copy_archive(source, target, all_jobs(source), everything=True, tell=lambda _: None)
    assert PACKS[0] in copied.damaged
    assert len(copied.damaged) == 2
    assert target.get(keys.step_key(JOB, "a", 3)) == ALONE.get(keys.step_key(JOB, "a", 3))


@pytest.mark.slow
def test_packs_of_an_encrypted_archive_are_encrypted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: dict[str, bytes]
) -> None:
    """As any object: for its place, and the same bytes whoever writes it."""
    key = base64.b64encode(b"a" * 32).decode()
    monkeypatch.setenv("HOLDFAST_ENCRYPTION_KEYS", f"a {key}")
    stored = []
    for name in ("one", "two"):
        url = str(tmp_path / name)
        written_on(create_encrypted(url))
        raw = DirectoryStore(tmp_path / name)
        stored.append({key: raw.get(key) for key in raw.list(f"{JOB}/")})
    assert stored[0] == stored[1]
    assert stored[0].keys() == {key for key in made if key.startswith(JOB)}
    assert all(data.startswith(b"HFE\x01") for data in stored[0].values())
    store = open_existing(str(tmp_path / "one"))
    assert {key: store.get(key) for key in store.list(f"{JOB}/")} == {
        key: ALONE.get(key) for key in KEYS if key.startswith(JOB)
    }
    assert faults(JobArchive(store, "nightly", "long")) == {}


@pytest.mark.s3
@pytest.mark.usefixtures("aws")
def test_a_bucket_has_no_packs(s3_server: object) -> None:
    """Who writes there need not have the right to remove."""
    store = open_store(s3_server.url(uuid.uuid4().hex))  # type: ignore[attr-defined]
    written_on(store, 34)
    assert list(store.list(f"{JOB}/packs/")) == []
    assert len([key for key in store.list(RUN) if key.endswith(".step")]) == 34
