"""Opening a store by its address, and checking that it keeps the archive's promises."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import cast
from urllib.parse import SplitResult, parse_qsl, unquote

from runtime.archive.stores.directory import DirectoryStore
from runtime.archive.stores.protocol import ObjectStore
from runtime.archive.stores.removal import Discarding
from runtime.base.digests import canonical_json
from runtime.base.errors import ArchiveError, InputError, NotFound, ObjectMissing
from runtime.base.places import expanded, is_directory, split_url

_MARKER = "_holdfast/archive"
_MARKER_FIELDS = {"archive": "holdfast", "format": 2}
_MARKER_TEXT = canonical_json(_MARKER_FIELDS)
_FORMATS = (1, 2)
"""Of what an archive may have been made as. One of format 1 has objects of both."""


def open_store(url: str) -> ObjectStore:
    """The store at ``url``: a directory's path, ``file:///…`` or ``s3://bucket/prefix?option=…``
    (see ``s3.py``).

    Raises:
        InputError: if the address is of no known kind.
        ArchiveError: if the store cannot be written, or would overwrite what it has.
    """
    store = _store_at(url)
    check_store(store, url)
    return _opened(store, url)


def open_to_read(url: str) -> ObjectStore:
    """The store at ``url``, for whoever writes nothing to it: as ``open_existing`` where an archive
    is there, since a full disk can be read; made where there is none, as ``open_store`` does.

    Raises:
        InputError: if the address is of no known kind.
        ArchiveError: as both.
    """
    try:
        return open_existing(url)
    except NotFound:
        return open_store(url)


def create_encrypted(url: str) -> ObjectStore:
    """An archive at ``url`` whose objects are encrypted; one that is there stays as it is.

    Raises:
        InputError: if there are no keys, or another archive is there.
        ArchiveError: as ``open_store``.
    """
    store = encrypted_at(url)
    if store is None:
        raise InputError(
            f"there is an archive at {url} already, which is not encrypted: 'holdfast archive copy'"
            " takes it over into one that is"
        )
    return store


def encrypted_at(url: str) -> ObjectStore | None:
    """The encrypted archive at ``url``, made where there is none; None if what is there is not
    encrypted.

    Raises:
        InputError: if there are no keys.
        ArchiveError: as ``open_store``.
    """
    from runtime.server.authentic.encryption import KEYS, encryption_keys

    keys = encryption_keys()
    if keys is None:
        raise InputError(f"an encrypted archive needs keys: set {KEYS}")
    store = _store_at(url)
    # Tried and not looked up: of two that make it at once the second finds the first one's.
    store.put_if_absent(_MARKER, canonical_json({**_MARKER_FIELDS, "key": keys.keys[0][0]}))
    marker = store.get(_MARKER)
    _check_marker(marker, url)
    return open_store(url) if "key" in json.loads(marker) else None


def is_encrypted(store: ObjectStore) -> bool:
    """Whether the objects of an archive that was opened are encrypted."""
    from runtime.archive.stores.encrypted import EncryptedStore

    return isinstance(_without_packs(store), EncryptedStore)


def open_existing(url: str) -> ObjectStore:
    """The store at ``url``, to be read: it may be read-only, nothing is written, and a directory is
    not made.

    Raises:
        InputError: if the address is of no known kind.
        NotFound: if no archive is there.
        ArchiveError: if the store cannot be read, or holds something else.
    """
    folder = _folder(url)
    if folder is not None and not is_directory(folder):
        raise NotFound(f"there is no archive at {url}: no such directory")
    store = _store_at(url)
    try:
        marker = store.get(_MARKER)
    except ObjectMissing:
        raise NotFound(f"there is no archive at {url}: it has no object {_MARKER}") from None
    _check_marker(marker, url)
    return _opened(store, url)


def unmarked(url: str) -> ObjectStore | None:
    """What is at ``url`` where no archive is, to be looked at; None where one is, or nothing.

    Raises:
        InputError: if the address is of no known kind.
        ArchiveError: if the store cannot be read.
    """
    folder = _folder(url)
    if folder is not None and not is_directory(folder):
        return None
    store = _store_at(url)
    try:
        store.get(_MARKER)
    except ObjectMissing:
        return store
    return None


def overlap(one: str, other: str) -> bool:
    """Whether two addresses are those of one place, or of a place in the other.

    Raises:
        InputError: if one is of no known kind.
    """
    places = [_place(one), _place(other)]
    shorter = min(map(len, places))
    return places[0][:shorter] == places[1][:shorter]


def _place(url: str) -> tuple[str, ...]:
    """Where an address leads, from the outside in."""
    folder = _folder(url)
    if folder is not None:
        return ("", *folder.resolve().parts)
    parts = _parts(url)
    # Another server may have a bucket of the same name.
    server = dict(parse_qsl(parts.query)).get("endpoint_url", "")
    return (server, f"{parts.scheme}://{parts.netloc}", *filter(None, parts.path.split("/")))


def folder_of(store: ObjectStore) -> Path | None:
    """The directory of this machine that a store is; None if it is none, or is encrypted."""
    inner = _without_packs(store)
    return inner.root if isinstance(inner, DirectoryStore) else None


def _opened(store: ObjectStore, url: str) -> ObjectStore:
    """The archive on a store: decrypted, and with packs in a directory.

    In a bucket there are none: whoever writes there need not have the right to remove.
    """
    # Some servers take "//" for "/", and list nothing below it: as an archive without jobs.
    if "//" in _parts(url).path and next(store.list(_MARKER), None) is None:
        raise ArchiveError(
            f"the store {url} does not list what it has: its server takes '//' for '/'. Leave one"
            " of them out"
        )
    opened = _decrypted(store, url)
    if not isinstance(store, DirectoryStore):
        return opened
    from runtime.archive.stores.packed import PackedStore

    return PackedStore(cast("Discarding", opened))


def _without_packs(store: ObjectStore) -> ObjectStore:
    """What a store with packs keeps them in."""
    # A command that opens no archive imports nothing that reads one.
    from runtime.archive.stores.packed import PackedStore

    return store.inner if isinstance(store, PackedStore) else store


def _decrypted(store: ObjectStore, url: str) -> ObjectStore:
    """The store, or what decrypts it where its mark says that it is encrypted."""
    marker = store.get(_MARKER)
    name = json.loads(marker).get("key")
    if name is None:
        return store
    from runtime.archive.stores.encrypted import EncryptedStore
    from runtime.server.authentic.encryption import KEYS, encryption_keys

    keys = encryption_keys()
    if keys is None:
        raise InputError(
            f"the archive {url} is encrypted, at first with the key {name!r}: set {KEYS}"
        )
    return EncryptedStore(store, keys, plain=_MARKER)


def _folder(url: str) -> Path | None:
    """The directory that an address names, if it names one."""
    parts = _parts(url)
    if parts.scheme == "file":
        path = unquote(parts.path)
        if "\0" in path:
            raise _no_store(url)
        return Path(path)
    return expanded(os.path.expandvars(url)) if "://" not in url and url else None


def _parts(url: str) -> SplitResult:
    try:
        parts = split_url(url)
    except InputError:
        raise _no_store(url) from None
    # What a URL has no place for would be left out, and the rest leads to another archive.
    of_file = parts.scheme == "file"
    if (
        (parts.scheme in {"file", "s3"} and "#" in url)
        or (of_file and "?" in url)
        or (of_file and parts.netloc not in {"", "localhost"})
    ):
        raise InputError(
            f"{url!r} is no archive store: no address has a '#', nor that of a directory a '?' (as"
            " a path, or %23 and %3F after file:///) or a host"
        )
    return parts


def _no_store(url: str) -> InputError:
    return InputError(
        f"{url!r} is no archive store: give a directory, file:///… or s3://bucket/prefix"
    )


def _store_at(url: str) -> ObjectStore:
    store: ObjectStore
    if _parts(url).scheme == "s3":
        # boto3 takes a third of a second to import; a directory store does not need it.
        from runtime.archive.stores.s3 import S3Store

        store = S3Store.from_url(url)
    elif (folder := _folder(url)) is not None:
        store = DirectoryStore(folder)
    else:
        raise _no_store(url)
    return store


def check_store(store: ObjectStore, url: str) -> None:
    """Check that ``store`` can be written and refuses to overwrite.

    Writes one small object, once for ever.

    Raises:
        ArchiveError: if it does not; the message says what to do.
    """
    store.put_if_absent(_MARKER, _MARKER_TEXT)
    # Another text under the same key: a store that takes it would let a second worker rewrite a
    # turn.
    if store.put_if_absent(_MARKER, _MARKER_TEXT + b" "):
        raise ArchiveError(
            f"the store {url} overwrites objects: it ignores conditional writes (If-None-Match). "
            "The archive needs a store that honours them"
        )
    _check_marker(store.get(_MARKER), url)


def _check_marker(marker: bytes, url: str) -> None:
    try:
        fields = dict(json.loads(marker))
        encrypted = isinstance(fields.pop("key", ""), str)
        known = fields.pop("format", None) in _FORMATS
    except (ValueError, TypeError, RecursionError):
        fields, encrypted, known = {}, False, False
    if fields != {"archive": "holdfast"} or not known or not encrypted:
        raise ArchiveError(
            f"{url} holds something else than a Holdfast archive of format"
            f" {' or '.join(map(str, _FORMATS))} at {_MARKER}"
        )
