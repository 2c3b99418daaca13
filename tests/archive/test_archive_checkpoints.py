"""Checkpoints hold what the layout of their turn does not, and those of before are still read."""

from __future__ import annotations

import base64
import json
import random
import zlib
from typing import Any

import pytest
from archive_jobs import Written, chat, write_run
from temporalio.testing import ActivityEnvironment

from activities.checkpoints import CheckpointActivities
from activities.record import CheckpointPart, LoadOrder
from runtime.archive import keys
from runtime.archive.caches import caches_of
from runtime.archive.checkpoints import (
    _known,
    checkpoint_before,
    read_checkpoint,
    write_checkpoint,
)
from runtime.archive.container import Part, header, seal, unseal
from runtime.archive.findings import Fault
from runtime.archive.forms import CheckpointForm
from runtime.archive.forms.base import sized
from runtime.archive.frames import compress
from runtime.archive.job import JobArchive
from runtime.archive.layouts import line_of
from runtime.archive.requests import RequestReader
from runtime.archive.stores import MemoryStore
from runtime.archive.verify import damage, verify_job
from runtime.base.digests import canonical_json, digest_bytes, joined_digests
from runtime.base.errors import ObjectCorrupt, ObjectMissing
from runtime.base.values import StepRef
from tests.servers.temporal_server import CONVERTER
from workflows.continuing import PART_BYTES

TURNS = 20


def job_of_text(store: MemoryStore) -> tuple[JobArchive, StepRef, dict[str, Any]]:
    """A job whose prompts grow by random text, its last step, and a state that holds all of it."""
    written = Written(JobArchive(store, "b", "j"))
    written.archive.write_definition({"goal": "g"})
    parent = write_run(written, "r", range(1, TURNS + 1), None, chat(random.Random(3), 1_200))
    assert parent is not None
    shown = written.archive.layout(parent)
    state = {"version": 1, "events": [segment.model_dump(mode="json") for segment in shown]}
    return written.archive, parent, state


def test_a_checkpoint_has_no_text_of_its_turns_layout_again() -> None:
    """Of 24 kB of random text it stores some hundred bytes, also read with nothing in memory."""
    store = MemoryStore()
    archive, parent, state = job_of_text(store)
    ref = write_checkpoint(
        archive, run="r", turn=TURNS, parent=parent, interpreter="monty", state=state
    )
    assert len(canonical_json(state)) > 24_000
    assert len(store.get(ref.key)) < 1_500
    other = MemoryStore()
    for key in store.list(""):
        other.put_if_absent(key, store.get(key))
    assert read_checkpoint(other, ref).state == state
    assert damage(verify_job(JobArchive(other, "b", "j"))) == []


def test_a_checkpoint_of_an_earlier_release_is_read_and_verified() -> None:
    """Its state is a frame without a dictionary."""
    store = MemoryStore()
    archive, parent, state = job_of_text(store)
    text = canonical_json(state)
    form = CheckpointForm(
        run="r", turn=TURNS, parent=parent, interpreter="monty", state=sized(text)
    )
    key = keys.checkpoint_key(archive.prefix, "r", TURNS)
    _, put = archive.objects.put(key, form, (Part("state", compress(text), len(text)),))
    assert read_checkpoint(store, StepRef(key=key, digest=put.digest)).state == state
    assert damage(verify_job(archive)) == []


def test_a_checkpoint_whose_layout_is_gone_is_told() -> None:
    """Verification names it, beside the attempt that is missing."""
    store = MemoryStore()
    archive, parent, state = job_of_text(store)
    ref = write_checkpoint(
        archive, run="r", turn=TURNS, parent=parent, interpreter="monty", state=state
    )
    attempt = unseal(parent.key, store.get(parent.key), "step").header["attempt"]["key"]
    left = MemoryStore()
    for key in store.list(""):
        if key != attempt:
            left.put_if_absent(key, store.get(key))
    assert caches_of(left) is not caches_of(store)
    found = {(finding.key, finding.fault) for finding in verify_job(JobArchive(left, "b", "j"))}
    assert (ref.key, Fault.CORRUPT) in found


async def test_a_large_state_is_handed_over_in_parts_that_nobody_warns_of() -> None:
    """None has 512 KiB as a payload, and all together are the state: each by itself; for a run of
    before as one that was compressed as a whole, also in parts of the size of the first release.
    """
    store = MemoryStore()
    archive, parent, state = job_of_text(store)
    state["more"] = random.Random(5).randbytes(600_000).hex()
    ref = write_checkpoint(
        archive, run="r", turn=TURNS, parent=parent, interpreter="monty", state=state
    )
    activities = CheckpointActivities(store)

    async def parts_of(start: int | None, **size: int) -> list[CheckpointPart]:
        parts: list[CheckpointPart] = []
        while not parts or len(parts) < parts[-1].parts:
            order = LoadOrder(checkpoint=ref, part=len(parts), start=start, **size)
            parts.append(await ActivityEnvironment().run(activities.load_checkpoint, order))
            start = parts[-1].end
        return parts

    async def longest(parts: list[CheckpointPart]) -> int:
        return max(payload.ByteSize() for payload in await CONVERTER.encode(parts))

    now = await parts_of(0, size=PART_BYTES)
    before, first = await parts_of(None, size=PART_BYTES), await parts_of(None)

    assert min(len(now), len(before)) > 1
    assert max(await longest(now), await longest(before)) < 512 * 1024 < await longest(first)
    assert json.loads(b"".join(zlib.decompress(base64.b64decode(one.data)) for one in now)) == state
    for parts in (before, first):
        data = b"".join(base64.b64decode(part.data) for part in parts)
        assert json.loads(zlib.decompress(data)) == state


def checkpoints(store: MemoryStore, turns: int) -> tuple[JobArchive, list[StepRef], list[Any]]:
    """A job of so many turns with a checkpoint after each, whose sessions are large, and grow."""
    written = Written(JobArchive(store, "b", "j"))
    written.archive.write_definition({"goal": "g"})
    layout_at, rng, parent = chat(random.Random(3), 600), random.Random(4), None
    session = rng.randbytes(20_000)
    refs: list[StepRef] = []
    states: list[dict[str, Any]] = []
    for turn in range(1, turns + 1):
        parent = write_run(written, "r", range(turn, turn + 1), parent, layout_at)
        assert parent is not None
        shown = written.archive.layout(parent)
        session += rng.randbytes(101)
        states.append(
            {
                "version": 1,
                "events": [segment.model_dump(mode="json") for segment in shown],
                "layout": joined_digests(
                    tuple(digest_bytes(line_of(segment)) for segment in shown)
                ),
                "session": base64.b64encode(session).decode(),
            }
        )
        refs.append(
            write_checkpoint(
                written.archive,
                run="r",
                turn=turn,
                parent=parent,
                interpreter="monty",
                state=states[-1],
            )
        )
    return written.archive, refs, states


def third(store: MemoryStore, run: str, parent: StepRef, state: dict[str, Any]) -> StepRef:
    """A checkpoint after turn 3, written by a process that remembers nothing."""
    archive = JobArchive(store, "b", "j")
    return write_checkpoint(
        archive, run=run, turn=3, parent=parent, interpreter="monty", state=state
    )


def test_a_checkpoint_has_nothing_of_an_earlier_one_again() -> None:
    """Of 50 kB it stores what came since the one that it is against; chains are short, and begin
    anew with each sixteenth.
    """
    store = MemoryStore()
    _, refs, states = checkpoints(store, 33)
    forms = [CheckpointForm.read(unseal(ref.key, store.get(ref.key))) for ref in refs]
    assert [form.number for form in forms] == list(range(33))
    for form, ref in zip(forms, refs, strict=True):
        if form.number % 16 == 0:
            assert form.against is None
            continue
        assert form.against == refs[form.number & (form.number - 1)]
        # Each of the turns since then has 101 bytes of a session, and told of each text some bytes.
        assert (
            len(store.get(ref.key))
            < 1_500 + (form.number - (form.number & (form.number - 1))) * 250
        )
    other = MemoryStore()
    for key in store.list(""):
        other.put_if_absent(key, store.get(key))
    for ref, state in zip(refs, states, strict=True):
        assert read_checkpoint(other, ref).state == state
    # A long one costs a bucket as few requests as a short one, beside its layout's.
    layout, long = Counted(other), Counted(other)
    step = unseal(forms[31].parent.key, other.get(forms[31].parent.key))
    RequestReader(layout.get).layout(step.header["attempt"]["key"])
    read_checkpoint(long, refs[31])
    assert len(long.asked) <= len(layout.asked) + 6
    assert damage(verify_job(JobArchive(other, "b", "j"))) == []


class Counted(MemoryStore):
    """Notes what is asked for."""

    def __init__(self, store: MemoryStore) -> None:
        super().__init__()
        self.asked: list[str] = []
        for key in store.list(""):
            self.put_if_absent(key, store.get(key))

    def get(self, key: str) -> bytes:
        self.asked.append(key)
        return super().get(key)


def test_a_checkpoint_whose_base_is_gone_or_another_is_told() -> None:
    """By name, and so are those that lean on it in turn."""
    store = MemoryStore()
    _, refs, _ = checkpoints(store, 8)
    lost = refs[4].key
    left = MemoryStore()
    for key in store.list(""):
        if key != lost:
            left.put_if_absent(key, store.get(key))
    found = {(finding.key, finding.fault) for finding in verify_job(JobArchive(left, "b", "j"))}
    assert (lost, Fault.MISSING) in found
    assert {key for key, fault in found if fault is Fault.CORRUPT} == {
        refs[number].key for number in (5, 6, 7)
    }
    for number in (5, 6, 7):
        with pytest.raises((ObjectMissing, ObjectCorrupt), match=lost):
            read_checkpoint(left, refs[number])


def test_an_older_checkpoint_stands_in_for_one_that_cannot_be_read(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Each that is passed over is told; where none is left there is none."""
    store = MemoryStore()
    archive, refs, _ = checkpoints(store, 3)
    for left in (3, 2, 1, 0):
        caplog.clear()
        saved = checkpoint_before(archive, "r", 3)
        assert (saved.turn if saved is not None else 0) == left
        told = [record.getMessage().split(": ")[:2] for record in caplog.records]
        passed = "a checkpoint that cannot be read is passed over"
        assert told == [[passed, ref.key] for ref in reversed(refs[left:])]
        if left:
            store.replace(refs[left - 1].key, store.get(refs[left - 1].key)[:-1])


def test_a_checkpoint_is_written_where_none_before_can_be_read() -> None:
    """It holds all by itself."""
    store = MemoryStore()
    archive, refs, states = checkpoints(store, 2)
    first = refs[0].key
    store.replace(first, store.get(first)[:-1])
    parent = [*archive.steps()][-1].ref
    again = third(store, "s", parent, states[1])
    ref = third(store, "r", parent, states[1])
    assert unseal(ref.key, store.get(ref.key)).names == ("state",)
    for one in (again, ref):
        assert read_checkpoint(store, one).state == states[1]


def test_checkpoints_that_lead_in_a_circle_are_damaged() -> None:
    """As a header says that somebody made."""
    store = MemoryStore()
    _, refs, _ = checkpoints(store, 3)
    archived = unseal(refs[1].key, store.get(refs[1].key))
    made = {**archived.header, "against": refs[2].model_dump()}
    del made["parts"]
    parts = archived.parts()
    data, digest = seal(refs[1].key, header(made, parts), parts)
    store.replace(refs[1].key, data)
    with pytest.raises(ObjectCorrupt, match="no earlier one"):
        read_checkpoint(store, StepRef(key=refs[1].key, digest=digest))


@pytest.mark.parametrize(
    "session", [None, "", "x", "eA==\n", "eB==", "\udc80", ["a"], {"a": 1}, 7, "eA=="]
)
def test_any_state_comes_back_as_it_was(session: object) -> None:
    """Also one whose session is no base64, or not as this is written."""
    store = MemoryStore()
    archive, parent, state = job_of_text(store)
    for given in ({**state, "session": session}, state, {"session": session}):
        ref = write_checkpoint(
            archive, run="r", turn=TURNS, parent=parent, interpreter="monty", state=given
        )
        assert read_checkpoint(store, ref).state == given
        store.replace(ref.key, None)
        archive.forget()


def test_a_state_or_a_step_that_makes_no_sense_is_damaged() -> None:
    """Well sealed by somebody: readers are told, and later checkpoints are written."""
    store = MemoryStore()
    archive, refs, states = checkpoints(store, 2)
    archived = unseal(refs[1].key, store.get(refs[1].key))
    session = next(part for part in archived.parts() if part.name == "session")
    deep = b"[" * 20_000 + b"]" * 20_000
    layout = archive.layout_document(CheckpointForm.read(archived).parent)
    rest = Part("rest", compress(deep, _known(layout)), len(deep))
    fields = {name: value for name, value in archived.header.items() if name != "parts"}
    data, digest = seal(refs[1].key, header(fields, (rest, session)), (rest, session))
    store.replace(refs[1].key, data)
    with pytest.raises(ObjectCorrupt, match="state cannot be read"):
        read_checkpoint(store, StepRef(key=refs[1].key, digest=digest))
    found = {(one.key, one.fault) for one in verify_job(JobArchive(store, "b", "j"))}
    assert (refs[1].key, Fault.CORRUPT) in found
    parent = [*archive.steps()][-1].ref
    ref = third(store, "r", parent, states[1])
    assert read_checkpoint(store, ref).state == states[1]
