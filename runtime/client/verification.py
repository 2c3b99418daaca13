"""One job's verification, and that of what jobs share: the archive, and Temporal's list and
histories where they are in reach.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from temporalio.client import Client

from runtime.archive.anchors import RunAnchors, run_anchors
from runtime.archive.catalog import all_jobs, known_archive_id
from runtime.archive.findings import Fault, Finding, Severity
from runtime.archive.heads import ArchiveHead, altered_shared, lost_shared, unnamed_shared
from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore
from runtime.archive.verify import Examination, examine_job
from runtime.base.plurals import counted
from runtime.base.values import JobKey
from runtime.client.witness import Witness, disagreements, jobs_of, runs_of, witness_of


@dataclass(frozen=True)
class JobVerdict:
    """What was found, and what vouches for each run's chain. ``job`` is None for what jobs share.

    ``unnamed`` is how many objects no other names, beside the heads of runs.
    """

    job: str | None
    damage: tuple[Finding, ...]
    notes: tuple[Finding, ...]
    runs: tuple[RunAnchors, ...] = ()
    unnamed: int = 0
    examination: Examination | None = None


@dataclass(frozen=True)
class Demands:
    """What a verification asks for: signatures by ``trusted`` keys where some were ``given``,
    anchors, a ``head`` that was kept.
    """

    trusted: frozenset[str] = frozenset()
    signed: bool = False
    anchored: bool = False
    head: ArchiveHead | None = None


async def jobs_to_verify(
    store: ObjectStore, client: Client | None, head: ArchiveHead | None
) -> list[JobKey]:
    """All jobs that should be there: those of the archive, of Temporal's list, and of a head that
    was kept.

    Raises:
        ArchiveError: if the store cannot be read.
        RPCError: if the server fails.
    """
    names = set(await asyncio.to_thread(all_jobs, store))
    if client is not None:
        archive = await asyncio.to_thread(known_archive_id, store)
        names |= set(await jobs_of(client, archive))
    if head is not None:
        names |= set(head.jobs)
    return sorted(names)


async def verified(
    store: ObjectStore, name: JobKey, client: Client | None, demands: Demands
) -> JobVerdict:
    """Verify a job; ``client`` is None where no server is in reach.

    Raises:
        ArchiveError: if the store cannot be read.
        RPCError: if the server fails.
    """
    archive = JobArchive.of(store, name)
    witness = Witness()
    if client is not None:
        runs = dict.fromkeys([*_runs(store, archive.prefix), *await runs_of(client, name)])
        witness = await witness_of(client, name, runs)
    kept = [] if demands.head is None else demands.head.of_job(archive.prefix)

    def verify() -> JobVerdict:
        # Another reader may follow a run that goes on: what comes after the witness was asked is
        # compared with nothing.
        examined = examine_job(archive, [*witness.refs, *kept])
        anchors = tuple(run_anchors(archive, demands.trusted, witness.refs, kept))
        found = [
            *examined.findings,
            *disagreements(archive, witness),
            *_missed(anchors, archive.prefix, demands),
        ]
        findings = list(dict.fromkeys(found))
        return JobVerdict(
            job=str(name),
            damage=tuple(f for f in findings if f.severity is Severity.DAMAGE),
            notes=tuple(f for f in findings if f.severity is not Severity.DAMAGE),
            runs=anchors,
            unnamed=len({f.key for f in findings if f.fault in _LOOSE}),
            examination=examined,
        )

    return await asyncio.to_thread(verify)


_LOOSE = frozenset({Fault.UNCOVERED, Fault.UNFINISHED})


def shared_verdict(
    store: ObjectStore, verdicts: Sequence[JobVerdict], head: ArchiveHead | None
) -> JobVerdict:
    """What was found of that which belongs to no job, when all jobs were verified."""
    examined = [verdict.examination for verdict in verdicts if verdict.examination is not None]
    wrong = [(key, words) for key, words in altered_shared(store)]
    wrong += [] if head is None else lost_shared(store, head)
    unnamed = unnamed_shared(store, examined)
    words = (
        f"{counted(len(unnamed), 'summary or material', 'summaries and materials')} that no job's"
        " record names"
    )
    notes = [_finding(Fault.UNCOVERED, unnamed[0], words, note=True)] if unnamed else []
    damage = tuple(_finding(Fault.ALTERED, key, words) for key, words in dict.fromkeys(wrong))
    return JobVerdict(job=None, damage=damage, notes=tuple(notes), unnamed=len(unnamed))


def _missed(anchors: Iterable[RunAnchors], prefix: str, demands: Demands) -> Iterator[Finding]:
    """Where a job has not what is asked for: a signature on each end, an anchor for each run."""
    runs = list(anchors)
    if demands.anchored:
        for run in runs:
            if not run.anchored:
                words = f"run {run.run} is only self-attested, and an anchor is required"
                yield _finding(Fault.UNANCHORED, run.head, words, run=run.run)
        if not runs:
            yield _finding(Fault.UNANCHORED, prefix, "no run has anything that could be anchored")
    if demands.signed:
        ended = [run for run in runs if run.ended]
        for run in ended:
            if not any(anchor.kind == "signature" for anchor in run.anchors):
                by = f"signed by {run.untrusted}" if run.untrusted else "not signed"
                words = f"the end of run {run.run} is {by}, and a key to trust was given"
                yield _finding(Fault.UNANCHORED, run.head, words, run=run.run)
        if not ended:
            yield _finding(
                Fault.UNANCHORED,
                prefix,
                "no run has ended, so none is signed, and a key to trust was given",
            )


def _finding(
    fault: Fault, key: str, message: str, *, run: str | None = None, note: bool = False
) -> Finding:
    severity = Severity.NOTE if note else Severity.DAMAGE
    return Finding(fault=fault, severity=severity, run=run, turn=None, key=key, message=message)


def _runs(store: ObjectStore, prefix: str) -> list[str]:
    """The runs that the archive knows by any of their objects, damaged or not."""
    names: dict[str, None] = {}
    for folder in ("runs", "ends"):
        for key in store.list(f"{prefix}/{folder}/"):
            names[unquote(key.rpartition("/")[2])] = None
    return list(names)
