"""An object store whose objects are encrypted in another one.

::

    "HFE" 0x01          the form
    1 byte, n bytes     the id of the key
    the rest            AES-256-GCM-SIV with that key: 12 bytes of nonce, the object, its tag

The nonce is made of the object and its key in the store, so equal objects are equal bytes; an
object belongs to its place, and keys can be changed, as those of payloads. Keys in the store stay
readable: names of batches and jobs, runs, turns, and digests of what jobs share. Digests are those
of the objects themselves, so whoever has the keys verifies as ever.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import datetime
from typing import cast

from runtime.archive.keys import ARCHIVE_ID
from runtime.archive.stores.protocol import ObjectStore
from runtime.archive.stores.removal import Discarding, RetainingStore, removing
from runtime.archive.stores.tries import TRIES, Forgetting
from runtime.base.errors import ArchiveError, ObjectCorrupt, ObjectMissing
from runtime.server.authentic.encryption import KEYS, EncryptionKeys, NoKey, NotDecrypted

_MAGIC = b"HFE\x01"


class EncryptedStore:
    """The objects of ``inner``, decrypted with ``keys``; the one at ``plain`` and tries are not
    encrypted. Who cannot read the archive's id, where it has one, writes nothing.
    """

    def __init__(self, inner: ObjectStore, keys: EncryptionKeys, *, plain: str) -> None:
        self._inner, self._keys, self._plain = inner, keys, plain
        self._is_ours = False

    def put_if_absent(self, key: str, data: bytes) -> bool:
        """See ``ObjectStore``.

        Raises:
            ArchiveError: also if the archive was begun with keys that are not here.
            ObjectCorrupt: if what was begun there cannot be read with them.
        """
        if not self._is_ours and not self._is_plain(key):
            # With another key under the same id an object would be written that nobody can read.
            with suppress(ObjectMissing):
                self.get(ARCHIVE_ID)
            self._is_ours = True
        return self._inner.put_if_absent(key, self._encrypted(key, data))

    def get(self, key: str) -> bytes:
        """See ``ObjectStore``.

        Raises:
            ArchiveError: also if the key that it is encrypted with is not here.
            ObjectCorrupt: if it is not what was encrypted.
        """
        data = self._inner.get(key)
        if self._is_plain(key):
            return data
        start = len(_MAGIC) + 1
        size = data[len(_MAGIC)] if len(data) > len(_MAGIC) else 0
        if not data.startswith(_MAGIC) or len(data) < start + size:
            raise ObjectCorrupt(f"{key}: is not encrypted, in an archive that is")
        name = data[start : start + size].decode("ascii", "replace")
        try:
            return self._keys.opened(name, data[start + size :], key.encode())
        except NoKey:
            raise ArchiveError(
                f"{key}: is encrypted with the key {name!r}, which is not here: add it to {KEYS}"
            ) from None
        except NotDecrypted:
            raise ObjectCorrupt(
                f"{key}: is not what was encrypted there with the key {name!r}"
            ) from None

    def list(self, prefix: str) -> Iterator[str]:
        """See ``ObjectStore``."""
        return self._inner.list(prefix)

    def folders(self, prefix: str) -> Iterator[str]:
        """See ``ObjectStore``."""
        return self._inner.folders(prefix)

    def remove(self, key: str) -> None:
        """See ``Removing``."""
        removing(self._inner).remove(key)

    def discard(self, key: str) -> None:
        """See ``Discarding``."""
        cast("Discarding", self._inner).discard(key)

    def remove_try(self, key: str) -> None:
        """See ``Forgetting``."""
        if isinstance(self._inner, Forgetting):
            self._inner.remove_try(key)

    def retained_until(self, key: str) -> datetime | None:
        """See ``RetainingStore``."""
        inner = self._inner
        return inner.retained_until(key) if isinstance(inner, RetainingStore) else None

    def __str__(self) -> str:
        return str(self._inner)

    def _is_plain(self, key: str) -> bool:
        # The mark says that the archive is encrypted, so it is read before anybody has a key.
        return key == self._plain or key.startswith(f"{TRIES}/")

    def _encrypted(self, key: str, data: bytes) -> bytes:
        if self._is_plain(key):
            return data
        # The word keeps its nonces apart from those of payloads, for which the same keys are used.
        name, sealed = self._keys.sealed(data, b"object\0" + key.encode(), key.encode())
        return _MAGIC + bytes([len(name)]) + name.encode() + sealed
