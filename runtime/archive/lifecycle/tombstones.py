"""What stays of jobs that were deleted: who did it, when, why, and the digests of all that is gone.

::

    _holdfast/tombstones/BATCH/JOB/0001

So ``verify`` tells a deletion from a loss: what an object, a kept head or Temporal's history names
and a tombstone covers, by key and digest, was deleted. A job may be run and deleted again.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from runtime.archive import keys
from runtime.archive.container import Part, header, seal, unseal
from runtime.archive.forms.tombstone import TombstoneForm
from runtime.archive.frames import compress
from runtime.archive.lifecycle.numbered import put_next
from runtime.archive.references import SHARED
from runtime.archive.signing import Signer, is_valid
from runtime.archive.stores.protocol import ObjectStore
from runtime.base.digests import canonical_json, digest_bytes
from runtime.base.errors import ObjectCorrupt, ObjectMissing
from runtime.base.plurals import counted
from runtime.base.values import JobKey

FOLDER = f"{SHARED}tombstones/"
# What is signed begins with its kind, so that a signature of another kind never passes for one.
_SIGNED = b"holdfast archive tombstone 1\0"


@dataclass(frozen=True)
class Tombstone:
    """A tombstone as read: ``own`` and ``shared`` are digests by key of what was deleted."""

    key: str
    form: TombstoneForm
    own: Mapping[str, str]
    shared: Mapping[str, str]

    @property
    def job(self) -> JobKey:
        """The job."""
        return keys.job_of(self.form.job)

    @property
    def told(self) -> str:
        """The deletion in a sentence."""
        return f"was deleted by {self.form.by} at {self.form.at}: {self.form.reason}"

    def told_with(self, left: Sequence[str]) -> str:
        """The same of one that was broken off and has ``left`` so much, with what ends it."""
        there = "is" if len(left) == 1 else "are"
        return (
            f"{self.told}; {counted(len(left), 'object')} of it {there} left:"
            f" 'holdfast archive delete {self.job} --reason TEXT' goes on"
        )

    @property
    def signed_by(self) -> str | None:
        """The public key that signed it, None if it is not signed."""
        return None if self.form.signature is None else self.form.signature.public_key

    def left(self, store: ObjectStore) -> list[str]:
        """What should be gone and is there: the job's own objects, if its deletion was broken off.

        Of a job that was begun anew since, none: it has what the tombstone does not cover.
        """
        there = list(store.list(f"{self.form.job}/"))
        anew = any(
            key not in self.own or ("/definition/" in key and self._is_another(store, key))
            for key in there
        )
        return [] if anew else there

    def _is_another(self, store: ObjectStore, key: str) -> bool:
        """Whether the object at a key, which runs share, is not the one that was deleted."""
        try:
            return unseal(key, store.get(key)).digest != self.own[key]
        # What cannot be read is taken for what was to go, so that the deletion comes to its end.
        except (ObjectCorrupt, ObjectMissing):
            return False


def digest_at(store: ObjectStore, key: str) -> str:
    """The digest by which others name what stands at a key; of what is damaged that of its bytes,
    or of none where these cannot be had.
    """
    data = b""
    try:
        data = store.get(key)
        return unseal(key, data).digest
    except ObjectCorrupt:
        return digest_bytes(data)


def write_tombstone(
    store: ObjectStore,
    job: str,
    own: Mapping[str, str],
    shared: Mapping[str, str],
    *,
    by: str,
    at: str,
    reason: str,
    signer: Signer | None,
) -> Tombstone:
    """Archive the next tombstone of the job under a prefix."""
    listed = canonical_json({"own": dict(own), "shared": dict(shared)})
    parts = (Part("objects", compress(listed), len(listed)),)
    form = TombstoneForm(
        job=job, by=by, at=at, reason=reason, objects=len(own), digest=digest_bytes(listed)
    )

    def written(key: str) -> bytes:
        # Anew for each number that is tried: the signature is over the key.
        signature = None if signer is None else signer(_text(key, form))
        signed = form.model_copy(update={"signature": signature})
        return seal(key, header(signed.header(), parts), parts)[0]

    # Read back before anything goes: a tombstone that cannot be read covers nothing.
    return read_tombstone(store, put_next(store, f"{FOLDER}{job}/", written))


def read_tombstone(store: ObjectStore, key: str) -> Tombstone:
    """The tombstone at a key.

    Raises:
        ObjectCorrupt: if it is not what was written.
    """
    archived = unseal(key, store.get(key), "tombstone")
    try:
        form = TombstoneForm.read(archived)
        listed = archived.frame("objects")
        contents = json.loads(listed)
        own, shared = dict(contents["own"]), dict(contents["shared"])
    except (ValueError, KeyError, TypeError) as error:
        raise ObjectCorrupt(f"{key}: its contents are malformed: {error!r}") from None
    if digest_bytes(listed) != form.digest or not key.startswith(f"{FOLDER}{form.job}/"):
        raise ObjectCorrupt(f"{key}: is not the tombstone that its key or digest names")
    if form.signature is not None and not is_valid(form.signature, _text(key, form)):
        raise ObjectCorrupt(f"{key}: its signature is not one of what it says")
    return Tombstone(key, form, own, shared)


def _text(key: str, form: TombstoneForm) -> bytes:
    fields = form.model_dump(mode="json", exclude={"signature", "parts"})
    return _SIGNED + key.encode() + b"\0" + canonical_json(fields)


def deleted_jobs(store: ObjectStore, batch: str | None = None) -> list[JobKey]:
    """The jobs, of a batch if one is given, that have tombstones, sorted."""
    folder = FOLDER if batch is None else f"{FOLDER}{keys.name(batch)}/"
    jobs = {key.removeprefix(FOLDER).rpartition("/")[0] for key in store.list(folder)}
    return [keys.job_of(job) for job in sorted(jobs)]


def tombstones_of(store: ObjectStore, job: str) -> list[Tombstone]:
    """Those of the job under a prefix, oldest first."""
    return [read_tombstone(store, key) for key in store.list(f"{FOLDER}{job}/")]


def half_deleted(store: ObjectStore, job: JobKey) -> str:
    """What became of a job whose deletion was begun and broken off, in a sentence; empty of any
    other, and where its tombstone cannot be read.
    """
    last = last_deletion(store, job)
    return last[0].told_with(last[1]) if last is not None and last[1] else ""


def last_deletion(store: ObjectStore, job: JobKey) -> tuple[Tombstone, list[str]] | None:
    """A job's last tombstone that can be read, and what is left of what it covers: an earlier
    deletion is over, and the job may have begun anew since.
    """
    graves = Tombstones(store, lenient=True).of_job(keys.job_prefix(job.batch, job.job))
    return (graves[-1], list(graves[-1].left(store))) if graves else None


class Tombstones:
    """Looks for what deleted objects are covered by; reads what it needs, once.

    One that cannot be read covers nothing where that is ``lenient``, and is an error elsewhere.
    """

    def __init__(self, store: ObjectStore, *, lenient: bool = False) -> None:
        self._store = store
        self._lenient = lenient
        self._jobs: dict[str, list[Tombstone]] = {}

    def of_job(self, job: str) -> list[Tombstone]:
        """Those of a job."""
        if job not in self._jobs:
            names = self._store.list(f"{FOLDER}{job}/")
            self._jobs[job] = [one for name in names for one in self._read(name)]
        return self._jobs[job]

    def _read(self, key: str) -> list[Tombstone]:
        try:
            return [read_tombstone(self._store, key)]
        except ObjectCorrupt:
            if self._lenient:
                return []
            raise

    def covering(self, key: str, digest: str | None = None) -> Tombstone | None:
        """The tombstone that covers an object, by its digest if one is given."""
        return next(
            (one for one, covered in self._covering(key) if digest in {None, covered}),
            None,
        )

    def _covering(self, key: str) -> Iterator[tuple[Tombstone, str]]:
        if key.startswith(SHARED):
            if key in self._shared:
                yield from self._shared[key]
            return
        for one in self.of_job(keys.job_prefix_in(key)):
            if key in one.own:
                yield one, one.own[key]

    @cached_property
    def _shared(self) -> dict[str, list[tuple[Tombstone, str]]]:
        covering: dict[str, list[tuple[Tombstone, str]]] = {}
        for name in self._store.list(FOLDER):
            for one in self._read(name):
                for key, digest in one.shared.items():
                    covering.setdefault(key, []).append((one, digest))
        return covering
