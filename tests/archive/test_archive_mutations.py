"""Whatever is done to any object of an archive, ``verify`` finds it and names the object."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from archive_jobs import Written, chat, eventful_job, write_run

from runtime.archive.container import header, seal, unseal
from runtime.archive.job import JobArchive
from runtime.archive.keys import definition_key
from runtime.archive.stores import MemoryStore
from runtime.archive.verify import damage, verify_job

Mutation = Callable[[random.Random, MemoryStore, list[str]], set[str]]


@pytest.fixture(scope="module")
def original() -> Written:
    return eventful_job(MemoryStore())


def copy_of(written: Written) -> MemoryStore:
    store = MemoryStore()
    for key in written.archive.store.list(""):
        store.put_if_absent(key, written.archive.store.get(key))
    return store


def flip(rng: random.Random, store: MemoryStore, names: list[str]) -> set[str]:
    name = rng.choice(names)
    data = bytearray(store.get(name))
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    store.replace(name, bytes(data))
    return {name}


def delete(rng: random.Random, store: MemoryStore, names: list[str]) -> set[str]:
    name = rng.choice(names)
    store.replace(name, None)
    return {name}


def swap(rng: random.Random, store: MemoryStore, names: list[str]) -> set[str]:
    one, other = rng.sample(names, 2)
    first, second = store.get(one), store.get(other)
    store.replace(one, second)
    store.replace(other, first)
    return {one, other}


def truncate(rng: random.Random, store: MemoryStore, names: list[str]) -> set[str]:
    name = rng.choice(names)
    data = store.get(name)
    store.replace(name, data[: rng.randrange(len(data))])
    return {name}


def extend(rng: random.Random, store: MemoryStore, names: list[str]) -> set[str]:
    name = rng.choice(names)
    store.replace(name, store.get(name) + rng.randbytes(rng.randrange(1, 40)))
    return {name}


def forge(rng: random.Random, store: MemoryStore, names: list[str]) -> set[str]:
    """Change what an object says and give it the digest that fits."""
    name = rng.choice(names)
    archived = unseal(name, store.get(name))
    fields = dict(archived.header)
    fields.pop("parts", None)
    field = rng.choice(sorted(fields))
    fields[field] = forged(rng, fields[field])
    store.replace(name, seal(name, header(fields, archived.parts()), archived.parts())[0])
    return {name}


def forged(rng: random.Random, value: object) -> object:
    """Another value of the same kind, or of another."""
    if isinstance(value, dict) and value and rng.random() < 0.7:
        name = rng.choice(sorted(value))
        return {**value, name: forged(rng, value[name])}
    other: list[object] = [
        None,
        0,
        "x",
        [],
        {},
        True,
        {"digest": "sha256:00", "key": "x"},
        [["keep", 0, 1]],
    ]
    if isinstance(value, int):
        other = [value + 1, value - 1]
    elif isinstance(value, str) and value:
        other.append(value[:-1] + chr(ord(value[-1]) ^ 1))
    return rng.choice([v for v in other if v != value])


@pytest.mark.parametrize(
    ("mutate", "times"),
    [(flip, 600), (delete, 120), (swap, 250), (truncate, 250), (extend, 100), (forge, 700)],
)
@pytest.mark.slow
def test_every_random_mutation_is_found(original: Written, mutate: Mutation, times: int) -> None:
    """Flips, deletions, swaps, truncations, additions and forgeries (2,020 of them): each is
    reported by its key.

    The witnesses are what Temporal's history holds of this job: the digest of each run's last step
    or end. What has nothing after it and no witness (the attempt in flight) is left out of
    forgeries and deletions.
    """
    unanchored = {"nightly/licences/turns/a/00000/0000035.attempt-001"}
    store = copy_of(original)
    names = [n for n in store.list("") if mutate not in {forge, delete} or n not in unanchored]
    for seed in range(times):
        rng = random.Random(f"{mutate.__name__}{seed}")
        before = {name: store.get(name) for name in names}
        harmed = mutate(rng, store, names)
        found = damage(
            verify_job(JobArchive(store, "nightly", "licences"), original.heads.values())
        )
        assert harmed <= {finding.key for finding in found}, f"seed {seed}: {harmed} not in {found}"
        for name in harmed:
            if name in set(store.list("")):
                store.replace(name, before[name])
            else:
                store.put_if_absent(name, before[name])


@pytest.mark.slow
def test_a_truncation_at_every_offset_is_found(original: Written) -> None:
    """A step cut at each of its offsets is reported each time, in a job of three turns; it has all
    parts that a step of the other one has.
    """
    store = MemoryStore()
    written = Written(JobArchive(store, "nightly", "brief"))
    write_run(written, "a", range(1, 4), None, chat(random.Random(7), 20))
    name = written.refs["a", 2].key
    data = store.get(name)
    like = original.refs["a", 33].key
    steps = unseal(name, data), unseal(like, original.archive.store.get(like))
    assert len({tuple(part.name for part in step.parts()) for step in steps}) == 1
    for size in range(len(data)):
        store.replace(name, data[:size])
        found = damage(verify_job(JobArchive(store, "nightly", "brief")))
        assert name in {finding.key for finding in found}, size


@pytest.mark.parametrize("job", ["runs", "ends"])
def test_a_definition_is_of_no_run(job: str) -> None:
    """Whatever the job is called."""
    store = MemoryStore()
    archive = eventful_job(store, job=job).archive
    key = definition_key(archive.prefix, 1)
    store.replace(key, b"x")
    assert [(one.key, one.run) for one in damage(verify_job(archive))] == [(key, None)]
