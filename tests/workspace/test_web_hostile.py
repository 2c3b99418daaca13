"""Web servers that mean no good, or do badly: each is answered in bounded time and memory."""

from __future__ import annotations

import gzip
import socketserver
import threading
import tracemalloc
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import zstandard

from activities.contracts import ReadBatch
from activities.workspace import WorkspaceActivities
from runtime.context.sources import ReadRequest, ReadResult, ReadStatus
from runtime.sources.web import MOST_BYTES, Pages

Answer = Callable[[socketserver.StreamRequestHandler, threading.Event], None]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n"


def _endless(request: socketserver.StreamRequestHandler, over: threading.Event) -> None:
    """A body without end."""
    request.wfile.write(HEAD + b"\r\n")
    while not over.is_set():
        request.wfile.write(b"a line of it\n" * 5000)


def _dripping_body(request: socketserver.StreamRequestHandler, over: threading.Event) -> None:
    """A byte now and then, each in time."""
    request.wfile.write(HEAD + b"\r\n")
    while not over.wait(0.01):
        request.wfile.write(b"x")


def _dripping_head(request: socketserver.StreamRequestHandler, over: threading.Event) -> None:
    """The same, before the headers are over."""
    request.wfile.write(HEAD + b"X-Long: ")
    while not over.wait(0.01):
        request.wfile.write(b"x")


def _silent(request: socketserver.StreamRequestHandler, over: threading.Event) -> None:
    """No answer."""
    over.wait()


def _packed(encoding: bytes, body: bytes) -> Answer:
    def answer(request: socketserver.StreamRequestHandler, over: threading.Event) -> None:
        del over
        request.wfile.write(HEAD + b"Content-Encoding: " + encoding + b"\r\n\r\n" + body)

    return answer


def _round(request: socketserver.StreamRequestHandler, over: threading.Event) -> None:
    """A redirect to itself."""
    del over
    request.wfile.write(
        b"HTTP/1.1 302 Found\r\nLocation: /page\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    )


def _hang_up(request: socketserver.StreamRequestHandler, over: threading.Event) -> None:
    """Less than was promised."""
    del over
    request.wfile.write(HEAD + b"Content-Length: 100\r\n\r\nhalf")


def _bomb() -> bytes:
    """128 MB of line breaks."""
    packer = zlib.compressobj(9, zlib.DEFLATED, 16 + zlib.MAX_WBITS)
    return b"".join([*(packer.compress(b"\n" * 1_048_576) for _ in range(128)), packer.flush()])


@pytest.fixture
def read(tmp_path: Path) -> Iterator[Callable[..., ReadResult]]:
    """Reads the one page of a server that answers so; the page may take ``seconds``."""
    over = threading.Event()
    servers: list[socketserver.ThreadingTCPServer] = []

    def go(answer: Answer, seconds: float = 60.0) -> ReadResult:
        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                while self.rfile.readline().strip():
                    pass
                try:
                    answer(self, over)
                except OSError:
                    """The other side has gone."""

        server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        servers.append(server)
        threading.Thread(
            target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
        ).start()
        address = f"http://127.0.0.1:{server.server_address[1]}"
        request = ReadRequest(obj_id="n1", path=f"{address}/page", tokens=50)
        batch = ReadBatch(
            workspace=str(tmp_path), requests=(request,), encoding="cl100k_base", urls=(address,)
        )
        return WorkspaceActivities(pages=Pages(seconds=seconds)).read_sources(batch).results[0]

    yield go
    over.set()
    for server in servers:
        server.shutdown()
        server.server_close()


def test_of_a_page_without_end_the_beginning_is_shown(read: Callable[..., ReadResult]) -> None:
    """And the connection is closed."""
    shown = read(_endless)
    assert (shown.size, shown.note) == (MOST_BYTES, "the first 8,388,608 bytes of a longer page")
    assert shown.text.startswith("a line of it\n")


@pytest.mark.parametrize("answer", [_dripping_body, _dripping_head, _silent])
def test_a_slow_server_is_given_up_in_all_however_steadily_it_sends(
    read: Callable[..., ReadResult], answer: Answer
) -> None:
    """What a page may take is for all of it, headers too."""
    shown = read(answer, seconds=0.5)
    assert (shown.status, shown.error_type) == (ReadStatus.ERROR, "TimeoutError")
    assert shown.error_message.startswith("no answer in time from 'http://127.0.0.1:")


@pytest.mark.slow
def test_a_gzip_bomb_is_unpacked_as_far_as_it_is_kept(read: Callable[..., ReadResult]) -> None:
    """128 MB in an eighth of a megabyte: no more than a few pages' size is ever in memory."""
    bomb = _bomb()
    assert len(bomb) < 150_000
    tracemalloc.start()
    shown = read(_packed(b"gzip", bomb))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (shown.size, shown.note) == (MOST_BYTES, "the first 8,388,608 bytes of a longer page")
    assert peak < 6 * MOST_BYTES


def test_a_compression_that_was_not_asked_for_is_not_undone(
    read: Callable[..., ReadResult],
) -> None:
    """Some pack gigabytes into a few bytes, and what undoes them cannot be told to stop."""
    shown = read(_packed(b"zstd", zstandard.compress(b"\n" * 100_000_000)))
    assert (
        shown.error_type,
        "comes as 'zstd', which was not asked for" in shown.error_message,
    ) == ("OSError", True)


def test_gzip_is_undone_and_broken_gzip_is_an_error(read: Callable[..., ReadResult]) -> None:
    """Whole, cut short, and none at all."""
    packed = gzip.compress(b"a page\n")
    assert read(_packed(b"gzip", packed)).text == "a page"
    cut = read(_packed(b"gzip", packed[:-9]))
    assert (cut.error_type, cut.error_message.endswith("ends before its gzip does")) == (
        "OSError",
        True,
    )
    none = read(_packed(b"gzip", b"plain text"))
    assert (none.error_type, "is not the gzip that it says it is" in none.error_message) == (
        "OSError",
        True,
    )


def test_a_redirect_to_itself_and_a_body_cut_short_are_errors(
    read: Callable[..., ReadResult],
) -> None:
    """The first after five steps."""
    assert read(_round).error_message.endswith("leads through more than 5 redirects")
    cut = read(_hang_up)
    assert (cut.error_type, "cannot be read" in cut.error_message) == ("OSError", True)
