"""MCP servers in a jobs file: what is wrong with one is told where it stands."""

from __future__ import annotations

import pytest

from runtime.base.spec.servers import ServerSpec
from runtime.jobsfile.changes import changes, definition_digest
from tests.spec.conftest import Load, Refuse

FILE = """
batch: b
defaults:
  workspace: .
  model: openai/x
  tools: ["mytools:search"]
  mcp: {{docs: {{url: "https://example.org/mcp"}}}}
jobs:
  - id: a
    goal: g
    {mcp}
"""


def test_servers_of_a_job_and_of_the_defaults(load: Load, place: str) -> None:
    """A job's mapping replaces the default one; commands start in the file's directory."""
    (default,) = load(FILE.format(mcp="")).jobs
    assert default.mcp == (ServerSpec(name="docs", url="https://example.org/mcp"),)
    (own,) = load(
        FILE.format(mcp="mcp: {git: {command: [git-server], env: [A], timeout: 5m}}")
    ).jobs
    assert own.mcp == (
        ServerSpec(
            name="git", command=("git-server",), directory=str(place), env=("A",), timeout=300
        ),
    )
    assert definition_digest(own) != definition_digest(default)
    assert changes(default, own) == ["mcp.docs removed", "mcp.git added"]


@pytest.mark.parametrize(
    ("mcp", "message"),
    [
        ("{docs: {}}", "mcp.docs: expected either a command or a url"),
        ("{docs: {url: 'http://a/', command: [x]}}", "expected either a command or a url"),
        ("{docs: {url: 'http://a/', env: [A]}}", "mcp.docs.env: a server with a url has no 'env'"),
        ("{docs: {command: [x], token: A}}", "a server with a command has no 'token'"),
        (
            "{docs: {url: 'http://['}}",
            "mcp.docs.url: expected a URL, got one whose host cannot be read",
        ),
        ("{docs: {url: 'http://'}}", "mcp.docs.url: expected a URL with a host, got 'http://'"),
        ("{docs: {url: 'http://a:99999/x'}}", "expected a port from 1 to 65535, got 'http://a:999"),
        ("{docs: {url: 'http://a:0/'}}", "mcp.docs.url: expected a port from 1 to 65535"),
        ("{docs: {url: 'ftp://a/'}}", "mcp.docs.url"),
        (
            "{docs: {url: 'http://u:p@a/'}}",
            "expected no secret in the URL; 'token' names a variable",
        ),
        ("{docs: {url: 'http://a/?api_key=3'}}", "expected no secret in the URL"),
        ("{search: {command: [x]}}", "expected another name: there is a tool 'search'"),
        ("{view: {command: [x]}}", "a server cannot be called 'view'"),
        ("{json: {command: [x]}}", "a server cannot be called 'json'"),
        ("{d-e: {command: [x]}}", "mcp"),
        ("{docs: {command: [x], effects: {a: twice}}}", "mcp.docs.effects.a"),
        ("{docs: {command: [x, sk-a1B2c3D4e5F6g7H8i9J0a1B2c3D4e5F6g7H8i9J0]}}", "looks like a key"),
    ],
)
def test_what_is_wrong_with_a_server(refuse: Refuse, mcp: str, message: str) -> None:
    """One line, with the place."""
    assert message in refuse(FILE.format(mcp=f"mcp: {mcp}"))
