"""The archive's own id, by which it is known wherever it stands."""

from __future__ import annotations

import pytest

from runtime.archive.catalog import archive_id, known_archive_id
from runtime.archive.heads import altered_shared
from runtime.archive.stores import MemoryStore
from runtime.base.errors import ObjectCorrupt


def test_it_is_made_once() -> None:
    """When it is first asked for."""
    store = MemoryStore()
    assert known_archive_id(store) is None
    assert archive_id(store) == archive_id(store) == known_archive_id(store)
    assert list(altered_shared(store)) == []


@pytest.mark.parametrize(
    "data", [b"", b"{", b"{}", b"[]", b'{"id":3}', b'{"id":"x"}', b"\xff", b"[" * 99_999]
)
def test_one_that_is_none_is_damage(data: bytes) -> None:
    """Whoever needs it says so, and ``verify`` names it."""
    store = MemoryStore()
    store.put_if_absent("_holdfast/id", data)
    for look in (archive_id, known_archive_id):
        with pytest.raises(ObjectCorrupt, match="_holdfast/id: is not the id of an archive"):
            look(store)
    assert [key for key, _ in altered_shared(store)] == ["_holdfast/id"]
