"""Web pages as sources: what is allowed, conditional requests, and how each failure is told."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from activities.contracts import ReadBatch
from activities.workspace import WorkspaceActivities
from runtime.context.sources import ReadRequest, ReadResult, ReadStatus
from runtime.sources.web import MOST_BYTES, is_allowed


class Site:
    """A web server with a few pages. ``served`` counts answers by path and status."""

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {"/docs/a.md": b"# Title\n\ntext\n\n## Part\n", "/docs/data": b'{"a": 1}'}
        self.served: list[tuple[str, int]] = []
        site = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                site.answer(self)

            def log_message(self, *_: Any) -> None:
                """Nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}"

    def answer(self, request: BaseHTTPRequestHandler) -> None:
        """One request."""
        body, status, headers = self.pages.get(request.path, b""), 200, {}
        if request.path.startswith("/status/"):
            status = int(request.path.removeprefix("/status/"))
        elif request.path == "/docs/moved":
            status, headers = 302, {"Location": "/docs/a.md"}
        elif request.path == "/docs/away":
            status, headers = 302, {"Location": "/private"}
        elif request.path not in self.pages:
            status = 404
        else:
            headers = {
                "ETag": f'"{hash(body)}"',
                "Content-Type": "application/json" if body[:1] == b"{" else "text/plain",
            }
            if request.headers.get("If-None-Match") == headers["ETag"]:
                status, body = 304, b""
        self.served.append((request.path, status))
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name, value)
        request.send_header("Content-Length", str(len(body)))
        request.end_headers()
        request.wfile.write(body)


@pytest.fixture
def site() -> Iterator[Site]:
    """A site on this machine."""
    site = Site()
    thread = threading.Thread(target=site.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield site
    site.server.shutdown()
    thread.join()
    site.server.server_close()


def read(activities: WorkspaceActivities, root: Path, url: str, allowed: tuple[str, ...], **fields: Any) -> ReadResult:
    """One reading."""
    request = ReadRequest(**{"obj_id": "n1", "path": url, "tokens": 400, **fields})
    batch = ReadBatch(workspace=str(root), requests=(request,), encoding="cl100k_base", urls=allowed)
    return activities.read_sources(batch).results[0]


def test_a_page_is_read_and_asked_for_again_only_if_it_changed(site: Site, tmp_path: Path) -> None:
    """A page that did not change costs an empty answer; one that did is shown anew."""
    activities, url, allowed = WorkspaceActivities(), f"{site.address}/docs/a.md", (f"{site.address}/docs/",)
    first = read(activities, tmp_path, url, allowed)
    assert first.text == "# Title\n\ntext\n\n## Part"
    again = read(activities, tmp_path, url, allowed, known=first.basis)
    assert again.status is ReadStatus.UNCHANGED
    other = read(activities, tmp_path, url, allowed, lod=1, tokens=30)
    assert other.text.startswith("0: Title\n4:   Part")
    site.pages["/docs/a.md"] = b"new\n"
    assert read(activities, tmp_path, url, allowed, known=first.basis).text == "new"
    assert [status for _, status in site.served] == [200, 304, 304, 200]


def test_nothing_is_allowed_by_default_and_nothing_is_asked_for(site: Site, tmp_path: Path) -> None:
    """The refusal says what is allowed."""
    for allowed in ((), ("docs.python.org",)):
        refused = read(WorkspaceActivities(), tmp_path, f"{site.address}/docs/a.md", allowed)
        assert refused.error_type == "PermissionError"
        assert f"the jobs file allows: {allowed[0] if allowed else 'none'}" in refused.error_message
    assert site.served == []


def test_redirects_are_followed_where_they_lead_is_allowed(site: Site, tmp_path: Path) -> None:
    """One that leads elsewhere is refused before it is followed."""
    allowed = (f"{site.address}/docs",)
    assert read(WorkspaceActivities(), tmp_path, f"{site.address}/docs/moved", allowed).text.startswith("# Title")
    away = read(WorkspaceActivities(), tmp_path, f"{site.address}/docs/away", allowed)
    assert away.error_type == "PermissionError"
    assert ("/private", 404) not in site.served


@pytest.mark.parametrize(
    ("path", "error"),
    [("/nothing", "FileNotFoundError"), ("/status/403", "PermissionError"), ("/status/500", "OSError")],
)
def test_what_a_server_refuses_is_an_error_of_the_source(site: Site, tmp_path: Path, path: str, error: str) -> None:
    """As for a file."""
    shown = read(WorkspaceActivities(), tmp_path, site.address + path, ("127.0.0.1",))
    assert (shown.error_type, site.address in shown.error_message) == (error, True)


def test_a_server_that_is_not_there_and_a_page_too_long(site: Site, tmp_path: Path) -> None:
    """The one is an error, of the other the beginning is shown, and said to be that."""
    gone = read(WorkspaceActivities(), tmp_path, "http://127.0.0.1:9/x", ("127.0.0.1",))
    assert gone.error_type == "OSError" and "cannot be read" in gone.error_message
    site.pages["/docs/long"] = b"line\n" * (MOST_BYTES // 5 + 10)
    long = read(WorkspaceActivities(), tmp_path, f"{site.address}/docs/long", ("127.0.0.1",))
    assert (long.size, long.note) == (MOST_BYTES, "the first 8,388,608 bytes of a longer page")


def test_the_kind_of_a_page_without_a_suffix_is_what_the_server_says(site: Site, tmp_path: Path) -> None:
    """JSON has keys."""
    shown = read(WorkspaceActivities(), tmp_path, f"{site.address}/docs/data", ("127.0.0.1",), lod=1)
    assert shown.text.startswith("0: a: 1")


def test_what_an_entry_allows() -> None:
    """A URL allows what is beneath it, a host all its pages, a star its subdomains; tricks with paths allow nothing."""
    docs = ("https://docs.python.org/3/", "example.org", "*.example.com")
    for url in (
        "https://docs.python.org/3/library/",
        "https://docs.python.org/3/",
        "http://example.org/x?y=1",
        "https://a.example.com/",
    ):
        assert is_allowed(url, docs), url
    for url in (
        "http://docs.python.org/3/",
        "https://docs.python.org/2/",
        "https://docs.python.org/3/../2/",
        "https://docs.python.org/3/%2e%2e/2/",
        "https://docs.python.org/3evil",
        "https://docs.python.org:444/3/",
        "https://user@docs.python.org/3/",
        "https://example.org.evil.net/",
        "https://evilexample.com/",
        "https://example.com/",
        "ftp://example.org/",
        "https://[bad/",
    ):
        assert not is_allowed(url, docs), url
