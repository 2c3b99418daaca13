"""Whether a run can be gone on with is known before anything is started."""

from __future__ import annotations

import random
from typing import Any

import pytest
from archive_jobs import Written, chat

from runtime.archive.going_on import check_goes_on
from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore
from runtime.base.errors import ObjectCorrupt, ObjectMissing
from runtime.base.values import StepRef
from runtime.client.definitions import archived_spec

TURNS = 4
RUN = "b/j/turns/r/00000"


def _recorded() -> MemoryStore:
    """A run of four turns, of which the second and the last statement had something read."""
    store = MemoryStore()
    job = Written(JobArchive(store, "b", "j"))
    layout, parent = chat(random.Random(1)), None
    for turn in range(1, TURNS + 1):
        parent = _turn(job, turn, parent, layout)
        if turn in {2, TURNS}:
            job.archive.write_effect("r", turn, 0, {"text": "what was read"})
    return store


def _turn(job: Written, turn: int, parent: StepRef | None, layout: object) -> StepRef:
    before = job.archive.layout(parent)
    shown = layout(turn, before, job.archive.reply_segment(parent))  # type: ignore[operator]
    return job.finish("r", turn, job.begin("r", turn, parent, shown))


def _harmed(key: str, data: bytes | None) -> MemoryStore:
    """Another store, of which nothing is remembered."""
    store = MemoryStore()
    written = _recorded()
    for name in written.list(""):
        store.put_if_absent(name, written.get(name))
    store.replace(key, data)
    return store


def _check(store: MemoryStore, first: int, last: int) -> None:
    check_goes_on(JobArchive(store, "b", "j"), "r", first, last)


def test_a_whole_record_can_be_gone_on_with() -> None:
    """From each of its turns, restored from each other."""
    store = _recorded()
    for last in range(TURNS + 1):
        for first in range(1, last + 2):
            _check(store, first, last)


@pytest.mark.parametrize(
    ("name", "first", "last"),
    [
        ("0000004.attempt-001", 5, 4),
        ("0000004.step", 5, 4),
        ("0000001.step", 5, 4),  # the keyframe, which has the context objects
        ("0000003.attempt-001", 3, 3),
        ("0000002.effect-000000", 2, 2),
        ("0000002.effect-000000", 3, 3),
        ("0000004.effect-000000", 4, 4),
    ],
)
def test_what_is_damaged_is_named(name: str, first: int, last: int) -> None:
    """Prompts, replies, context objects, and what restored statements had of the world."""
    key = f"{RUN}/{name}"
    store = _harmed(key, _recorded().get(key)[:-3])
    with pytest.raises(ObjectCorrupt, match=key):
        _check(store, first, last)


@pytest.mark.parametrize("name", ["0000003.attempt-001", "0000002.effect-000000"])
def test_what_is_gone_is_named(name: str) -> None:
    """A restored statement would go on without what it had read, as if that had failed."""
    store = _harmed(f"{RUN}/{name}", None)
    with pytest.raises(ObjectMissing, match=f"{RUN}/{name}"):
        _check(store, 2, 3)


@pytest.mark.parametrize(
    ("definition", "told"),
    [
        ({"id": "j", "goal": 1}, "goal: "),
        ({"id": []}, "id: "),
    ],
)
def test_a_definition_that_is_none_is_named(definition: dict[str, Any], told: str) -> None:
    """Somebody made it, with a digest that fits."""
    archive = JobArchive(MemoryStore(), "b", "j")
    archive.write_definition(definition)
    with pytest.raises(ObjectCorrupt, match="b/j/definition/0001: is no job's def") as it:
        archived_spec(archive)
    assert told in str(it.value)
