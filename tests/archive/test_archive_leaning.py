"""What cannot be read may need anything; and a fork from statement 1 needs the job whose replies it
has.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from archive_jobs import Written, chat, rich_archive, segment, write_run

from activities.record import ReplayMode, ReplayOrder, RunName
from runtime.archive import keys
from runtime.archive.forms import Capture, NewEnd
from runtime.archive.job import JobArchive
from runtime.archive.lifecycle.deletion import Wish, delete_jobs, refusals, sweep
from runtime.archive.references import SHARED
from runtime.archive.replays import claim_replay, write_replay
from runtime.archive.stores import MemoryStore, ObjectStore
from runtime.archive.stores.directory import DirectoryStore
from runtime.archive.stores.packed import PackedStore
from runtime.archive.trees import TREES, Trees
from runtime.archive.verify import damage, examine_job
from runtime.archive.without_model import request_without_model
from runtime.base.digests import digest_bytes
from runtime.base.errors import ObjectCorrupt
from runtime.base.values import StepRef
from runtime.trees.entries import Entry, Kind
from runtime.trees.tree import Tree

LICENCES, SHORT, OTHER = "nightly/licences", "nightly/short", "nightly/other"
START = f"{SHORT}/runs/first"
EFFECT = f"{OTHER}/turns/r/00000/0000001.effect-000000"
SUMMARY = [f"{SHARED}summaries/5e", f"{SHARED}summaries/5e.claims/00000001"]
WISH = Wish("alice", "2026-05-01T00:00:00+00:00", "asked for")


def delete(store: ObjectStore, *jobs: str) -> None:
    assert refusals(store, jobs, {}) == {}
    delete_jobs(store, jobs, WISH, tell=lambda _: None)


def flip(store: MemoryStore, key: str) -> bytes:
    """Change a byte of an object; what it was."""
    whole = store.get(key)
    at = len(whole) // 2
    store.replace(key, whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    return whole


def faults(store: ObjectStore, job: str) -> list[str]:
    return [one.key for one in damage(examine_job(JobArchive.of(store, keys.job_of(job))).findings)]


def shown_the_summary(store: ObjectStore) -> None:
    """The job ``other``, which was shown the summary that ``short`` wrote."""
    other = Written(JobArchive(store, "nightly", "other"))
    other.finish("r", 1, other.begin("r", 1, None, [segment("Go.")]))
    other.archive.write_effect("r", 1, 0, {"results": []}, uses=SUMMARY[:1])


def test_what_an_unreadable_effect_may_show_stays() -> None:
    """What cannot be read is named, and nothing is swept; once it can, it is found to use that."""
    store = MemoryStore()
    rich_archive(store)
    shown_the_summary(store)
    whole = flip(store, EFFECT)
    delete(store, SHORT)
    with pytest.raises(ObjectCorrupt, match=f"{EFFECT} is damaged"):
        sweep(store)
    assert {*SUMMARY} <= {*store.list(SHARED)}
    store.replace(EFFECT, whole)
    assert {key.split("/")[1] for key in sweep(store)} == {"material"}
    assert {*SUMMARY} <= {*store.list(SHARED)}
    assert faults(store, OTHER) == []


def test_a_job_that_cannot_be_read_can_be_deleted() -> None:
    """Then what only deleted jobs used goes."""
    store = MemoryStore()
    rich_archive(store)
    shown_the_summary(store)
    flip(store, EFFECT)
    delete(store, SHORT)
    delete(store, OTHER)
    assert {*SUMMARY} <= {*sweep(store)}


def test_what_a_damaged_version_of_a_workspace_needs_stays() -> None:
    """Its files stand in objects that it alone names."""
    store, text = MemoryStore(), b"the text\n" * 50
    content = digest_bytes(text)
    for job, path in (("a", "one.py"), ("b", "two.py")):
        entries = {path: Entry(Kind.FILE, 0o644, len(text), content)}
        tree = Trees(store).write_base(Tree().changed(entries), lambda _: text).tree.version
        archive = JobArchive(store, "ws", job)
        archive.write_effect("r", 0, 0, {}, uses=[f"{TREES}{tree[7:]}"])
        written = Written(archive)
        written.finish("r", 1, written.begin("r", 1, None, [segment("Go.")]))
    before = set(store.list(SHARED))
    flip(store, f"{TREES}{tree[7:]}")
    delete(store, "ws/a")
    with pytest.raises(ObjectCorrupt, match=f"{TREES}{tree[7:]} is damaged"):
        sweep(store)
    assert before <= set(store.list(SHARED))


def test_what_a_damaged_pack_may_hide_stays(tmp_path: Path) -> None:
    """A pack whose header is damaged lists none of its objects."""
    raw = DirectoryStore(tmp_path)
    store = PackedStore(raw)
    rich_archive(store)
    other, layout_at, parent = (
        Written(JobArchive(store, "nightly", "other")),
        chat(random.Random(2), 20),
        None,
    )
    for turn in range(1, 5):
        parent = write_run(other, "r", range(turn, turn + 1), parent, layout_at)
        other.archive.write_effect("r", turn, 0, {"results": []}, uses=SUMMARY[:1])
    other.archive.write_end(NewEnd(run="r", turn=4, parent=parent, status="succeeded"))
    pack = tmp_path / OTHER / "packs/r/0000000"
    whole = pack.read_bytes()
    pack.chmod(0o600)
    pack.write_bytes(whole[:10] + bytes([whole[10] ^ 1]) + whole[11:])
    store = PackedStore(raw)
    assert list(store.list(f"{OTHER}/turns/")) == []
    delete(store, SHORT)
    with pytest.raises(ObjectCorrupt, match="packs/r/0000000 is damaged"):
        sweep(store)
    assert {*SUMMARY} <= {*store.list(SHARED)}


@pytest.mark.parametrize("lost", [False, True])
def test_a_job_from_which_one_may_be_forked_is_refused(lost: bool) -> None:
    """The start that says so is damaged, or gone: until it is there again, or that job goes, too;
    what is of other batches is no fork of it.
    """
    store = MemoryStore()
    rich_archive(store)
    other = Written(JobArchive(store, "weekly", "other"))
    other.finish("r", 1, other.begin("r", 1, None, [segment("Go.")]))
    whole = flip(store, START)
    if lost:
        store.replace(START, None)
    why = "is not there" if lost else "is damaged: its bytes do not have the digest that they carry"
    assert refusals(store, [LICENCES, "weekly/other"], {}) == {
        LICENCES: f"it may be what nightly/short was forked from: {START} {why} (restore what cannot"
        " be read, or delete nightly/short too)"
    }
    assert refusals(store, [LICENCES, SHORT], {}) == refusals(store, [SHORT], {}) == {}
    held = refusals(store, [LICENCES, SHORT], {SHORT: "is open"})
    assert held[LICENCES].startswith("it may be what nightly/short was forked from")
    store.replace(START, whole)
    assert refusals(store, [LICENCES], {}) == {
        LICENCES: "nightly/short was forked from it, and cannot be read without it"
    }


A, B = "b/A", "b/B"
FROZEN = ReplayOrder(
    id="fork-1",
    start=1,
    mode=ReplayMode.REEXECUTE,
    source=RunName(batch="b", job="A", run="a"),
    frozen=True,
)
RERUN = FROZEN.model_copy(update={"mode": ReplayMode.RERUN, "frozen": False})


def ordered(store: ObjectStore, order: ReplayOrder) -> list[StepRef]:
    """The job ``A`` of two turns, whose steps these are, and a fork ``B`` that was ordered."""
    first = Written(JobArchive(store, "b", "A"))
    write_run(first, "a", range(1, 3), None, chat(random.Random(1), 20))
    document = order.model_dump(mode="json", exclude_defaults=True)
    write_replay(JobArchive(store, "b", "B"), order.id, document, "2026-01-01T00:40:00Z")
    return [first.refs["a", turn] for turn in (1, 2)]


def began(store: ObjectStore, parent: StepRef | None, *replayed: StepRef) -> None:
    """The fork claims its order, and has a turn more than it takes of the other job."""
    second = Written(JobArchive(store, "b", "B"))
    claim_replay(second.archive, "fork-1", "r")
    first = 1 if parent is None else 2
    for turn, ref in enumerate(replayed, first):
        layout = [segment(f"Go {turn}.")]
        request = request_without_model(ref)
        attempt = second.begin("r", turn, parent, layout, capture=Capture.REPLAYED, request=request)
        parent = second.finish("r", turn, attempt)
    turn = first + len(replayed)
    second.finish("r", turn, second.begin("r", turn, parent, [segment("Go on.")]))


def test_a_job_whose_replies_a_fork_has_is_refused() -> None:
    """The fork began with statement 1, so it starts from none of its steps; both may go."""
    store = MemoryStore()
    steps = ordered(store, FROZEN)
    refused = {A: "b/B was forked from it, and cannot be read without it"}
    assert refusals(store, [A], {}) == refused
    began(store, None, *steps)
    assert refusals(store, [A], {}) == refused
    assert refusals(store, [A, B], {}) == refusals(store, [B], {}) == {}
    assert refusals(store, [A, B], {B: "is open"})[A] == "b/B was forked from it, and stays"


@pytest.mark.parametrize("lost", [False, True])
def test_a_job_whose_replies_a_fork_may_have_is_refused(lost: bool) -> None:
    """The order that says so is damaged, or gone."""
    store = MemoryStore()
    began(store, None, *ordered(store, FROZEN))
    order = f"{B}/replays/fork-1"
    flip(store, order)
    if lost:
        store.replace(order, None)
    assert refusals(store, [A], {})[A].startswith(f"it may be what b/B was forked from: {order} is")
    assert refusals(store, [A, B], {}) == refusals(store, [B], {}) == {}


def test_a_fork_that_asks_the_model_from_statement_1_on_needs_nothing() -> None:
    """It has no turn of the other job."""
    store = MemoryStore()
    ordered(store, RERUN)
    assert refusals(store, [A], {}) == {}
    began(store, None)
    assert refusals(store, [A], {}) == {}


def test_a_fork_needs_its_source_before_it_has_begun() -> None:
    """The turns before its first are restored from there; then it needs what its start names."""
    store = MemoryStore()
    steps = ordered(store, RERUN.model_copy(update={"start": 2}))
    refused = {A: "b/B was forked from it, and cannot be read without it"}
    assert refusals(store, [A], {}) == refused
    began(store, steps[0])
    assert refusals(store, [A], {}) == refused
