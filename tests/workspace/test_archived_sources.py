"""What a view shows of a job that the archive does not have."""

from __future__ import annotations

import json

import pytest

from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore
from runtime.base.values import JobKey
from runtime.context.sub_jobs import name_of
from runtime.sources.archived import ArchiveSource
from tests.git.jobs import RUN, hands_job

OWN = JobKey(batch="b", job="p" * 90)
CHILD = name_of(OWN.job, "sha256:0123456789abcdef")


def _shown(store: MemoryStore, name: str) -> str:
    return ArchiveSource(f"holdfast://{name}", store, OWN).open().data.decode()


def test_a_sub_job_that_no_worker_has_begun_is_no_error() -> None:
    """Its view tells that it was started, until the archive has it."""
    store = MemoryStore()
    assert _shown(store, f"b/{CHILD}") == "# Status\n\nstarted, nothing is recorded yet\n"
    JobArchive(store, "b", CHILD).write_definition({"goal": "Look."}, order="o", run="r")
    told = "# Status\n\nnot ended, 0 turns\n\n# Goal\n\nLook.\n\n# Turns\n"
    assert _shown(store, f"b/{CHILD}") == told


@pytest.mark.parametrize(
    "name", [f"c/{CHILD}", f"b/{CHILD}@1", f"b/{CHILD}0", f"b/{OWN.job}.x", "b/other.0123456789"]
)
def test_any_other_job_that_is_not_there_is_one(name: str) -> None:
    """One of another batch or job, a turn, and what no sub-job is called."""
    with pytest.raises(FileNotFoundError, match="no job that has begun is called"):
        _shown(MemoryStore(), name)


def test_a_result_of_a_tool_is_shown_whatever_its_keys() -> None:
    """One that looks like a command's too; of a command what it printed."""
    store = MemoryStore()
    archive = hands_job(store, {}, [("x", {})], job="j")
    given = {"exit_code": 1, "output": "2 failed"}
    archive.write_effect(RUN, 1, 0, {"value": given, "error_type": None})
    ran = {"exit_code": 1, "output": "holdfast://self@1/effect/1"}
    archive.write_effect(RUN, 1, 1, {"value": ran}, texts={"stdout": b"printed\n"})

    assert json.loads(_shown(store, "hands/j@1/effect/0")) == given
    assert _shown(store, "hands/j@1/effect/1") == "printed\n"
