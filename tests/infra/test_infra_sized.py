"""The parts of ``benchmarks/sized.py`` that need no fleet: what it reads off the servers' metrics,
files and processes, and how it holds the model to that.
"""

from __future__ import annotations

import os
import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.sized import (
    Used,
    database_bytes,
    of_server,
    of_store,
    processor_seconds,
    said,
    shown,
)
from infra.sizing import counts
from infra.sizing.counts import attempts_read, readers
from infra.sizing.load import Load
from infra.sizing.model import Job
from runtime.archive.job import KEYFRAME_EVERY, JobArchive
from runtime.archive.requests import MOST_READS, RequestReader
from runtime.archive.stores import MemoryStore
from tests.archive.archive_jobs import Written, chat, write_run

SERVER = """
service_requests{namespace="default",operation="PollActivityTaskQueue",service_name="frontend"} 90
service_requests{namespace="default",operation="RespondActivityTaskCompleted",service_name="frontend"} 3
service_requests{namespace="default",operation="RespondWorkflowTaskCompleted",service_name="frontend"} 4
service_requests{namespace="default",operation="RespondWorkflowTaskCompleted",service_name="history"} 4
service_requests{namespace="other",operation="RespondWorkflowTaskCompleted",service_name="frontend"} 8
service_requests{namespace="default",operation="RecordActivityTaskHeartbeat",service_name="frontend"} 5
service_requests{namespace="default",operation="RecordWorkerHeartbeat",service_name="frontend"} 6
"""

STORE = """
SeaweedFS_s3_request_total{bucket="",code="200",type="LIST"} 1
SeaweedFS_s3_request_total{bucket="fleet",code="200",type="GET"} 2
SeaweedFS_s3_request_total{bucket="fleet",code="404",type="GET"} 3
SeaweedFS_s3_request_total{bucket="fleet",code="200",type="HEAD"} 4
SeaweedFS_s3_request_total{bucket="fleet",code="412",type="PUT"} 5
SeaweedFS_s3_request_total{bucket="fleet",code="200",type="LIST"} 6
SeaweedFS_s3_bucket_traffic_received_bytes_total{bucket="fleet"} 1.5e+03
SeaweedFS_s3_bucket_traffic_received_bytes_total{bucket="other"} 7
"""


def test_what_servers_tell_is_added_up() -> None:
    """Answers twice, with what they answer to, and heartbeats of activities, of one namespace and
    at its door; requests to one bucket, whatever came of them.
    """
    assert of_server(SERVER) == {"heartbeats": 5, "requests": 2 * (3 + 4) + 5}
    assert of_store(STORE) == {"writes": 5, "lists": 6, "reads": 2 + 3 + 4, "archive_bytes": 1500}


def test_pages_that_are_free_are_not_the_database_s(tmp_path: Path) -> None:
    """Pages whose rows were deleted are no bytes of it; what is in the log of writes is."""
    file = tmp_path / "x.db"
    with sqlite3.connect(file) as open_one:
        open_one.execute("PRAGMA journal_mode=wal")
        open_one.execute("CREATE TABLE t (x)")
        empty = database_bytes(file)
        open_one.execute("INSERT INTO t VALUES (zeroblob(1000000))")
        open_one.commit()
        assert database_bytes(file) - empty >= 900_000
        open_one.execute("DELETE FROM t")
        open_one.commit()
        assert database_bytes(file) == empty


def test_time_of_what_was_started_counts() -> None:
    """A process has its own time and that of those below it that have ended."""
    before = processor_seconds([os.getpid()])
    busy = "import time\nwhile time.process_time() < 0.5: pass"
    subprocess.run([sys.executable, "-c", busy], check=True)
    # The system tells it in hundredths.
    assert processor_seconds([os.getpid()]) - before >= 0.45


def test_the_table_has_the_ratio() -> None:
    """What was counted, over what the model says of all jobs; '-' where that is nothing."""
    load = Load(3, turns=4, effects=0, new_tokens=0, call_seconds=0)
    model = said(load)
    assert (model.actions, model.lists) == (3 * Job.of(load).actions, 3 * (13 + 4 * 2))
    assert model.reads == pytest.approx(3 * Job.of(load, 2).reads)
    twice = Used(actions=model.actions * 2, heartbeats=7, lists=31.5)
    lines = shown(load, twice).splitlines()
    assert "| Temporal Actions, with heartbeats | 48 | 96 | 2.00 |" in lines
    assert "| heartbeats | 0 | 7 | - |" in lines
    assert "| S3 LIST | 63 | 31.5 | 0.50 |" in lines
    once = 2 * counts.PROCESSOR_SECONDS_OF_A_START
    assert model.processor_seconds == pytest.approx(3 * Job.of(load, 2).processor_seconds + once)


def test_what_others_read_of_a_turn() -> None:
    """Nobody where there is one process; of two, the other one, unless it takes none of the turns
    that are left; of very many, one for each turn that is left, as far as a keyframe is away.
    """
    assert readers(1, 20) == 0
    assert readers(2, 3) == pytest.approx((0 + 1 / 2 + 3 / 4) / 3)
    assert readers(1e9, 4) == pytest.approx((0 + 1 + 2 + 3) / 4)
    assert readers(1e9, 1000) == pytest.approx((KEYFRAME_EVERY + 1) / 2)
    assert counts.KEYFRAME_EVERY == KEYFRAME_EVERY


def test_what_is_read_for_prompts() -> None:
    """By another process, which every second turn of two has, all attempts that the prompt before
    is made of: one for each turn, and from one again behind the most, as a fresh reader counts.
    """
    turns = MOST_READS + 5
    store = Reading()
    written = Written(JobArchive(store, "b", "j"))
    write_run(written, "r", range(1, turns), None, chat(random.Random(5), 900))
    read = 0
    for turn in range(1, turns):
        store.reads = 0
        RequestReader(store.get).request(f"b/j/turns/r/00000/{turn:07d}.attempt-001")
        read += store.reads
    assert attempts_read(1e9, turns) == pytest.approx(read)
    assert attempts_read(2, turns) == pytest.approx(read / 2)
    assert attempts_read(1, turns) == 0
    assert counts.MOST_READS == MOST_READS


class Reading(MemoryStore):
    """Counts what is read from it."""

    reads = 0

    def get(self, key: str) -> bytes:
        self.reads += 1
        return super().get(key)
