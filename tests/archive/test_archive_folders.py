"""``ObjectStore.folders``: the names of the folders under a prefix, without a look at what they
hold.
"""

import pytest

from runtime.archive.catalog import all_jobs, archive_id
from runtime.archive.stores import ObjectStore
from runtime.base.errors import InputError


def test_folders(store: ObjectStore) -> None:
    """The next part of the keys under a prefix, each once and sorted; keys without a further part
    are no folders.
    """
    for key in ("b/x/1", "b/x/2", "b/y/1", "a/z/1", "b/file", "top"):
        store.put_if_absent(key, b"1")
    assert [name for name in store.folders("") if not name.startswith("_")] == ["a", "b"]
    assert list(store.folders("b/")) == ["x", "y"]
    assert list(store.folders("b/x/")) == []
    assert list(store.folders("none/")) == []


@pytest.mark.parametrize("prefix", ["/", "//", "../", "b/../../", "./", "/etc/", "\0/"])
def test_no_prefix_leaves_the_store(store: ObjectStore, prefix: str) -> None:
    """Under a prefix that no key can have there is nothing, whatever it would be as a path."""
    store.put_if_absent("b/x/1", b"1")
    assert list(store.folders(prefix)) == []
    assert list(store.list(prefix)) == []


def test_no_batch_has_an_empty_name(store: ObjectStore) -> None:
    """It is bad input, and no batch without jobs."""
    with pytest.raises(InputError, match="'' names no batch"):
        all_jobs(store, "")


def test_an_archives_own_name_is_no_job(store: ObjectStore) -> None:
    """The archive's own name is made once and stays; what the archive keeps of itself is no job."""
    first = archive_id(store)
    assert archive_id(store) == first
    assert all_jobs(store) == []
