"""One job's verification, and that of what jobs share: the archive, and Temporal's list and
histories where they are in reach.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import unquote

from temporalio.client import Client

from runtime.archive import keys
from runtime.archive.anchors import RunAnchors, run_anchors
from runtime.archive.catalog import all_jobs, known_archive_id
from runtime.archive.findings import Fault, Finding, Severity
from runtime.archive.heads import ArchiveHead, altered_shared, lost_shared, unnamed_shared
from runtime.archive.job import JobArchive
from runtime.archive.lifecycle.tombstones import FOLDER as TOMBSTONES
from runtime.archive.lifecycle.tombstones import (
    Tombstone,
    deleted_jobs,
    digest_at,
    tombstones_of,
)
from runtime.archive.signing import fingerprint
from runtime.archive.stores import ObjectStore
from runtime.archive.verify import Examination, examine_job
from runtime.base.errors import ObjectCorrupt
from runtime.base.plurals import counted
from runtime.base.values import JobKey, StepRef
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
    """What a verification asks for: signatures by ``trusted`` keys where ``signed``,
    anchors, a ``head`` that was kept.
    """

    trusted: frozenset[str] = frozenset()
    signed: bool = False
    anchored: bool = False
    head: ArchiveHead | None = None


async def jobs_to_verify(
    store: ObjectStore, client: Client | None, head: ArchiveHead | None
) -> list[JobKey]:
    """All jobs that should be there or were deleted: those of the archive, of Temporal's list, and
    of a head that was kept.

    Raises:
        ArchiveError: if the store cannot be read.
        RPCError: if the server fails.
    """
    names = set(await asyncio.to_thread(all_jobs, store))
    names |= set(await asyncio.to_thread(deleted_jobs, store))
    if client is not None:
        # One that is damaged is told with what jobs share.
        with suppress(ObjectCorrupt):
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
        # Of either side: what this looks for is a run that one of them has lost.
        runs = dict.fromkeys([*_runs(store, archive.prefix), *await runs_of(client, name)])
        witness = await witness_of(client, name, runs)
    kept = [] if demands.head is None else demands.head.of_job(archive.prefix)
    try:
        graves, unread = await asyncio.to_thread(tombstones_of, store, archive.prefix), []
    except ObjectCorrupt as error:
        # It covers nothing: what was deleted is told as lost, beside this.
        graves = []
        unread = [_finding(Fault.CORRUPT, f"{TOMBSTONES}{archive.prefix}", str(error))]
    if graves:
        witness, kept = _since(witness, kept, graves)
        if left := graves[-1].left(store):
            vouched = [*witness.refs, *kept]
            return await asyncio.to_thread(_half_deleted, archive, graves, left, vouched, demands)

    def verify() -> JobVerdict:
        # Another reader may follow a run that goes on: what comes after the witness was asked is
        # compared with nothing.
        examined = examine_job(archive, [*witness.refs, *kept])
        anchors = tuple(run_anchors(archive, demands.trusted, witness.refs, kept))
        all_findings = [
            *examined.findings,
            *disagreements(archive, witness),
            # Of a job that was deleted and did not begin again, nothing is left that could be
            # anchored.
            *(_missed(anchors, archive.prefix, demands) if anchors or not graves else ()),
            *_deletions(graves, demands),
            *unread,
        ]
        return _verdict(name, all_findings, anchors, examined)

    verdict = await asyncio.to_thread(verify)
    if verdict.damage and not unread:
        there = await asyncio.to_thread(lambda: list(store.list(f"{TOMBSTONES}{archive.prefix}/")))
        # Deleted in the midst of it: what was listed and gone is told as damage.
        if len(there) > len(graves):
            return await verified(store, name, client, demands)
    return verdict


def _verdict(
    name: JobKey,
    all_findings: Iterable[Finding],
    runs: tuple[RunAnchors, ...] = (),
    examination: Examination | None = None,
) -> JobVerdict:
    # The archive's own examination and the witness may tell of the same damage.
    findings = list(dict.fromkeys(all_findings))
    return JobVerdict(
        job=str(name),
        damage=tuple(f for f in findings if f.severity is Severity.DAMAGE),
        notes=tuple(f for f in findings if f.severity is not Severity.DAMAGE),
        runs=runs,
        unnamed=len({f.key for f in findings if f.fault in _LOOSE}),
        examination=examination,
    )


def _since(
    witness: Witness, kept: Sequence[StepRef], graves: Sequence[Tombstone]
) -> tuple[Witness, list[StepRef]]:
    """What is vouched for and was not deleted, by key and digest: of a job that was begun anew."""
    covered = {ref for grave in graves for ref in grave.own.items()}
    gone = {key.rpartition("/")[2] for key, _ in covered if "/runs/" in key}

    def stays(ref: StepRef) -> bool:
        return (ref.key, ref.digest) not in covered

    left = Witness(
        begun=[run for run in witness.begun if keys.name(run) not in gone],
        runs=[run for run in witness.runs if keys.name(run) not in gone],
        replies=[reply for reply in witness.replies if stays(reply.step)],
        ends=[ref for ref in witness.ends if stays(ref)],
    )
    return left, [ref for ref in kept if stays(ref)]


def _deletions(graves: Sequence[Tombstone], demands: Demands) -> Iterator[Finding]:
    """That the job was deleted; and where nobody who is trusted says so, though that is asked."""
    for grave in graves:
        trusted = grave.signed_by in demands.trusted
        signed = (
            "not signed" if grave.signed_by is None else f"signed by {fingerprint(grave.signed_by)}"
        )
        objects = counted(grave.form.objects, "object")
        words = f"{grave.job} {grave.told} ({objects}, {signed})"
        yield _finding(Fault.DELETED, grave.key, words, note=True)
        if not trusted and (demands.signed or demands.anchored):
            why = "a key to trust was given" if demands.signed else "an anchor is required"
            yield _finding(Fault.UNANCHORED, grave.key, f"the tombstone is {signed}, and {why}")


def _half_deleted(
    archive: JobArchive,
    graves: Sequence[Tombstone],
    left: Sequence[str],
    vouched: Iterable[StepRef],
    demands: Demands,
) -> JobVerdict:
    """The verdict over a job of which all was to go, and something is left."""
    of_what_is_left = _left(archive.store, graves[-1], left, vouched)
    return _verdict(archive.job, [*of_what_is_left, *_deletions(graves, demands)])


def _left(
    store: ObjectStore, grave: Tombstone, left: Sequence[str], vouched: Iterable[StepRef]
) -> Iterator[Finding]:
    """What a half deleted job lacks was meant to go, but nothing may have changed before, nor be
    ``vouched`` for that the tombstone does not list.
    """
    yield _finding(Fault.DELETED, grave.key, grave.told_with(left), note=True)
    for key in left:
        current, listed = digest_at(store, key), grave.own[key]
        if current != listed:
            words = f"has digest {current}, but its tombstone lists it as {listed}"
            yield _finding(Fault.ALTERED, key, words)
    for ref in vouched:
        words = f"its tombstone does not list it with digest {ref.digest}, which is vouched for"
        yield _finding(Fault.ALTERED, ref.key, words)


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
