"""The cache of fingerprints: bounded, and never trusting times that cannot tell a change."""

from __future__ import annotations

from runtime.workspace.fingerprints import SETTLED_NS, FingerprintCache, Identity

OLD = Identity(device=1, inode=2, size=3, modified=1_000, changed=1_000)
SETTLED = 1_000 + SETTLED_NS + 1


def test_a_settled_fingerprint_is_remembered_for_its_identity_alone() -> None:
    """Any other field is another content."""
    cache = FingerprintCache()
    cache.put(OLD, OLD, "sha256:1", read_at=SETTLED)
    assert cache.get(OLD) == "sha256:1"
    for field in Identity._fields:
        assert cache.get(OLD._replace(**{field: 9})) is None


def test_a_young_or_changing_file_is_not_remembered() -> None:
    """Either time may be the younger one; a time in the future is never settled."""
    cache = FingerprintCache()
    cache.put(OLD, OLD, "x", read_at=1_000 + SETTLED_NS)
    cache.put(OLD, OLD._replace(size=4), "x", read_at=SETTLED)
    late = OLD._replace(changed=2_000)
    cache.put(late, late, "x", read_at=SETTLED)
    future = OLD._replace(modified=SETTLED + 1)
    cache.put(future, future, "x", read_at=SETTLED)
    assert [cache.get(identity) for identity in (OLD, late, future)] == [None, None, None]


def test_the_least_recently_asked_is_forgotten_first() -> None:
    """The cache holds no more than its capacity."""
    cache = FingerprintCache(capacity=2)
    first, second, third = (OLD._replace(inode=number) for number in range(3))
    cache.put(first, first, "1", read_at=SETTLED)
    cache.put(second, second, "2", read_at=SETTLED)
    assert cache.get(first) == "1"
    cache.put(third, third, "3", read_at=SETTLED)
    assert [cache.get(identity) for identity in (first, second, third)] == ["1", None, "3"]
