"""A job's archive gives back exactly what was written, and two writers lose nothing."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor

import pytest
from archive_jobs import Written, blocks, chat, eventful_job, segment, step_record, write_run

from runtime.archive.calls import side_calls
from runtime.archive.changes import attempts_shown
from runtime.archive.container import header, seal, unseal
from runtime.archive.forms import Capture, NewAttempt
from runtime.archive.gaps import Gap
from runtime.archive.job import JobArchive
from runtime.archive.keys import side_run, step_key
from runtime.archive.stores import MemoryStore, ObjectStore
from runtime.archive.verify import damage, verify_job
from runtime.base.errors import ArchiveError, NotFound, ObjectCorrupt
from runtime.base.values import StepRef
from runtime.projection.segments import Add, Keep, LayoutDelta


def fresh(written: Written) -> JobArchive:
    """The same objects in another store, of which nothing is remembered: as another process reads
    them.
    """
    copy = MemoryStore()
    for key in written.archive.store.list(""):
        copy.put_if_absent(key, written.archive.store.get(key))
    batch, _, job = written.archive.prefix.partition("/")
    return JobArchive(copy, batch, job)


def test_a_whole_job_comes_back(store: ObjectStore) -> None:
    """Requests, responses, layouts, steps, attempts, effects, ends: as written, in another process,
    verified clean.
    """
    written = eventful_job(store)
    archive = fresh(written)
    for (run, turn), request in written.requests.items():
        assert archive.wire_request(run, turn) == request
        assert archive.turn_layout(run, turn) == written.layouts[run, turn]
    for (run, turn), response in written.responses.items():
        assert archive.wire_response(run, turn) == response
        assert sum(chunk.size for chunk in archive.chunks(run, turn)) == len(response)
    assert archive.runs() == ["a", "b"]
    assert [(s.run, s.turn) for s in archive.steps()] == [
        ("a", 30),
        ("a", 31),
        ("a", 32),
        ("b", 33),
        ("b", 34),
        ("b", 35),
    ]
    assert [(s.run, s.turn) for s in archive.steps("a")] == [("a", turn) for turn in range(30, 35)]
    assert [a.number for a in archive.attempts("a", 32)] == [1, 2]
    assert archive.effect("a", 31, 1) == {"value": 1}
    assert archive.effect("a", 31, 2) is None
    assert archive.definition() == {"goal": "Find files", "model": "openai/m-1"}
    end = archive.end("b")
    assert end is not None and (end.status, end.result, end.parent) == (
        "succeeded",
        {"files": []},
        written.refs["b", 35],
    )
    assert archive.end("a") is None
    assert damage(verify_job(archive, written.heads.values())) == []


def test_a_step_holds_what_was_recorded(store: ObjectStore) -> None:
    """A step's reply, usage, execution, headers and times are those of its record; its request is
    its attempt's.
    """
    written = eventful_job(store)
    step = fresh(written).find_step("b", 34)
    record = step_record("b", 34, step.attempt.key if step else "")
    assert step is not None
    for field in (
        "reply",
        "usage",
        "cost_usd",
        "execution",
        "status_code",
        "headers",
        "reset_event_id",
        "finished_at",
    ):
        assert getattr(step, field) == getattr(record, field)
    assert step.ref == written.refs["b", 34]
    assert step.parent == written.refs["b", 33]
    assert step.capture is Capture.WIRE


def test_an_attempt_in_flight_is_seen(store: ObjectStore) -> None:
    """A request that was written and not answered is shown as the attempt in flight; a finished run
    has none.
    """
    archive = fresh(eventful_job(store))
    attempt = archive.in_flight("a")
    assert attempt is not None and (attempt.turn, attempt.number) == (35, 1)
    assert archive.find_step("a", 35) is None
    assert archive.in_flight("b") is None


@pytest.mark.slow
def test_a_call_may_have_more_than_a_thousand_attempts() -> None:
    """``retry`` allows ten thousand: they come in the order of their numbers, and not of their
    names; the last is in flight, and shown.
    """
    job = Written(JobArchive(MemoryStore(), "nightly", "job"))
    for _ in range(1_001):
        last = job.begin("a", 1, None, [segment("Go.", "event:1")])
    assert last.endswith(".attempt-1001")
    attempts = job.archive.attempts("a", 1)
    assert [attempt.number for attempt in attempts] == list(range(1, 1_002))
    flying = job.archive.in_flight("a")
    assert flying is not None
    assert (flying.key, list(attempts_shown(job.archive, "a", None, None))) == (last, [(1, last)])
    (note,) = verify_job(job.archive)
    assert (note.key, note.message) == (last, "is an attempt whose turn has no step")


def test_the_last_turn_of_a_run_is_the_last_that_it_has_anything_of(store: ObjectStore) -> None:
    """An attempt in flight, or a summary that was written before it; 0 where there is nothing."""
    archive = fresh(eventful_job(store))
    assert [archive.last_turn(run) for run in ("a", "b", "c")] == [35, 35, 0]


def test_the_keyframe_has_all_nodes_and_other_steps_the_changed_ones() -> None:
    """A step names the nodes that changed; a keyframe holds all; the states at any step are put
    together from these.
    """
    archive = fresh(eventful_job(MemoryStore()))
    steps = {s.turn: s for s in archive.steps("a")}
    assert {t: (s.keyframe, [n["obj_id"] for n in s.nodes]) for t, s in steps.items()} == {
        30: (True, ["view-0"]),
        31: (False, ["view-1"]),
        32: (True, ["view-1", "view-9"]),
        33: (False, ["view-0"]),
        34: (False, ["view-1"]),
    }
    assert steps[32].changed == ("view-0", "view-9")
    assert archive.nodes(steps[33].ref) == {
        "view-1": {"obj_id": "view-1", "text": "state 31", "lod": 0},
        "view-9": {"obj_id": "view-9", "text": "new"},
        "view-0": {"obj_id": "view-0", "text": "state 33", "lod": 0},
    }


def test_a_second_step_for_a_turn_is_the_first() -> None:
    """When two workers finish one turn, both get the step that was written first, and nothing is
    overwritten.
    """
    written = Written(JobArchive(MemoryStore(), "b", "j"))
    layout = [segment("hello")]
    first = written.begin("r", 1, None, layout)
    second = written.begin("r", 1, None, layout, attempt=2)
    ref = written.archive.finish_step(step_record("r", 1, second))
    assert written.archive.finish_step(step_record("r", 1, first)) == ref
    step = written.archive.find_step("r", 1)
    assert step is not None and step.attempt.key == second
    assert [a.temporal_attempt for a in written.archive.attempts("r", 1)] == [1, 2]


def test_racing_workers_lose_nothing(store: ObjectStore) -> None:
    """Eight workers race on a turn: eight attempts, one step that all of them get, and a clean
    verification.
    """
    written = Written(JobArchive(store, "b", "j"))
    parent = write_run(written, "r", range(1, 3), None, chat(random.Random(1)))
    layout = [*written.layouts["r", 2], segment("more")]

    def race(worker: int) -> StepRef:
        mine = Written(JobArchive(store, "b", "j"))
        return mine.finish("r", 3, mine.begin("r", 3, parent, layout, attempt=worker))

    with ThreadPoolExecutor(8) as pool:
        refs = list(pool.map(race, range(8)))
    assert len(set(refs)) == 1
    assert sorted(a.temporal_attempt for a in written.archive.attempts("r", 3)) == list(range(8))
    assert damage(verify_job(fresh(written))) == []


def test_a_fork_goes_on_from_another_jobs_step(store: ObjectStore) -> None:
    """A run of another job may start from any step: its requests, its steps and its verification
    reach across.
    """
    written = eventful_job(store)
    fork = Written(JobArchive(store, "nightly", "licences-fork"))
    write_run(fork, "f", range(33, 37), written.refs["a", 32], chat(random.Random(9)))
    again = JobArchive(fresh(fork).store, "nightly", "licences-fork")
    assert [(s.run, s.turn) for s in again.steps()] == [
        ("a", 30), ("a", 31), ("a", 32), ("f", 33), ("f", 34), ("f", 35), ("f", 36),
    ]  # fmt: skip
    assert again.wire_request("f", 36) == fork.requests["f", 36]
    assert again.wire_request("f", 31) == written.requests["a", 31]
    assert verify_job(again, fork.heads.values()) == []


def test_summaries_of_runs_without_a_call_are_those_of_the_next() -> None:
    """They were written for its first prompt: in the run that was reset to that, before and not
    after it, and in one that slept. The step behind that names them.
    """
    written = Written(JobArchive(MemoryStore(), "nightly", "licences"))
    layout_at = chat(random.Random(1), 50)
    parent = write_run(written, "a", range(1, 3), None, layout_at)
    write_run(written, side_run("slept", "s1"), range(3, 4), parent, layout_at)
    layout = layout_at(3, written.archive.layout(parent), written.archive.reply_segment(parent))
    reset = written.finish("b", 3, written.begin("b", 3, parent, layout, through=("slept",)))
    write_run(written, side_run("b", "s2"), range(3, 4), parent, layout_at)
    write_run(written, side_run("b", "s3"), range(4, 5), reset, layout_at)
    written.begin("c", 3, parent, layout, through=("slept", "b"))
    for run, sides in (
        ("a", []),
        ("b", ["slept~s1", "b~s2", "b~s3"]),
        ("c", ["slept~s1", "b~s2"]),
    ):
        gaps: list[Gap] = []
        assert [call.run for call in side_calls(written.archive, run, gaps)] == sides
        assert gaps == []
    named = written.archive.objects.get(reset.key, "step").header["beside"]
    assert list(named) == [step_key("nightly/licences", side_run("slept", "s1"), 3)]


def test_definitions_are_numbered_and_the_last_one_counts(store: ObjectStore) -> None:
    """An equal definition is written once; a changed one is added; nothing is replaced."""
    archive = JobArchive(store, "b", "j")
    assert archive.definition() is None
    for definition in ({"goal": "x"}, {"goal": "x"}, {"goal": "y"}):
        archive.write_definition(definition)
    assert archive.definition() == {"goal": "y"}
    assert len(list(store.list("b/j/definition/"))) == 2


def test_the_first_result_of_an_effect_stays(store: ObjectStore) -> None:
    """A tool call's recorded result is put if absent."""
    archive = JobArchive(store, "b", "j")
    archive.write_effect("r", 3, 0, {"value": 1})
    archive.write_effect("r", 3, 0, {"value": 2})
    assert archive.effect("r", 3, 0) == {"value": 1}


def test_a_delta_that_makes_another_layout_is_refused() -> None:
    """A delta is applied to the parent's layout before anything is written."""
    archive = JobArchive(MemoryStore(), "b", "j")
    one = segment("one")
    record = NewAttempt(
        run="r", turn=1, parent=None, delta=LayoutDelta(parts=(Add(segment=one),)),
        model={}, capture=Capture.WIRE, request=b"{}", started_at="2026-01-01T00:00:00Z",
    )  # fmt: skip
    archive.begin_attempt(record)
    with pytest.raises(ArchiveError, match="keep 0:1 of a layout of 0 segments"):
        archive.begin_attempt(
            record.model_copy(update={"delta": LayoutDelta(parts=(Keep(start=0, stop=1),))})
        )
    assert len(archive.attempts("r", 1)) == 1


def test_a_parent_with_another_digest_is_refused() -> None:
    """A step that is not the one the workflow refers to is never taken for it."""
    written = eventful_job(MemoryStore())
    forged = StepRef(key=written.refs["a", 31].key, digest="sha256:00")
    with pytest.raises(ObjectCorrupt, match="by which it is referred to"):
        written.archive.layout(forged)


def test_what_is_not_there_is_not_found() -> None:
    """Turns, runs and jobs that do not exist are ``NotFound``."""
    archive = eventful_job(MemoryStore()).archive
    with pytest.raises(NotFound):
        archive.wire_request("a", 99)
    with pytest.raises(NotFound):
        archive.wire_response("a", 35)
    with pytest.raises(NotFound):
        list(JobArchive(archive.store, "nightly", "no-such-job").steps())


@pytest.mark.parametrize("names", [("a/b", ".."), ("%", "."), ("ü 世界", "x.y"), ("a", "runs")])
def test_names_cannot_leave_their_place(names: tuple[str, str]) -> None:
    """Batches and jobs may have any name: each has its own place in the store."""
    store = MemoryStore()
    written = Written(JobArchive(store, *names))
    write_run(written, "r/../x", range(1, 3), None, blocks(random.Random(1), 4))
    assert all(key.count("/") in {3, 5} and ".." not in key.split("/") for key in store.list(""))
    assert JobArchive(store, *names).runs() == ["r/../x"]
    assert verify_job(JobArchive(store, *names), written.heads.values()) == []


def test_a_request_is_not_looked_for_in_a_circle() -> None:
    """An attempt that says nothing, and that it follows itself, has no request."""
    store = MemoryStore()
    written = eventful_job(store)
    key = f"{written.archive.prefix}/turns/a/00000/0000030.attempt-001"
    archived = unseal(key, store.get(key))
    fields = {
        **archived.header,
        "request": {**archived.header["request"], "bytes": 0},
        "previous": {"key": key, "digest": archived.digest},
    }
    parts = archived.parts()
    store.replace(key, seal(key, header(fields, parts), parts)[0])
    with pytest.raises(ObjectCorrupt, match="no attempt before it has a request"):
        fresh(written).wire_request("a", 30)
