"""Web pages as sources: only those that the jobs file allows, asked for again only if they changed.

What a page's ``ETag`` and ``Last-Modified`` say is remembered for the process, so a page that is
read in every turn costs one conditional request with an empty answer.
"""

from __future__ import annotations

import asyncio
import threading
import zlib
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field

import httpx

from runtime.base.digests import digest_bytes
from runtime.base.url_rules import is_allowed
from runtime.sources.guarded import GuardedTransport
from runtime.sources.source import ENDS, Known, Opened

MOST_BYTES = 8 * 1024 * 1024
"""Of a longer page so much is read."""

CACHED_BYTES = 64 * 1024 * 1024
"""Of the pages asked for last, so much is remembered."""

REDIRECTS = 5
TIMEOUT = httpx.Timeout(20.0, connect=10.0)
SECONDS = 60.0
"""Longer than this no page may take, however steadily it or what comes before it comes."""

_CHUNK = 64 * 1024
_GZIP = 16 + zlib.MAX_WBITS
"""The one compression that is asked for, as zlib knows it: what undoes it can be told how much to
give at a time.
"""


@dataclass(frozen=True)
class Page:
    """A page as it was fetched, the URL that it was found at, and what tells whether it has changed
    there since.
    """

    opened: Opened
    url: str
    etag: str | None
    modified: str | None


class Pages:
    """The pages that this process fetched last.

    Safe between threads. ``seconds`` is what a page may take.
    """

    def __init__(self, most: int = CACHED_BYTES, seconds: float = SECONDS) -> None:
        self.seconds = seconds
        self._most = most
        self._pages: OrderedDict[str, Page] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def get(self, url: str) -> Page | None:
        """The page, if it is remembered."""
        with self._lock:
            if url in self._pages:
                self._pages.move_to_end(url)
            return self._pages.get(url)

    def put(self, url: str, page: Page) -> None:
        """Remember a page that can be asked for conditionally."""
        with self._lock:
            if (old := self._pages.pop(url, None)) is not None:
                self._bytes -= len(old.opened.data)
            # Without either it cannot be asked whether the page has changed: keeping it is of no
            # use.
            if page.etag is None and page.modified is None:
                return
            self._pages[url] = page
            self._bytes += len(page.opened.data)
            while self._bytes > self._most and self._pages:
                self._bytes -= len(self._pages.popitem(last=False)[1].opened.data)


@dataclass
class WebSource:
    """The page at ``url``. ``allowed`` are the rules of the jobs file."""

    url: str
    allowed: Sequence[str]
    pages: Pages
    _fetched: Opened | None = field(default=None, init=False)

    def known(self) -> Known | None:
        """The page's fingerprint: whoever asks for it is answered with the page itself, so this is
        the one request.
        """
        opened = self.open()
        return Known(opened.fingerprint, opened.size)

    def open(self) -> Opened:
        """The page.

        Raises:
            PermissionError: if the jobs file does not allow it, or the server does not.
            FileNotFoundError: if there is none.
            OSError: for anything else that goes wrong.
        """
        if self._fetched is None:
            try:
                # In a loop of its own, since sources are read in threads.
                self._fetched = asyncio.run(self._fetch_in_time())
            except (httpx.TimeoutException, TimeoutError):
                raise TimeoutError(f"no answer in time from {self.url!r}") from None
            except (httpx.HTTPError, httpx.InvalidURL, UnicodeError) as error:
                raise OSError(
                    f"{self.url!r} cannot be read: {error or type(error).__name__}"
                ) from None
        return self._fetched

    async def _fetch_in_time(self) -> Opened:
        async with asyncio.timeout(self.pages.seconds):
            return await self._fetch()

    async def _fetch(self) -> Opened:
        self._check(self.url)
        page, url = self.pages.get(self.url), self.url
        transport = GuardedTransport(self.allowed)
        async with httpx.AsyncClient(
            # Each step of a redirection is checked by the job's rules before it is asked for.
            timeout=TIMEOUT,
            follow_redirects=False,
            transport=transport,
        ) as client:
            for _ in range(REDIRECTS + 1):
                # What was found elsewhere is another page: that this one is no newer says nothing.
                known = page if page is not None and page.url == url else None
                async with client.stream("GET", url, headers=_conditions(known)) as response:
                    if known is not None and response.status_code == 304:
                        return known.opened
                    if response.next_request is None:
                        return await self._taken(response, url)
                    url = str(response.next_request.url)
                    self._check(url)
        raise OSError(f"{self.url!r} leads through more than {REDIRECTS} redirects")

    async def _taken(self, response: httpx.Response, url: str) -> Opened:
        if response.status_code != 200:
            raise _refusal(response.status_code)(
                f"{response.status_code} {response.reason_phrase}: {self.url!r}"
            )
        data, whole = await _body(response, self.url)
        note = "" if whole else f"the first {MOST_BYTES:,} bytes of a longer page"
        kind = ENDS.get(
            response.headers.get("content-type", "").partition(";")[0].strip().lower(), ""
        )
        name = httpx.URL(self.url).path.rsplit("/", 1)[-1]
        opened = Opened(
            data,
            digest_bytes(data),
            len(data),
            name if "." in name or not kind else name + kind,
            note,
        )
        etag, modified = (response.headers.get(name) for name in ("etag", "last-modified"))
        self.pages.put(self.url, Page(opened, url, etag, modified))
        return opened

    def _check(self, url: str) -> None:
        if not is_allowed(url, self.allowed):
            listed = ", ".join(self.allowed) or "none"
            raise PermissionError(
                f"{url!r} is not among the URLs that the jobs file allows: {listed}"
            )


def _conditions(page: Page | None) -> dict[str, str]:
    headers = {"accept": "text/*, application/json, */*;q=0.5", "accept-encoding": "gzip"}
    if page is not None and page.etag is not None:
        headers["if-none-match"] = page.etag
    if page is not None and page.modified is not None:
        headers["if-modified-since"] = page.modified
    return headers


async def _body(response: httpx.Response, url: str) -> tuple[bytes, bool]:
    """The body, and whether it is whole. Of a compressed one no more is unpacked than is kept."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "gzip", "x-gzip"):
        raise OSError(f"{url!r} comes as {encoding!r}, which was not asked for")
    unpack = None if encoding == "identity" else zlib.decompressobj(_GZIP)
    data = bytearray()
    async for chunk in response.aiter_raw(_CHUNK):
        try:
            # A byte more than is kept tells that there is more.
            data += (
                chunk if unpack is None else unpack.decompress(chunk, MOST_BYTES + 1 - len(data))
            )
        except zlib.error as error:
            raise OSError(f"{url!r} is not the gzip that it says it is: {error}") from None
        if len(data) > MOST_BYTES:
            return bytes(data[:MOST_BYTES]), False
    # A stream that was cut off is no error to zlib, which waits for more.
    if unpack is not None and not unpack.eof:
        raise OSError(f"{url!r} ends before its gzip does")
    return bytes(data), True


def _refusal(status: int) -> type[OSError]:
    if status in (404, 410):
        return FileNotFoundError
    return PermissionError if status in (401, 403, 407, 451) else OSError
