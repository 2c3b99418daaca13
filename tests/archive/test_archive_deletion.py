"""A job that is deleted leaves a tombstone, and the rest as it was; a loss stays a loss."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from archive_jobs import Written, eventful_job, rich_archive, segment
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from runtime.archive import keys
from runtime.archive.catalog import all_jobs, find_job
from runtime.archive.forms import NewEnd
from runtime.archive.heads import ArchiveHead, altered_shared, head_of, shared_digests
from runtime.archive.job import JobArchive
from runtime.archive.lifecycle import deletion
from runtime.archive.lifecycle.deletion import Deleted, Wish, delete_jobs, refusals, sweep
from runtime.archive.lifecycle.holds import FOLDER as HOLDS
from runtime.archive.lifecycle.holds import Hold, held_jobs, write_hold
from runtime.archive.lifecycle.retention import EndedJob, Rules, ended_jobs
from runtime.archive.lifecycle.tombstones import digest_at, tombstones_of, write_tombstone
from runtime.archive.notices import FOLDER as NOTICES
from runtime.archive.notices import Notice, notice_key, write_notice
from runtime.archive.pages import write_page
from runtime.archive.references import SHARED
from runtime.archive.signing import signer_with
from runtime.archive.stores import MemoryStore, ObjectStore, open_store, removing
from runtime.archive.trees import Trees
from runtime.archive.verify import Fault, damage, examine_job
from runtime.base.digests import digest_bytes
from runtime.base.errors import ArchiveError, InputError, NotFound, ObjectCorrupt
from runtime.base.values import JobKey
from runtime.client.verification import Demands, JobVerdict, shared_verdict, verified
from runtime.trees.entries import Entry, Kind
from runtime.trees.tree import Tree
from tests.forks.scripts import Scripts

LICENCES, SHORT = "nightly/licences", "nightly/short"
AT = "2026-05-01T00:00:00+00:00"
WISH = Wish("alice", AT, "the customer asked for it")
KEY = Ed25519PrivateKey.generate()
SIGNED = Wish("alice", AT, "the customer asked for it", signer_with(KEY))


def delete(store: ObjectStore, *jobs: str, wish: Wish = WISH) -> list[Deleted]:
    return delete_jobs(store, jobs, wish, tell=lambda _: None)


def head(store: ObjectStore) -> ArchiveHead:
    examined = [examine_job(JobArchive.of(store, job)) for job in all_jobs(store)]
    return head_of(examined, shared_digests(store), archive=None, made_at="", signer=None)


async def verdict(store: ObjectStore, job: str, demands: Demands | None = None) -> JobVerdict:
    batch, _, name = job.partition("/")
    return await verified(store, JobKey(batch=batch, job=name), None, demands or Demands())


async def test_a_deleted_job_is_told_of_and_not_missed(store: ObjectStore) -> None:
    """By whom, when and why, also where a head was kept that names it; the others are clean."""
    rich_archive(store)
    kept = head(store)
    delete(store, SHORT)
    assert list(store.list(f"{SHORT}/")) == []
    told = await verdict(store, SHORT, Demands(head=kept))
    assert told.damage == ()
    (note,) = told.notes
    assert note.fault is Fault.DELETED
    assert note.message.startswith(f"nightly/short was deleted by alice at {AT}: the customer")
    assert note.message.endswith(" asked for it (38 objects, not signed)")
    left = await verdict(store, LICENCES, Demands(head=kept))
    assert left.damage == ()
    assert list(altered_shared(store)) == []
    with pytest.raises(NotFound, match="was deleted by alice"):
        find_job(store, SHORT)


async def test_what_was_lost_is_no_deletion(store: ObjectStore) -> None:
    """A head names a step that the tombstone does not cover, or with another digest: damage."""
    rich_archive(store)
    kept = head(store)
    delete(store, SHORT)
    (tip,) = [key for key in kept.tips if "/ends/" in key and key.startswith(SHORT)]
    forged = kept.model_copy(update={"tips": {**kept.tips, tip: digest_bytes(b"another")}})
    told = await verdict(store, SHORT, Demands(head=forged))
    assert [finding.key for finding in told.damage] == [tip]


async def test_a_summary_of_a_deleted_job_is_told_as_such(store: ObjectStore) -> None:
    """Another job was shown it: the call that wrote it is gone, and that is a note."""
    rich_archive(store)
    other = Written(JobArchive(store, "nightly", "other"))
    step = other.finish("r", 1, other.begin("r", 1, None, [segment("Go.")]))
    other.archive.write_effect("r", 1, 0, {"results": []}, uses=["_holdfast/summaries/5e"])
    other.finish("r", 2, other.begin("r", 2, step, [segment("Go on.")]))
    delete(store, SHORT)
    assert sweep(store) != []
    told = await verdict(store, "nightly/other")
    assert told.damage == ()
    assert [note.fault for note in told.notes if "nightly/short" in note.message] == [Fault.DELETED]
    assert "_holdfast/summaries/5e" in store.list(SHARED)


@pytest.mark.slow
async def test_what_only_the_deleted_used_goes(store: ObjectStore) -> None:
    """Summaries with their claims and material; a head that was kept does not miss them."""
    rich_archive(store)
    kept = head(store)
    before = set(store.list(SHARED))
    delete(store, SHORT)
    removed = sweep(store)
    assert {key.split("/")[1] for key in removed} == {"summaries", "material"}
    assert before - set(store.list(SHARED)) == set(removed)
    others = [await verdict(store, LICENCES)]
    assert shared_verdict(store, others, kept).damage == ()


async def test_the_notices_of_a_deleted_jobs_ends_go_with_it(store: ObjectStore) -> None:
    """They tell of it; those of others and of the batch stay, and one that cannot be read. A head
    that was kept does not miss them.
    """
    rich_archive(store)
    for job in ("short", "licences", ""):
        told = {"batch": "nightly", "job": job, "event": "job" if job else "batch"}
        said = {"to": "./tell.sh", "heard": False, "error": "the last words", "at": AT}
        write_notice(store, Notice(key=f"nightly/{job}/r", **told, **said))
    store.put_if_absent(f"{NOTICES}nightly/5e", b"damaged")
    kept, gone = head(store), notice_key("nightly", "nightly/short/r")
    before = set(store.list(NOTICES))
    (done,) = delete(store, SHORT)
    assert gone in done.tombstone.shared
    assert gone in sweep(store)
    assert before - set(store.list(NOTICES)) == {gone}
    others = [await verdict(store, LICENCES)]
    (damaged,) = shared_verdict(store, others, kept).damage
    assert damaged.key == f"{NOTICES}nightly/5e"


def bytes_of(path: str) -> bytes:
    return f"the text of {path}\n".encode() * 50


def tree_of(*paths: str) -> Tree:
    return Tree().changed(
        {
            path: Entry(Kind.FILE, 0o644, len(bytes_of(path)), digest_bytes(bytes_of(path)))
            for path in paths
        }
    )


def with_workspace(store: ObjectStore, job: str, *paths: str) -> str:
    """A job that began with some files; its version."""
    archive = JobArchive(store, "ws", job)
    version = Trees(store).write_base(tree_of(*paths), bytes_of).tree.version
    written = Written(archive)
    archive.write_effect("r", 0, 0, {"version": version}, uses=[f"{SHARED}trees/{version[7:]}"])
    written.finish("r", 1, written.begin("r", 1, None, [segment("Go.")]))
    return version


def test_files_that_other_jobs_have_stay(store: ObjectStore) -> None:
    """Two jobs began with the same files, one with others: what is shared by content is kept."""
    same = with_workspace(store, "a", "one.py", "two.py")
    assert with_workspace(store, "b", "one.py", "two.py") == same
    alone = with_workspace(store, "c", "three.py")
    delete(store, "ws/a", "ws/c")
    removed = sweep(store)
    assert f"{SHARED}trees/{alone[7:]}" in removed
    kept = Trees(store)
    assert {path: kept.content(entry) for path, entry in kept.tree(same).under()} == {
        "one.py": bytes_of("one.py"),
        "two.py": bytes_of("two.py"),
    }
    assert damage(examine_job(JobArchive(store, "ws", "b")).findings) == []


def test_a_worker_that_remembers_deleted_files_writes_them_again(store: ObjectStore) -> None:
    """The next job with the same files finds nothing there, whatever its process remembers."""
    trees = Trees(store)
    version = trees.write_base(tree_of("one.py"), bytes_of).tree.version
    change = tree_of("more.py").under()
    after = trees.write_change(
        version, dict(change), {digest_bytes(bytes_of("more.py")): bytes_of("more.py")}
    )
    for key in [key for key in store.list(SHARED) if "/trees/" in key or "/packs/" in key]:
        store.remove(key)  # type: ignore[attr-defined]
    assert trees.write_base(tree_of("one.py"), bytes_of).tree.version == version
    again = trees.write_change(
        version,
        dict(tree_of("more.py").under()),
        {digest_bytes(bytes_of("more.py")): bytes_of("more.py")},
    )
    assert again.tree.version == after.tree.version
    fresh = Trees(store)
    for path, entry in fresh.tree(after.tree.version).under():
        assert fresh.content(entry) == bytes_of(path)


def test_a_worker_that_remembers_deleted_packs_writes_them_for_another_base(
    store: ObjectStore,
) -> None:
    """Other files make another base, but share packs with what the process remembers."""
    trees = Trees(store)
    shared = [f"src/f{n:03d}.py" for n in range(300)]
    for path in ("one.py", "two.py"):
        trees.write_base(tree_of(*shared, path), bytes_of)
    for key in list(store.list(SHARED)):
        store.remove(key)  # type: ignore[attr-defined]
    version = trees.write_base(tree_of(*shared, "three.py"), bytes_of).tree.version
    fresh = Trees(store)
    read = {path: fresh.content(e) for path, e in fresh.tree(version).under() if e.is_file}
    assert read == {path: bytes_of(path) for path in (*shared, "three.py")}


def test_a_held_job_is_refused_by_name(store: ObjectStore) -> None:
    """Until it is released; and a job from which a held one was forked is refused with it."""
    rich_archive(store)
    write_hold(store, SHORT, Hold(by="legal", at=AT, reason="case 7"))
    assert refusals(store, [SHORT], {}) == {
        SHORT: f"it is held: legal hold by legal since {AT}: case 7"
    }
    both = refusals(store, [LICENCES, SHORT], {})
    assert both[LICENCES] == "nightly/short was forked from it, and stays"
    assert list(held_jobs(store, [])) == [JobKey(batch="nightly", job="short")]
    write_hold(store, SHORT, Hold(kind="release", by="legal", at=AT, reason="settled"))
    assert refusals(store, [LICENCES, SHORT], {}) == {}


@pytest.mark.slow
def test_a_job_that_is_held_while_others_are_deleted_stays(store: ObjectStore) -> None:
    """Whoever held it was told that it is held, and a deletion of many jobs takes its time."""
    rich_archive(store)
    hold = Hold(by="legal", at=AT, reason="case 7")
    there = list(store.list(f"{SHORT}/"))
    with pytest.raises(ArchiveError, match="nightly/short is held meanwhile: legal hold by legal"):
        delete_jobs(store, [LICENCES, SHORT], WISH, tell=lambda _: write_hold(store, SHORT, hold))
    assert list(store.list(f"{LICENCES}/")) == []
    assert list(store.list(f"{SHORT}/")) == there
    assert tombstones_of(store, SHORT) == []


class HeldElsewhere(MemoryStore):
    """A store whose job SHORT somebody else holds as the first of its objects goes."""

    def remove(self, key: str) -> None:
        if key.startswith(f"{SHORT}/") and not list(self.list(HOLDS)):
            write_hold(self, SHORT, Hold(by="legal", at=AT, reason="case 7"))
        super().remove(key)


def test_a_hold_ends_a_deletion_in_its_midst(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever holds what is left of the job was told that it is held."""
    monkeypatch.setattr(deletion, "HELD_EACH", 1)
    store = HeldElsewhere()
    rich_archive(store)
    there = list(store.list(f"{SHORT}/"))
    with pytest.raises(ArchiveError, match=r"held meanwhile: .*; what is left of it stays, as do"):
        delete_jobs(store, [SHORT], WISH, tell=lambda _: None)
    assert list(store.list(f"{SHORT}/")) == [key for key in there if "/ends/" not in key]
    write_hold(store, SHORT, Hold(kind="release", by="legal", at=AT, reason="settled"))
    assert [one.objects for one in delete(store, SHORT)] == [len(there) - 1]


def test_what_a_broken_off_deletion_left_can_be_held(store: ObjectStore) -> None:
    """Whoever holds it is told that it is held: it stays, until it is released."""
    rich_archive(store)
    own = {key: digest_at(store, key) for key in store.list(f"{SHORT}/")}
    write_tombstone(store, SHORT, own, {}, by="m", at=AT, reason="", signer=None)
    removing(store).remove(next(key for key in own if "/ends/" in key))
    write_hold(store, SHORT, Hold(by="legal", at=AT, reason="case 7"))
    left = list(store.list(f"{SHORT}/"))
    assert refusals(store, [LICENCES, SHORT], {SHORT: "it has no end"}) == {
        SHORT: f"it is held: legal hold by legal since {AT}: case 7",
        LICENCES: "nightly/short was forked from it, and stays",
    }
    with pytest.raises(ArchiveError, match="nightly/short is held meanwhile: legal hold by legal"):
        delete_jobs(store, [SHORT], WISH, tell=lambda _: None)
    assert list(store.list(f"{SHORT}/")) == left
    write_hold(store, SHORT, Hold(kind="release", by="legal", at=AT, reason="settled"))
    assert refusals(store, [SHORT], {SHORT: "it has no end"}) == {}
    assert [one.objects for one in delete(store, SHORT)] == [len(left)]


class TakenElsewhere(MemoryStore):
    """A store from which somebody else removes the object ``taken`` just before it is read."""

    taken = ""

    def get(self, key: str) -> bytes:
        if key == self.taken:
            self.remove(key)
        return super().get(key)


def test_a_job_that_two_delete_at_once_is_deleted() -> None:
    """What the other takes is that one's, and each tombstone has what it took."""
    store = TakenElsewhere()
    rich_archive(store)
    store.taken = f"{SHORT}/definition/0001"
    (done,) = delete(store, SHORT)
    assert list(store.list(f"{SHORT}/")) == []
    assert store.taken not in done.tombstone.own
    assert done.objects == len(done.tombstone.own)


def test_a_job_on_which_others_lean_is_refused(store: ObjectStore) -> None:
    """The fork's requests are put together from its records; both together may go."""
    rich_archive(store)
    assert refusals(store, [LICENCES], {}) == {
        LICENCES: "nightly/short was forked from it, and cannot be read without it"
    }
    assert refusals(store, [LICENCES, SHORT], {}) == {}


@pytest.mark.slow
async def test_a_tombstone_is_signed(store: ObjectStore) -> None:
    """With a key to trust, one that is not signed by it vouches for no deletion."""
    rich_archive(store)
    signed = signer_with(KEY)(b"").public_key
    delete(store, SHORT, wish=SIGNED)
    trusted = Demands(trusted=frozenset({signed}), signed=True)
    assert (await verdict(store, SHORT, trusted)).damage == ()
    delete(store, LICENCES)
    (finding,) = (await verdict(store, LICENCES, trusted)).damage
    assert finding.message == "the tombstone is not signed, and a key to trust was given"


async def test_a_tombstone_hides_nothing_that_is_still_there() -> None:
    """Of a job whose deletion was broken off, or whose tombstone somebody else wrote: what changed
    is told, and what is vouched for and not covered; who must have signed did not.
    """
    store = MemoryStore()
    rich_archive(store)
    kept = head(store)
    sound = {key: digest_at(store, key) for key in store.list(f"{SHORT}/")}
    (end,) = [key for key in sound if "/ends/" in key]
    step = next(key for key in sound if key.endswith(".step"))
    altered = store.get(step)[:-1] + bytes([store.get(step)[-1] ^ 1])
    store.replace(step, altered)

    def forge(own: dict[str, str]) -> None:
        write_tombstone(store, SHORT, own, {}, by="m", at=AT, reason="", signer=None)

    forge(sound)
    store.remove(end)
    found = await verdict(store, SHORT)
    assert [(one.fault, one.key) for one in found.damage] == [(Fault.ALTERED, step)]
    assert [note.fault for note in found.notes] == [Fault.DELETED, Fault.DELETED]
    signed = Demands(trusted=frozenset({"k"}), signed=True)
    assert Fault.UNANCHORED in {one.fault for one in (await verdict(store, SHORT, signed)).damage}
    # One that lists what somebody made of it says nothing against a head.
    store.put_if_absent(end, b"another end")
    for key in store.list(f"{SHARED}tombstones/"):
        store.remove(key)
    forge({**sound, step: digest_at(store, step), end: digest_at(store, end)})
    assert (await verdict(store, SHORT)).damage == ()
    told = await verdict(store, SHORT, Demands(head=kept))
    assert end in {one.key for one in told.damage}


async def test_a_tombstone_that_cannot_be_read_hides_no_other_job() -> None:
    """It is one finding, of its job; the others are examined, and covered by theirs."""
    store = MemoryStore()
    rich_archive(store)
    other = Written(JobArchive(store, "nightly", "other"))
    other.finish("r", 1, other.begin("r", 1, None, [segment("Go.")]))
    (gone,) = delete(store, "nightly/other")
    kept = head(store)
    delete(store, SHORT)
    sweep(store)
    whole = store.get(gone.tombstone.key)
    store.replace(gone.tombstone.key, whole[:-1] + bytes([whole[-1] ^ 1]))
    (finding,) = (await verdict(store, "nightly/other")).damage
    assert finding.fault is Fault.CORRUPT
    assert (await verdict(store, LICENCES)).damage == ()
    shared = shared_verdict(store, [await verdict(store, LICENCES)], kept)
    assert {one.key for one in shared.damage} == {gone.tombstone.key}


def test_a_tombstone_that_cannot_be_read_keeps_no_other_job_of_its_page(
    store: ObjectStore,
) -> None:
    """The job goes, and the page stays: nobody knows whether it is of none any more."""
    rich_archive(store)
    write_page(store, [{"key": {"batch": "nightly", "job": job}} for job in ("gone", "short")])
    pages = list(store.list(f"{SHARED}pages/"))
    store.put_if_absent(f"{SHARED}tombstones/nightly/gone/0001", b"damaged")
    assert refusals(store, [SHORT], {}) == {}
    (done,) = delete(store, SHORT)
    assert (list(store.list(f"{SHORT}/")), {*pages} & done.tombstone.shared.keys()) == ([], set())
    with pytest.raises(ObjectCorrupt, match="tombstones/nightly/gone/0001"):
        sweep(store)
    assert list(store.list(f"{SHARED}pages/")) == pages


async def test_pages_and_claims_of_the_deleted_are_not_missed(store: ObjectStore) -> None:
    """A page goes with the last of its jobs, and a summary may be written anew: a head that was
    kept misses neither.
    """
    rich_archive(store)
    orders = [{"key": {"batch": "nightly", "job": job}} for job in ("short", "licences")]
    write_page(store, orders)
    kept = head(store)
    pages = list(store.list(f"{SHARED}pages/"))
    assert set(pages) <= kept.tips.keys()
    claim = next(key for key in store.list(SHARED) if ".claims/" in key)
    delete(store, SHORT)
    assert not set(pages) & set(sweep(store))
    delete(store, LICENCES)
    assert set(pages) <= set(sweep(store))
    assert store.put_if_absent(claim, b'{"over":false,"owner":"another/1"}')
    both = [await verdict(store, job, Demands(head=kept)) for job in (SHORT, LICENCES)]
    assert [one.damage for one in both] == [(), ()]
    assert shared_verdict(store, both, kept).damage == ()
    # One of them is begun anew: what its deletion took is its own again.
    JobArchive.of(store, keys.job_of(SHORT)).write_definition({"goal": "again"})
    write_page(store, orders)
    assert not set(pages) & set(sweep(store))


def test_a_tombstone_that_was_altered_is_found() -> None:
    """Any bit of it; nothing is believed of it."""
    store = MemoryStore()
    rich_archive(store)
    (done,) = delete(store, SHORT, wish=SIGNED)
    whole = store.get(done.tombstone.key)
    for at in range(0, len(whole), 97):
        store.replace(done.tombstone.key, whole[:at] + bytes([whole[at] ^ 4]) + whole[at + 1 :])
        with pytest.raises(ObjectCorrupt):
            tombstones_of(store, SHORT)
        assert [key for key, _ in altered_shared(store)] == [done.tombstone.key]


def test_a_job_that_was_begun_anew_names_its_own_definition(tmp_path: Path) -> None:
    """Also where a worker goes on with it that knew the deleted job, and did not end that one."""
    one, two, command = (open_store(str(tmp_path / "archive")) for _ in range(3))
    before, after = (Written(JobArchive(store, "b", "j")) for store in (one, two))
    for written, goal, run in ((before, "one", "r1"), (after, "two", "r2")):
        written.archive.write_definition({"goal": goal}, order="new", run=run)
        # The first worker begins the first job, and makes the call of the second.
        before.finish(run, 1, before.begin(run, 1, None, [segment("Go.")]))
        if run == "r1":
            delete(command, "b/j")
    assert damage(examine_job(JobArchive(command, "b", "j")).findings) == []
    # A retry of what began it finds its own order there.
    again = {"goal": "two"}
    assert before.archive.write_definition(again, order="new", run="r2")
    assert before.archive.definition() == again


async def test_a_job_that_was_begun_anew_is_verified_as_ever(store: ObjectStore) -> None:
    """The deletion is told, and what is there now is examined."""
    eventful_job(store)
    kept = head(store)
    delete(store, LICENCES)
    written = Written(JobArchive(store, "nightly", "licences"))
    written.archive.write_definition({"goal": "again"})
    ref = written.finish("z", 1, written.begin("z", 1, None, [segment("Go.")]))
    told = await verdict(store, LICENCES, Demands(head=kept))
    assert told.damage == ()
    assert [note.fault for note in told.notes] == [Fault.DELETED]
    assert ref.key in store.list(LICENCES)
    (second,) = delete(store, LICENCES)
    assert second.tombstone.key.endswith("/0002")


_DELETE = """
import sys
from runtime.archive.lifecycle.deletion import Wish, delete_jobs, sweep
from runtime.archive.stores import open_store
store = open_store(sys.argv[1])
delete_jobs(store, ["nightly/short"], Wish(sys.argv[2], "2026-05-01", "asked"), tell=lambda _: None)
print(*sweep(store), sep="\\n")
"""


@pytest.mark.kill
@pytest.mark.parametrize(
    ("point", "tombstones"),
    [
        ("before_tombstone", 0),
        ("after_tombstone", 1),
        ("mid_job:1", 1),
        ("mid_job:9", 1),
        ("mid_sweep:1", 1),
    ],
)
async def test_a_deletion_that_is_killed_goes_on(
    python: Scripts, tmp_path: Path, point: str, tombstones: int
) -> None:
    """At each of its steps: nothing is damaged then, and the next one ends it, as the first asked
    for it.
    """
    store = open_store(str(tmp_path))
    rich_archive(store)

    def run(who: str, **failpoint: str) -> int:
        return python(_DELETE, str(tmp_path), who, **failpoint).code

    assert run("alice", HOLDFAST_FAILPOINT=f"archive.delete.{point}") == -signal.SIGKILL
    assert len(tombstones_of(store, SHORT)) == tombstones
    for job in (SHORT, LICENCES):
        assert (await verdict(store, job)).damage == ()
    assert run("bob") == 0
    (grave,) = tombstones_of(store, SHORT)
    assert grave.form.by == ("alice" if tombstones else "bob")
    assert list(store.list(f"{SHORT}/")) == []
    assert not any(key in store.list(SHARED) for key in grave.shared)
    assert (await verdict(store, LICENCES)).damage == ()


def test_a_directory_keeps_no_empty_folder(tmp_path: Path) -> None:
    """A deleted job is listed no more, and a process that wrote there before writes again."""
    store = open_store(str(tmp_path))
    eventful_job(store)
    delete(store, LICENCES)
    assert all_jobs(store) == []
    assert store.put_if_absent(f"{LICENCES}/definition/0001", b"again")


def test_nothing_is_removed_from_a_store_that_cannot(tmp_path: Path) -> None:
    """One clear error, and no tombstone."""

    class Kept:
        def __init__(self) -> None:
            inner = MemoryStore()
            eventful_job(inner)
            self.put_if_absent, self.get = inner.put_if_absent, inner.get
            self.list, self.folders = inner.list, inner.folders

    with pytest.raises(InputError, match="nothing can be removed"):
        delete(Kept(), LICENCES)


NOW = datetime(2026, 5, 1, tzinfo=UTC)


def ended(*days: int, batch: str = "b", status: str = "succeeded") -> list[EndedJob]:
    return [
        EndedJob(JobKey(batch=batch, job=f"j{age:03d}"), status, NOW - timedelta(days=age))
        for age in days
    ]


@pytest.mark.parametrize(
    ("rules", "names"),
    [
        (Rules(older_than=timedelta(days=30)), ["b/j030", "b/j090", "c/j045"]),
        (Rules(keep=1), ["b/j030", "b/j090"]),
        (Rules(older_than=timedelta(days=31), keep=1), ["b/j090"]),
        (Rules(statuses=frozenset({"failed"})), ["c/j045"]),
        (Rules(statuses=frozenset({"failed"}), keep=1), []),
    ],
)
def test_rules_of_retention_hold_together(rules: Rules, names: Sequence[str]) -> None:
    """A job goes if all that is given lets it go."""
    jobs = ended(1, 30, 90) + ended(45, batch="c", status="failed")
    assert [str(one.job) for one in rules.let_go(jobs, NOW)] == names


def test_a_damaged_job_ended_when_the_last_of_its_runs_did() -> None:
    """Which of them is the newest may be what cannot be read; where an end cannot, it has not."""
    written = Written(JobArchive(made := MemoryStore(), "nightly", "job"))
    for run, at in (("a", "2026-01-01T00:00:00+00:00"), ("b", AT)):
        parent = written.finish(run, 1, written.begin(run, 1, None, [segment("Go.")]))
        end = NewEnd(run=run, turn=1, parent=parent, status="failed", ended_at=at)
        written.archive.write_end(end)

    def told(*damaged: str) -> list[EndedJob]:
        store = MemoryStore()
        for name in made.list(""):
            store.put_if_absent(name, b"damaged" if name in damaged else made.get(name))
        return ended_jobs(store, [written.archive.job])

    start, attempt = "nightly/job/runs/b", "nightly/job/turns/b/00000/0000001.attempt-001"
    (one,) = told(start, attempt)
    assert (one.status, one.ended_at) == ("damaged", datetime.fromisoformat(AT))
    assert told(start, attempt, "nightly/job/ends/b") == []


def test_no_rule_lets_nothing_go() -> None:
    """A bare prune is an error."""
    with pytest.raises(InputError, match="give a rule"):
        Rules()
