"""A group with a larger budget shows its members in more detail
(docs/contract/executable-context.md section 9.3).
"""

from __future__ import annotations

import pytest
from context_memory import Job, numbered

from runtime.context.graph import ContextGraph
from runtime.context.sources import ALL_TOKENS


@pytest.fixture
def job() -> Job:
    return Job({"a.txt": numbered(100), "b.txt": numbered(100)})


def shown(job: Job, group: str) -> int:
    """Lines of the members that the group shows."""
    return sum("  line" in line for line in job.get(group, "text").splitlines())


def test_a_larger_budget_expands_the_members(job: Job) -> None:
    """At the next tick, and the members stay as they are."""
    foo = job.view("a.txt", tokens=5)
    detail = job.group(foo, tokens=60, lod=0)
    assert shown(job, detail) == 5
    assert job.tick() == [f"{detail}/{foo}"]
    assert 20 < shown(job, detail) < 60
    assert job.get(foo, "text").split() == [f"line{n}" for n in range(5)]
    assert job.tick() == []


def test_the_budget_is_shared_and_can_be_set_anew(job: Job) -> None:
    """Compressed and expanded again; without a budget the whole of short files is shown."""
    group = job.group(job.view("a.txt", tokens=5), job.view("b.txt", tokens=5), tokens=80, lod=0)
    job.tick()
    assert 25 < shown(job, group) < 80
    job.on(group, "SetTokens", 20)
    job.tick()
    assert shown(job, group) < 12
    job.on(group, "SetTokens", ALL_TOKENS)
    job.tick()
    assert shown(job, group) == 200
    assert job.get(group, "text").count("line99") == 2


def test_a_change_of_a_running_member_is_shown_at_once_in_detail(job: Job) -> None:
    """It is read for both at the same tick; without a change nothing is recomputed."""
    foo = job.view("a.txt", tokens=5, freq="Sync")
    group = job.group(foo, tokens=60, lod=0)
    job.tick()
    before = job.graph.digest(group)
    job.tick()
    assert job.graph.digest(group) == before
    job.files["a.txt"] = numbered(100, start=1000)
    assert job.tick() == [foo, f"{group}/{foo}"]
    assert "line1020" in job.get(group, "text") and "line30\n" not in job.get(group, "text")


def test_a_group_is_no_newer_than_its_paused_member(job: Job) -> None:
    """Where the source is another by then, the group shows what the member shows."""
    foo = job.view("a.txt", tokens=5)
    group = job.group(foo, tokens=60, lod=0)
    job.files["a.txt"] = numbered(100, start=1000)
    job.tick()
    assert shown(job, group) == 5 and "line1000" not in job.get(group, "text")
    assert job.tick() == []
    job.on(foo, "Refresh")
    job.tick()
    assert "line1020" in job.get(group, "text")


def test_a_moved_member_is_read_anew_and_a_summary_expands_nothing(job: Job) -> None:
    """What is read is at the member's position; level 2 is an extract of what the members show."""
    foo = job.view("a.txt", tokens=5)
    group, summary = job.group(foo, tokens=40, lod=0), job.group(foo, tokens=60, lod=2)
    job.tick()
    job.on(foo, "SetPos", 50)
    job.tick()
    job.tick()
    assert "line62" in job.get(group, "text") and "line10\n" not in job.get(group, "text")
    assert shown(job, summary) <= 5


def test_details_survive_a_checkpoint(job: Job) -> None:
    """The graph that is loaded reads nothing again."""
    group = job.group(job.view("a.txt", tokens=5), tokens=60, lod=0)
    job.tick()
    again = ContextGraph.load(job.graph.dump(), lambda text: len(text.split()))
    assert again.render(group) == job.graph.render(group)
    assert again.due_reads(turn=9, now=9_000.0) == ()
