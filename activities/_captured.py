"""What one model call sends and receives, captured while it happens.

Whatever carries the call (an HTTP transport, the scripted provider) reports to the captured of the
running call, which it finds in ``current``: so one client serves many calls at a time. The request
is archived inside ``sending``, before a byte of it leaves.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

import httpx

from activities._answer import AnswerBuilder
from activities._secrets import Secrets
from runtime.archive.forms import Capture, Chunk
from runtime.base.failpoints import failpoint

MOST_CHUNKS = 65_536
"""How many chunk times are kept for one response; what arrives after that counts to the last
chunk.
"""

MOST_REPLY = 128 * 1024 * 1024
"""Bytes of a reply.

A stream spends some 300 on a token, and no model writes 400,000 at once: more is a server gone
wrong.
"""

MOST_ERROR = 1024 * 1024
"""Bytes of an error's body that are read and kept; what it says stands at its beginning."""


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
        self.cut = False
        self.reached = True
        self.status: int | None = None
        self.headers: dict[str, str] = {}
        self._body = bytearray()
        self._chunks: list[Chunk] = []
        self._sent = time.monotonic()

    async def sending(self, request: SentRequest) -> None:
        """Archive ``request``; when this returns, it may be sent.

        A further request of the same call is an attempt too.

        Raises:
            ArchiveError: the request cannot be archived, and must not be sent.
        """
        await asyncio.to_thread(self.sending_now, request)

    def sending_now(self, request: SentRequest) -> None:
        """``sending``, for threads.

        A body that holds a secret is masked, and no longer passes for the wire's.
        """
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
        self._forget()

    def answering(self, status: int, headers: Mapping[str, str]) -> None:
        """The response's status and headers arrived."""
        self.status = status
        self.headers = dict(headers)
        if location := httpx.Headers(self.headers).get("location"):
            self._hosts.add(httpx.URL(location).host)

    def goes_on_at(self, host: str) -> bool:
        """Whether a request to ``host`` goes on with this call: one was sent there already, or was
        sent on to there.
        """
        return self.attempt is not None and host in self._hosts

    def received(self, data: bytes) -> bytes:
        """A piece of the response's body arrived.

        Returns what of it is kept: the caller reads on while that is all.

        Raises:
            TooLarge: a reply is larger than any is. Of an error's body the rest is left unread.
        """
        refused = self.status is not None and self.status >= 400
        room = (MOST_ERROR if refused else MOST_REPLY) - len(self._body)
        if len(data) > room:
            data, self.cut = data[:room], True
        if data:
            self._keep(data)
        if self.cut and not refused:
            self.failure = TooLarge(f"the reply did not end within {MOST_REPLY:,} bytes")
            raise self.failure
        return data

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
        encoding = httpx.Headers(self.headers).get("content-encoding")
        if encoding is None:
            return self.body
        try:
            return httpx.Response(
                self.status or 200, headers={"content-encoding": encoding}, content=self.body
            ).content
        except httpx.DecodingError:
            return self.body

    @property
    def size(self) -> int:
        """How many bytes of the response were received so far."""
        return len(self._body)

    @property
    def chunks(self) -> tuple[Chunk, ...]:
        """When the body's pieces arrived, counted from the request's sending."""
        return tuple(self._chunks)


current: ContextVar[CapturedCall | None] = ContextVar("holdfast_model_call", default=None)
"""The captured of the model call that this task is part of."""
