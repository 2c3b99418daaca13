"""A tool's effect class, timeout and retries: read where tools are resolved, obeyed by calls."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from temporalio.exceptions import ApplicationError
from temporalio.testing import ActivityEnvironment

import activities.tools
from activities.contracts import ToolRequest, ToolResult
from activities.tools import ToolActivities
from holdfast import InputError, tool
from runtime.archive.job import JobArchive
from runtime.base.effect_classes import EffectClass
from runtime.base.errors import ArchiveError
from runtime.base.values import JobKey
from runtime.jobsfile.changes import changes, definition_digest
from tests.eventually import alive, eventually
from tests.spec.conftest import FullStore, Load, Refuse
from tests.still_clock import still_until

pytestmark = pytest.mark.slow

TOOLS = """
import os, subprocess, sys, time
from pathlib import Path
from holdfast import tool
here = Path(__file__).parent

def ran() -> int:
    with (here / "ran").open("a") as file:
        file.write(f"{os.getpid()}\\n")
    return len((here / "ran").read_text().splitlines())

@tool(effect="idempotent", retries=3)
def flaky(good: int, how: str = "raise") -> int:
    n = ran()
    if n < good and how == "raise": raise ValueError(f"try {n}")
    if n < good and how == "end": os._exit(3)
    return n

@tool(timeout=0.2)
def slow(seconds: float) -> str:
    ran()
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    (here / f"child-{child.pid}").touch()
    time.sleep(seconds)
    return "done"

@tool(effect="once", timeout="1h")
def pay(how: str) -> int:
    n = ran()
    if how == "raise": raise ValueError("no money")
    if how == "end": os._exit(3)
    return n

@tool(effect="once", timeout=0.2)
async def pay_slowly() -> int:
    ran()
    time.sleep(600)
    return 1

@tool
def bare() -> int: return 1

def plain() -> int: return 1
"""

Call = Callable[..., Awaitable[ToolResult]]


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A directory with ``t.py``."""
    (tmp_path / "t.py").write_text(TOOLS)
    return tmp_path


@pytest.fixture
def store() -> FullStore:
    return FullStore()


@pytest.fixture
async def call(tools: Path, store: FullStore) -> AsyncIterator[Call]:
    """Call a tool of ``t.py``; ``worker`` is whose activity it is, a new one by default."""
    workers: list[ToolActivities] = []

    async def call(name: str, *args: Any, often: str = "idempotent", **options: Any) -> ToolResult:
        worker = ToolActivities(store)
        workers.append(worker)
        request = ToolRequest(
            key=JobKey(batch="b", job="j"),
            turn=3,
            effect=options.pop("effect", 0),
            tool=f"t:{name}",
            search_path=str(tools),
            args=args,
            often=EffectClass(often),
            **options,
        )
        return await ActivityEnvironment().run(worker.call_tool, request)

    yield call
    for worker in workers:
        async with worker.open():
            pass


def runs(tools: Path) -> int:
    """How often a tool ran, counted at the tool's side."""
    return len((tools / "ran").read_text().splitlines()) if (tools / "ran").exists() else 0


def pids_of(tools: Path) -> tuple[int, int]:
    """The process in which a tool ran once, and the one that it started."""
    (child,) = tools.glob("child-*")
    return int((tools / "ran").read_text()), int(child.name.removeprefix("child-"))


def test_the_marks_go_with_the_definition(place: Path, load: Load) -> None:
    """A decorated function is still the function; what it says is in the job's definition, which
    changes with it.
    """
    (place / "mytools.py").write_text(TOOLS)
    text = (
        "batch: b\njobs:\n  - {id: a, goal: g, workspace: ., model: openai/x,"
        " tools: ['mytools:pay', 'mytools:flaky', 'mytools:slow', 'mytools:bare', 'mytools:plain']}"
    )
    (job,) = load(text).jobs
    assert [(tool.name, tool.effect.value, tool.timeout, tool.retries) for tool in job.tools] == [
        ("pay", "once", 3600.0, 0),
        ("flaky", "idempotent", None, 3),
        ("slow", "idempotent", 0.2, 0),
        ("bare", "idempotent", None, 0),
        ("plain", "idempotent", None, 0),
    ]
    (place / "mytools.py").write_text(TOOLS.replace('"once", timeout="1h"', '"once"'))
    (other,) = load(text).jobs
    assert changes(job, other) == ["tools.pay.timeout removed"]
    assert definition_digest(job) != definition_digest(other)


@pytest.mark.parametrize(
    ("marks", "message"),
    [
        ({"effect": "twice"}, "expected effect to be one of 'pure', 'idempotent', 'once'"),
        ({"effect": "once", "retries": 1}, "expected no retries with effect 'once', got 1"),
        ({"retries": -1}, "expected retries from 0 to 20, got -1"),
        ({"retries": True}, "expected retries from 0 to 20, got True"),
        ({"timeout": 0}, "at most 6 hours, got 0"),
        ({"timeout": "7h"}, "at most 6 hours, got '7h'"),
        ({"timeout": "soon"}, "at most 6 hours, got 'soon'"),
    ],
)
def test_marks_that_are_none(marks: dict[str, Any], message: str) -> None:
    """They are refused where they are written, by the function's name."""

    def sell(a: int) -> int:
        return a

    with pytest.raises(InputError, match=rf"^the tool '{__name__}:sell': .*{re.escape(message)}"):
        tool(**marks)(sell)


def test_a_jobs_file_tells_of_wrong_marks(place: Path, refuse: Refuse) -> None:
    """Its tools cannot be imported, and the reason is told."""
    (place / "mytools.py").write_text(
        "from holdfast import tool\n@tool(effect='once', retries=2)\ndef a() -> int: return 1\n"
    )
    told = refuse(
        "batch: b\njobs: [{id: a, goal: g, workspace: ., model: openai/x, tools: ['mytools:a']}]"
    )
    assert "the tool 'mytools:a': expected no retries with effect 'once', got 2" in told


@pytest.mark.slow
@pytest.mark.parametrize("how", ["raise", "end"])
async def test_what_fails_is_tried_again(call: Call, tools: Path, how: str) -> None:
    """One that raises, or whose process ends, gets its retries and no more."""
    assert (await call("flaky", 3, how, retries=3)).value == 3
    assert runs(tools) == 3
    last = await call("flaky", 9, how, effect=1, retries=1)
    assert (runs(tools), last.error_type) == (5, {"raise": "ValueError"}.get(how, "RuntimeError"))


async def test_wrong_arguments_are_not_tried_again(call: Call, tools: Path) -> None:
    """The tool has not run, and would not."""
    assert (await call("flaky", "x", retries=3)).error_type == "TypeError"
    assert runs(tools) == 0


async def test_a_timeout_ends_the_process_and_what_it_started(call: Call, tools: Path) -> None:
    """It is an error of the call; a call beside it goes on, since it has a process of its own."""
    with still_until(activities.tools, lambda: bool(list(tools.glob("child-*")))):
        result = await call("slow", 600.0, timeout=0.2)
    assert result == ToolResult(
        error_type="TimeoutError",
        error_message="it took more than its 0.2 seconds, and its process was ended",
    )
    for pid in pids_of(tools):
        await eventually(lambda pid=pid: not alive(pid), f"process {pid} ends")
    assert (await call("slow", 0.0, effect=1, timeout=60.0)).value == "done"


async def test_once_what_it_raised_is_told(call: Call, tools: Path, store: FullStore) -> None:
    """Its end is known, and archived; the claim before it says which call it was."""
    first = await call("pay", "raise", often="once")
    assert first == ToolResult(error_type="ValueError", error_message="no money")
    assert await call("pay", "well", often="once") == first
    assert runs(tools) == 1
    run = ActivityEnvironment().info.workflow_run_id
    claim = (JobArchive(store, "b", "j").effect(run, 3, 700_000) or {})["claim"]
    assert claim["tool"] == "t:pay"
    assert claim["arguments"].startswith("sha256:")


async def test_once_a_standing_claim_is_an_unknown_outcome(
    call: Call, tools: Path, store: FullStore
) -> None:
    """Another attempt has claimed the call and told no result: it is not made, ever."""
    claim = {"tool": "t:pay", "arguments": "sha256:ab", "at": "2026-01-01T00:00:00", "owner": "x"}
    run = ActivityEnvironment().info.workflow_run_id
    JobArchive(store, "b", "j").write_effect(run, 3, 700_000, {"claim": claim})
    result = await call("pay", "well", often="once")
    assert result == ToolResult(
        error_type="OutcomeUnknown",
        error_message=(
            "pay() was called at 2026-01-01T00:00:00 (arguments sha256:ab): whoever made it ended"
            " without telling its result. It may have done its work or not, and is not called again"
        ),
    )
    assert await call("pay", "well", often="once") == result
    assert runs(tools) == 0


async def test_once_a_result_is_held_until_it_can_be_archived(
    call: Call,
    tools: Path,
    store: FullStore,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The next attempt would have the claim alone; one log line says why the job waits."""
    monkeypatch.setattr("activities._held.PAUSE", 0.01)
    store.full = [".effect-000000"] * 3
    assert (await call("pay", "well", often="once")).value == 1
    assert (runs(tools), store.full) == (1, [])
    told = [record.getMessage() for record in caplog.records if "waits" in record.getMessage()]
    assert told == ["b/j turn 3: the result of t:pay waits to be archived: no space left"]


async def test_once_a_claim_whose_answer_was_lost_is_that_of_its_attempt(
    call: Call, tools: Path, store: FullStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands, and nobody else has called: the call is made."""
    monkeypatch.setattr("activities._held.PAUSE", 0.01)
    store.full, store.unheard = [".effect-700000"], [".effect-700000"]
    assert (await call("pay", "well", often="once")).value == 1
    assert (runs(tools), store.full, store.unheard) == (1, [], [])


async def test_a_result_of_another_tool_is_not_held(
    call: Call, tools: Path, store: FullStore
) -> None:
    """It has its next attempt, by whatever worker."""
    store.full = [".effect-000000"]
    with pytest.raises(ArchiveError, match="no space left"):
        await call("flaky", 1)
    assert (await call("flaky", 1)).value == 2


@pytest.mark.parametrize(
    ("name", "args", "seconds", "how"),
    [
        ("pay", ("end",), None, "the process of the tool ended with exit code 3"),
        ("pay_slowly", (), 0.2, "it took more than its 0.2 seconds, and its process was ended"),
    ],
)
async def test_once_a_call_that_was_cut_off_is_an_unknown_outcome(
    call: Call, tools: Path, name: str, args: tuple[str, ...], seconds: float | None, how: str
) -> None:
    """What it had done when its process ended nobody knows."""
    with still_until(activities.tools, lambda: runs(tools) == 1):
        result = await call(name, *args, often="once", timeout=seconds)
    assert result.error_type == "OutcomeUnknown"
    assert f"): {how}. It may" in result.error_message
    assert await call(name, *args, often="once", timeout=seconds) == result
    assert runs(tools) == 1


async def test_once_a_tool_that_is_not_there_is_not_claimed(call: Call, tools: Path) -> None:
    """A worker that cannot import it leaves the call to one that can."""
    (tools / "t.py").rename(tools / "away.py")
    with pytest.raises(ApplicationError, match="no module 't'"):
        await call("pay", "well", often="once")
    (tools / "away.py").rename(tools / "t.py")
    assert (await call("pay", "well", often="once")).value == 1


async def test_once_wrong_arguments_are_no_unknown_outcome(call: Call, tools: Path) -> None:
    """The call did not begin."""
    assert (await call("pay", often="once")).error_type == "TypeError"
    assert runs(tools) == 0
