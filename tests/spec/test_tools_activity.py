"""The tool activity runs a tool once, gives its result as JSON, and makes its failures the
statement's.
"""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

from activities.contracts import ToolRequest, ToolResult
from activities.tools import ToolActivities
from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore
from runtime.base.effect_classes import EffectClass
from runtime.base.redaction.rules import Redaction
from runtime.base.values import JobKey
from runtime.tools.calls import MAX_RESULT_BYTES
from tests.eventually import alive, eventually

pytestmark = pytest.mark.slow

TOOLS = """
import asyncio, datetime, json, os, signal, subprocess, sys, threading, time
from pathlib import Path
from typing import Annotated, Any, Literal
from pydantic import BaseModel, Field, RootModel, model_serializer

calls = []
here = Path(__file__).parent

class Hit(BaseModel):
    file: Path
    lines: set[int] = set()

class Odd:
    pass

class Strange(Exception):
    def __str__(self):
        raise RuntimeError("no")

def count(step: int = 1) -> int:
    calls.append(step)
    return len(calls)

def typed(hit: Hit, day: datetime.date, kind: Literal["a", "b"] = "a", size: Annotated[int, Field(gt=0)] = 1) -> list[Any]:
    return [type(hit).__name__, sorted(hit.lines), day.year, kind, size]

async def later(n: int) -> dict[int, tuple[int, ...]]:
    await asyncio.sleep(0)
    return {n: (n, n + 1)}

def model() -> Hit:
    return Hit(file=Path("a.py"), lines={3})

class Numbers(RootModel[list[int]]):
    pass

class Itself(BaseModel):
    @model_serializer
    def text(self) -> str:
        return "itself"

def names(value: Any) -> list[str]: return value
def some(kind: str) -> dict[str, list[int | float | None] | Numbers | list[Itself]]:
    return {"a": {"int": [True, None], "float": [3, 2.5], "root": Numbers([1]), "self": [Itself()]}[kind]}
def undeclared(): return [1]
def odd() -> Any: return Odd()
def nan() -> Any: return float("nan")
def surrogate() -> Any: return chr(0xD800)
def raw() -> Any: return b"\\xff"
def deep() -> Any:
    value = []
    for _ in range(200):
        value = [value]
    return value
def circular() -> Any:
    value = []
    value.append(value)
    return value
def big(n: int) -> str: return "x" * n

def fail(kind: str) -> None:
    if kind == "key": raise KeyError("it's")
    if kind == "value": raise ValueError("no such value")
    if kind == "file": open("/no/such/file")
    if kind == "exit": raise SystemExit(3)
    if kind == "stop": raise StopIteration
    if kind == "strange": raise Strange
    if kind == "own": raise type("QuotaExceeded", (ValueError,), {})("come back later")
    if kind == "refused": raise ConnectionRefusedError(111, "nobody listens")
    if kind == "text": b"\\xff".decode()
    if kind == "namesake": raise type("ValueError", (LookupError,), {})("not the built-in one")
    if kind == "json": json.loads("{")
    if kind == "long": raise ValueError("x" * 9000)
    if kind.startswith("echoes"): raise ValueError(kind + os.environ["SEARCH_KEY"])
    if kind == "pydantic": Hit(file=3)

async def fail_later(kind: str) -> None:
    if kind == "exit": raise SystemExit(3)
    if kind == "cancel": raise asyncio.CancelledError
    raise ValueError("later")

def started() -> None:
    (here / f"started-{os.getpid()}").touch()

def blocked() -> str:
    started()
    while not (here / "release").exists(): time.sleep(0.01)
    return "free"

async def blocked_later() -> None:
    started()
    try:
        await asyncio.Event().wait()
    finally:
        (here / "unwound").touch()

def crash(how: str) -> None:
    started()
    if how == "signal": os.kill(os.getpid(), signal.SIGSEGV)
    if how == "exit": os._exit(7)
    if how == "children":
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        (here / f"child-{child.pid}").touch()
        os._exit(7)
    if how == "channel":
        os.closerange(3, 4096)
        return
    time.sleep(600)

def told_to_end() -> str:
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP): os.kill(os.getpid(), number)
    return "still here"

def process() -> int: return os.getpid()
def environment() -> dict[str, str]: return dict(os.environ)
def knows(value: str) -> bool: return os.environ.get("SEARCH_KEY") == value
def echo(value: Any) -> Any: return value
"""

Call = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
def tools(tmp_path: Path) -> str:
    """A directory with ``t.py``."""
    (tmp_path / "t.py").write_text(TOOLS)
    return str(tmp_path)


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
async def activities(store: MemoryStore) -> AsyncIterator[ToolActivities]:
    """A worker's, which ends the processes of its tools."""
    made = ToolActivities(store)
    async with made.open():
        yield made


@pytest.fixture
def call(tools: str, activities: ToolActivities) -> Call:
    """Call a tool of ``t.py`` in an activity of its own: ``call(name, *args, effect=0,
    **kwargs)``; ``fields`` are those of the request.
    """

    async def call(
        name: str, *args: Any, effect: int = 0, fields: Any = None, **kwargs: Any
    ) -> ToolResult:
        request = ToolRequest(
            key=JobKey(batch="b", job="j"),
            turn=3,
            effect=effect,
            tool=f"t:{name}",
            search_path=tools,
            args=args,
            kwargs=kwargs,
            **(fields or {}),
        )
        return await ActivityEnvironment().run(activities.call_tool, request)

    return call


async def test_a_result_is_archived_and_not_made_again(call: Call, store: MemoryStore) -> None:
    """A retry gets what the first attempt archived; another effect of the statement is another
    call.
    """
    assert (await call("count")).value == 1
    assert (await call("count")).value == 1
    assert (await call("count", effect=1)).value == 2
    run = ActivityEnvironment().info.workflow_run_id
    recorded = JobArchive(store, "b", "j").effect(run, 3, 0)
    assert recorded == {"value": 1}


async def test_a_failure_is_archived_too(call: Call, tools: str) -> None:
    """A tool that raised does not run again either."""
    first = await call("fail", "value")
    assert await call("count") == first


async def test_the_first_archived_result_counts(call: Call, store: MemoryStore, tools: str) -> None:
    """When another attempt has archived a result meanwhile, that one is returned."""
    running = asyncio.ensure_future(call("blocked"))
    await until(tools, "started-*")
    run = ActivityEnvironment().info.workflow_run_id
    JobArchive(store, "b", "j").write_effect(
        run, 3, 0, ToolResult(value="other").model_dump(mode="json")
    )
    (Path(tools) / "release").touch()
    assert (await running).value == "other"


async def test_arguments_are_coerced_to_the_annotations(call: Call) -> None:
    """What crossed as JSON becomes what the tool declares."""
    result = await call("typed", {"file": "a.py", "lines": [3, 1]}, "2024-05-06", size=2)
    assert result == ToolResult(value=["Hit", [1, 3], 2024, "a", 2])


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        (
            (),
            {"step": "x"},
            "count(): step: Input should be a valid integer, unable to parse string as an integer",
        ),
        (
            ("x",),
            {},
            (
                "count(): argument 1: Input should be a valid integer, unable to parse string as an"
                " integer"
            ),
        ),
        ((), {"stp": 1}, "count(): stp: Unexpected keyword argument"),
        ((1, 2), {}, "count(): argument 2: Unexpected positional argument"),
    ],
)
async def test_wrong_arguments(
    call: Call, args: tuple[Any, ...], kwargs: dict[str, Any], message: str
) -> None:
    """A call that does not fit the annotations is a TypeError, and nothing ran."""
    assert await call("count", *args, **kwargs) == ToolResult(
        error_type="TypeError", error_message=message
    )
    assert (await call("count", effect=1)).value == 1


async def test_results_become_json(call: Call) -> None:
    """Models, tuples, sets, paths and keys become what JSON has; coroutines are awaited."""
    assert (await call("later", 4)).value == {"4": [4, 5]}
    assert (await call("model", effect=1)).value == {"file": "a.py", "lines": [3]}


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("odd", "odd() returned a Odd that is no JSON: "),
        ("nan", "nan() returned a float that is no JSON: "),
        ("surrogate", "surrogate() returned a str that is no JSON: "),
        ("raw", "raw() returned a bytes that is no JSON: "),
        ("deep", "deep() returned a list that is no JSON: "),
        ("circular", "circular() returned a list that is no JSON: "),
    ],
)
async def test_results_that_are_no_json(call: Call, name: str, message: str) -> None:
    """A result that cannot cross is an error that names its type."""
    result = await call(name)
    assert (result.error_type, result.error_message[: len(message)]) == ("TypeError", message)


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (["a", "b"], None),
        ([], None),
        ({"a": 1}, "a dict"),
        ("a", "a str"),
        (None, "None"),
        (["a", 3], "a list with an int at [1]"),
    ],
)
async def test_results_of_another_type_than_declared(
    call: Call, value: Any, told: str | None
) -> None:
    """A result is what the type checker was told that it is, or an error names the tool, the type
    and what came.
    """
    result = await call("names", value)
    if told is None:
        assert result == ToolResult(value=value)
    else:
        message = f"names() is declared to return list[str], but returned {told}"
        assert result == ToolResult(error_type="TypeError", error_message=message)


async def test_results_that_python_counts_as_of_the_declared_type(call: Call) -> None:
    """True is an int and 3 a float; a model may be what it makes of itself; no declaration allows
    anything.
    """
    assert [
        (await call("some", what, effect=i)).value
        for i, what in enumerate(("int", "float", "root", "self"))
    ] == [
        {"a": [True, None]},
        {"a": [3, 2.5]},
        {"a": [1]},
        {"a": ["itself"]},
    ]
    assert (await call("undeclared", effect=9)).value == [1]


async def test_results_are_bounded(call: Call) -> None:
    """A result may be 512 KiB of JSON, not more."""
    assert len((await call("big", MAX_RESULT_BYTES - 2)).value) == MAX_RESULT_BYTES - 2
    assert await call("big", MAX_RESULT_BYTES - 1, effect=1) == ToolResult(
        error_type="ValueError",
        error_message="big() returned 524289 bytes of JSON; at most 524288 fit: ask for less",
    )


@pytest.mark.parametrize(
    ("kind", "error_type", "message"),
    [
        ("key", "KeyError", "it's"),
        ("value", "ValueError", "no such value"),
        ("file", "FileNotFoundError", "[Errno 2] No such file or directory: '/no/such/file'"),
        ("exit", "RuntimeError", "SystemExit: 3"),
        ("stop", "RuntimeError", "StopIteration: "),
        ("own", "ValueError", "QuotaExceeded: come back later"),
        ("refused", "OSError", "ConnectionRefusedError: [Errno 111] nobody listens"),
        ("text", "ValueError", "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"),
        ("namesake", "LookupError", "ValueError: not the built-in one"),
        ("strange", "RuntimeError", "Strange: (its message cannot be read)"),
        ("json", "ValueError", "JSONDecodeError: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("long", "ValueError", "x" * 4000 + "..."),
    ],
)  # fmt: skip
async def test_exceptions(call: Call, kind: str, error_type: str, message: str) -> None:
    """An exception keeps its type where the interpreter knows it; else it is the nearest one that
    it is one of, and tells its name.
    """
    assert await call("fail", kind) == ToolResult(error_type=error_type, error_message=message)


async def test_a_validation_error_in_the_tool_is_the_tools(call: Call) -> None:
    """Only the call's own arguments make a TypeError of the call."""
    result = await call("fail", "pydantic")
    assert result.error_type == "ValueError"
    assert result.error_message.startswith("ValidationError: 1 validation error for Hit")


@pytest.mark.parametrize(
    ("kind", "message"),
    [("exit", "SystemExit: 3"), ("cancel", "CancelledError: the tool gave up")],
)
async def test_a_coroutine_cannot_end_the_worker(call: Call, kind: str, message: str) -> None:
    """Leaving and cancelling itself are failures of a coroutine tool like any other."""
    assert await call("fail_later", kind) == ToolResult(
        error_type="RuntimeError", error_message=message
    )


async def test_a_tool_that_is_gone_can_be_retried(call: Call, store: MemoryStore) -> None:
    """A worker that cannot import a tool says so to Temporal, not to the model; nothing is
    archived.
    """
    with pytest.raises(
        ApplicationError, match="t:nope: the module 't' has no function 'nope'"
    ) as caught:
        await call("nope")
    assert caught.value.type == "ToolUnavailable"
    assert list(store.list("b/")) == []


def marks(folder: str, pattern: str) -> list[Path]:
    """The files of that pattern, which tools make."""
    return sorted(Path(folder).glob(pattern))


async def until(folder: str, pattern: str) -> Path:
    """The first of them, when it is there."""
    await eventually(lambda: bool(marks(folder, pattern)), f"a file {pattern}")
    return marks(folder, pattern)[0]


async def gone(pid: int) -> None:
    """Wait until a process has ended."""
    await eventually(lambda: not alive(pid), f"process {pid} ends")


def names_of_threads() -> set[str]:
    return {thread.name for thread in threading.enumerate()}


@pytest.mark.parametrize("name", ["blocked", "blocked_later"])
async def test_it_beats_and_can_be_cancelled(
    activities: ToolActivities, tools: str, store: MemoryStore, name: str
) -> None:
    """A long call sends heartbeats, and a cancellation ends the activity without an archived
    result.

    A coroutine is cancelled, and unwinds; a function ends with its process, and that is nobody's
    error.
    """
    errors: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, error: errors.append(error))
    environment, beats = ActivityEnvironment(), threading.Semaphore(0)
    environment.on_heartbeat = lambda *_: beats.release()
    request = ToolRequest(
        key=JobKey(batch="b", job="j"), turn=3, effect=0, tool=f"t:{name}", search_path=tools
    )
    running = asyncio.ensure_future(environment.run(activities.call_tool, request))
    pid = int((await until(tools, "started-*")).name.partition("-")[2])
    assert await asyncio.to_thread(beats.acquire, timeout=30)
    assert await asyncio.to_thread(beats.acquire, timeout=30)
    environment.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    if name == "blocked":
        await gone(pid)
        await eventually(lambda: "holdfast-tools" not in names_of_threads(), "its end is heard")
        del running
        # What its thread has told is taken in, and let go of.
        await asyncio.sleep(0)
        gc.collect()
        assert errors == []
    else:
        await until(tools, "unwound")
        assert alive(pid)
    assert list(store.list("b/")) == []


IMPORTS_FOR_EVER = """
import os, pathlib, threading
(pathlib.Path(__file__).parent / f"started-{os.getpid()}").touch()
threading.Event().wait()
"""


@pytest.mark.parametrize("often", [EffectClass.ONCE, EffectClass.IDEMPOTENT])
async def test_it_is_cancelled_while_its_module_is_imported(
    activities: ToolActivities, call: Call, tools: str, often: EffectClass
) -> None:
    """However long that takes: the process ends, and the next call is made in another."""
    (Path(tools) / "waits.py").write_text(IMPORTS_FOR_EVER)
    environment = ActivityEnvironment()
    request = ToolRequest(
        key=JobKey(batch="b", job="j"),
        turn=3,
        effect=0,
        tool="waits:f",
        search_path=tools,
        often=often,
    )
    running = asyncio.ensure_future(environment.run(activities.call_tool, request))
    pid = int((await until(tools, "started-*")).name.partition("-")[2])
    environment.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    await gone(pid)
    assert (await call("process", effect=1)).value != pid


async def test_a_process_with_a_blocked_call_ends_with_its_last_other_one(
    activities: ToolActivities, call: Call, tools: str
) -> None:
    """A function that was cancelled takes no other call with it; new calls are made in another
    process.
    """
    environment = ActivityEnvironment()
    request = ToolRequest(
        key=JobKey(batch="b", job="j"),
        turn=3,
        effect=9,
        tool="t:crash",
        search_path=tools,
        args=("",),
    )
    blocked = asyncio.ensure_future(environment.run(activities.call_tool, request))
    old = int((await until(tools, "started-*")).name.partition("-")[2])
    (Path(tools) / f"started-{old}").unlink()
    other = asyncio.ensure_future(call("blocked", effect=1))
    assert (await until(tools, "started-*")).name == f"started-{old}"
    environment.cancel()
    with pytest.raises(asyncio.CancelledError):
        await blocked
    new = (await call("process", effect=2)).value
    assert new != old
    assert alive(old)
    (Path(tools) / "release").touch()
    assert (await other).value == "free"
    await gone(old)
    assert (await call("process", effect=3)).value == new


@pytest.mark.parametrize(
    ("how", "told"),
    [
        ("signal", "was ended by SIGSEGV"),
        ("exit", "ended with exit code 7"),
        ("channel", "was ended by SIGKILL"),
    ],
)
async def test_a_crash_is_the_error_of_its_call(
    call: Call, tools: str, store: MemoryStore, how: str, told: str
) -> None:
    """It is archived, so that the call is not made again; the next one is made in another
    process.
    """
    before = (await call("process", effect=1)).value
    assert (await call("process", effect=2)).value == before
    crashed = ToolResult(error_type="RuntimeError", error_message=f"the process of the tool {told}")
    assert await call("crash", how) == crashed
    assert await call("crash", how) == crashed
    assert len(marks(tools, "started-*")) == 1
    after = (await call("process", effect=3)).value
    assert after != before
    assert not alive(before)


async def test_what_a_tool_started_ends_with_its_process(call: Call, tools: str) -> None:
    """A process that a tool leaves behind when it crashes is ended too."""
    await call("crash", "children")
    await gone(int((await until(tools, "child-*")).name.partition("-")[2]))


async def test_a_call_that_had_not_begun_is_made_elsewhere(
    activities: ToolActivities, tools: str, store: MemoryStore
) -> None:
    """A module that ends its process while it is imported is tried once more, and then told to
    Temporal: nothing is archived.
    """
    (Path(tools) / "bad.py").write_text(
        "import os, pathlib\n(pathlib.Path(__file__).parent /"
        " f'started-{os.getpid()}').touch()\nos._exit(3)\n"
    )
    request = ToolRequest(
        key=JobKey(batch="b", job="j"), turn=3, effect=0, tool="bad:f", search_path=tools
    )
    with pytest.raises(
        ApplicationError, match="bad:f: its process ended with exit code 3 before the call"
    ) as caught:
        await ActivityEnvironment().run(activities.call_tool, request)
    assert caught.value.type == "ToolUnavailable"
    assert len(marks(tools, "started-*")) == 2
    assert list(store.list("b/")) == []


async def test_what_ends_a_service_is_for_the_worker_to_hear(call: Call) -> None:
    """A process of tools that is told to end with all others goes on: its worker lets calls in
    flight end.
    """
    assert (await call("told_to_end")).value == "still here"


async def test_the_processes_end_with_the_worker(store: MemoryStore, tools: str) -> None:
    """None is left when a worker closes, and none is started before a tool is called."""
    activities = ToolActivities(store)
    async with activities.open():
        request = ToolRequest(
            key=JobKey(batch="b", job="j"), turn=3, effect=0, tool="t:process", search_path=tools
        )
        pid = (await ActivityEnvironment().run(activities.call_tool, request)).value
        assert alive(pid)
        assert pid != os.getpid()
    await gone(pid)


async def test_a_tool_gets_no_secrets(call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is a secret by its name or its form is not in a tool's environment, but for what the
    worker lets through.
    """
    secrets = {
        "OPENAI_API_KEY": "a" * 20,
        "HOLDFAST_KEY": "b" * 44,
        "AWS_SESSION_TOKEN": "c" * 20,
        "AWS_PROFILE": "work",
        "GITHUB_TOKEN": "d" * 20,
        "OTHER": "sk-proj-1234567890abcdefghij",
        "DATABASE": "postgres://me:hidden@example.invalid/db",
        "SEARCH_KEY": "e" * 20,
    }
    for name, value in {
        **secrets,
        "PLAIN": "f" * 20,
        "HOLDFAST_TOOL_ENV": "SEARCH_KEY, NONE",
    }.items():
        monkeypatch.setenv(name, value)
    found = (await call("environment")).value
    assert found["PLAIN"] == "f" * 20
    assert found["PATH"] == os.environ["PATH"]
    assert set(secrets) & set(found) == {"SEARCH_KEY"}


async def test_named_secrets_reach_a_tool_and_are_masked(
    call: Call, tools: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A job's own tools alone, with a timeout or without; a worker that has one not says so."""
    value = "a1b2-c3d4-e5f6-g7h8"
    monkeypatch.setenv("SEARCH_KEY", value)
    given: dict[str, Any] = {"secrets": ("SEARCH_KEY",)}
    assert "SEARCH_KEY" not in (await call("environment")).value
    for effect, more in enumerate((given, {**given, "timeout": 60.0}), 1):
        found = (await call("environment", effect=effect, fields=more)).value
        assert found["SEARCH_KEY"].startswith("[masked:SEARCH_KEY:")
    known = await call("knows", value, effect=3, fields=given)
    assert known.value is True
    with pytest.raises(ApplicationError) as caught:
        await call("environment", effect=4, fields={"secrets": ("NOT_SET",)})
    assert caught.value.type == "ToolUnavailable"
    assert caught.value.message == (
        "t:environment: the secret NOT_SET is not in the worker's environment"
    )


@pytest.mark.parametrize("before", range(3_985, 4_000, 7))
async def test_no_part_of_a_secret_is_left_where_a_message_is_cut(
    call: Call, monkeypatch: pytest.MonkeyPatch, before: int
) -> None:
    """Who calls a tool that repeats its arguments would choose how much of the secret that is."""
    monkeypatch.setenv("SEARCH_KEY", "horse-battery-staple-9")
    said = "echoes" + "x" * (before - len("echoes"))
    given = {"secrets": ("SEARCH_KEY",), "redact": Redaction(env=("SEARCH_KEY",))}
    result = await call("fail", said, fields=given)
    assert result.error_message == f"{said}[masked:SEARCH_KEY:"[:4_000] + "..."


async def test_large_arguments_and_odd_texts_cross(call: Call) -> None:
    """What a statement gives arrives as it was."""
    value = ["x" * 100_000, "\u2028\x00é", 2**200, -0.5, {"a": [None, True]}]
    assert (await call("echo", value)).value == value
