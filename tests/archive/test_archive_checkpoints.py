"""Checkpoints hold what the layout of their turn does not, and those of before are still read."""

from __future__ import annotations

import base64
import json
import random
import zlib
from typing import Any

from archive_jobs import Written, chat, write_run
from temporalio.testing import ActivityEnvironment

from activities.checkpoints import CheckpointActivities
from activities.record import CheckpointPart, LoadOrder
from runtime.archive import keys
from runtime.archive.caches import caches_of
from runtime.archive.checkpoints import read_checkpoint, write_checkpoint
from runtime.archive.container import Part, unseal
from runtime.archive.findings import Fault
from runtime.archive.forms import CheckpointForm
from runtime.archive.forms.base import sized
from runtime.archive.frames import compress
from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore
from runtime.archive.verify import damage, verify_job
from runtime.base.digests import canonical_json
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
    """None has 512 KiB as a payload, and all together are the state; so are those that a worker
    orders that knows no size of theirs.
    """
    store = MemoryStore()
    archive, parent, state = job_of_text(store)
    state["more"] = random.Random(5).randbytes(600_000).hex()
    ref = write_checkpoint(
        archive, run="r", turn=TURNS, parent=parent, interpreter="monty", state=state
    )
    activities = CheckpointActivities(store)

    async def parts_of(**size: int) -> list[CheckpointPart]:
        parts: list[CheckpointPart] = []
        while not parts or len(parts) < parts[0].parts:
            order = LoadOrder(checkpoint=ref, part=len(parts), **size)
            parts.append(await ActivityEnvironment().run(activities.load_checkpoint, order))
        return parts

    async def longest(parts: list[CheckpointPart]) -> int:
        return max(payload.ByteSize() for payload in await CONVERTER.encode(parts))

    now, before = await parts_of(size=PART_BYTES), await parts_of()

    assert len(now) > 1
    assert await longest(now) < 512 * 1024 < await longest(before)
    for parts in (now, before):
        data = b"".join(base64.b64decode(part.data) for part in parts)
        assert json.loads(zlib.decompress(data)) == state
