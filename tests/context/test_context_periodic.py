"""Periodic ticks: due by workflow time, after the sync ticks, and one tick however many intervals
were missed.
"""

from __future__ import annotations

import json

import pytest
from context_memory import Job, raised, read, words

from runtime.context.graph import ContextGraph
from runtime.context.sources import ReadResult, ReadStatus
from runtime.history.events import TickApplied


@pytest.fixture
def job() -> Job:
    return Job({"a.txt": "one", "b.txt": "one", "c.txt": "one"})


def test_a_periodic_view_is_read_when_its_interval_is_over(job: Job) -> None:
    """The first tick after ``Run`` reads it, then every one that comes ``seconds`` or more after
    the last.
    """
    foo = job.view("a.txt", freq=("Periodic", 100))
    assert [job.tick(seconds) for seconds in (1, 99, 1, 50, 50, 99.5)] == [
        [foo],
        [],
        [foo],
        [],
        [foo],
        [],
    ]


def test_several_missed_intervals_give_one_tick(job: Job) -> None:
    """The next interval runs from that tick."""
    foo = job.view("a.txt", freq=("Periodic", 10))
    assert [job.tick(seconds) for seconds in (1, 1_000, 5, 5)] == [[foo], [foo], [], [foo]]


def test_periodic_ticks_come_after_sync_ticks(job: Job) -> None:
    """Nodes of one kind in creation order; the event names the kind of the tick."""
    foo = job.view("a.txt", freq=("Periodic", 10))
    bar = job.view("b.txt", freq="Sync")
    baz = job.view("c.txt", freq=("Periodic", 10))
    job.files |= dict.fromkeys(job.files, "two")
    job.graph.take_events(lambda: "e")
    assert job.tick() == [bar, foo, baz]
    events = [
        event for event in job.graph.take_events(lambda: "e") if isinstance(event, TickApplied)
    ]
    assert [(event.obj_id, event.tick_kind) for event in events] == [
        (bar, "sync"),
        (foo, "periodic"),
        (baz, "periodic"),
    ]


def test_what_was_set_is_read_at_once(job: Job) -> None:
    """A new position does not wait for the interval; nor does a new schedule, nor ``tick()``."""
    foo = job.view("a.txt", freq=("Periodic", 1_000))
    job.tick()
    job.on(foo, "SetPos", 1)
    assert job.tick(1) == [foo]
    job.on(foo, "Run", freq=("Periodic", 500))
    assert job.tick(1) == [foo]
    job.on(foo, "Run", freq=("Periodic", 500))
    assert job.tick(1) == []
    job.call("tick")
    assert job.tick(1) == [foo]


def test_a_periodic_group_is_recomputed_when_it_is_due_and_a_member_changed(job: Job) -> None:
    """At most once in an interval, and never for nothing."""
    foo = job.view("a.txt", freq="Sync")
    group = job.group(foo, freq=("Periodic", 100))
    texts = []
    for seconds, content in ((1, "two"), (50, "three"), (50, "three"), (100, "three"), (1, "four")):
        job.files["a.txt"] = content
        job.tick(seconds)
        texts.append(job.get(group, "text").split()[-1])
    assert texts == ["two", "two", "three", "three", "four"]


def test_a_schedule_that_makes_no_sense_is_refused(job: Job) -> None:
    """The message says what is accepted."""
    foo = job.view("a.txt")
    for freq in (
        ("Periodic", 0),
        ("Periodic", -1),
        ("Periodic", True),
        ("Periodic", float("nan")),
        ("Periodic", 1e9),
    ):
        assert raised(job.on(foo, "Run", freq=freq)).message.startswith(
            'Run: ("Periodic", seconds) needs more than 0 and'
        )
    assert raised(job.on(foo, "Run", freq=("Periodic",))).type == "ValueError"
    assert job.get(foo, "mode") == "paused"


def test_the_handle_table_says_how_often(job: Job) -> None:
    """Beside the other columns."""
    foo = job.view("a.txt", freq=("Periodic", 90))
    assert job.graph.handle_table({"foo": foo}).text.split(" | ")[1] == "running every 90 s"
    assert job.get(foo, "freq") == ("Periodic", 90.0)


def test_a_record_of_the_ticks_that_brought_news_is_enough_to_follow(job: Job) -> None:
    """What a record does not have was not read or was unchanged: those views stay due, so that none
    is read too late.
    """
    views = [job.view("a.txt", freq=("Periodic", 60)), job.view("b.txt", freq=("Periodic", 7))]
    other = Job(
        dict(job.files),
        ContextGraph.load(json.loads(json.dumps(job.graph.dump())), words),
        job.turn,
        job.now,
    )
    record: dict[float, dict[str, ReadResult]] = {}
    for _ in range(200):
        job.now += 3
        if job.now % 60 < 3:
            job.files["a.txt"] = f"a {job.now // 120}"
        job.files["b.txt"] = f"b {job.now // 40}"
        due = job.graph.due_reads(turn=job.turn, now=job.now)
        results = [read(job.files, request) for request in due]
        job.graph.apply_tick(results, turn=job.turn, now=job.now)
        if any(result.status is not ReadStatus.UNCHANGED for result in results):
            record[job.now] = {result.obj_id: result for result in results}
    assert 10 < len(record) < 50
    for now, recorded in record.items():
        asked = [request.obj_id for request in other.graph.due_reads(turn=other.turn, now=now)]
        assert recorded.keys() <= set(asked)
        answers = [recorded[obj_id] for obj_id in asked if obj_id in recorded]
        other.graph.apply_tick(answers, turn=other.turn, now=now)
    assert [other.graph.digest(view) for view in views] == [
        job.graph.digest(view) for view in views
    ]
