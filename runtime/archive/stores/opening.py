"""Opening a store by its address, and checking that it keeps the archive's promises."""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import unquote, urlsplit

from runtime.archive.stores.directory import DirectoryStore
from runtime.archive.stores.protocol import ObjectStore
from runtime.digests import canonical_json
from runtime.errors import ArchiveError, InputError

_MARKER = "_holdfast/archive"
_MARKER_TEXT = canonical_json({"archive": "holdfast", "format": 1})


def open_store(url: str) -> ObjectStore:
    """The store at ``url``: a directory's path, ``file:///…`` or ``s3://bucket/prefix?option=…`` (see ``s3.py``).

    Raises:
        InputError: if the address is of no known kind.
        ArchiveError: if the store cannot be written, or would overwrite what it has.
    """
    parts = urlsplit(url)
    store: ObjectStore
    if parts.scheme == "s3":
        # boto3 takes a third of a second to import; a directory store does not need it.
        from runtime.archive.stores.s3 import S3Store

        store = S3Store.from_url(url)
    elif parts.scheme == "file":
        store = DirectoryStore(Path(unquote(parts.path)))
    elif "://" not in url and url:
        store = DirectoryStore(Path(os.path.expandvars(url)).expanduser())
    else:
        raise InputError(f"{url!r} is no archive store: give a directory, file:///… or s3://bucket/prefix")
    check_store(store, url)
    return store


def check_store(store: ObjectStore, url: str) -> None:
    """Check that ``store`` can be written and refuses to overwrite. Writes one small object, once for ever.

    Raises:
        ArchiveError: if it does not; the message says what to do.
    """
    store.put_if_absent(_MARKER, _MARKER_TEXT)
    if store.put_if_absent(_MARKER, _MARKER_TEXT + b" "):
        raise ArchiveError(
            f"the store {url} overwrites objects: it ignores conditional writes (If-None-Match). "
            "The archive needs a store that honours them"
        )
    found = store.get(_MARKER)
    if found != _MARKER_TEXT:
        raise ArchiveError(f"{url} holds something else than a Holdfast archive of format 1 at {_MARKER}")
