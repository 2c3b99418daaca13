"""What jobs are to begin with of other jobs' workspaces, and the archive does not have."""

from __future__ import annotations

from collections.abc import Iterator

from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore, open_existing
from runtime.archive.workspaces import named_workspace, version_after
from runtime.base.addresses import SCHEME, WORKSPACE_OF
from runtime.base.errors import ArchiveError, NotFound
from runtime.base.spec.models import BatchSpec
from runtime.base.values import JobKey
from runtime.client.lost import is_open

_ASKED = 100
"""So many are looked for; each other one is as its job begins."""


def begun_with(batch: BatchSpec) -> dict[str, list[int]]:
    """The indices of the jobs that are to begin with what another one left, by the address that
    they name.
    """
    wanted: dict[str, list[int]] = {}
    for index, job in enumerate(batch.jobs):
        address = job.workspace
        room = address in wanted or len(wanted) < _ASKED
        if room and job.writable is not None and WORKSPACE_OF.fullmatch(address):
            wanted.setdefault(address, []).append(index)
    return wanted


def missing(
    batch: BatchSpec, wanted: dict[str, list[int]], archive: str
) -> Iterator[tuple[int, str]]:
    """Each job that cannot begin with what it is to, by its index, and why, as far as the archive
    at that address tells now; ``wanted`` are those that are ``begun_with``.
    """
    try:
        store, none = open_existing(archive), ""
    except NotFound as error:
        store, none = None, str(error)
    except ArchiveError:
        # Whoever starts the jobs is told.
        return
    own = _own(batch, wanted)
    for address in [one for one in wanted if one not in own]:
        told = none if store is None else _fault(store, address, batch.batch)
        for index in wanted[address] if told else ():
            key = JobKey(batch=batch.batch, job=batch.jobs[index].id)
            # What one has begun with may be gone by now.
            if store is None or not JobArchive.of(store, key).begun_last():
                yield index, told


def _own(batch: BatchSpec, wanted: dict[str, list[int]]) -> set[str]:
    """The addresses of jobs of the batch itself, which may have ended before the others begin."""
    names: dict[str, list[str]] = {}
    for address in wanted:
        name = address.removeprefix(SCHEME).rpartition("@")[0]
        names.setdefault(name.removeprefix(f"{batch.batch}/"), []).append(address)
    return {address for job in batch.jobs for address in names.get(job.id, ())}


def _fault(store: ObjectStore, address: str, batch: str) -> str:
    """Why the archive has no such version; empty if it has, or may have when a job begins."""
    try:
        # One that runs may come to that turn.
        if not is_open(named_workspace(store, address, batch)[0]):
            version_after(store, address, batch)
    except (NotFound, ArchiveError) as error:
        return str(error)
    return ""
