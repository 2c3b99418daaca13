"""A copy of an archive is an archive at every moment, and what was deleted stays deleted."""

from __future__ import annotations

import random
import re
import signal
import uuid
from collections import Counter
from pathlib import Path

import pytest
from archive_jobs import Written, chat, rich_archive, write_run

from runtime.archive import container
from runtime.archive.catalog import all_jobs, archive_id
from runtime.archive.container import seal, unseal
from runtime.archive.frames import compress
from runtime.archive.heads import altered_shared
from runtime.archive.job import JobArchive
from runtime.archive.lifecycle.copying import Copied, CopiedJob, _Copier, copy_archive
from runtime.archive.lifecycle.deletion import Wish, delete_jobs, sweep
from runtime.archive.lifecycle.holds import Hold, write_hold
from runtime.archive.pages import page_key, write_page
from runtime.archive.stores import MemoryStore, ObjectStore, check_store, open_store, overlap
from runtime.archive.verify import Fault, damage, examine_job
from runtime.base.errors import InputError
from runtime.base.values import JobKey
from runtime.cli.main import main
from tests.eventually import SECONDS
from tests.forks.scripts import Scripts
from tests.held_store import HeldStore

WISH = Wish("alice", "2026-05-01T00:00:00+00:00", "asked for")


def copied(source: ObjectStore, target: ObjectStore, **options: bool) -> Copied:
    jobs = all_jobs(source)
    return copy_archive(source, target, jobs, everything=True, tell=lambda _: None, **options)


def filled() -> MemoryStore:
    store = MemoryStore()
    check_store(store, "memory")
    rich_archive(store)
    archive_id(store)
    return store


@pytest.mark.slow
def test_a_copy_has_every_object_byte_for_byte(store: ObjectStore) -> None:
    """To any kind of store; a second one finds all of it there."""
    source = filled()
    check_store(store, "here")
    first = copied(source, store)
    names = list(source.list(""))
    assert sorted(store.list("")) == sorted(names)
    assert all(store.get(key) == source.get(key) for key in names)
    assert (first.whole, first.jobs, first.present) == (True, 2, 0)
    again = copied(source, store, compare=True)
    assert (again.objects, again.bytes, again.whole) == (0, 0, True)
    assert again.present == first.objects
    # Each is looked at once, however many others name it.
    job = JobKey(batch="nightly", job="licences")
    told = copy_archive(source, store, [job], everything=False, compare=True, tell=lambda _: None)
    assert told.present == len(list(source.list("nightly/licences/")))


class Ordered(MemoryStore):
    """Remembers in which order objects came."""

    def __init__(self) -> None:
        super().__init__()
        self.order: list[str] = []

    def put_if_absent(self, key: str, data: bytes) -> bool:
        written = super().put_if_absent(key, data)
        if written:
            self.order.append(key)
        return written


@pytest.mark.slow
def test_a_copy_that_was_broken_off_is_whole_as_far_as_it_came() -> None:
    """After each object that is written, what is there names nothing that is not."""
    source, target = filled(), Ordered()
    copied(source, target)
    half = MemoryStore()
    checked = 0
    for key in target.order:
        half.put_if_absent(key, source.get(key))
        if key.endswith((".step", ".checkpoint")) or "/ends/" in key:
            checked += 1
            for job in all_jobs(half):
                found = damage(examine_job(JobArchive.of(half, job)).findings)
                assert [one for one in found if one.fault is not Fault.UNCOVERED] == [], key
    assert checked > 10


def test_what_is_damaged_is_told_and_not_copied() -> None:
    """The rest is; and where the target holds other bytes, that is told when it is asked."""
    source, target = filled(), MemoryStore()
    key = next(key for key in source.list("nightly/licences/") if key.endswith(".step"))
    whole = source.get(key)
    source.replace(key, whole[:-1] + bytes([whole[-1] ^ 1]))
    found = copied(source, target)
    assert list(found.damaged) == [key]
    assert key not in target.list("")
    assert len(list(target.list(""))) == len(list(source.list(""))) - 3
    source.replace(key, whole)
    assert copied(source, target).whole
    target.replace(key, b"something else")
    assert copied(source, target).different == {}
    assert list(copied(source, target, compare=True).different) == [key]


@pytest.mark.slow
def test_what_is_named_and_not_there_is_told() -> None:
    """Of each kind of object that others name, as ``verify`` tells it; the rest is copied."""
    whole = filled()
    named = set[str]().union(
        *(examine_job(JobArchive.of(whole, job)).named for job in all_jobs(whole))
    )
    kinds = {re.sub(r"\d+", "0", key.rpartition("/")[2].rpartition(".")[2]): key for key in named}
    assert len(kinds) >= 10
    for lost in kinds.values():
        source, target = filled(), MemoryStore()
        source.remove(lost)
        done = copied(source, target)
        assert (list(done.missing), done.damaged, done.whole) == ([lost], {}, False)
        assert done.missing[lost].startswith(f"{lost}: is not there, but ")
        assert "_holdfast/id" not in target.list("")
        assert len(list(target.list(""))) == len(list(source.list(""))) - 2


def test_what_was_deleted_is_not_missing() -> None:
    """A tombstone covers what a fork has of another job."""
    source, target = filled(), MemoryStore()
    delete_jobs(source, ["nightly/licences"], WISH, tell=lambda _: None)
    done = copied(source, target)
    assert (done.missing, done.jobs, done.whole) == ({}, 1, True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "bad"),
    [
        ("_holdfast/summaries/5e", b""),
        ("_holdfast/summaries/5e", b'{"text": "It sets y."}'),
        ("_holdfast/summaries/5e", b"[" * 100_000),
        ("_holdfast/summaries/5e.claims/00000001", b""),
        ("_holdfast/summaries/5e.claims/00000001", b'{"over": false}'),
        ("_holdfast/holds/nightly/short/0001", b'{"kind": "hold"'),
        ("_holdfast/holds/nightly/short/0001", b"[" * 100_000),
        ("_holdfast/notices/nightly/5e", b'{"key": "nightly'),
        ("_holdfast/tombstones/nightly/gone/0001", b"no container"),
    ],
    ids=str,
)
def test_what_all_jobs_share_is_checked_and_not_copied(key: str, bad: bytes) -> None:
    """And ``verify`` tells of it as well."""
    source, target = filled(), MemoryStore()
    if key in source.list(""):
        source.replace(key, bad)
    else:
        source.put_if_absent(key, bad)
    done = copied(source, target)
    assert (list(done.damaged), done.whole) == ([key], False)
    assert key not in target.list("")
    assert [one for one, _ in altered_shared(source) if key.startswith(one)]


def test_a_tombstone_that_cannot_be_read_leaves_its_job_out_alone() -> None:
    """Nobody knows whether that was deleted; the others are copied, with what they share and are
    held by.
    """
    source, target = filled(), MemoryStore()
    check_store(target, "here")
    bad = "_holdfast/tombstones/nightly/short/0001"
    source.put_if_absent(bad, b"damaged")
    write_hold(source, "nightly/licences", Hold(by="a", at="2026-05-01T00:00:00+00:00", reason="r"))
    done = copied(source, target)
    assert (list(done.damaged), done.whole) == ([bad], False)
    left = [key for key in source.list("") if key not in target.list("")]
    assert {key for key in left if not key.startswith("nightly/short/")} == {bad, "_holdfast/id"}


def test_a_tombstone_of_the_copy_that_cannot_be_read_ends_no_copy() -> None:
    """Jobs come, with what they name, and holds; what no job names may have been deleted there."""
    source, target = filled(), MemoryStore()
    bad = "_holdfast/tombstones/nightly/gone/0001"
    target.put_if_absent(bad, b"damaged")
    source.put_if_absent("_holdfast/pages/5e/5e", b"a page")
    write_hold(source, "nightly/licences", Hold(by="a", at="2026-05-01T00:00:00+00:00", reason="r"))
    done = copied(source, target)
    assert (list(done.different), done.damaged, done.whole) == ([bad], {}, False)
    left = {key for key in source.list("") if key not in target.list("")}
    assert "_holdfast/pages/5e/5e" in left
    assert not any(key.startswith(("nightly/", "_holdfast/holds/")) for key in left)


def test_a_tombstone_of_the_copy_that_cannot_be_read_is_told_of_the_copy() -> None:
    """Its job is left out, and nothing is said of the source, which is whole."""
    source, target = filled(), MemoryStore()
    bad = "_holdfast/tombstones/nightly/short/0001"
    target.put_if_absent(bad, b"damaged")
    done = copied(source, target)
    assert (list(done.different), done.damaged) == ([bad], {})
    assert "(in memory): nor is nightly/short" in done.different[bad]
    assert not list(target.list("nightly/short/"))


def test_a_summary_that_is_another_than_the_one_that_was_shown_is_damaged() -> None:
    """It has the digest by which the effect names it, or it is not the one."""
    source, target = filled(), MemoryStore()
    key = "_holdfast/summaries/5e"
    source.replace(key, source.get(key).replace(b"It sets x.", b"It sets y."))
    assert list(copied(source, target).damaged) == [key]
    assert key not in target.list("")


@pytest.mark.parametrize("named", [{"key": 13}, {"key": None, "digest": None}])
def test_a_step_that_names_no_object_is_copied_as_it_is(named: dict[str, object]) -> None:
    """Somebody made it: ``verify`` says what is wrong with it."""
    source, target = filled(), MemoryStore()
    key = next(key for key in source.list("nightly/licences/") if key.endswith(".step"))
    archived = unseal(key, source.get(key))
    fields = {**archived.header, "attempt": {**archived.header["attempt"], **named}}
    parts = archived.parts()
    source.replace(key, seal(key, container.header(fields, parts), parts)[0])
    assert copied(source, target).damaged == {}
    assert target.get(key) == source.get(key)
    examined = examine_job(JobArchive(target, "nightly", "licences"))
    assert key in {finding.key for finding in damage(examined.findings)}


def test_a_damaged_page_of_definitions_is_told_and_not_copied() -> None:
    """A store keeps what was written first: there is no second try."""
    source, target = filled(), MemoryStore()
    key = page_key(write_page(source, [{"key": {"batch": "b", "job": "j"}}]))
    whole = source.get(key)
    source.replace(key, whole[:-5] + bytes([whole[-5] ^ 1]) + whole[-4:])
    assert list(copied(source, target).damaged) == [key]
    assert key not in target.list("")
    source.replace(key, whole)
    assert copied(source, target).whole
    assert target.get(key) == whole


def test_what_is_compressed_in_another_way_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """As another release of zstd does: an object's digest is that of what it says."""
    source, target = filled(), MemoryStore()
    assert copied(source, target).whole
    key = next(key for key in source.list("") if key.endswith(".step"))
    archived = unseal(key, source.get(key))
    monkeypatch.setattr(container, "compress", lambda data, known: compress(data))
    other = seal(key, archived.header_bytes, archived.parts())[0]
    assert other != source.get(key)
    target.replace(key, other)
    assert copied(source, target, compare=True).different == {}
    assert unseal(key, target.get(key)).digest == archived.digest


def test_another_archive_is_no_target() -> None:
    """An archive is copied to one of the same id, or to one that has none yet."""
    source, other = filled(), filled()
    with pytest.raises(InputError, match="another archive"):
        copied(source, other)


def test_some_jobs_bring_what_they_lean_on() -> None:
    """A fork comes with the turns that it has of another job, and verifies."""
    source, target = filled(), MemoryStore()
    short = JobKey(batch="nightly", job="short")
    copy_archive(source, target, [short], everything=False, tell=lambda _: None)
    assert damage(examine_job(JobArchive.of(target, short)).findings) == []
    assert list(target.list("nightly/licences/ends/")) == []


class Counted(MemoryStore):
    """Counts how often each object is read."""

    def __init__(self) -> None:
        super().__init__()
        self.read = Counter[str]()

    def get(self, key: str) -> bytes:
        self.read[key] += 1
        return super().get(key)


@pytest.mark.parametrize("compare", [False, True])
def test_what_forks_lean_on_is_read_once_for_all_of_them(compare: bool) -> None:
    """And what was brought for one of them was not there before."""
    source, target = Counted(), MemoryStore()
    check_store(source, "memory")
    lines = chat(random.Random(2), 20)
    first = Written(JobArchive(source, "nightly", "job"))
    write_run(first, "first", range(1, 9), None, lines)
    for number in range(4):
        fork = Written(JobArchive(source, "nightly", f"fork-{number}"))
        write_run(fork, "forked", range(7, 9), first.refs["first", 6], lines)
    source.read.clear()
    done = copied(source, target, compare=compare)
    assert max(source.read.values()) <= 2
    assert (done.objects, done.present) == (len(list(target.list("nightly/"))), 0)
    again = copied(source, target, compare=compare)
    assert (again.objects, again.present) == (0, done.objects)


def test_a_copy_brings_nothing_back(store: ObjectStore) -> None:
    """What was deleted here and is in the copy, or the other way round, is told and left."""
    source, backup = filled(), MemoryStore()
    copied(source, backup)
    delete_jobs(source, ["nightly/short"], WISH, tell=lambda _: None)
    sweep(source)
    restored = copied(backup, source)
    assert restored.deleted == [JobKey(batch="nightly", job="short")]
    assert list(source.list("nightly/short/")) == []
    assert copied(source, backup).jobs == 1
    (done,) = delete_jobs(backup, ["nightly/short"], WISH, tell=lambda _: None)
    assert done.objects > 0
    assert list(backup.list("nightly/short/")) == []


_COPY = """
import sys
from runtime.archive.catalog import all_jobs
from runtime.archive.lifecycle.copying import copy_archive
from runtime.archive.stores import open_store
source, target = map(open_store, sys.argv[1:])
copy_archive(source, target, all_jobs(source), everything=True, tell=lambda _: None)
"""


@pytest.mark.kill
@pytest.mark.parametrize("point", ["before_put:7", "after_put:23", "after_put:41"])
def test_a_copy_that_is_killed_goes_on(python: Scripts, tmp_path: Path, point: str) -> None:
    """The same command ends with all that the archive has."""
    source = open_store(str(tmp_path / "from"))
    rich_archive(source)
    archive_id(source)

    def copy(**failpoint: str) -> int:
        return python(_COPY, str(tmp_path / "from"), str(tmp_path / "to"), **failpoint).code

    assert copy(HOLDFAST_FAILPOINT=f"archive.copy.{point}") == -signal.SIGKILL
    target = open_store(str(tmp_path / "to"))
    for job in all_jobs(target):
        assert damage(examine_job(JobArchive.of(target, job)).findings) == []
    assert copy() == 0
    assert list(target.list("")) == list(source.list(""))
    assert all(target.get(key) == source.get(key) for key in source.list(""))


def test_a_copy_that_is_broken_off_waits_for_no_job(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by Ctrl-C. The job that another thread copies is left where it is; the same call goes
    on.
    """
    source, there = filled(), MemoryStore()
    archive = JobArchive(source, "nightly", "long")
    archive.write_definition({"goal": "g"})
    write_run(Written(archive), "a", range(1, 4), None, chat(random.Random(0)))
    held = HeldStore(there, lambda key: key.startswith("nightly/long/"))

    def tell(_: CopiedJob) -> None:
        assert held.reached.wait(SECONDS)
        raise KeyboardInterrupt

    def let_go(copier: _Copier) -> None:
        break_off(copier)
        held.let_go.set()

    break_off = _Copier.break_off
    monkeypatch.setattr(_Copier, "break_off", let_go)
    with pytest.raises(KeyboardInterrupt):
        copy_archive(source, held, all_jobs(source), everything=True, tell=tell)
    # What was under way, and nothing behind it.
    assert len(list(there.list("nightly/long/"))) == 1
    assert copied(source, there).whole
    assert list(there.list("nightly/")) == list(source.list("nightly/"))


@pytest.mark.s3
@pytest.mark.usefixtures("aws")
def test_an_archive_goes_to_a_bucket_and_back(s3_server: object, tmp_path: Path) -> None:
    """A directory, a bucket, a directory: the same objects."""
    source = open_store(str(tmp_path / "from"))
    rich_archive(source)
    archive_id(source)
    bucket = open_store(s3_server.url(uuid.uuid4().hex))  # type: ignore[attr-defined]
    back = open_store(str(tmp_path / "back"))
    assert copied(source, bucket).whole
    assert copied(bucket, back).whole
    assert [(key, back.get(key)) for key in back.list("")] == [
        (key, source.get(key)) for key in source.list("")
    ]


def test_a_place_with_something_else_in_it_is_no_target(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its folders would be jobs of the copy. A disk has a folder of its own, which is no matter."""
    source, project, disk = (tmp_path / name for name in ("from", "project", "disk"))
    rich_archive(open_store(str(source)))
    (project / "src" / "package").mkdir(parents=True)
    (disk / "lost+found").mkdir(parents=True)
    assert main(["archive", "copy", str(source), str(project)]) == 2
    assert f"{project} holds something else than an archive, and src/package would be" in (
        capsys.readouterr().err
    )
    assert [*project.iterdir()] == [project / "src"]
    # Given again, it goes on.
    for _ in range(2):
        assert main(["archive", "copy", str(source), str(disk)]) == 0


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("/a/b", "/a/b/c", True),
        ("/a/b", "file:///a/b/", True),
        ("/a/b", "/a/bc", False),
        ("s3://b/x", "s3://b", True),
        ("s3://b/x", "s3://b/xy", False),
        ("s3://b/x?endpoint_url=http://one", "s3://b/x?endpoint_url=http://two", False),
        ("/b/x", "s3://b/x", False),
    ],
)
def test_places_meet_where_one_lies_in_the_other(one: str, other: str, meet: bool) -> None:
    """Whichever is named first."""
    assert (overlap(one, other), overlap(other, one)) == (meet, meet)
