"""A run's start is named by the digest that stands, not ordered by clocks: those of two workers
differ.
"""

from __future__ import annotations

import pytest
from archive_jobs import Written, segment, step_record

from runtime.archive.container import header, seal, unseal
from runtime.archive.findings import Fault
from runtime.archive.forms import Capture, NewAttempt
from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore
from runtime.archive.verify import damage, verify_job
from runtime.base.errors import ArchiveError
from runtime.projection.segments import delta_between

START = "b/j/runs/r"


class Dying(MemoryStore):
    """A store whose writer dies before its first attempt is written."""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        if ".attempt-" in key:
            raise ArchiveError("the writer is gone")
        return super().put_if_absent(key, data)


def first_attempt(started_at: str) -> NewAttempt:
    layout = [segment("hello")]
    return NewAttempt(
        run="r", turn=1, parent=None, delta=delta_between((), None, layout), model={}, capture=Capture.WIRE,
        request=b"{}", started_at=started_at,
    )  # fmt: skip


@pytest.fixture
def written() -> Written:
    """A run whose start was written by a worker whose clock is an hour ahead of that of the next,
    which called.
    """
    dying = Dying()
    with pytest.raises(ArchiveError):
        JobArchive(dying, "b", "j").begin_attempt(first_attempt("2026-01-01T01:00:00+00:00"))
    store = MemoryStore()
    store.put_if_absent(START, dying.get(START))
    written = Written(JobArchive(store, "b", "j"))
    attempt = written.archive.begin_attempt(first_attempt("2026-01-01T00:00:00+00:00"))
    written.heads["r"] = written.archive.finish_step(step_record("r", 1, attempt))
    return written


def test_a_start_may_be_later_than_the_first_attempt(written: Written) -> None:
    """Whoever wins the race to write a run's start, the run verifies clean."""
    assert (
        unseal(START, written.archive.store.get(START)).header["started_at"]
        == "2026-01-01T01:00:00+00:00"
    )
    assert verify_job(written.archive, written.heads.values()) == []


@pytest.mark.parametrize("started_at", ["2025-01-01T00:00:00+00:00", "2027-01-01T00:00:00+00:00"])
def test_a_forged_start_is_found(written: Written, started_at: str) -> None:
    """A start with another time and a digest that fits it is not the one that the first attempt
    names.
    """
    store = written.archive.store
    assert isinstance(store, MemoryStore)
    fields = {**unseal(START, store.get(START)).header, "started_at": started_at}
    store.replace(START, seal(START, header(fields))[0])
    found = damage(verify_job(JobArchive(store, "b", "j"), written.heads.values()))
    assert [(finding.fault, finding.key) for finding in found] == [(Fault.ALTERED, START)]
