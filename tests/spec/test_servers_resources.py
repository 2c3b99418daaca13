"""What an MCP server has to read, as views see it; one that means no good ends a reading, and
nothing else.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.testing import ActivityEnvironment

from activities import _resources
from activities._resources import ServerResources
from activities.contracts import ReadBatch, ServersQuestion
from activities.record import EffectName, RunName
from activities.tools import ToolActivities
from activities.workspace import WorkspaceActivities
from runtime.archive.stores import MemoryStore
from runtime.base.spec.servers import ServerListing, ServerSpec
from runtime.context.contract import contract_text
from runtime.context.sources import ReadRequest, ReadResult, ReadStatus
from tests.servers.hostile_http import hostile_http
from tests.servers.server_calls import KEY, call_of
from tests.still_clock import still_until

HOSTILE = Path(__file__).parents[1] / "servers" / "hostile_mcp.py"
GUIDE = "# First\n\nsome words\n\n## Second\n\nmore words\n"

Read = Callable[..., Awaitable[ReadResult]]


@pytest.fixture
def spec(tmp_path: Path) -> ServerSpec:
    """The hostile server, with notes to read."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "guide.md").write_text(GUIDE)
    command = (sys.executable, str(HOSTILE), str(tmp_path))
    return ServerSpec(name="docs", command=command, timeout=60)


@pytest.fixture
async def tools() -> AsyncIterator[ToolActivities]:
    """A worker's tools, whose processes end with the test."""
    made = ToolActivities(MemoryStore())
    async with made.open():
        yield made


@pytest.fixture
def read(tools: ToolActivities, spec: ServerSpec, tmp_path: Path) -> Read:
    """Read one address, as a statement's effect."""
    store = MemoryStore()
    workspace = WorkspaceActivities(hosts=tools.hosts, store=store)

    async def read(
        address: str, *, lod: int = 0, known: str | None = None, **fields: Any
    ) -> ReadResult:
        request = ReadRequest(obj_id="view-1", path=address, tokens=500, lod=lod, known=known)
        batch = ReadBatch(
            workspace=str(tmp_path),
            requests=(request,),
            encoding="cl100k_base",
            servers=(spec,),
            **fields,
        )
        environment = ActivityEnvironment()
        result = await asyncio.to_thread(environment.run, workspace.read_sources, batch)
        return result.results[0]

    return read


async def listed_by(tools: ToolActivities, spec: ServerSpec) -> ServerListing:
    """What the server offers, as a job that begins is told."""
    question = ServersQuestion(key=KEY, servers=(spec,))
    return (await ActivityEnvironment().run(tools.list_servers, question)).listings[0]


def told_by(listing: ServerListing) -> str:
    """The contract of a job with this server."""
    return contract_text(form="tool", tools=(), result_schema=None, servers=(listing,))


@pytest.mark.slow
async def test_a_resource_is_read_at_each_level_as_a_file_is(read: Read) -> None:
    """Its text, its headings, and nothing anew while it is the same."""
    whole = await read("mcp://docs/notes://guide.md")
    assert (whole.status, whole.text, whole.size) == (ReadStatus.OK, GUIDE.rstrip(), len(GUIDE))
    outline = await read("mcp://docs/notes://guide.md", lod=1)
    assert outline.text == "0: First\n4:   Second"
    again = await read("mcp://docs/notes://guide.md", known=whole.basis)
    assert again.status is ReadStatus.UNCHANGED


@pytest.mark.slow
async def test_bytes_and_parts_are_read_too(read: Read) -> None:
    """Bytes as those of a binary file, several contents below each other, the begin of what is
    long.
    """
    assert (await read("mcp://docs/notes://bytes")).size == 4
    two = await read("mcp://docs/notes://two")
    assert two.text == "# notes://two/1\npart 1\n\n# notes://two/2\npart 2"
    big = await read("mcp://docs/notes://big")
    assert (big.size, big.note) == (4 << 20, "the first 4,194,304 characters of 5,000,000")


@pytest.mark.slow
async def test_an_unknown_resource_is_an_error_that_names_what_there_is(read: Read) -> None:
    """So does one of a server that the job has not; and the list of all is a view too."""
    unknown = await read("mcp://docs/notes://gone")
    assert (unknown.status, unknown.error_type) == (ReadStatus.ERROR, "FileNotFoundError")
    assert unknown.error_message == (
        "docs: no notes://gone (it has notes://guide.md, notes://log, notes://day/{date})"
    )
    other = await read("mcp://other/x")
    assert other.error_message == "this job has no MCP server 'other'; it has docs"
    assert (await read("mcp://docs")).text.splitlines() == [
        "notes://guide.md  What is in guide.md.",
        "notes://log  What is in log.",
        "notes://day/{date}  A day's notes",
    ]


@pytest.mark.slow
async def test_a_secret_in_what_a_server_says_is_masked_before_it_is_cut(
    read: Read, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks chooses what of it stands where it is cut."""
    monkeypatch.setenv("DB_PASSWORD", "correct-horse-battery")
    unknown = await read(f"mcp://docs/notes://{'x/' * 136}correct-horse-battery")
    assert unknown.status is ReadStatus.ERROR
    assert unknown.error_message.startswith("docs: no notes://x/x/")
    assert "correct" not in unknown.error_message


@pytest.mark.slow
@pytest.mark.parametrize(
    ("server", "listed"),
    [
        ("plain", ["notes://guide.md", "notes://log"]),
        ("paged", ["notes://guide.md", "notes://log", "notes://day/{date}", "more://{n}"]),
    ],
)
async def test_templates_are_listed_as_far_as_there_are_any(
    read: Read,
    tools: ToolActivities,
    spec: ServerSpec,
    tmp_path: Path,
    server: str,
    listed: list[str],
) -> None:
    """A server that has no list of templates shows its resources; one with pages shows them all."""
    (tmp_path / server).touch()
    offered = await listed_by(tools, spec)
    assert [one.uri for one in offered.resources] == listed
    assert [line.split()[0] for line in (await read("mcp://docs")).text.splitlines()] == listed


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("crash", "the server docs ended with exit code 3"),
        ("garbage", "the server docs gave an answer that is none"),
        ("no-base64", "the server gave bytes that are no base64"),
    ],
)
async def test_a_server_that_means_no_good_ends_a_reading(read: Read, name: str, told: str) -> None:
    """The next one is read as if nothing had been."""
    failed = await read(f"mcp://docs/notes://{name}")
    assert failed.status is ReadStatus.ERROR
    assert (failed.error_type, told in failed.error_message) == ("OSError", True), failed
    assert (await read("mcp://docs/notes://guide.md")).status is ReadStatus.OK


@pytest.mark.slow
async def test_a_server_that_hangs_is_asked_once_in_a_reading(
    tools: ToolActivities, spec: ServerSpec, tmp_path: Path
) -> None:
    """What else the same activity wants of it fails at once; another activity gets an answer."""
    hasty = spec.model_copy(update={"timeout": 1.0})
    resources = ServerResources(tools.hosts, (hasty,))
    with still_until(_resources, (tmp_path / "calls").exists):
        for name in ("hang", "guide.md"):
            with pytest.raises(TimeoutError, match="the server docs did not answer in time"):
                await asyncio.to_thread(resources.read, "docs", f"notes://{name}")
    assert (tmp_path / "calls").read_text() == "read notes://hang\n"
    later = ServerResources(tools.hosts, (hasty,))
    with still_until(_resources, lambda: False):
        found = await asyncio.to_thread(later.read, "docs", "notes://guide.md")
    assert found.data == GUIDE.encode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "error", "told"),
    [
        ("drop", ConnectionError, "the server web said: "),
        ("part", ConnectionError, "the server web said: "),
        ("refuse", ConnectionError, "the server web said: HTTP 500 Internal Server Error"),
        ("expired", ConnectionError, "the server web said: HTTP 401 Unauthorized: "),
        ("fail", ConnectionError, "the server web said: no fail"),
        ("none", FileNotFoundError, r"web: no none \(it has notes://well\)"),
        ("zero", FileNotFoundError, r"web: no zero \(it has notes://well\)"),
    ],
)
async def test_a_reading_over_http_that_fails_says_not_that_there_is_nothing(
    tools: ToolActivities, name: str, error: type[OSError], told: str
) -> None:
    """What is not there is by the server's own word; the next resource is read."""
    with hostile_http() as server:
        resources = ServerResources(tools.hosts, (ServerSpec(name="web", url=server.url),))
        with pytest.raises(OSError, match=told) as failed:
            await asyncio.to_thread(resources.read, "web", f"notes://{name}")
        assert failed.type is error
        well = await asyncio.to_thread(resources.read, "web", "notes://well")
        assert well.data == b"well"


@pytest.mark.slow
async def test_a_server_that_repeats_its_token_is_masked(
    tools: ToolActivities, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In what it offers, in a call's result and in what is read of it, whatever the variable of the
    token is called.
    """
    monkeypatch.setenv("WEB_WORD", "correct horse 42")
    with hostile_http() as server:
        spec = ServerSpec(name="web", url=server.url, token="WEB_WORD")
        (tool,) = (one for one in (await listed_by(tools, spec)).tools if one.tool == "echo")
        call = call_of(spec, tool, turn=1)
        called = await ActivityEnvironment().run(tools.call_tool, call)
        workspace = WorkspaceActivities(hosts=tools.hosts, store=MemoryStore())
        batch = ReadBatch(
            workspace=str(tmp_path),
            requests=(
                ReadRequest(obj_id="view-1", path="mcp://web/notes://echo", tokens=500, lod=0),
            ),
            encoding="cl100k_base",
            servers=(spec,),
        )
        read = await asyncio.to_thread(ActivityEnvironment().run, workspace.read_sources, batch)
        said = (tool.doc, called.value, read.results[0].text)
    assert server.tokens == {"Bearer correct horse 42"}
    assert [text.partition("[masked:WEB_WORD:")[0].strip() for text in said] == [
        "you sent Bearer"
    ] * 3, said


async def test_a_list_of_resources_that_breaks_off_is_no_empty_one(tools: ToolActivities) -> None:
    """A view of all there is keeps what it showed."""
    with hostile_http() as server:
        resources = ServerResources(tools.hosts, (ServerSpec(name="web", url=server.url),))
        assert (await asyncio.to_thread(resources.read, "web", "")).data == b"notes://well  well\n"
        server.drops_lists = True
        with pytest.raises(ConnectionError, match="the server web said: "):
            await asyncio.to_thread(resources.read, "web", "")


@pytest.mark.slow
async def test_a_server_that_cannot_be_reached_is_no_resource_that_is_gone(
    tools: ToolActivities, spec: ServerSpec, tmp_path: Path
) -> None:
    """It is an error of the connection, which says why."""
    (tmp_path / "down").touch()
    resources = ServerResources(tools.hosts, (spec,))
    with pytest.raises(ConnectionError, match="cannot be reached: it ended with exit code 5"):
        await asyncio.to_thread(resources.read, "docs", "notes://guide.md")


@pytest.mark.slow
async def test_a_frozen_replay_reads_the_record(read: Read, tmp_path: Path) -> None:
    """The server is not asked again, and may give something else by now."""
    address = "mcp://docs/notes://guide.md"
    first = await read(address, key=KEY, turn=2, effect=0)
    (tmp_path / "notes" / "guide.md").write_text("other\n")
    run = ActivityEnvironment().info.workflow_run_id or ""
    record = EffectName(source=RunName(batch="b", job="j", run=run), kept=False)
    assert await read(address, key=KEY, turn=2, effect=0, recorded=record) == first
    assert (tmp_path / "calls").read_text() == "read notes://guide.md\n"


@pytest.mark.slow
async def test_a_job_is_told_what_there_is_to_read(
    tools: ToolActivities, spec: ServerSpec, tmp_path: Path
) -> None:
    """Bounded, within the fence of the servers' own words; and nothing where there is nothing."""
    (tmp_path / "many").touch()
    listing = await listed_by(tools, spec)
    assert (len(listing.resources), listing.more_resources) == (50, 53)
    contract = told_by(listing)
    assert "opens as a view, with anything in place of {a name in braces}" in contract
    assert 'view("mcp://docs/notes://guide.md"): What is in guide.md.\n' in contract
    assert 'view("mcp://docs"): 53 more to view\n' in contract
    nothing = listing.model_copy(update={"resources": (), "more_resources": 0})
    assert "mcp://" not in told_by(nothing)
    assert "resources" not in nothing.model_dump(mode="json")
