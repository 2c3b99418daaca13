"""Which batches a worker works on, where the archive is in trouble."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore, open_store
from runtime.archive.stores.protocol import ObjectStore
from runtime.base.errors import ArchiveError
from runtime.base.roles import MEMO
from runtime.base.values import JobKey
from runtime.base.workflow_ids import OPEN_BATCHES, OPEN_JOBS, job_workflow_id
from runtime.worker import serving, worker
from runtime.worker.serving import BatchWorkers
from workflows.messages import batch_queue

KEY = JobKey(batch="b", job="j")
OWN = "archive"


class Away(MemoryStore):
    """A store that may be out of reach."""

    away = False

    def list(self, prefix: str) -> Iterator[str]:
        if self.away:
            raise ArchiveError("cannot list it")
        return super().list(prefix)

    def get(self, key: str) -> bytes:
        if self.away:
            raise ArchiveError("cannot read it")
        return super().get(key)


class Server:
    """A client of a server on which one job is open, that of a batch which has ended: as one that
    was reset. Its memo says no more than what its batch began it with.
    """

    async def list_workflows(self, query: str) -> AsyncIterator[Any]:
        if query.startswith(OPEN_JOBS):

            async def memo() -> dict[str, Any]:
                return {"definition": "sha256:0"}

            yield SimpleNamespace(
                id=job_workflow_id(KEY), task_queue=batch_queue(KEY.batch), memo=memo
            )


class SplitServer:
    """A client of a server on which one batch is open, whose calls go by the queues of roles."""

    async def list_workflows(self, query: str) -> AsyncIterator[Any]:
        if query == OPEN_BATCHES:

            async def memo() -> dict[str, Any]:
                return {"archive": OWN, MEMO: True}

            yield SimpleNamespace(task_queue=batch_queue(KEY.batch), memo=memo)


class Idle:
    """Workers that have nothing to do."""

    async def want(self, _: Any) -> list[Any]:
        return []

    async def run(self) -> None:
        await asyncio.Event().wait()


def workers(store: ObjectStore, told: list[str], monkeypatch: pytest.MonkeyPatch) -> BatchWorkers:
    monkeypatch.setattr(serving, "make_worker", lambda *_, **__: Idle())
    server: Any = Server()
    return BatchWorkers(server, store, told.append)


async def look(batches: BatchWorkers) -> None:
    idle: Any = Idle()
    await batches._look(OWN, idle, idle)


async def test_a_batch_is_worked_on_while_its_archive_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Jobs outlast that, and so does who works on them: it is told, and asked again."""
    store, told = Away(), list[str]()
    JobArchive.of(store, KEY).write_definition({"goal": "g"})
    batches = workers(store, told, monkeypatch)
    await look(batches)
    store.away = True
    await look(batches)
    assert told == [
        "working on batch b",
        "the archive does not answer (cannot list it); asking again",
    ]
    assert list(batches._running) == [batch_queue("b")]


async def test_a_job_whose_definition_is_damaged_keeps_no_worker_from_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its batch is the archive's all the same."""
    store, told = open_store(str(tmp_path)), list[str]()
    archive = JobArchive.of(store, KEY)
    archive.write_definition({"goal": "g"})
    (tmp_path / str(archive.definition_key())).write_bytes(b"damaged")
    await look(workers(store, told, monkeypatch))
    assert told == ["working on batch b"]


async def test_a_batch_that_is_split_is_helped_while_its_archive_is_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is asked of the archive for that: its name was, as the worker began."""
    store, told = Away(), list[str]()
    batches = workers(store, told, monkeypatch)
    monkeypatch.setattr(worker, "make_queue_worker", lambda *_, **__: Idle())
    nowhere, idle, split = (cast("Any", one) for one in (None, Idle(), SplitServer()))
    batches.client = split
    store.away = True
    await batches._look(OWN, idle, worker.role_workers(nowhere, store, OWN))
    assert told == [
        "working on batch b",
        *(f"making the calls of role {role}" for role in ("models", "tools", "sandboxes", "reads")),
    ]
