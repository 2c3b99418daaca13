"""The head of an archive: what covers all of it, small enough to keep elsewhere.

Objects name each other by digest, so the few that no other names (ends of runs, last steps,
attempts in flight, what came to nothing) cover everything. A head lists these with their digests,
and is signed if there is a key. Whoever keeps one can show later that nothing which it covers has
vanished or changed: an archive may grow, and what a head lists stays.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Literal

from pydantic import ValidationError

from runtime.archive import keys
from runtime.archive.catalog import known_archive_id
from runtime.archive.forms import Signature
from runtime.archive.lifecycle.holds import FOLDER as HOLDS
from runtime.archive.lifecycle.holds import hold_of
from runtime.archive.lifecycle.tombstones import FOLDER as TOMBSTONES
from runtime.archive.lifecycle.tombstones import Tombstones, read_tombstone
from runtime.archive.notices import FOLDER as NOTICES
from runtime.archive.notices import notice_in
from runtime.archive.pages import FOLDER, read_page
from runtime.archive.references import SHARED
from runtime.archive.shared_summaries import FOLDER as SUMMARIES
from runtime.archive.shared_summaries import check_summary
from runtime.archive.signing import Signer, fingerprint, is_valid
from runtime.archive.stores.protocol import ObjectStore
from runtime.archive.trees import TREES, Trees
from runtime.archive.verify import Examination
from runtime.base.digests import canonical_json, digest_bytes, digest_of
from runtime.base.errors import (
    ArchiveError,
    InputError,
    ObjectCorrupt,
    ObjectMissing,
    VerificationError,
)
from runtime.base.places import expanded
from runtime.base.values import JobKey, StepRef, Value

# A signature over a head must never pass as one over an end: each begins with its own words.
_SIGNED = b"holdfast archive head 1\0"


class ArchiveHead(Value):
    """What covers an archive, or some of its jobs.

    ``tips`` are digests by key, ``digest`` is that of the tips.

    ``archive`` is the archive's own id, ``made_at`` the time of the head in ISO 8601, UTC.
    """

    kind: Literal["holdfast-head"] = "holdfast-head"
    version: Literal[1] = 1
    archive: str | None
    made_at: str
    tips: dict[str, str]
    digest: str
    signature: Signature | None = None

    @property
    def jobs(self) -> list[JobKey]:
        """The jobs that it covers."""
        prefixes = {
            "/".join(key.split("/")[:2]): None for key in self.tips if not key.startswith(SHARED)
        }
        return [keys.job_of(job) for job in prefixes]

    def of_job(self, job: str) -> list[StepRef]:
        """The tips under a job's prefix."""
        return [
            StepRef(key=key, digest=self.tips[key])
            for key in self.tips
            if key.startswith(f"{job}/")
        ]

    @property
    def text(self) -> bytes:
        """What is signed."""
        return _SIGNED + canonical_json(self.model_dump(mode="json", exclude={"signature"}))


def head_of(
    examined: Iterable[Examination],
    shared: Mapping[str, str],
    *,
    archive: str | None,
    made_at: str,
    signer: Signer | None,
) -> ArchiveHead:
    """The head over the jobs that were examined, and over what all jobs share: see
    ``shared_digests``.
    """
    examinations = list(examined)
    named = frozenset[str]().union(*(one.named for one in examinations))
    digests = {key: digest for one in examinations for key, digest in one.digests.items()} | dict(
        shared
    )
    tips = {key: digest for key, digest in sorted(digests.items()) if key not in named}
    head = ArchiveHead(archive=archive, made_at=made_at, tips=tips, digest=digest_of(tips))
    return head if signer is None else head.model_copy(update={"signature": signer(head.text)})


def shared_digests(store: ObjectStore) -> dict[str, str]:
    """The digests of what belongs to no job, by key."""
    return {key: digest_bytes(store.get(key)) for key in store.list(SHARED)}


def unnamed_shared(store: ObjectStore, examined: Iterable[Examination]) -> list[str]:
    """What all jobs share and nothing names: summaries and material that no job was shown.

    Claims are signs between workers.
    """
    named = frozenset[str]().union(*(one.named for one in examined))
    # Claims stand one folder deeper.
    kept = (key for key in store.list(SHARED) if key.count("/") == 2)
    return [key for key in kept if key not in named]


def altered_shared(store: ObjectStore) -> Iterator[tuple[str, str]]:
    """What all jobs share and is not what its key or its own words say, with what is wrong."""
    try:
        known_archive_id(store)
    except ArchiveError as error:
        yield keys.ARCHIVE_ID, f"cannot be read: {error}"
    for key in store.list(f"{SHARED}material/"):
        try:
            if digest_bytes(store.get(key)) != f"sha256:{key.rpartition('/')[2]}":
                yield key, "is not the material that its key names"
        except ArchiveError as error:
            yield key, f"cannot be read: {error}"
    trees = Trees(store)
    for key in store.list(TREES):
        try:
            trees.check(key)
        except ArchiveError as error:
            yield key, f"cannot be read: {error}"
    for key in store.list(FOLDER):
        try:
            read_page(store, key.rpartition("/")[2])
        except ArchiveError as error:
            yield key, f"cannot be read: {error}"
    for key in store.list(TOMBSTONES):
        try:
            read_tombstone(store, key)
        except ArchiveError as error:
            yield key, f"cannot be read: {error}"
    for job in sorted({key.removeprefix(HOLDS).rpartition("/")[0] for key in store.list(HOLDS)}):
        try:
            hold_of(store, job)
        except ArchiveError as error:
            yield f"{HOLDS}{job}", f"cannot be read: {error}"
    for key in store.list(NOTICES):
        try:
            notice_in(key, store.get(key))
        except ArchiveError as error:
            yield key, f"cannot be read: {error}"
    for key in store.list(SUMMARIES):
        try:
            check_summary(key, store.get(key))
        except ArchiveError as error:
            yield key, f"cannot be read: {error}"


def lost_shared(store: ObjectStore, head: ArchiveHead) -> Iterator[tuple[str, str]]:
    """What a head covers of that which all jobs share and is gone or altered, with what is
    wrong. What was deleted with a job is not lost, and may have been made anew since.
    """
    graves = Tombstones(store, lenient=True)
    for key, digest in head.tips.items():
        if not key.startswith(SHARED):
            continue
        try:
            current = digest_bytes(store.get(key))
        except ObjectMissing:
            wrong = "is not there, but the head that was kept names it"
        except ObjectCorrupt as error:
            wrong = f"cannot be read, and the head that was kept names it: {error}"
        else:
            wrong = f"has digest {current}, but the head that was kept names it as {digest}"
            if current == digest:
                continue
        if graves.covering(key, digest) is None:
            yield key, wrong


def read_head(path: str, trusted: frozenset[str]) -> ArchiveHead:
    """The head in a file, which must be whole, and signed by a key of ``trusted`` if there are any.

    Raises:
        InputError: if the file cannot be read or holds no head.
        VerificationError: if it is not what it was when it was made, or who signed it is not
            trusted.
    """
    try:
        head = ArchiveHead.model_validate_json(expanded(path).read_bytes())
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except ValidationError:
        raise InputError(
            f"{path}: no head of an archive, as 'holdfast verify --head' prints it"
        ) from None
    if digest_of(dict(sorted(head.tips.items()))) != head.digest:
        raise VerificationError(
            f"{path}: its digest is not that of what it lists: this head was altered"
        )
    if head.signature is not None and not is_valid(head.signature, head.text):
        raise VerificationError(
            f"{path}: its signature is not one of what it says: this head was altered"
        )
    # Integrity was checked above; from here on it is about who vouches for it.
    if trusted and head.signature is None:
        raise VerificationError(f"{path}: is not signed, and a key to trust was given")
    if trusted and head.signature is not None and head.signature.public_key not in trusted:
        who = fingerprint(head.signature.public_key)
        raise VerificationError(f"{path}: is signed by {who}, which is none of the keys to trust")
    return head
