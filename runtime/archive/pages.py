"""Pages of jobs: the definitions of a batch, archived before any of them is started.

A page is named by the digest of its bytes, so the same jobs make the same page, however often they
are submitted; and who reads one is sure to have what was submitted.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import zstandard

from runtime.archive.gaps import UNREADABLE
from runtime.archive.references import SHARED
from runtime.archive.stores import ObjectStore
from runtime.base.digests import canonical_json
from runtime.base.errors import ObjectCorrupt

_log = logging.getLogger(__name__)

FOLDER = f"{SHARED}pages/"
"""Below it two digits of the digest, so that no directory grows large, and the digest."""

PAGE_BYTES = 400_000
"""Bytes of a page's jobs: all of them go to a workflow at once, whose payloads may have 2 MiB."""

MOST_ON_PAGE = 200
# A bound for the decompressor alone: a damaged frame may claim any size.
_MOST_BYTES = 64 * 1024 * 1024


def paged(jobs: Iterable[Mapping[str, Any]]) -> Iterator[list[Mapping[str, Any]]]:
    """The jobs in pages, in their order; one that is larger than a page has one of its own."""
    page: list[Mapping[str, Any]] = []
    room = 0
    for job in jobs:
        size = len(json.dumps(job))
        if page and (size > room or len(page) == MOST_ON_PAGE):
            yield page
            page = []
        if not page:
            room = PAGE_BYTES
        page.append(job)
        room -= size
    if page:
        yield page


def page_key(digest: str) -> str:
    """Where a page is."""
    return f"{FOLDER}{digest[:2]}/{digest}"


def write_page(store: ObjectStore, jobs: list[Mapping[str, Any]]) -> str:
    """Archive a page, and return its digest."""
    data = canonical_json(jobs)
    digest = hashlib.sha256(data).hexdigest()
    store.put_if_absent(page_key(digest), zstandard.compress(data, 3))
    return digest


def read_page(store: ObjectStore, digest: str) -> list[dict[str, Any]]:
    """The jobs of a page.

    Raises:
        ObjectMissing: if it is not there.
        ObjectCorrupt: if it is not what was written.
    """
    jobs: list[dict[str, Any]] = json.loads(page_in(page_key(digest), store.get(page_key(digest))))
    return jobs


def page_in(key: str, sealed: bytes) -> bytes:
    """The JSON of the page that is archived as ``sealed`` under ``key``.

    Raises:
        ObjectCorrupt: if it is not what was written.
    """
    try:
        data = zstandard.ZstdDecompressor().decompress(sealed, max_output_size=_MOST_BYTES)
    except zstandard.ZstdError as error:
        raise ObjectCorrupt(f"{key}: {error}") from None
    if hashlib.sha256(data).hexdigest() != key.rpartition("/")[2]:
        raise ObjectCorrupt(f"{key}: the page is not the one that was submitted")
    return data


def readable_pages(
    store: ObjectStore, digests: Iterable[str]
) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """The pages that can be read, by their digests, and their jobs. Each other one is told in the
    log.
    """
    for digest in digests:
        try:
            orders = read_page(store, digest)
        except UNREADABLE as error:
            _log.warning("a page of jobs that cannot be read is passed over: %s", error)
        else:
            yield digest, orders
