"""What a job's sub-jobs used, by the archive."""

from __future__ import annotations

from archive_jobs import Written, segment

from runtime.archive.forms import NewEnd
from runtime.archive.job import JobArchive
from runtime.archive.standings import Below, spent_below
from runtime.archive.stores import MemoryStore, ObjectStore
from runtime.base.values import JobKey, Usage

CHILD, GRANDCHILD, OTHER = ".bbbbbbbbbb", ".aaaaaaaaaa", ".cccccccccc"


def sub_job(store: ObjectStore, name: str, parent: str) -> None:
    """A job that has ended; without a ``parent`` it is nobody's."""
    written = Written(JobArchive(store, "night", name))
    written.archive.write_definition({"parent": parent} if parent else {})
    step = written.finish("run", 1, written.begin("run", 1, None, [segment("Hello.")]))
    end = NewEnd(
        run="run",
        turn=1,
        parent=step,
        status="succeeded",
        reason="",
        result=None,
        usage=Usage(prompt=10),
        cost_usd=0.5,
        ended_at="2026-01-01T01:00:00Z",
    )
    written.archive.write_end(end)


def test_sub_jobs_are_counted_at_any_depth() -> None:
    """Also of a job whose name is too long for theirs; not of jobs that were not asked for, nor
    a job that has such a name and is none.
    """
    for top in ("a", "t" * 90):
        store = MemoryStore()
        child = top[:80] + CHILD
        grandchild = child[:80] + GRANDCHILD
        sub_job(store, child, top)
        sub_job(store, grandchild, child)
        sub_job(store, f"other{OTHER}", "other")
        sub_job(store, top[:80] + OTHER, "")
        assert spent_below(store, "night", {top}) == ({top: Below(2, 20, 1.0)}, [])


def test_a_sub_job_that_is_damaged_hides_no_other() -> None:
    """It is told."""
    store = MemoryStore()
    sub_job(store, f"a{OTHER}", "a")
    (whole,) = store.list(f"night/a{OTHER}/definition/")
    store.put_if_absent(whole.replace(OTHER, CHILD), b"damaged")
    assert spent_below(store, "night", {"a"}) == (
        {"a": Below(1, 10, 0.5)},
        [JobKey(batch="night", job=f"a{CHILD}")],
    )
