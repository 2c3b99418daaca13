"""MCP servers that mean no good: what they do ends a call, and nothing else."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from mcp_types import CallToolResult, Tool
from temporalio.testing import ActivityEnvironment

from activities import tools
from activities._listings import LISTINGS
from activities.contracts import ServersQuestion, ToolRequest, ToolResult
from activities.tools import ToolActivities
from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore
from runtime.base.effect_classes import EffectClass
from runtime.base.redaction.redactor import redactor_of
from runtime.base.redaction.rules import Redaction
from runtime.base.spec.servers import ServerListing, ServerSpec, ServerTool
from runtime.base.values import JobKey
from runtime.tools.schemas import Schema, method_stub
from runtime.tools.session import never_called, told, wrong_arguments, wrong_result
from tests.eventually import alive, eventually
from tests.servers.hostile_mcp import SECRET
from tests.servers.server_calls import KEY, call_of
from tests.still_clock import still_until

HOSTILE = Path(__file__).parents[1] / "servers" / "hostile_mcp.py"

Call = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
def spec(tmp_path: Path) -> ServerSpec:
    """The hostile server."""
    return ServerSpec(
        name="bad", command=(sys.executable, str(HOSTILE), str(tmp_path)), env=("TELL",), timeout=60
    )


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
async def worker(
    store: MemoryStore, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[ToolActivities]:
    """A worker's activities, whose processes end with the test."""
    monkeypatch.setenv("TELL", "me")
    monkeypatch.setenv("SOME_KEY", "secret")
    made = ToolActivities(store)
    async with made.open():
        yield made


async def listed(
    worker: ToolActivities, *servers: ServerSpec, job: str = "j"
) -> tuple[ServerListing, ...]:
    """What the servers offer, as a job that begins is told."""
    question = ServersQuestion(key=JobKey(batch="b", job=job), servers=servers)
    return (await ActivityEnvironment().run(worker.list_servers, question)).listings


@pytest.fixture
async def call(worker: ToolActivities, spec: ServerSpec) -> Call:
    """Call a tool, by its name at the server, as a statement's effect of its own."""
    (listing,) = await listed(worker, spec)
    tools = {tool.tool: tool for tool in listing.tools}
    numbers = iter(range(1000))

    async def call(name: str, *, seconds: float = 60.0, **arguments: Any) -> ToolResult:
        number = arguments.pop("effect", None)
        effect = next(numbers) if number is None else number
        request = call_of(spec, tools[name], effect=effect, kwargs=arguments, timeout=seconds)
        return await ActivityEnvironment().run(worker.call_tool, request)

    return call


def calls(tmp_path: Path) -> list[str]:
    """The calls that reached the server, in order."""
    path = tmp_path / "calls"
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.slow
async def test_what_it_offers_is_bounded_typed_and_archived(
    worker: ToolActivities, spec: ServerSpec, store: MemoryStore, tmp_path: Path
) -> None:
    """Names become identifiers, schemas types, annotations effect classes, texts one line each; it
    is asked once.
    """
    (listing,) = await listed(worker, spec)
    tools = {tool.name: tool for tool in listing.tools}
    assert tools["echo"].stub == (
        "def echo(self, *, text: str, times: int = 1, **others: Any) -> str: ..."
    )
    assert tools["echo"].shape == "echo(*, text: str, times: int = 1, **others: Any) -> str"
    assert tools["echo"].doc == "Say it again.[31m"
    assert (tools["wrong_result"].tool, tools["wrong_result"].stub) == (
        "wrong-result",
        "def wrong_result(self, **others: Any) -> str: ...",
    )
    assert tools["structured"].stub.endswith("-> dict[str, Any]: ...")
    assert [tools[name].effect for name in ("echo", "structured", "pay")] == [
        EffectClass.PURE,
        EffectClass.IDEMPOTENT,
        EffectClass.ONCE,
    ]
    assert len(listing.about) == 1_003
    assert "\n" not in listing.about
    (tmp_path / "changed").touch()
    assert await listed(worker, spec) == (listing,)
    run = ActivityEnvironment().info.workflow_run_id
    assert JobArchive(store, "b", "j").effect(run, 1, LISTINGS) is not None


@pytest.mark.parametrize("draft", ["2020-12/schema", "2019-09/schema", None])
async def test_a_schema_that_leads_out_of_itself_is_not_followed(
    tmp_path: Path, draft: str | None
) -> None:
    """No URL is asked for, and no file read: the call is refused, with the reference."""
    asked: list[str] = []

    async def note(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append((await reader.readline()).decode())
        writer.close()

    other = tmp_path / "other.json"
    other.write_text('{"required": ["secret"]}')
    async with await asyncio.start_server(note, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/other.json"
        for reference in (url, other.as_uri(), "other.json", "#/$defs/gone"):
            schema = {"properties": {"x": {"$ref": reference}}}
            if draft is not None:
                schema |= {"$schema": f"https://json-schema.org/draft/{draft}"}
            tool = Tool(name="t", input_schema=schema)
            wrong = await asyncio.to_thread(wrong_arguments, tool, {"x": {}})
            assert wrong is not None
            assert (wrong.error_type, wrong.error_message) == (
                "RuntimeError",
                f"t(): its schema refers to {reference.removeprefix('#')}, which is not in it:"
                " arguments are checked by what the schema has itself",
            )
    assert asked == []


@pytest.mark.parametrize("reference", ["#/$defs/n", "https://example.org/t#/$defs/n"])
def test_a_schema_may_refer_to_itself(reference: str) -> None:
    """Also by its own address; and to a draft, which is known without a network."""
    draft = "https://json-schema.org/draft/2020-12/schema"
    schema = {
        "$id": "https://example.org/t",
        "$defs": {"n": {"type": "integer", "maximum": 3}},
        "properties": {"x": {"$ref": reference}, "schema": {"$ref": draft}},
    }
    tool = Tool(name="t", input_schema=schema)
    assert wrong_arguments(tool, {"x": 3, "schema": {"type": "object"}}) is None
    wrong = wrong_arguments(tool, {"x": 4})
    assert wrong is not None
    assert wrong.error_message == "t(): ['x'] 4 is greater than the maximum of 3"


@pytest.mark.parametrize(
    "patterns", [{"pattern": "^(a+)+$"}, {"patternProperties": {"(.*)*!": {}}}]
)
def test_a_pattern_takes_no_longer_than_the_text_is_long(patterns: Schema) -> None:
    """By Python's own expressions these take years, in which no call of the server is answered."""
    text = "a" * 100
    schema = {"properties": {"x": {**patterns, "additionalProperties": False}}}
    value = {"x": f"{text}!" if "pattern" in patterns else {text: 1}}
    tool = Tool(name="t", input_schema=schema, output_schema=schema)
    wrong = wrong_arguments(tool, value)
    assert wrong is not None
    assert wrong.error_message.startswith("t(): ['x'] ")
    said = wrong_result(tool, CallToolResult(content=[], structured_content=value))
    assert said is not None
    assert said.startswith("Invalid structured content returned by tool t: ['x'] ")


def test_a_pattern_that_cannot_be_bounded_is_the_servers_to_check() -> None:
    """As one that looks ahead."""
    schema = {"properties": {"x": {"type": "string", "pattern": "^(?!a)"}}}
    tool = Tool(name="t", input_schema=schema, output_schema=schema)
    assert wrong_arguments(tool, {"x": "a"}) is None
    result = CallToolResult(content=[], structured_content={"x": "a"})
    assert wrong_result(tool, result) is None
    assert wrong_arguments(tool, {"x": 3}) is not None


def test_parts_of_a_schema_may_have_addresses() -> None:
    """As of one that was put together: a reference in a part counts from there."""
    part = {
        "$id": "/part",
        "$defs": {"n": {"maximum": 3}},
        "properties": {"n": {"$ref": "#/$defs/n"}},
    }
    schema = {
        "$id": "https://example.org/t",
        "properties": {"x": {"$ref": "/part"}},
        "$defs": {"p": part},
    }
    tool = Tool(name="t", input_schema=schema)
    assert wrong_arguments(tool, {"x": {"n": 3}}) is None
    wrong = wrong_arguments(tool, {"x": {"n": 4}})
    assert wrong is not None
    assert wrong.error_message == "t(): ['x']['n'] 4 is greater than the maximum of 3"


@pytest.mark.parametrize(
    ("schema", "shape"),
    [
        (
            {"properties": {"a": {}}, "required": ["b", "c-d"]},
            "f(*, a: Any = ..., b: Any, **others: Any)",
        ),
        ({"properties": {}, "required": ["b"]}, "f(*, b: Any)"),
        ({"properties": {"self": {"type": "string"}}}, "f(*, self: str = ...)"),
        (
            {"properties": {"others": {}, "others_": {}, "from": {}}, "required": ["others"]},
            "f(*, others: Any, others_: Any = ..., **others__: Any)",
        ),
        ({"properties": {"__debug__": {}}}, "f(**others: Any)"),
        (
            {"properties": {"a": {}}, "additionalProperties": True},
            "f(*, a: Any = ..., **others: Any)",
        ),
        ({"properties": {"a": {}}, "additionalProperties": False}, "f(*, a: Any = ...)"),
        ({"properties": {}, "patternProperties": {"^x-": {}}}, "f(**others: Any)"),
    ],
)
def test_every_argument_that_a_schema_takes_can_be_given(schema: Schema, shape: str) -> None:
    """Whatever its name: one that is required and stands nowhere else, one that is a parameter's
    of every method, and those that the schema does not name.
    """
    stub = method_stub("f", schema, None)
    assert ServerTool(name="f", tool="f", stub=stub, digest="").shape == f"{shape} -> str"
    names = {*schema["properties"], *schema.get("required", ())}
    arguments = {str(name): "x" for name in names}
    methods: dict[str, Any] = {"Any": Any}
    exec(stub, methods)
    methods["f"](object(), **arguments)


def test_a_type_is_work_in_proportion_to_its_schema() -> None:
    """However often it refers to itself: each of its members would be made for each other one."""
    looks = 0

    class Watched(dict[str, Any]):
        def get(self, key: str, default: Any = None) -> Any:
            nonlocal looks
            looks += 1
            return super().get(key, default)

    members = [*(Watched({"$ref": "#/properties/a"}) for _ in range(60)), {"type": "string"}]
    schema = {"properties": {"a": {"anyOf": [{"type": "null"}, *members[-1:]]}}}
    assert "a: str | None = ..." in method_stub("t", schema, None)
    schema["properties"]["a"]["anyOf"] = members
    assert "a: Any = ..." in method_stub("t", schema, None)
    assert looks < 60 * 10


def test_a_link_to_a_resource_is_told_by_its_uri() -> None:
    """A statement may view it."""
    links = [
        {"type": "resource_link", "uri": uri, "name": "n"}
        for uri in ("notes://a", f"n://{'x' * 400}")
    ]
    outcome = told(CallToolResult.model_validate({"content": links}), "s.f")
    assert outcome.value == f"[resource_link notes://a]\n[resource_link n://{'x' * 282}...]"


@pytest.mark.parametrize("number", ["NaN", "1e999"])
def test_a_structured_result_that_is_no_json_is_an_error(number: str) -> None:
    """It would reach the statement as None."""
    said = f'{{"content": [], "structuredContent": {{"mean": {number}}}}}'
    outcome = told(CallToolResult.model_validate_json(said), "s.f")
    assert outcome.error_type == "RuntimeError"
    # From Python 3.13 on json adds which value it is.
    assert outcome.error_message.startswith(
        "s.f: its structured content is no JSON: Out of range float values are not JSON compliant"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        ("down", "the server bad cannot be reached: it ended with exit code 5"),
        ("garbled", "the server bad lists what are no tools: tools.0.inputSchema: Field required"),
    ],
)
async def test_a_server_that_cannot_be_asked_offers_nothing(
    worker: ToolActivities, spec: ServerSpec, tmp_path: Path, wrong: str, why: str
) -> None:
    """The job begins without it, and is told why."""
    (tmp_path / wrong).touch()
    (bad,) = await listed(worker, spec)
    assert bad.tools == ()
    assert bad.error.startswith(why)


@pytest.mark.slow
async def test_what_is_no_tool_takes_no_other_away(
    worker: ToolActivities, spec: ServerSpec, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The others are offered and called; how many were left out is told to the job, and why by the
    worker, once.
    """
    (whole,) = await listed(worker, spec, job="before")
    (tmp_path / "half-garbled").touch()
    (bad,) = await listed(worker, spec)
    assert (bad.tools, bad.left_out, bad.error) == (whole.tools, 3, "")
    assert bad.wrong == "tools.0.inputSchema: Field required"
    await listed(worker, spec, job="next")
    (told,) = [record.getMessage() for record in caplog.records if "no tools" in record.message]
    assert told.startswith(
        "b/j goes on without some tools: the server bad lists what are no tools: tools.0.inputSchema"
    )


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"additionalProperties": False}, "t: it requires 'b', and does not allow it"),
        ({"additionalProperties": False, "patternProperties": {"b": True}}, ""),
        ({}, ""),
    ],
)
def test_a_tool_that_requires_what_it_forbids(more: Schema, said: str) -> None:
    """No call of it fits: it is no tool. What is required and named nowhere else may be given."""
    schema = {"type": "object", "properties": {"a": True}, "required": ["a", "b"], **more}
    assert never_called(Tool(name="t", input_schema=schema)) == said
    assert "b: Any" in method_stub("t", schema, None)


@pytest.mark.slow
async def test_pages_that_lead_round_in_a_circle_are_read_once(
    worker: ToolActivities, spec: ServerSpec, tmp_path: Path
) -> None:
    """Each tool and each resource is told once, though the server names a next page for ever."""
    (tmp_path / "notes").mkdir()
    (once,) = await listed(worker, spec)
    (tmp_path / "circling").touch()
    (again,) = await listed(worker, spec, job="other")
    assert [tool.name for tool in again.tools] == [tool.name for tool in once.tools]
    assert [one.uri for one in again.resources] == [one.uri for one in once.resources] != []
    assert (again.left_out, again.more_resources) == (0, 0)


@pytest.mark.slow
async def test_a_server_that_cannot_be_started_offers_nothing(
    worker: ToolActivities, spec: ServerSpec
) -> None:
    """Its program is not there, or a variable that it is to have."""
    missing = spec.model_copy(update={"name": "gone", "command": ("/no/such/program",)})
    unset = spec.model_copy(update={"name": "unset", "env": ("NOT_SET",)})
    gone, without = await listed(worker, missing, unset)
    assert gone.tools == ()
    assert "/no/such/program" in gone.error
    assert without.error.endswith("the worker's environment has no NOT_SET")


@pytest.mark.slow
async def test_calls_and_their_results(call: Call) -> None:
    """Text is text, structured content is what it is; arguments are checked by the schema before
    anything is called.
    """
    assert await call("echo", text="ab", times=2) == ToolResult(value="abab")
    assert await call("echo", text="a", **{"from": "b"}) == ToolResult(value="a")
    assert await call("structured") == ToolResult(value={"n": 3})
    wrong = await call("echo", text=3)
    assert (wrong.error_type, wrong.error_message) == (
        "TypeError",
        "echo(): ['text'] 3 is not of type 'string'",
    )
    assert await call("fail") == ToolResult(
        error_type="RuntimeError", error_message="bad.fail: no such thing"
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("crash", "the server bad ended with exit code 3"),
        ("flood", "the server bad wrote a message of more than 8388608 bytes"),
        ("lines", "the server bad wrote more than 100 lines that are no messages"),
        ("heir", "the server bad ended with exit code 3"),
        ("silent", "the server bad closed its standard output"),
        ("wrong-result", "the server bad gave an answer that is none"),
        ("null", "the server bad gave an answer that is none"),
        ("asks", "the server bad asked more than 100 things and read no answer"),
        ("hang", "bad.hang did not answer within 0.3 seconds"),
        ("steep", "the server bad wrote a message that is nested too deeply"),
        ("deep", "the server bad wrote a message that is nested too deeply"),
    ],
)
async def test_it_ends_a_call(call: Call, tmp_path: Path, name: str, said: str) -> None:
    """The call is an error, is archived as such and not made again; the next one is answered."""
    if name == "hang":
        with still_until(tools, lambda: calls(tmp_path) == [name]):
            first = await call(name, effect=7, seconds=0.3)
    else:
        first = await call(name, effect=7)
    kind = "TimeoutError" if name == "hang" else "RuntimeError"
    assert (first.error_type, first.error_message) == (kind, said)
    assert await call(name, effect=7) == first
    assert await call("echo", text="well") == ToolResult(value="well")
    assert calls(tmp_path) == [name, "echo"]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["garbage", "stray", "noise"])
async def test_what_else_it_writes_is_passed_over(call: Call, name: str) -> None:
    """Stray lines, answers that nobody asked for and notifications do not end a call."""
    assert str((await call(name)).value).startswith("after ")


@pytest.mark.slow
async def test_an_answer_that_is_hard_to_read_is_one(call: Call) -> None:
    """A text that was cut within a character, a number of many digits: nobody waits in vain."""
    assert await call("halved") == ToolResult(value={"cut": "smile \ufffd"})
    assert await call("bytes") == ToolResult(value={"cut": "smile \ufffd"})
    digits = await call("digits")
    assert (digits.error_type, "is no JSON" in digits.error_message) == ("RuntimeError", True)


@pytest.mark.slow
async def test_a_result_that_the_workflow_could_not_read_does_not_reach_it(call: Call) -> None:
    """Its task would fail for ever."""
    nested = await call("nested")
    assert nested.error_type == "RuntimeError"
    assert "is no JSON: recursion limit exceeded" in nested.error_message


@pytest.mark.slow
async def test_results_are_bounded_and_masked(call: Call) -> None:
    """A long text is cut, with a line that says so; a key is masked before anybody keeps it."""
    big = (await call("big")).value
    assert len(big) < 300_000
    assert big.endswith("\n[2737856 characters more]")
    masked = redactor_of(Redaction()).text(f"the key is {SECRET}")
    assert (await call("secret")).value == masked != f"the key is {SECRET}"


@pytest.mark.slow
async def test_a_result_that_its_schema_forbids(call: Call, tmp_path: Path) -> None:
    """It is an error of the call."""
    (tmp_path / "wrong").touch()
    result = await call("structured")
    assert result.error_type == "RuntimeError"
    assert "Invalid structured content" in result.error_message


@pytest.mark.slow
async def test_a_tool_that_changed_is_not_called(call: Call, tmp_path: Path) -> None:
    """What was checked and classified when the job began is called, or nothing."""
    await call("echo", text="a")
    (tmp_path / "changed").touch()
    changed, gone = await call("echo", text="a"), await call("hang")
    assert changed == ToolResult(
        error_type="RuntimeError",
        error_message="the tool 'echo' of the server bad is another than when the job began",
    )
    assert gone.error_message == "the server bad has no tool 'hang' any more"
    assert calls(tmp_path) == ["echo"]


@pytest.mark.slow
@pytest.mark.parametrize("how", ["crash", "hang", "wrong-result"])
async def test_a_call_made_at_most_once_whose_end_nobody_told(
    call: Call, tmp_path: Path, how: str
) -> None:
    """A tool that says nothing of its effects is called once, whatever comes of it."""
    if how == "hang":
        with still_until(tools, lambda: calls(tmp_path) == ["pay"]):
            result = await call("pay", how=how, effect=1, seconds=0.3)
    else:
        result = await call("pay", how=how, effect=1)
    assert result.error_type == "OutcomeUnknown"
    assert result.error_message.startswith("pay() was called at ")
    assert await call("pay", how=how, effect=1) == result
    assert await call("pay", effect=2) == ToolResult(value="paid")
    assert calls(tmp_path) == ["pay", "pay"]


@pytest.mark.slow
async def test_a_server_that_is_busy_ends_no_other_call(
    call: Call,
    worker: ToolActivities,
    spec: ServerSpec,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One that answers a call at a time: who comes too late is told, the next one has a server of
    its own, and the first is ended once its call is answered.
    """
    busy = worker.hosts.of(spec)
    long = asyncio.create_task(call("pay", how="wait"))
    await eventually(lambda: calls(tmp_path) == ["pay"], "the call")
    with monkeypatch.context() as patch:
        patch.setattr(tools, "CONNECT_SECONDS", 0.3)
        late = await call("echo", text="late")
    assert late == ToolResult(
        error_type="TimeoutError", error_message="bad.echo did not answer within 0.3 seconds"
    )
    assert await call("echo", text="next") == ToolResult(value="next")
    (tmp_path / "go").touch()
    assert await long == ToolResult(value="paid")
    await eventually(lambda: not alive(busy.pid), "the busy server ends")


@pytest.mark.slow
async def test_a_server_that_asks_something_first_is_not_called_again(
    worker: ToolActivities, spec: ServerSpec, tmp_path: Path
) -> None:
    """By the protocol a client would answer and send the call once more, ten times."""
    (tmp_path / "modern").touch()
    (listing,) = await listed(worker, spec)
    pay = next(tool for tool in listing.tools if tool.tool == "pay")
    request = call_of(spec, pay, effect=1, kwargs={"how": "ask"})
    result = await ActivityEnvironment().run(worker.call_tool, request)
    assert result.error_type == "OutcomeUnknown"
    assert "the server bad asked something before it would answer" in result.error_message
    assert calls(tmp_path) == ["pay"]


@pytest.mark.slow
async def test_its_environment_is_clean(call: Call) -> None:
    """It has what the jobs file names, and what programs need to start."""
    told = json.loads((await call("environment")).value)
    assert told["TELL"] == "me"
    assert set(told) <= {"TELL", "PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LC_CTYPE"}


@pytest.mark.slow
async def test_it_ends_with_its_worker(store: MemoryStore, spec: ServerSpec) -> None:
    """So do the processes that it has started."""
    made = ToolActivities(store)
    spec = spec.model_copy(update={"env": ()})
    async with made.open():
        (listing,) = await listed(made, spec)
        tool = next(tool for tool in listing.tools if tool.name == "fork")
        request = ToolRequest(
            key=KEY, turn=1, effect=0, tool="fork", search_path="", server=spec, digest=tool.digest
        )
        result = await ActivityEnvironment().run(made.call_tool, request)
        pids = [int(pid) for pid in str(result.value).split()]
        assert [alive(pid) for pid in pids] == [True, True]
    for pid in pids:
        await eventually(lambda pid=pid: not alive(pid), f"process {pid} ends")
