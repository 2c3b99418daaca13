"""Web pages as sources: what is allowed, conditional requests, and how each failure is told."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from email.utils import parsedate_to_datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from activities.contracts import ReadBatch
from activities.workspace import WorkspaceActivities
from runtime.base.url_rules import UrlRule, is_allowed, refused_address
from runtime.context.sources import ReadRequest, ReadResult, ReadStatus
from runtime.sources.web import MOST_BYTES


class Site:
    """A web server with a few pages. ``served`` counts answers by path and status, ``moved`` is
    where ``/docs/moved`` leads, ``dates`` say when pages were changed that have no tag.
    """

    def __init__(self) -> None:
        self.pages: dict[str, bytes] = {
            "/docs/a.md": b"# Title\n\ntext\n\n## Part\n",
            "/docs/data": b'{"a": 1}',
        }
        self.served: list[tuple[str, int]] = []
        self.moved = "/docs/a.md"
        self.dates: dict[str, str] = {}
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
            status, headers = 302, {"Location": self.moved}
        elif request.path == "/docs/away":
            status, headers = 302, {"Location": "/private"}
        elif request.path not in self.pages:
            status = 404
        elif (date := self.dates.get(request.path)) is not None:
            headers = {"Last-Modified": date, "Content-Type": "text/plain"}
            since = request.headers.get("If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT")
            if parsedate_to_datetime(since) >= parsedate_to_datetime(date):
                status, body = 304, b""
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


def read(
    activities: WorkspaceActivities, root: Path, url: str, allowed: tuple[str, ...], **fields: Any
) -> ReadResult:
    """One reading."""
    request = ReadRequest(**{"obj_id": "n1", "path": url, "tokens": 400, **fields})
    batch = ReadBatch(
        workspace=str(root), requests=(request,), encoding="cl100k_base", urls=allowed
    )
    return activities.read_sources(batch).results[0]


def test_a_page_is_read_and_asked_for_again_only_if_it_changed(site: Site, tmp_path: Path) -> None:
    """A page that did not change costs an empty answer; one that did is shown anew."""
    activities, url, allowed = (
        WorkspaceActivities(),
        f"{site.address}/docs/a.md",
        (f"{site.address}/docs/",),
    )
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
    assert read(
        WorkspaceActivities(), tmp_path, f"{site.address}/docs/moved", allowed
    ).text.startswith("# Title")
    away = read(WorkspaceActivities(), tmp_path, f"{site.address}/docs/away", allowed)
    assert away.error_type == "PermissionError"
    assert ("/private", 404) not in site.served


def test_a_redirect_that_leads_to_an_older_page_shows_that(site: Site, tmp_path: Path) -> None:
    """Whether a page has changed is asked where it was found, and nowhere else."""
    site.pages |= {"/docs/new.txt": b"new", "/docs/old.txt": b"old"}
    site.dates = {
        "/docs/new.txt": "Tue, 02 Jun 2026 00:00:00 GMT",
        "/docs/old.txt": "Mon, 01 Jun 2026 00:00:00 GMT",
    }
    activities, url, allowed = (
        WorkspaceActivities(),
        f"{site.address}/docs/moved",
        (f"{site.address}/docs/",),
    )
    site.moved = "/docs/new.txt"
    assert [read(activities, tmp_path, url, allowed).text for _ in range(2)] == ["new", "new"]
    site.moved = "/docs/old.txt"
    assert read(activities, tmp_path, url, allowed).text == "old"
    asked = [(path, status) for path, status in site.served if path != "/docs/moved"]
    assert asked == [("/docs/new.txt", 200), ("/docs/new.txt", 304), ("/docs/old.txt", 200)]


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/nothing", "FileNotFoundError"),
        ("/status/403", "PermissionError"),
        ("/status/500", "OSError"),
    ],
)
def test_what_a_server_refuses_is_an_error_of_the_source(
    site: Site, tmp_path: Path, path: str, error: str
) -> None:
    """As for a file."""
    shown = read(WorkspaceActivities(), tmp_path, site.address + path, (site.address,))
    assert (shown.error_type, site.address in shown.error_message) == (error, True)


def test_a_server_that_is_not_there_and_a_page_too_long(site: Site, tmp_path: Path) -> None:
    """The one is an error, of the other the beginning is shown, and said to be that."""
    gone = read(WorkspaceActivities(), tmp_path, "http://127.0.0.1:9/x", ("http://127.0.0.1:9",))
    assert gone.error_type == "OSError" and "cannot be read" in gone.error_message
    site.pages["/docs/long"] = b"line\n" * (MOST_BYTES // 5 + 10)
    long = read(WorkspaceActivities(), tmp_path, f"{site.address}/docs/long", (site.address,))
    assert (long.size, long.note) == (MOST_BYTES, "the first 8,388,608 bytes of a longer page")


def test_the_kind_of_a_page_without_a_suffix_is_what_the_server_says(
    site: Site, tmp_path: Path
) -> None:
    """JSON has keys."""
    shown = read(
        WorkspaceActivities(), tmp_path, f"{site.address}/docs/data", (site.address,), lod=1
    )
    assert shown.text.startswith("0: a: 1")


def test_what_an_entry_allows() -> None:
    """A URL allows what is beneath it, a host all its pages, a star its subdomains; tricks with
    paths allow nothing.
    """
    docs = (
        "https://docs.python.org/3/",
        "example.org",
        "*.example.com",
        "wiki.corp:8443",
        "http://plain.org",
        "[2001:db8::1]",
    )
    for url in (
        "https://docs.python.org/3/library/",
        "https://docs.python.org/3/",
        "https://example.org/x?y=1",
        "https://EXAMPLE.org:443/x",
        "https://wiki.corp:8443/",
        "http://plain.org/",
        "https://[2001:db8:0::1]/",
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
        "http://example.org/x?y=1",
        "https://example.org:8443/",
        "https://example.org./",
        "https://wiki.corp/",
        "http://wiki.corp:8443/",
        "https://plain.org/",
        "http://plain.org:8080/",
        "https://example.org\\@evil.net/",
        "https://evil.net\\@example.org/",
        "https://\uff45xample.org/",
        "https://[bad/",
    ):
        assert not is_allowed(url, docs), url


@pytest.mark.parametrize(
    "entry",
    [
        "",
        "a b",
        "example.org/docs",
        "https://u@h/",
        "https://h/?q",
        "ftp://h/",
        "h:99999",
        "https:///x",
        "h.",
        "*.",
    ],
)
def test_what_is_no_entry_is_said(entry: str) -> None:
    """Each mistake is an error, none a rule that means something else."""
    with pytest.raises(ValueError, match=r"^expected "):
        UrlRule.of(entry)


@pytest.mark.parametrize(
    ("address", "kind"),
    [
        ("127.0.0.1", "loopback"), ("::1", "loopback"), ("::ffff:127.0.0.1", "loopback"), ("64:ff9b::7f00:1", "loopback"),
        ("2002:7f00:1::", "loopback"), ("169.254.169.254", "link-local"), ("fe80::1%eth0", "link-local"), ("0.0.0.0", "unspecified"),
        ("::", "unspecified"), ("10.1.2.3", "private"), ("192.168.0.1", "private"), ("100.64.0.1", "private"), ("fd00::1", "private"),
        ("224.0.0.1", "multicast"), ("ff02::1", "multicast"), ("240.0.0.1", "private"), ("8.8.8.8", None), ("2606:4700::1111", None),
    ],
)  # fmt: skip
def test_which_addresses_no_name_leads_to(address: str, kind: str | None) -> None:
    """What is not the public internet is refused, however it is written."""
    assert refused_address(address, 443, ("example.org", "*.example.com")) == kind


def test_an_address_is_meant_where_a_rule_names_it() -> None:
    """By itself and its port; localhost means all of loopback."""
    assert refused_address("10.1.2.3", 443, ("10.1.2.3",)) is None
    assert refused_address("10.1.2.3", 8443, ("10.1.2.3",)) == "private"
    assert refused_address("127.0.0.1", 8000, ("http://localhost:8000",)) is None
    assert refused_address("::1", 8000, ("http://localhost:8000",)) is None
    assert refused_address("10.1.2.3", 8000, ("http://localhost:8000",)) == "private"
    assert refused_address("127.0.0.1", 8000, ("http://rebound.example:8000",)) == "loopback"


def test_the_address_that_is_connected_to_is_checked(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A name that is allowed leads to this machine only where that is named too; it is looked up
    once, and asked nothing before.
    """
    port, asked, look_up = site.server.server_port, [], socket.getaddrinfo
    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(variable, raising=False)

    def resolver(host: Any, *rest: Any, **options: Any) -> Any:
        asked.append(host)
        return look_up("127.0.0.1" if host == "rebound.example" else host, *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolver)
    url, rule = f"http://rebound.example:{port}/docs/a.md", f"http://rebound.example:{port}"
    refused = read(WorkspaceActivities(), tmp_path, url, (rule,))
    assert (refused.error_type, refused.error_message) == (
        "PermissionError",
        (
            "'rebound.example' is at 127.0.0.1, a loopback address: such are read only where"
            f" 'urls' names them (127.0.0.1:{port})"
        ),
    )
    assert (site.served, asked) == ([], ["rebound.example"])
    assert read(WorkspaceActivities(), tmp_path, url, (rule, site.address)).text.startswith(
        "# Title"
    )
    assert asked[1] == "rebound.example" and set(asked[1:]) <= {"rebound.example", "127.0.0.1"}
    served = len(site.served)
    for trick in ("2130706433", "0x7f000001", "0177.0.0.1", "127.1"):
        shown = read(
            WorkspaceActivities(),
            tmp_path,
            f"http://{trick}:{port}/docs/a.md",
            (f"http://{trick}:{port}",),
        )
        assert (shown.status, len(site.served)) == (ReadStatus.ERROR, served)
    local = read(
        WorkspaceActivities(),
        tmp_path,
        f"http://localhost:{port}/docs/a.md",
        (f"http://localhost:{port}",),
    )
    assert local.text.startswith("# Title")


def test_behind_a_proxy_names_are_its_own_and_addresses_are_checked(
    site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The proxy of the environment is asked for allowed names; an address in the URL is refused
    before.
    """
    monkeypatch.setenv("http_proxy", site.address)
    monkeypatch.setenv("no_proxy", "")
    site.pages["http://far.example/docs/a.md"] = b"by the proxy\n"
    shown = read(
        WorkspaceActivities(), tmp_path, "http://far.example/docs/a.md", ("http://far.example",)
    )
    assert shown.text == "by the proxy"
    refused = read(
        WorkspaceActivities(),
        tmp_path,
        "http://localhost:1/x",
        ("http://localhost:2", "http://localhost:1"),
    )
    assert refused.error_type == "FileNotFoundError"
    refused = read(
        WorkspaceActivities(),
        tmp_path,
        "http://169.254.169.254/x",
        ("http://169.254.169.254:81", "http://far.example"),
    )
    assert refused.error_type == "PermissionError"
