"""What a run that goes on in the midst of a statement takes over of its effects."""

from __future__ import annotations

from archive_jobs import Written, segment

from activities._once import CLAIMS
from activities._taken_over import take_over
from runtime.archive.approvals import DECISIONS, QUESTIONS
from runtime.archive.job import JobArchive
from runtime.archive.recorded import recorded_stream
from runtime.archive.replays import order_begun_by, write_replay
from runtime.archive.stores import MemoryStore
from runtime.base.values import JobKey

OTHER = JobKey(batch="b", job="other")


def _turn(written: Written, run: str, turn: int) -> None:
    """A turn of a run, after the one before in whatever run that is."""
    parent = next((ref for (_, at), ref in written.refs.items() if at == turn - 1), None)
    attempt = written.begin(run, turn, parent, [segment(f"turn {turn}")])
    written.finish(run, turn, attempt)


def _taken(written: Written, run: str, turn: int) -> dict[int, object]:
    """What another job has of a turn's statement then, by number."""
    take_over(written.archive, run, turn, OTHER, "new")
    other = JobArchive.of(written.archive.store, OTHER)
    kinds = (0, CLAIMS, QUESTIONS, DECISIONS)
    values = {kind + n: other.effect("new", turn, kind + n) for kind in kinds for n in range(4)}
    return {number: value["value"] for number, value in values.items() if value is not None}


def test_calls_that_were_made_and_the_open_question() -> None:
    """Results and claims, with a person's answers and all that was printed; of a call that was not
    made the question, which is to be answered again.
    """
    written = Written(JobArchive(MemoryStore(), "b", "j"))
    _turn(written, "a", 1)
    values = {0: "done", CLAIMS + 1: "claim", QUESTIONS + 1: "may I?", DECISIONS + 1: "yes"}
    values[QUESTIONS + 2] = "and now?"
    for number, value in {**values, DECISIONS + 2: "yes", QUESTIONS + 3: "then?"}.items():
        texts = {"stdout": b"printed"} if number == 0 else None
        written.archive.write_effect("a", 1, number, {"value": value}, (), texts)
    assert _taken(written, "a", 1) == values
    other = JobArchive.of(written.archive.store, OTHER)
    assert recorded_stream(other, "new", 1, 0, "stdout") == b"printed"


def test_of_another_statement_nothing() -> None:
    """A run that was reset to before the turn has had a statement of its own there."""
    written = Written(JobArchive(MemoryStore(), "b", "j"))
    _turn(written, "a", 1)
    _turn(written, "a", 2)
    for number in range(3):
        written.archive.write_effect("a", 2, number, {"value": "the first one's"})
    _turn(written, "b", 2)
    written.archive.write_effect("b", 2, 0, {"value": "the second one's"})
    assert _taken(written, "b", 2) == {0: "the second one's"}


def test_of_a_statement_that_ran_on_in_another_run() -> None:
    """What the run had that was reset in its midst counts, and what it had after that."""
    written = Written(JobArchive(MemoryStore(), "b", "j"))
    _turn(written, "a", 1)
    written.archive.write_effect("a", 1, 0, {"value": "before"})
    _turn(written, "b", 2)
    written.archive.write_effect("b", 1, 1, {"value": "after"})
    assert _taken(written, "b", 1) == {0: "before", 1: "after"}


def _begun(archive: JobArchive, order: str, source: JobKey | None = None) -> None:
    """A run begins by an order, out of the archive of ``source`` if there is one."""
    if source is not None:
        ordered = {"id": order, "source": {**source.model_dump(), "run": "a"}}
        write_replay(archive, order, ordered, "2026-11-28T00:00:00+00:00")
    archive.write_definition({"id": archive.job.job}, order=order, run=f"run of {order}")


def test_the_order_by_which_a_job_was_begun() -> None:
    """It stays the one by which sub-jobs are named, however often the job was lost and went on."""
    archive = JobArchive(MemoryStore(), "b", "j")
    assert order_begun_by(archive) == ""
    _begun(archive, "new")
    for order in ("lost", "lost again"):
        _begun(archive, order, archive.job)
        assert order_begun_by(archive) == "new"
    _begun(archive, "after run of new")
    assert order_begun_by(archive) == "after run of new"
    fork = JobArchive.of(archive.store, OTHER)
    _begun(fork, "fork", archive.job)
    _begun(fork, "fork lost", fork.job)
    assert order_begun_by(fork) == "fork"
