"""``wait`` and ``wait_for``: when a job falls asleep, what it reads meanwhile, what wakes it, and
what it is told.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from plain_loop import PlainLoop, count, statements

from runtime.base.spec.models import Budget
from runtime.history.events import AsyncPayloadApplied, TickApplied
from runtime.job import checkpoint
from runtime.job.stops import JobStatus
from runtime.projection.segments import SegmentKind


def run(workspace: Path, *sources: str, **options: Any) -> PlainLoop:
    """Runs the statements, and replays them."""
    return PlainLoop(workspace, statements(*sources), **options).run().replayed()


def feed(loop: PlainLoop, turn: int) -> list[str]:
    """The lines of a turn's delta feed."""
    return [
        line
        for s in loop.layouts[turn - 1]
        if s.kind is SegmentKind.DELTA
        for line in s.text.splitlines()[1:]
    ]


def told(loop: PlainLoop, turn: int) -> str:
    """The message of the exception that a turn's statement raised."""
    exception = loop.executions[turn - 1].exception
    return f"{exception.type}: {exception.message}" if exception else ""


def test_wait_sleeps_when_the_statement_has_ended(workspace: Path) -> None:
    """Nothing runs meanwhile, and the next prompt says how long it was and what woke the job."""
    loop = run(
        workspace,
        "wait(3600)\nimport time\nbefore = time.time()",
        "import time\nprint(time.time() - before)",
    )
    assert loop.slept == 3601.0
    assert loop.executions[1].stdout == "3661.0\n"
    assert feed(loop, 2) == ["wait: slept 3,600 s; woken by the time that was set"]
    assert [entry.kind for entry in loop.history if entry.kind in ("asleep", "tick")] == []


def test_waits_of_one_statement_come_one_after_the_other(workspace: Path) -> None:
    """The feed names what ended the last."""
    loop = run(
        workspace, "foo = view('notes.md', freq='Sync')\nwait(100)\nwait_for(foo, timeout=50)"
    )
    assert feed(loop, 2) == ["wait: slept 150 s; woken by the timeout"]


def test_a_statement_that_raises_does_not_sleep(workspace: Path) -> None:
    """The model is told of its error at once; nor does one that was taken back, or one that
    finished.
    """
    loop = run(workspace, "wait(3600)\n1/0", "wait(3600)\nview = 1", "wait(3600)\nfinish(1)")
    assert (loop.slept, loop.job.turn) == (0.0, 3)


def test_a_change_of_a_node_wakes_the_job(workspace: Path) -> None:
    """The feed says which node, and what changed in it, though the change lies outside of what is
    shown.
    """

    def meanwhile(seconds: float) -> None:
        (workspace / "log.txt").write_text("start\n" + "step\n" * int(seconds // 600))

    (workspace / "log.txt").write_text("start\n")
    loop = run(
        workspace,
        "log = view('log.txt', tokens=1, freq='Sync')\nother = view('notes.md', freq='Sync')",
        "wait_for(log, timeout=86400)",
        meanwhile=meanwhile,
    )
    assert feed(loop, 3) == [
        "wait: slept 655 s; woken by a change of log",
        "log: its source changed outside the lines shown (1 to 2 lines)",
    ]
    ticks = [event.obj_id for event in loop.job.log if isinstance(event, TickApplied)]
    assert ticks == ["view-1"]


def test_what_is_waited_for_is_looked_at_ever_more_seldom(workspace: Path) -> None:
    """A tenth of the time waited lies between two readings: 5 s at least, 300 s at most."""
    at: list[float] = []
    run(
        workspace,
        "foo = view('notes.md', freq='Sync')\nwait_for(foo, timeout=20000)",
        meanwhile=at.append,
    )
    at = at[: len(at) // 2]  # the replay's come after
    gaps = [round(b - a, 3) for a, b in itertools.pairwise(at)]
    assert gaps[:9] == [5.0] * 9
    assert gaps[:-1] == sorted(gaps[:-1])
    assert gaps[-2] == 300.0
    assert at[-1] == 20001.0  # the statement took a second
    assert len(at) < 130


def test_a_change_just_before_the_deadline_is_seen(workspace: Path) -> None:
    """The last look is at the deadline; without a change it is the timeout that wakes the job."""

    def meanwhile(seconds: float) -> None:
        (workspace / "log.txt").write_text("done\n" if seconds >= 999 else "start\n")

    (workspace / "log.txt").write_text("start\n")
    made = "log = view('log.txt', freq='Sync')"
    loop = run(workspace, made, "wait_for(log, timeout=1000)", meanwhile=meanwhile)
    assert feed(loop, 3)[0] == "wait: slept 1,000 s; woken by a change of log"
    (workspace / "log.txt").write_text("start\n")
    loop = run(workspace, made, "wait_for(log, timeout=990)", meanwhile=meanwhile)
    assert feed(loop, 3)[0] == "wait: slept 990 s; woken by the timeout"


def test_periodic_alone_has_a_default_interval(workspace: Path) -> None:
    """``freq="Periodic"`` is ``("Periodic", 60)``."""
    loop = run(
        workspace,
        "log = view('notes.md', freq='Periodic')",
        "print(log.Run('Periodic').freq, log.freq)",
    )
    assert loop.executions[1].stdout == "('Periodic', 60.0) ('Periodic', 60.0)\n"


def test_periodic_nodes_are_read_while_the_job_sleeps(workspace: Path) -> None:
    """At their interval, in a sleep that nothing but the time ends; what changed is one delta."""
    seen: list[float] = []

    def meanwhile(seconds: float) -> None:
        seen.append(seconds)
        (workspace / "log.txt").write_text(f"{len(seen)}\n")

    (workspace / "log.txt").write_text("0\n")
    loop = PlainLoop(
        workspace,
        statements(
            "log = view('log.txt', freq=('Periodic', 600))", "wait(3000)", "print(log.text)"
        ),
        meanwhile=meanwhile,
    ).run()
    assert [round(at) for at in seen] == [600, 1200, 1800, 2400, 3000]
    assert loop.executions[2].stdout == "5\n"
    assert feed(loop, 3)[:2] == [
        "wait: slept 3,000 s; woken by the time that was set",
        "log: its source changed, +1 -1 lines of those shown",
    ]
    kinds = [event.tick_kind for event in loop.job.log if isinstance(event, TickApplied)]
    assert kinds == ["periodic"] * 5


def test_a_group_is_waited_for_by_its_members(workspace: Path) -> None:
    """And by those of its groups; one that is paused is not looked at."""

    def meanwhile(seconds: float) -> None:
        (workspace / "b.txt").write_text("two\n" if seconds > 100 else "one\n")

    (workspace / "b.txt").write_text("one\n")
    loop = run(
        workspace,
        "b = view('b.txt', freq='Sync')\ninner = group(b)\nouter = group(view('notes.md'),"
        " inner)\nwait_for(outer)",
        meanwhile=meanwhile,
    )
    assert feed(loop, 2)[0].startswith("wait: slept 1")
    assert feed(loop, 2)[0].endswith("s; woken by a change of outer")


def test_an_async_view_is_prepared_while_it_is_waited_for(workspace: Path) -> None:
    """Where another would be read: the payload lands at a tick of the sleep, and ends it when it
    brings a change.
    """

    def meanwhile(seconds: float) -> None:
        (workspace / "b.txt").write_text("two\n" if seconds > 100 else "one\n")

    (workspace / "b.txt").write_text("one\n")
    loop = run(
        workspace,
        "b = view('b.txt', freq='Async')\nwait_for(b, timeout=1000)",
        "print(b.text)",
        meanwhile=meanwhile,
    )
    assert loop.executions[1].stdout == "two\n"
    assert feed(loop, 2)[0].endswith("s; woken by a change of b")
    assert [entry.kind for entry in loop.history if entry.kind == "asleep"] == []
    events = [event for event in loop.job.log if isinstance(event, AsyncPayloadApplied)]
    assert [(event.obj_id, event.turn) for event in events] == [("view-1", 1)]


def test_an_async_view_that_nobody_waits_for_is_left_alone(workspace: Path) -> None:
    """No turns pass while a job sleeps; what was being prepared before lands, and nothing more is
    begun.
    """
    loop = run(workspace, "b = view('notes.md', freq='Async')", "wait(86_400)", "finish(1)")
    assert [entry.kind for entry in loop.history].count("prepared") == 2  # one for each turn's tick


def test_preparing_is_ever_more_seldom_too(workspace: Path) -> None:
    """It begins where a view would be looked at."""
    loop = run(workspace, "b = view('notes.md', freq='Async')\nwait_for(b, timeout=20_000)")
    assert 60 < [entry.kind for entry in loop.history].count("prepared") < 130


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("wait('x')", "TypeCheckError"),
        (
            "wait([1][0] - 2)",
            "ValueError: wait: seconds must be between 0 and 31,622,400 seconds, not -1",
        ),
        ("wait(float('nan'))", "ValueError: wait: seconds must be between 0"),
        ("wait_for(foo)", "ValueError: wait_for: nothing would change foo: Run() a view first"),
        ("wait_for(group(foo))", "ValueError: wait_for: nothing would change group-"),
        ("wait_for(note('x'))", "ValueError: wait_for: nothing would change note-"),
        ("wait_for()", "ValueError: wait_for: no view runs, so nothing would change"),
        ("for n in range(101): wait(1)", "ValueError: wait: a statement may ask for 100 waits"),
    ],
)
def test_waits_that_make_no_sense_are_refused(workspace: Path, source: str, message: str) -> None:
    """At once, with what to do instead; the job does not sleep."""
    loop = run(workspace, "foo = view('notes.md')", source)
    assert told(loop, 2).startswith(message)
    assert loop.slept == 0.0


def test_wait_for_nothing_in_particular_is_for_all_that_run(workspace: Path) -> None:
    """Any running view's change wakes the job."""

    def meanwhile(seconds: float) -> None:
        (workspace / "b.txt").write_text("two\n" if seconds > 30 else "one\n")

    (workspace / "b.txt").write_text("one\n")
    loop = run(
        workspace,
        "a = view('notes.md', freq='Sync')\nb = view('b.txt', freq='Sync')\nwait_for()",
        meanwhile=meanwhile,
    )
    assert feed(loop, 2)[0] == "wait: slept 30 s; woken by a change of b"


def test_a_view_that_only_the_wait_holds_runs_until_it_is_over(workspace: Path) -> None:
    """Then nothing holds it, and the next statement's end pauses it."""

    def meanwhile(seconds: float) -> None:
        (workspace / "b.txt").write_text("two\n" if seconds > 30 else "one\n")

    (workspace / "b.txt").write_text("one\n")
    loop = run(
        workspace, "wait_for(view('b.txt', freq='Sync'), timeout=100)", "x = 1", meanwhile=meanwhile
    )
    assert feed(loop, 2)[0] == "wait: slept 30 s; woken by a change of view-1"
    assert loop.job.graph.state("view-1").mode.value == "paused"


def test_the_wall_budget_ends_a_sleep_and_the_job(workspace: Path) -> None:
    """Time asleep is the job's time."""
    loop = run(workspace, "wait(86400)", options={"budget": Budget(turns=10, wall_seconds=1000)})
    assert loop.stop is not None
    assert (loop.stop.status, loop.stop.reason) == (
        JobStatus.BUDGET,
        "the wall budget of 1000 s is spent",
    )
    assert (loop.job.turn, loop.slept) == (1, 940.0)


@pytest.mark.slow
def test_a_checkpoint_in_mid_sleep_goes_on_with_it(workspace: Path) -> None:
    """From every tick of a sleep: the same ticks, the same waking, the same next prompt."""
    (workspace / "log.txt").write_text("0\n")
    sources = [
        "log = view('log.txt', freq=('Periodic', 100))\nwait(350)\nwait_for(log, timeout=250)",
        "print(log.text)",
    ]
    saved: list[tuple[str, float, int]] = []

    def meanwhile(seconds: float) -> None:
        (workspace / "log.txt").write_text(f"{min(seconds, 300) // 100}\n")
        saved.append((json.dumps(checkpoint.dump(loop.job)), loop.slept, loop._at))

    loop = PlainLoop(workspace, statements(*sources), meanwhile=meanwhile)
    loop.run()
    assert len(saved) == 32
    assert {json.loads(text)["sleep"]["began"] for text, *_ in saved} == {
        1750000061.0,
        1750000411.0,
    }
    for text, slept, at in saved:
        again = PlainLoop(workspace, statements(*sources[1:]), history=loop.history)
        again.job, again.slept, again._at = (
            checkpoint.load(loop.job.spec, json.loads(text), count=count),
            slept,
            at,
        )
        again.layouts = loop.layouts[:1]
        again.run()
        # A checkpoint does not hold the events that are only looked back at.
        assert [replace(turn, events="") for turn in again.turns] == [
            replace(turn, events="") for turn in loop.turns[1:]
        ]
        assert again.slept == loop.slept
        assert again.stop == loop.stop
