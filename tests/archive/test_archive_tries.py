"""Trying whether a store keeps its promises, as ``holdfast doctor`` does."""

import pytest

from runtime.archive.stores import MemoryStore, ObjectStore
from runtime.archive.stores.tries import TRIES, Forgetting
from runtime.base.errors import ArchiveError
from runtime.worker.doctor.finding import Verdict
from runtime.worker.doctor.store import store as examined
from runtime.worker.doctor.store import try_store


class Overwriting(MemoryStore):
    """A store that ignores conditions of writes, as some S3 servers do."""

    def put_if_absent(self, key: str, data: bytes) -> bool:
        super().put_if_absent(key, data)
        return True


def test_a_try_leaves_nothing_behind(store: ObjectStore) -> None:
    """A store that keeps its promises passes; the object of the try is gone, and all else there."""
    store.put_if_absent("a/b", b"kept")
    before = list(store.list(""))
    assert try_store(store).verdict is Verdict.OK
    left = list(store.list(""))
    assert (left == before) is isinstance(store, Forgetting)


def test_only_tries_can_be_removed(store: ObjectStore) -> None:
    """Nothing that an archive holds is removed by the means of tries."""
    if isinstance(store, Forgetting):
        store.put_if_absent("a/b", b"kept")
        with pytest.raises(ArchiveError, match="not the object of a try"):
            store.remove_try("a/b")
        assert store.get("a/b") == b"kept"


def test_a_store_that_overwrites_fails() -> None:
    """A store that answers a second write of a key with success is no archive's."""
    finding = try_store(Overwriting())
    assert finding.verdict is Verdict.FAILED
    assert "overwrites objects" in finding.seen


def test_a_store_that_cannot_be_written_fails() -> None:
    """An address that is none, or a directory that cannot be made, is a finding and no error."""
    for url in ("ftp://x", "/dev/null/x"):
        finding, folder = examined(url)
        assert (finding.verdict, folder) == (Verdict.FAILED, None)
        assert "HOLDFAST_STORE" in finding.advice


def test_tries_stand_beside_what_archives_list() -> None:
    """No part of an archive lies under the folder of tries."""
    assert TRIES.startswith("_holdfast")
    assert not TRIES.startswith("_holdfast/")
