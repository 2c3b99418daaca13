"""One job's verification: its archive, and Temporal's history where there is a server to ask."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from urllib.parse import unquote

from temporalio.client import Client

from activities.contracts import JobKey
from runtime.archive.anchors import RunAnchors, run_anchors
from runtime.archive.findings import Finding, Severity
from runtime.archive.stores import ObjectStore
from runtime.archive.verify import verify_job
from runtime.catalog import JobName
from runtime.witness import Witness, disagreements, witness_of


@dataclass(frozen=True)
class JobVerdict:
    """What was found, and what vouches for each run's chain."""

    job: str
    damage: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    runs: tuple[RunAnchors, ...]


async def verified(store: ObjectStore, name: JobName, client: Client | None, trusted: frozenset[str]) -> JobVerdict:
    """Verify a job; ``client`` is None where no server is in reach. ``trusted`` are public keys in base64.

    Raises:
        ArchiveError: if the store cannot be read.
        RPCError: if the server fails.
    """
    archive = name.archive(store)
    witness = Witness()
    if client is not None:
        witness = await witness_of(client, JobKey(batch=name.batch, job=name.job), _runs(store, archive.prefix))

    def verify() -> JobVerdict:
        # Another reader may follow a run that goes on: what comes after the witness was asked is compared with nothing.
        findings = list(dict.fromkeys([*verify_job(archive, witness.refs), *disagreements(archive, witness)]))
        return JobVerdict(
            job=str(name),
            damage=tuple(f for f in findings if f.severity is Severity.DAMAGE),
            notes=tuple(f for f in findings if f.severity is not Severity.DAMAGE),
            runs=tuple(run_anchors(archive, trusted, witness.refs)),
        )

    return await asyncio.to_thread(verify)


def _runs(store: ObjectStore, prefix: str) -> list[str]:
    """The runs that the archive knows by any of their objects, damaged or not."""
    names: dict[str, None] = {}
    for folder in ("runs", "ends"):
        for key in store.list(f"{prefix}/{folder}/"):
            names[unquote(key.rpartition("/")[2])] = None
    return list(names)
