"""The read activity: excerpts with a fingerprint and a basis, "unchanged", errors, and cheap
rereads.
"""

from __future__ import annotations

import os
import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from activities.contracts import ReadBatch, ReadBatchResult
from activities.workspace import BATCH_BYTES, WorkspaceActivities
from runtime.base.digests import digest_bytes
from runtime.base.tokens import encoding
from runtime.context.sources import ALL_TOKENS, ReadRequest, ReadResult, ReadStatus
from runtime.workspace.files import Limits
from runtime.workspace.fingerprints import FingerprintCache

ENCODING = "cl100k_base"
LATER = 4_000_000_000 * 1_000_000_000
"""A clock so far ahead that every file is settled."""


def wanted(path: str, **fields: Any) -> ReadRequest:
    """A request of node ``n1``."""
    return ReadRequest(**{"obj_id": "n1", "path": path, "tokens": 200, **fields})


def batch(
    activities: WorkspaceActivities, root: Path, *requests: ReadRequest
) -> tuple[ReadResult, ...]:
    """The results of one activity, as they come back through JSON."""
    done = activities.read_sources(
        ReadBatch(workspace=str(root), requests=requests, encoding=ENCODING)
    )
    return ReadBatchResult.model_validate_json(done.model_dump_json()).results


def read(root: Path, request: ReadRequest) -> ReadResult:
    """One result, from a fresh process as it were."""
    return batch(WorkspaceActivities(), root, request)[0]


def test_a_read_gives_the_excerpt_and_what_it_is_known_by(root: Path) -> None:
    """All fields of a small file's excerpt."""
    data = b"one\ntwo\nthree\n"
    (root / "a.txt").write_bytes(data)
    result = read(root, wanted("a.txt"))
    assert result == ReadResult(
        obj_id="n1",
        status=ReadStatus.OK,
        basis=result.basis,
        fingerprint=digest_bytes(data),
        text="one\ntwo\nthree",
        first_line=0,
        last_line=3,
        total_lines=3,
        size=14,
        tokens=encoding(ENCODING).count("one\ntwo\nthree"),
        truncated=False,
    )
    assert result.basis.startswith("sha256:")


def test_a_known_basis_is_unchanged_until_content_or_policy_changes(root: Path) -> None:
    """No text comes back for what the node has; any difference in what it depends on brings
    text.
    """
    (root / "a.txt").write_text("one\n")
    first = read(root, wanted("a.txt"))
    again = read(root, wanted("a.txt", known=first.basis))
    assert (again.status, again.basis, again.text) == (ReadStatus.UNCHANGED, first.basis, "")
    for other in ({"pos": "1:0"}, {"tokens": 100}, {"lod": 1}):
        assert read(root, wanted("a.txt", known=first.basis, **other)).status is ReadStatus.OK
    (root / "a.txt").write_text("two\n")
    assert read(root, wanted("a.txt", known=first.basis)).text == "two"


def test_a_batch_answers_each_request_in_order_whatever_the_others_are(hostile: Path) -> None:
    """One bad source spoils nothing for the rest."""
    paths = ["missing", "src/a.py", "pipe", "sparse", "src", "out", "latin.txt", "line\nbreak"]
    results = batch(WorkspaceActivities(), hostile, *(wanted(path, obj_id=path) for path in paths))
    assert [result.obj_id for result in results] == paths
    assert [result.error_type or result.text for result in results] == [
        "FileNotFoundError",
        "print(1)",
        "PermissionError",
        "[binary content, not shown as text]",
        "a.py  9 bytes",
        "PermissionError",
        "caf\ufffd\n[some bytes here are not UTF-8; each is shown as \ufffd]",
        "odd name",
    ]
    assert (
        results[3].note
        == "the ends of a file of 2,147,483,648 bytes; lines are counted in what is here"
    )


@pytest.mark.parametrize("fields", [{"pos": "x"}, {"pos": "/nowhere"}, {"tokens": -2}, {"lod": 4}])
def test_a_request_that_makes_no_sense_is_a_value_error(root: Path, fields: dict[str, Any]) -> None:
    """As a result, so that the activity is not tried again."""
    (root / "a.txt").write_text("one\n")
    result = read(root, wanted("a.txt", **fields))
    assert (result.status, result.error_type) == (ReadStatus.ERROR, "ValueError")


def test_rereading_a_settled_file_costs_no_read(root: Path) -> None:
    """With a known basis the cached fingerprint answers, although a read would find another now."""
    (root / "a.txt").write_text("one\n")
    cache = FingerprintCache()
    [first] = batch(
        WorkspaceActivities(now=lambda: LATER, fingerprints=cache), root, wanted("a.txt")
    )
    reads_nothing = WorkspaceActivities(
        now=lambda: LATER, fingerprints=cache, limits=Limits(view_bytes=0, end_bytes=1)
    )
    [again] = batch(reads_nothing, root, wanted("a.txt", known=first.basis))
    assert (again.status, again.size) == (ReadStatus.UNCHANGED, 4)
    [unknown] = batch(reads_nothing, root, wanted("a.txt"))
    assert unknown.note and unknown.fingerprint != first.fingerprint


def test_a_young_file_that_changes_within_its_clock_tick_is_noticed(root: Path) -> None:
    """Same size, same times, other content: times this young are never trusted."""
    (root / "a.txt").write_text("one\n")
    status = (root / "a.txt").stat()
    activities = WorkspaceActivities(now=lambda: status.st_mtime_ns + 1_000_000_000)
    [first] = batch(activities, root, wanted("a.txt"))
    (root / "a.txt").write_text("two\n")
    os.utime(root / "a.txt", ns=(status.st_atime_ns, status.st_mtime_ns))
    [second] = batch(activities, root, wanted("a.txt", known=first.basis))
    assert second.text == "two"


@pytest.mark.slow
def test_a_batch_stays_under_the_size_of_a_payload(root: Path) -> None:
    """Reads that together would not fit are errors that say so; those before them are whole."""
    words = random.Random(1)
    text = "".join(f"{words.getrandbits(4000):x}\n" for _ in range(400))
    (root / "big.txt").write_text(text)
    results = batch(
        WorkspaceActivities(),
        root,
        *[wanted("big.txt", tokens=ALL_TOKENS, obj_id=str(n)) for n in range(40)],
    )
    sizes = [len(result.model_dump_json()) for result in results]
    assert sum(sizes) < BATCH_BYTES + 40 * 300
    assert results[0].status is ReadStatus.OK
    assert (
        results[-1].error_message
        == "too much for one read together with the others; ask for fewer tokens"
    )


@pytest.mark.slow
def test_a_large_file_is_viewed_in_bounded_memory(root: Path) -> None:
    """A sparse file at the bound, one endless line of NULs, is answered without a copy of it as
    text.
    """
    bound = 64 * 1024 * 1024
    with (root / "zeros").open("wb") as file:
        file.truncate(bound)
    with (root / "lines").open("wb") as file:
        file.write(b"first\n" * 1000 + b"x" * (bound - 12_000) + b"\nlast")
    requests = (wanted("zeros"), wanted("lines", pos="1000"), wanted("lines", pos="/last"))
    tracemalloc.start()
    results = batch(WorkspaceActivities(), root, *requests)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert results[0].text == "[binary content, not shown as text]"
    assert results[1].text.endswith("[cut]")
    assert results[2].text.endswith("last")
    assert peak < 1.5 * bound


def test_a_link_to_a_file_is_followed_when_it_is_turned_elsewhere(root: Path) -> None:
    """The fingerprint is of the content that the path names now."""
    for name in ("one", "two"):
        (root / name).write_text(name)
    (root / "current").symlink_to("one")
    activities = WorkspaceActivities(now=lambda: LATER)
    [first] = batch(activities, root, wanted("current"))
    (root / "current").unlink()
    (root / "current").symlink_to("two")
    [second] = batch(activities, root, wanted("current", known=first.basis))
    assert (first.text, second.text) == ("one", "two")
