"""Copying an archive to another store, so that the copy is an archive at every moment.

Whatever an object names is copied before it: content first, what points to it last. So a copy that
was broken off lacks what came last, as the archive of a job that was killed does, and whatever the
copy has is whole; the same command goes on. Each object is checked against the digest that it
carries before it is written, and read back afterwards.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from runtime.archive import keys
from runtime.archive.catalog import known_archive_id
from runtime.archive.container import is_sealed, unseal
from runtime.archive.gaps import named_gap
from runtime.archive.lifecycle.holds import FOLDER as HOLDS
from runtime.archive.lifecycle.holds import hold_in
from runtime.archive.lifecycle.tombstones import FOLDER as TOMBSTONES
from runtime.archive.lifecycle.tombstones import Tombstones
from runtime.archive.notices import FOLDER as NOTICES
from runtime.archive.notices import notice_in
from runtime.archive.packing import pack_job
from runtime.archive.pages import FOLDER as PAGES
from runtime.archive.pages import page_in
from runtime.archive.references import SHARED, Reference, references, shared_references
from runtime.archive.shared_summaries import FOLDER as SUMMARIES
from runtime.archive.shared_summaries import check_summary
from runtime.archive.stores import ObjectStore
from runtime.base.digests import digest_bytes
from runtime.base.errors import ArchiveError, InputError, ObjectCorrupt, ObjectMissing
from runtime.base.failpoints import failpoint
from runtime.base.values import JobKey

AT_A_TIME = 8
_RANK = {
    "attempt": 0,
    "failure": 1,
    "exchange": 1,
    "step": 2,
    "checkpoint": 3,
    "effect": 3,
}


@dataclass(frozen=True)
class CopiedJob:
    """A job that was copied: its objects, those that were there already, and bytes written."""

    job: JobKey
    objects: int
    present: int
    bytes: int


@dataclass
class Copied:
    """What a copy came to.

    ``objects`` were written, with so many ``bytes``; ``present`` were there. ``damaged`` are those
    of the source that are not what they should be, ``missing`` those that something copied names
    and the source has not, and ``different`` those of the target that are not the source's, each
    with what is wrong. ``deleted`` are jobs that were deleted in one of the two stores and have
    objects in the other.
    """

    jobs: int = 0
    objects: int = 0
    present: int = 0
    bytes: int = 0
    damaged: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    different: dict[str, str] = field(default_factory=dict)
    deleted: list[JobKey] = field(default_factory=list)

    @property
    def whole(self) -> bool:
        """Whether all that was to be copied is there."""
        return not self.damaged and not self.missing and not self.different


def copy_archive(
    source: ObjectStore,
    target: ObjectStore,
    jobs: Collection[JobKey],
    *,
    everything: bool,
    compare: bool = False,
    tell: Callable[[CopiedJob], None],
) -> Copied:
    """Copy jobs, with what they lean on; with ``everything`` all that the archive has beside them.

    ``compare``: also what is there already is read and compared.

    Raises:
        InputError: if the target is another archive.
        ArchiveError: if a store fails.
    """
    id = known_archive_id(source)
    there = known_archive_id(target)
    if there is not None and there != id:
        raise InputError(f"{target} is another archive ({there}) than {source} ({id})")
    copier = _Copier(source, target, compare=compare)
    wanted = [job for job in jobs if copier.may_copy(job)]
    with ThreadPoolExecutor(AT_A_TIME, thread_name_prefix="holdfast-copy") as threads:
        try:
            for done in threads.map(copier.job, wanted):
                copier.result.jobs += 1
                tell(done)
        except BaseException:
            # Else whoever broke it off waited until the other threads have copied their jobs.
            copier.break_off()
            raise
    copier.beside(everything)
    # Last: a copy that was broken off must not say that a job is held or gone before it has the
    # job.
    copier.words_on({keys.job_prefix(job.batch, job.job) for job in jobs}, everything)
    # The id makes the target the same archive, so it is written only once the target is one.
    if id is not None and copier.result.whole:
        copier.put(keys.ARCHIVE_ID, source.get(keys.ARCHIVE_ID))
    return copier.result


class _Copier:
    def __init__(self, source: ObjectStore, target: ObjectStore, *, compare: bool) -> None:
        self._source, self._target, self._compare = source, target, compare
        self._graves = Tombstones(source), Tombstones(target)
        self._readable_graves = tuple(Tombstones(one, lenient=True) for one in (source, target))
        self._lock = threading.Lock()
        # What is there, with all that it names; where that is to be compared, what has been.
        self._shared = set() if compare else set(target.list(SHARED))
        self._gone: set[str] = set()
        # The same of jobs that others lean on, whose ``_listed`` folders of the target are in it;
        # and what was written for those others, or for all; what they share was ``_met`` there.
        self._leaned: set[str] = set()
        self._listed: set[str] = set()
        self._brought: set[str] = set()
        self._met: set[str] = set()
        self._leaning = threading.Lock()
        self._broken_off = threading.Event()
        self.result = Copied()

    def break_off(self) -> None:
        """Have whoever writes an object next write no more."""
        self._broken_off.set()

    def may_copy(self, job: JobKey) -> bool:
        """Whether the job was deleted in neither store: a copy brings nothing back."""
        prefix = keys.job_prefix(job.batch, job.job)
        told, where = self.result.damaged, ""
        try:
            ours = self._graves[0].of_job(prefix)
            told, where = self.result.different, f" (in {self._target})"
            theirs = self._graves[1].of_job(prefix)
        # Nobody knows whether it was deleted: it is left out, and the others are copied.
        except ObjectCorrupt as error:
            told[named_gap(error).key] = f"{error}{where}: nor is {job}"
            self._gone.add(prefix)
            return False
        # A tombstone whose job has objects in either store: one of the two deleted what the other
        # has.
        halves = [
            *(one for one in ours if one.left(self._target) or one.left(self._source)),
            *(one for one in theirs if one.left(self._source)),
        ]
        if halves:
            self.result.deleted.append(job)
            self._gone.add(prefix)
        return not halves

    def job(self, job: JobKey) -> CopiedJob:
        """Copy a job."""
        prefix = keys.job_prefix(job.batch, job.job)
        there = set() if self._compare else set(self._target.list(f"{prefix}/"))
        names = list(self._source.list(f"{prefix}/"))
        counts = _Counts(present=sum(self._was_there(key) for key in names if key in there))
        for key in sorted(names, key=_older_first):
            if not self._has(key, there):
                self._with_what_it_names(_Visit(key), there, counts, f"{prefix}/")
        pack_job(self._target, prefix)
        self._add(counts)
        return CopiedJob(job, counts.objects, counts.present, counts.bytes)

    def beside(self, everything: bool) -> None:
        """Copy what jobs share and no job names: with ``everything`` alone."""
        for key in self._source.list(SHARED) if everything else ():
            if key.startswith((TOMBSTONES, HOLDS)) or key in {keys.ARCHIVE_ID, f"{SHARED}archive"}:
                continue
            try:
                # Deleted in the target: a copy brings nothing back.
                if self._graves[1].covering(key) is not None:
                    continue
            except ObjectCorrupt as error:
                key = named_gap(error).key
                # Its job may be left out for it already.
                wrong = self.result.different.get(key, f"{error} (in {self._target})")
                self.result.different[key] = f"{wrong}: nor is what no job names"
                break
            counts = _Counts()
            self._with_what_it_names(_Visit(key), set(), counts, SHARED)
            self._add(counts)
        # What two threads met at once, one of them wrote.
        self.result.present += len(self._met - self._brought)

    def words_on(self, jobs: Collection[str], everything: bool) -> None:
        """Copy tombstones and holds: what is said of jobs comes after the jobs."""
        for folder in (HOLDS, TOMBSTONES):
            for key in self._source.list(folder):
                told = everything or key.removeprefix(folder).rpartition("/")[0] in jobs
                if told and (data := self._read(key)) is not None:
                    self.put(key, data)

    def _lean_on(self, named: _Visit, counts: _Counts) -> None:
        """Copy an object of another job, what it names before it: once for all that name it."""
        with self._leaning:
            folder = f"{keys.job_prefix_in(named.key)}/"
            if not self._compare and folder not in self._listed:
                self._listed.add(folder)
                self._leaned.update(self._target.list(folder))
            if named.key not in self._leaned:
                self._with_what_it_names(named, self._leaned, counts, None)

    def _with_what_it_names(
        self, first: _Visit, there: set[str], counts: _Counts, own: str | None
    ) -> None:
        """Copy an object under the prefix ``own``, what it names before it; under any for None."""
        # A stack of its own: chains of steps are longer than Python recurses.
        stack = [first]
        seen = {first.key}
        while stack:
            visit = stack[-1]
            if visit.data is None:
                if not self._has(visit.key, there):
                    visit.data = self._read(visit.key, visit.digest, visit.by)
                if visit.data is None:
                    stack.pop()
                    continue
                visit.named = iter(_named(visit.key, visit.data))
            below = next((one for one in visit.named if one.key not in seen), None)
            if below is not None:
                seen.add(below.key)
                named = _Visit(below.key, below.digest, visit.key)
                if own is None or below.key.startswith((own, SHARED)):
                    stack.append(named)
                else:
                    self._lean_on(named, counts)
                continue
            stack.pop()
            written = (self._bring if own is None else self.put)(visit.key, visit.data)
            counts.objects += written
            counts.bytes += len(visit.data) if written else 0
            shared = visit.key.startswith(SHARED)
            if shared:
                (self._brought if written else self._met).add(visit.key)
            # What others lean on is told with its own job.
            elif own is not None and not written:
                counts.present += self._was_there(visit.key)
            # Only now, with all that it names in place, does its presence mean that it is whole.
            (self._shared if shared else there).add(visit.key)

    def _was_there(self, key: str) -> bool:
        """Whether what the target has was there before this copy, and not brought for others."""
        with self._lock:
            return key not in self._brought

    def _bring(self, key: str, data: bytes) -> bool:
        """``put``, for others than the object's own job."""
        # In one, so that its own job, which may come upon it now, knows from where it is.
        with self._lock:
            if written := self.put(key, data):
                self._brought.add(key)
        return written

    def _has(self, key: str, there: set[str]) -> bool:
        """Whether an object is dealt with: the target has it, with all that it names."""
        return key in there or key in self._shared

    def _read(self, key: str, digest: str | None = None, by: str = "") -> bytes | None:
        """The bytes of an object, which the object ``by`` names with its ``digest``; None if it is
        gone or damaged, which is told, or of a job that was deleted.
        """
        if keys.job_prefix_in(key) in self._gone or key in self.result.damaged:
            return None
        try:
            data = self._source.get(key)
            _check(key, data, digest)
        except ObjectMissing:
            # What was listed and is gone was deleted meanwhile.
            if by and not any(graves.covering(key, digest) for graves in self._readable_graves):
                self.result.missing[key] = f"{key}: is not there, but {by} refers to it"
            return None
        except ObjectCorrupt as error:
            self.result.damaged[key] = str(error)
            return None
        return data

    def put(self, key: str, data: bytes) -> bool:
        """Write an object and read it back; False if it was there.

        Raises:
            InterruptedError: if the copy was broken off.
        """
        if self._broken_off.is_set():
            raise InterruptedError
        failpoint("archive.copy.before_put")
        written = self._target.put_if_absent(key, data)
        failpoint("archive.copy.after_put")
        copied = self._target.get(key)
        if copied != data and not _says_the_same(key, copied, data):
            self.result.different[key] = (
                f"{key}: has digest {digest_bytes(copied)} in {self._target}, and"
                f" {digest_bytes(data)} in {self._source}"
            )
            # Written just now and already another: this store cannot be trusted with the rest.
            if written:
                raise ArchiveError(f"{self._target} does not hold what was written to it: {key}")
        return written

    def _add(self, counts: _Counts) -> None:
        with self._lock:
            self.result.objects += counts.objects
            self.result.present += counts.present
            self.result.bytes += counts.bytes


@dataclass
class _Counts:
    objects: int = 0
    present: int = 0
    bytes: int = 0


@dataclass
class _Visit:
    """An object on the way: which other one it was come to from, ``by``, and the ``digest`` that it
    has there; neither for one that was listed. ``named`` is what is still to be looked at of it.
    """

    key: str
    digest: str | None = None
    by: str = ""
    data: bytes | None = None
    named: Iterator[Reference] = field(default_factory=lambda: iter(()))


def _named(key: str, data: bytes) -> list[Reference]:
    """What an object names."""
    if key.startswith(SHARED):
        return list(shared_references(data))
    try:
        return list(references(unseal(key, data)))
    # A header of another shape is copied as it is; ``verify`` says what is wrong with it.
    except (KeyError, TypeError, AttributeError):
        return []


def _check(key: str, data: bytes, digest: str | None) -> None:
    """See that an object is what its own words, its name, or what names it say.

    Raises:
        ObjectCorrupt: if it is not.
    """
    if not key.startswith(SHARED):
        unseal(key, data)
        return
    if is_sealed(data):
        unseal(key, data)
    elif key.startswith(PAGES):
        page_in(key, data)
    elif key.startswith(HOLDS):
        hold_in(key, data)
    elif key.startswith(NOTICES):
        notice_in(key, data)
    elif key.startswith(SUMMARIES):
        check_summary(key, data)
    elif key.startswith(TOMBSTONES):
        raise ObjectCorrupt(f"{key}: is no tombstone")
    material = key.startswith(f"{SHARED}material/")
    if material and digest_bytes(data) != f"sha256:{key.rpartition('/')[2]}":
        raise ObjectCorrupt(f"{key}: is not the material that its key names")
    # What has no digest of its own has that of its bytes where it is named.
    if digest is not None and digest_bytes(data) != digest:
        raise ObjectCorrupt(f"{key}: has digest {digest_bytes(data)}, and is named as {digest}")


def _says_the_same(key: str, one: bytes, other: bytes) -> bool:
    """Whether two objects have one digest: what each says may be compressed in its own way."""
    try:
        return is_sealed(one) and unseal(key, one).digest == unseal(key, other).digest
    except ObjectCorrupt:
        return False


def _older_first(key: str) -> tuple[int, str, int, str]:
    """An order in which an object mostly comes after what it names; the rest is looked up."""
    place = keys.parse_turn_key(key)
    if place is not None:
        return 2, f"{place.turn:07d}", _RANK[place.kind], key
    folder = key.split("/")[2] if key.count("/") > 1 else ""
    return {"definition": 0, "replays": 0, "runs": 1, "ends": 3}.get(folder, 4), "", 0, key
