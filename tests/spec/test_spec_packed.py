"""What a jobs file takes of memory does not grow with its jobs."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from runtime.archive.pages import MOST_ON_PAGE
from runtime.archive.stores.memory import MemoryStore
from runtime.base.spec.models import JobSpec
from runtime.client.orders import pages_of
from runtime.client.plans import Plan
from runtime.jobsfile import packed
from runtime.jobsfile.items import Item
from runtime.jobsfile.load import load
from runtime.jobsfile.packed import Packed
from runtime.jobsfile.written.job import WrittenJob

JOBS = 3 * MOST_ON_PAGE


class Value:
    """A value that can be seen to be alive."""

    def __init__(self, number: int) -> None:
        self.number = number


def packed_values(count: int, alive: list[int]) -> Packed[Value]:
    """So many values; ``alive`` takes how many there were each time that one was asked for."""
    living: weakref.WeakSet[Value] = weakref.WeakSet()

    def values() -> Iterator[Value]:
        for number in range(count):
            alive.append(len(living))
            value = Value(number)
            living.add(value)
            yield value
            del value

    return Packed(values(), lambda value: value.number, Value)


@pytest.mark.parametrize("in_memory", [packed.IN_MEMORY, 0])
def test_packed_values_are_those_that_were_given(
    in_memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By place, by stretch, and one after the other as often as one likes; in memory and on disk.

    One is alive at a time while they are packed.
    """
    monkeypatch.setattr(packed, "IN_MEMORY", in_memory)
    alive: list[int] = []
    found = packed_values(1_000, alive)
    assert len(found) == 1_000
    assert max(alive) <= 1
    for _ in range(2):
        assert [value.number for value in found] == list(range(1_000))
    assert [value.number for value in found[120:400:7]] == list(range(120, 400, 7))
    assert (found[0].number, found[-1].number) == (0, 999)
    assert list(packed_values(0, [])) == []
    with pytest.raises(IndexError):
        found[1_000]


def living(*kinds: type[Any]) -> int:
    """How many objects of these kinds there are."""
    # By type(): what an earlier test's workflow sandbox has left raises if it is asked anything.
    return sum(issubclass(type(one), kinds) for one in gc.get_objects())


class Counting(MemoryStore):
    """An archive that counts the definitions that are alive when a page comes."""

    def __init__(self) -> None:
        super().__init__()
        self.alive: list[int] = []

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """Take a page."""
        self.alive.append(living(JobSpec, WrittenJob, Item))
        return super().put_if_absent(key, data)


@pytest.mark.slow
@pytest.mark.parametrize("form", ["count", "for_each", "jsonl"])
def test_no_more_jobs_are_alive_than_are_looked_at(form: str, tmp_path: Path) -> None:
    """While a file of many jobs is read, and while its jobs are archived in pages: a few."""
    (tmp_path / "ws").mkdir()
    (tmp_path / "script.yaml").write_text("[]")
    file = tmp_path / ("jobs.jsonl" if form == "jsonl" else "jobs.yaml")
    (tmp_path / "items.jsonl").write_text("".join(f'{{"n": {n}}}\n' for n in range(JOBS)))
    settings = "model: scripted/script.yaml, workspace: ws, goal: Count."
    own = '"model": "scripted/script.yaml", "workspace": "ws", "goal": "Count."'
    file.write_text(
        "".join(f'{{"id": "job-{n}", {own}}}\n' for n in range(JOBS))
        if form == "jsonl"
        else "jobs: [{id: 'job-{n}', "
        f"{f'count: {JOBS}' if form == 'count' else 'for_each: items.jsonl'}, {settings}}}]"
    )
    before = living(JobSpec, WrittenJob, Item)
    batch = load(file).batch
    assert living(JobSpec, WrittenJob, Item) == before
    (tmp_path / "items.jsonl").unlink()
    plan = Plan(batch, tuple(job.id for job in batch.jobs))
    store = Counting()
    pages = pages_of(store, plan)
    assert sum(page.jobs for page in pages) == JOBS
    assert len(store.alive) == len(pages) == 3
    assert max(store.alive) <= before + 3
