"""What one model call sends and receives, captured while it happens.

Whatever carries the call (an HTTP transport, the scripted provider) reports to the captured of the
running call, which it finds in ``current``: so one client serves many calls at a time. The request
is archived inside ``sending``, before a byte of it leaves.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field

import httpx

from activities._answer import AnswerBuilder
from activities._charsets import MARK
from activities._secrets import Secrets
from activities._unpacked import Garbled, Unpacked
from runtime.archive.forms import Capture, Chunk
from runtime.base.failpoints import failpoint

MOST_CHUNKS = 65_536
"""How many chunk times are kept for one response; what arrives after that counts to the last
chunk.
"""

MOST_REPLY = 128 * 1024 * 1024
"""Bytes of a reply, as it came and unpacked.

A stream spends some 300 on a token, and no model writes 400,000 at once: more is a server gone
wrong.
"""

MOST_ERROR = 1024 * 1024
"""Bytes of an error's body that are read and kept, and unpacked; what it says stands at its
beginning.
"""


MOST_REDIRECTS = 3
"""How often the request of a call is sent on to another place: to TLS, to another name and path."""


@dataclass(frozen=True)
class Limits:
    """How long a call may be silent, in seconds."""

    connect: float = 10.0
    first_byte: float = 600.0
    stall: float = 300.0


@dataclass(frozen=True)
class SentRequest:
    """A request that is about to be sent: the exact body, or, where there is no wire, the request
    as handed over.
    """

    capture: Capture
    body: bytes
    method: str = ""
    url: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)


class Silence(Exception):
    """Nothing arrived for as long as the call's limits allow.

    The message says what did not, and for how long.
    """


class TooLarge(Exception):
    """A reply did not end within ``MOST_REPLY`` bytes."""


class Misled(Exception):
    """A call was redirected again and again."""


class CapturedCall:
    """One attempt at a model call, as its bytes pass.

    ``archive`` writes a request and returns its attempt's key.

    A call may take more than one request: a redirect, or a reply that is fetched when it is ready.
    Each is an attempt of its own; ``followed`` archives what came back of one when the next is
    about to be sent. ``heard`` is the answer as far as it has come; ``reached`` is False where not
    even a connection came about. ``job`` is whose call it is, where that is known.
    """

    def __init__(
        self,
        archive: Callable[[SentRequest], str],
        *,
        limits: Limits,
        secrets: Secrets,
        turn: int,
        temporal_attempt: int,
        job: str = "",
        followed: Callable[[], None] = lambda: None,
    ) -> None:
        self._archive = archive
        self._followed = followed
        self._hosts: set[str] = set()
        self._url = httpx.URL()
        self._redirects = 0
        self.limits = limits
        self.secrets = secrets
        self.job = job
        self.turn = turn
        self.temporal_attempt = temporal_attempt
        self.attempt: str | None = None
        self.capture = Capture.HANDED_OVER
        self.heard: AnswerBuilder | None = None
        self._forget()

    def _forget(self) -> None:
        self.failure: Exception | None = None
        self.unheard = ""
        self.cut = False
        self.reached = True
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self._body = bytearray()
        self._unpacked: Unpacked | None = None
        self._chunks: list[Chunk] = []
        self._sent = time.monotonic()

    async def sending(self, request: SentRequest) -> None:
        """Archive ``request``; when this returns, it may be sent.

        A further request of the same call is an attempt too.

        Raises:
            ArchiveError: the request cannot be archived, and must not be sent.
            Misled: it was sent on too often.
        """
        await asyncio.to_thread(self.sending_now, request)

    def sending_now(self, request: SentRequest) -> None:
        """``sending``, for threads.

        A body that holds a secret is masked, and no longer passes for the wire's.
        """
        # What is fetched with a GET may be sent on until it is ready.
        self._redirects += request.method == "POST" and self._is_led
        if self._redirects > MOST_REDIRECTS:
            self.failure = Misled(f"the endpoint redirects more than {MOST_REDIRECTS} times")
            raise self.failure
        # Before anything of it is archived: the key is in the headers, wherever litellm took it
        # from.
        self.secrets.add_headers(request.headers)
        self.secrets.add_url(request.url)
        self._hosts.add(httpx.URL(request.url).host)
        # What has the form of a key was masked before it got into the prompt; by chance it stands
        # in what is signed.
        body = self.secrets.mask_values(request.body)
        capture = request.capture if body == request.body else Capture.HANDED_OVER
        safe = SentRequest(
            capture, body, request.method, self.secrets.mask(request.url), request.headers
        )
        try:
            # Before the next attempt is begun, which names what came back of this one.
            if self.attempt is not None:
                self._followed()
            self.attempt = self._archive(safe)
        except Exception as error:
            self.failure = error
            raise
        self.capture = capture
        self._url = httpx.URL(request.url)
        self._forget()

    def answering(self, status: int, headers: Mapping[str, str]) -> None:
        """The response's status and headers arrived."""
        self.status = status
        self.headers = {name: _plain(value) for name, value in headers.items()}
        if location := self._header("location"):
            # One that leads nowhere is followed by nobody, as one to a host that is no name.
            with suppress(httpx.InvalidURL, UnicodeError):
                self._hosts.add(httpx.URL(location).host)
        encoding = self._header("content-encoding").strip().lower()
        if encoding not in ("", "identity"):
            self._unpacked = Unpacked(encoding, self._most)

    def withheld(self, url: str, headers: Mapping[str, str]) -> list[str]:
        """The names of ``headers`` that do not go on to ``url``: those with keys, where a redirect
        leads to another server.
        """
        if not self._is_led or _is_trusted(httpx.URL(url), self._url):
            return []
        return [name for name, value in headers.items() if self.secrets.holds(name, value)]

    @property
    def succeeded(self) -> bool:
        """Whether a server said that all went well. A provider says 200; who stands between may say
        another of these.
        """
        # A script's reply comes from nowhere. Not by its headers: a server may send none.
        return bool(self._url.host) and 200 <= (self.status or 0) < 300

    @property
    def _is_led(self) -> bool:
        """Whether a redirect was the last answer."""
        return self.attempt is not None and 300 <= (self.status or 0) < 400

    def goes_on_at(self, host: str) -> bool:
        """Whether a request to ``host`` goes on with this call: one was sent there already, or was
        sent on to there.
        """
        return self.attempt is not None and host in self._hosts

    def received(self, data: bytes) -> bytes:
        """A piece of the response's body arrived.

        Returns what of it is kept, unpacked: the caller reads on until it is ``cut``.

        Raises:
            TooLarge: a reply is larger than any is. Of an error's body the rest is left unread.
            Garbled: a reply is compressed, and not as its headers say. An error's is taken as it
                is.
        """
        room = self._most - len(self._body)
        if len(data) > room:
            data, self.cut = data[:room], True
        data, said = self._read(data)
        if data:
            self._keep(data)
        if isinstance(self.failure, Garbled):
            raise self.failure
        if self.cut and not self._refused:
            packed = self._unpacked is not None and self._unpacked.full
            self.failure = TooLarge(
                f"the reply did not end within {MOST_REPLY:,} bytes{', unpacked' * packed}"
            )
            raise self.failure
        return said

    @property
    def _refused(self) -> bool:
        return self.status is not None and self.status >= 400

    @property
    def _most(self) -> int:
        return MOST_ERROR if self._refused else MOST_REPLY

    def _read(self, data: bytes) -> tuple[bytes, bytes]:
        """The part of ``data`` that is kept, and what it says."""
        if self._unpacked is None:
            return data, data
        try:
            data, said = self._unpacked.feed(data)
        except Garbled as error:
            if not self._refused:
                self.failure = error
            elif not self._unpacked.content:
                self._unpacked = None
            return data, data
        self.cut = self.cut or self._unpacked.full
        return data, said

    def _keep(self, data: bytes) -> None:
        self._body += data
        failpoint("model.mid_reply")
        chunk = Chunk(at_us=int((time.monotonic() - self._sent) * 1e6), size=len(data))
        # A server that sends single bytes would make millions of them.
        if len(self._chunks) < MOST_CHUNKS:
            self._chunks.append(chunk)
        else:
            last = self._chunks[-1]
            self._chunks[-1] = Chunk(at_us=chunk.at_us, size=last.size + chunk.size)

    @asynccontextmanager
    async def patience(self) -> AsyncIterator[None]:
        """Wait within the limits: for the first byte since the request was sent, later for each
        further piece.

        Raises:
            Silence: when the limit is over.
        """
        if self._body:
            limit, words = (
                self.limits.stall,
                f"the reply stopped: nothing arrived for {self.limits.stall:g} s",
            )
        else:
            # Counted from the sending, since a connection that is made slowly is silence too.
            limit = max(self.limits.first_byte - (time.monotonic() - self._sent), 0.0)
            words = f"no byte of a reply arrived within {self.limits.first_byte:g} s"
        try:
            async with asyncio.timeout(limit) as waiting:
                yield
        except TimeoutError as error:
            # Another's timeout, such as that of the whole call, goes on as it is.
            if not waiting.expired():
                raise
            self.failure = Silence(words)
            raise self.failure from error

    @property
    def body(self) -> bytes:
        """The response's body as received so far."""
        return bytes(self._body)

    @property
    def content(self) -> bytes:
        """The body without the content encoding that the provider chose, though it was asked for
        none; cut where it broke off.
        """
        return self.body if self._unpacked is None else bytes(self._unpacked.content)

    @property
    def said(self) -> bytes:
        """The content without a byte order mark."""
        return self.content.removeprefix(MARK)

    @property
    def content_type(self) -> str:
        """What the response says that it is, in its own words; empty where it does not say."""
        return self._header("content-type")

    def _header(self, name: str) -> str:
        """What a header of the response says; empty where there is none."""
        # Not httpx's mapping: made of text it takes ASCII alone, and a server says what it likes.
        values = (value for known, value in self.headers.items() if known.lower() == name)
        return next(values, "")

    @property
    def has_events(self) -> bool:
        """Whether the response says that it is a stream of server-sent events."""
        return "event-stream" in self.content_type.lower()

    @property
    def size(self) -> int:
        """How many bytes of the response were received so far."""
        return len(self._body)

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """When the body's pieces arrived, counted from the request's sending."""
        return tuple(self._chunks)


def _is_trusted(url: httpx.URL, sent: httpx.URL) -> bool:
    """Whether ``url`` is of the server to which a request was ``sent``, or of the same by TLS."""
    upgraded = (sent.scheme, url.scheme, sent.port, url.port) == ("http", "https", None, None)
    same = (sent.scheme, sent.port) == (url.scheme, url.port)
    return url.host == sent.host and (same or upgraded)


def _plain(value: str) -> str:
    """A header's value without what stands for bytes that are no text, as aiohttp has it."""
    return value.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


current: ContextVar[CapturedCall | None] = ContextVar("holdfast_model_call", default=None)
"""The captured of the model call that this task is part of."""
