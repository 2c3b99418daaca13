"""Group summaries by a model: prepared in the background from what the members show, and only when
that changed.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from context_memory import Job, words

from runtime.context.graph import ContextGraph
from runtime.context.material import MATERIAL_TOKENS
from runtime.context.outcomes import NodeRef
from runtime.job.divergence import compare_nodes

STANDS_IN = "extract, standing in until its summary is written"
FAILED = "extract, standing in since its summary failed; it is asked for again later"


@pytest.fixture
def job() -> Job:
    files = {"a.txt": "def one\nalpha", "b.txt": "def two\nbeta"}
    return Job(files, ContextGraph(words, writer=True))


def landed(job: Job, written: str) -> list[str]:
    """Has every summary that is wanted written, and applied at the next tick; the nodes that got
    one.
    """
    begun = job.begin()
    for preparation in begun.values():
        job.prepared(preparation, written)
    job.tick()
    return list(begun)


def test_an_extract_stands_in_until_the_summary_lands_at_a_tick(job: Job) -> None:
    """Marked as such; then the members' names stay above what the model wrote, and the feed says
    so.
    """
    both = job.group(job.view("a.txt"), job.view("b.txt"), tokens=100)
    extract = job.get(both, "text")
    assert "def one" in extract
    assert STANDS_IN in job.graph.render(both).splitlines()[0]
    job.tick()
    (preparation,) = job.begin().values()
    assert preparation.material is not None
    assert [(part.what, part.text) for part in preparation.material.parts] == [
        ("a.txt", "def one\nalpha"),
        ("b.txt", "def two\nbeta"),
    ]
    job.prepared(preparation, "- one calls two")
    assert job.get(both, "text") == extract
    job.graph.take_deltas()
    job.tick()
    assert job.get(both, "text").splitlines() == [
        "view-1 (view-1): a.txt lines 0:2 of 2",
        "view-2 (view-2): b.txt lines 0:2 of 2",
        "- one calls two",
    ]
    assert STANDS_IN not in job.graph.render(both)
    assert job.feed() == [f"{both}: its summary is written"]
    assert job.begin() == {}


def test_it_is_asked_for_anew_only_when_a_member_changed(job: Job) -> None:
    """A name, a pin or a pause of a member changes nothing that a model was shown; its text
    does.
    """
    a = job.view("a.txt", freq="Sync")
    both = job.group(a, job.view("b.txt"), tokens=100)
    job.tick()
    assert landed(job, "- first") == [both]
    job.call("pin", NodeRef(a))
    job.graph.learn_names({"a": a})
    job.tick()
    assert job.get(both, "text").splitlines()[0] == "a (view-1): a.txt lines 0:2 of 2 [pinned]"
    assert job.get(both, "text").splitlines()[-1] == "- first"
    assert job.begin() == {}
    job.files["a.txt"] = "def other\nalpha"
    job.tick()
    assert "- first" not in job.get(both, "text")
    assert job.begin() == {}  # it may change again at the next tick
    job.tick()
    assert landed(job, "- second") == [both]
    assert job.get(both, "text").splitlines()[-1] == "- second"


def test_a_member_that_is_again_as_it_was_brings_the_summary_back(job: Job) -> None:
    """It is still known what the model wrote of it."""
    both = job.group(job.view("a.txt", freq="Sync"), tokens=100)
    job.tick()
    landed(job, "- first")
    for content in ("def other", "def one\nalpha"):
        job.files["a.txt"] = content
        job.tick()
    assert job.get(both, "text").splitlines()[-1] == "- first"
    assert job.begin() == {}


def test_a_summary_of_members_that_changed_meanwhile_is_dropped(job: Job) -> None:
    """And cancelled, where it is still being written."""
    a = job.view("a.txt", freq="Sync")
    both = job.group(a, tokens=100)
    job.tick()
    (preparation,) = job.begin().values()
    job.prepared(preparation, "- late")
    job.files["a.txt"] = "def other"
    job.turn += 1
    due = job.graph.due_reads(turn=job.turn, now=job.now)
    assert [request.obj_id for request in due] == [a]
    job.tick()  # the payload comes first, and still holds; the member's change follows at the same tick
    assert "- late" not in job.get(both, "text")
    job.tick()
    (preparation,) = job.begin().values()
    job.files["a.txt"] = "def third"
    assert job.graph.background.cancel() == ()
    job.turn += 1
    job.graph.apply_tick([], turn=job.turn, now=job.now)
    job.on(a, "Refresh")
    assert job.graph.background.cancel() == (preparation.payload_id,)


def test_a_group_of_groups_waits_for_the_summaries_inside_it(job: Job) -> None:
    """And is made from them."""
    inner = job.group(job.view("a.txt"), tokens=100)
    outer = job.group(inner, job.view("b.txt"), tokens=100)
    job.tick()
    assert landed(job, "- the inner one") == [inner]
    assert job.begin() == {}  # its member changed at this tick
    job.tick()
    (preparation,) = job.begin().values()
    assert preparation.obj_id == outer
    assert preparation.material is not None
    assert [part.text for part in preparation.material.parts] == [
        "- the inner one",
        "def two\nbeta",
    ]


def test_a_paused_group_is_summed_up_as_it_is_shown(job: Job) -> None:
    """Once its member has moved on, what it shows cannot be had any more: it waits for Refresh."""
    a = job.view("a.txt", freq="Sync")
    both = job.group(a, tokens=100, mode="paused")
    job.files["a.txt"] = "def other"
    job.tick()
    assert job.begin() == {}
    job.on(both, "Refresh")
    job.tick()
    assert list(job.begin()) == [both]


@pytest.mark.parametrize("policy", [{"lod": 1}, {"lod": 0}, {"tokens": 20}])
def test_no_model_is_asked_where_its_text_would_not_be_shown(
    job: Job, policy: dict[str, int]
) -> None:
    """At other levels, and where the members' names leave no room."""
    job.group(job.view("a.txt"), **{"tokens": 100, **policy})
    job.tick()
    assert job.begin() == {}


def test_no_model_is_asked_in_a_job_that_has_none() -> None:
    """The extract is all there is, and is not marked."""
    job = Job({"a.txt": "def one"})
    both = job.group(job.view("a.txt"), tokens=100)
    job.tick()
    assert job.begin() == {}
    assert "standing in" not in job.graph.render(both)


def test_a_policy_that_changes_asks_for_another_summary(job: Job) -> None:
    """Another budget, another text."""
    both = job.group(job.view("a.txt"), tokens=100)
    job.tick()
    landed(job, "- first")
    job.on(both, "SetTokens", 200)
    job.tick()
    assert landed(job, "- longer") == [both]
    assert job.get(both, "text").splitlines()[-1] == "- longer"


def test_a_group_that_nobody_sees_is_not_summed_up(job: Job) -> None:
    """What was begun for it is cancelled when the last variable that held it is gone."""
    both = job.group(job.view("a.txt"), tokens=100)
    job.graph.learn_names({"both": both})
    job.graph.pause_out_of_sight(turn=job.turn)
    job.tick()
    (preparation,) = job.begin().values()
    job.graph.learn_names({})
    job.graph.pause_out_of_sight(turn=job.turn)
    assert job.graph.background.cancel() == (preparation.payload_id,)
    job.tick()
    assert job.begin() == {}


@pytest.mark.slow
def test_long_members_share_the_room_for_what_the_model_is_shown(job: Job) -> None:
    """And what is cut of one says so."""
    job.files["a.txt"] = "\n".join(["word " * 9 + "end"] * 3_000)
    job.group(job.view("a.txt", tokens=40_000), job.view("b.txt"), tokens=100)
    job.tick()
    (preparation,) = job.begin().values()
    assert preparation.material is not None
    long, short = (part.text for part in preparation.material.parts)
    assert MATERIAL_TOKENS // 2 - 20 <= words(long) <= MATERIAL_TOKENS // 2
    assert long.splitlines()[-1] == "... 2401 more lines"
    assert short == "def two\nbeta"


def test_a_summary_survives_a_checkpoint(job: Job) -> None:
    """No model is asked for it again."""
    both = job.group(job.view("a.txt"), tokens=100)
    job.tick()
    landed(job, "- first")
    graph = ContextGraph.load(json.loads(json.dumps(job.graph.dump())), words, writer=True)
    other = Job(job.files, graph, job.turn, job.now)
    other.on(both, "Refresh")
    other.tick()
    assert other.get(both, "text").splitlines()[-1] == "- first"
    assert other.begin() == {}


def test_a_summary_that_fails_is_not_asked_for_at_once(job: Job) -> None:
    """But two turns later, then four, then eight; a checkpoint keeps count."""
    job.group(job.view("a.txt"), job.view("b.txt"), tokens=100)
    begun = []
    for turn in range(1, 20):
        job.tick()
        for preparation in job.begin().values():
            begun.append(turn)
            job.graph.background.failed(preparation.payload_id, job.now)
        job.graph.background.load(json.loads(json.dumps(job.graph.background.dump())))
    assert [later - sooner for sooner, later in itertools.pairwise(begun)] == [2, 4, 8]


def test_a_summary_that_failed_is_told_until_one_is_written(job: Job) -> None:
    """At a tick, in the feed and in the group's header, also when its members change; then the next
    one stands there.
    """
    a = job.view("a.txt", freq="Sync")
    both = job.group(a, job.view("b.txt"), tokens=100)
    job.tick()
    (preparation,) = job.begin().values()
    job.graph.take_deltas()
    job.graph.background.failed(preparation.payload_id, job.now)
    assert STANDS_IN in job.graph.render(both).splitlines()[0]
    job.tick()
    assert job.feed() == [f"{both}: its summary failed"]
    assert FAILED in job.graph.render(both).splitlines()[0]
    job.files["a.txt"] = "def other"
    job.tick()
    assert job.feed()[-1] == f"{both}: summary recomputed (view-1 changed)"
    assert FAILED in job.graph.render(both).splitlines()[0]
    job.tick()
    assert landed(job, "- one calls two") == [both]
    assert "standing in" not in job.graph.render(both)


def _recorded(
    written: str | None, text: str = "def one\nchanged"
) -> list[tuple[dict[str, Any], ...]]:
    """What is recorded of a group's turns: made; its summary came, or not; a member became
    ``text``; the same again.
    """
    job = Job(
        {"a.txt": "def one\nalpha", "b.txt": "def two\nbeta"}, ContextGraph(words, writer=True)
    )
    job.group(job.view("a.txt"), job.view("b.txt"), tokens=100)
    turns = [job.graph.changed_states()]
    for files in ({}, {"a.txt": text}):
        job.files.update(files)
        job.on("view-1", "Refresh")
        job.tick()
        for preparation in job.begin().values() if written is not None else ():
            job.prepared(preparation, written)
        job.tick()
        turns.append(job.graph.changed_states())
    return turns


def test_when_and_how_a_summary_is_written_is_no_divergence() -> None:
    """Whether it came, when, and its words are chance: the records of two executions agree; another
    member's text does not.
    """
    none, one, other = _recorded(None), _recorded("- one calls two"), _recorded("- two is called")
    assert [len(turn) for turn in none] != [len(turn) for turn in one]
    for first in (none, one, other):
        for second in (none, one, other):
            for turn, (before, after) in enumerate(zip(first, second, strict=True)):
                assert compare_nodes(turn, before, after) == ()
    changed = _recorded("- one calls two", "def one\nelse")
    assert [bool(compare_nodes(0, *turns)) for turns in zip(one, changed, strict=True)] == [
        False,
        False,
        True,
    ]
    subjects = {found.subject for found in compare_nodes(2, one[2], changed[2])}
    assert subjects == {"view-1", "group-3"}
