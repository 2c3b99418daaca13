"""A worker that was given directories takes scripts, tools and workspaces from below them only
(``--allow DIR``).
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from stage import Stage

from activities.bounds import named_by
from activities.contracts import HeldVersion, WorkspaceChange, WorkspaceOpen
from activities.finish_contracts import FinishNotice
from runtime.base.spec.finish import FinishEvent, OnFinish
from runtime.base.spec.models import ToolSpec, Writable
from runtime.base.values import JobKey
from runtime.job.stops import JobStatus
from runtime.worker.worker import make_worker
from workflows.messages import JobOutcome

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

TOOL = "def shout(text: str) -> str:\n    return text.upper()\n"


def write(script: Path) -> None:
    """A script that reads a file and calls a tool."""
    script.write_text("- {code: \"t = shout(open('a.txt').read())\"}\n- {code: finish(t)}\n")


async def outcome(
    stage: Stage,
    allowed: Path,
    script: Path,
    folder: Path,
    workspace: Path,
    target: str = "mine:shout",
) -> JobOutcome:
    """How a job ends that reads a file and calls a tool, on a worker that was given a directory."""
    write(script)
    stage.queue = f"{stage.queue}-{len(stage.started)}"
    tool = ToolSpec(
        name="shout",
        target=target,
        search_path=str(folder),
        stub="def shout(text: str) -> str: ...",
    )
    spec = stage.spec(f"scripted/{script}", workspace=str(workspace), tools=(tool,))
    async with make_worker(stage.client, stage.store, task_queue=stage.queue, allowed=(allowed,)):
        return await (await stage.start(spec)).result()


def place(folder: Path) -> Path:
    """A directory with a file and a tool."""
    folder.mkdir()
    (folder / "mine.py").write_text(TOOL)
    (folder / "a.txt").write_text("hi")
    return folder


async def test_what_is_below_an_allowed_directory_is_taken(stage: Stage, tmp_path: Path) -> None:
    """Script, tool and workspace, also by a link that leads to there."""
    inside, link = place(tmp_path / "inside"), tmp_path / "link"
    link.symlink_to(inside)
    ended = await outcome(stage, inside, link / "s.yaml", link, link)
    assert (ended.status, ended.reason) == (JobStatus.SUCCEEDED, "finished")


@pytest.mark.parametrize("what", ["the script", "the module of tool mine:shout", "the workspace"])
@pytest.mark.parametrize("how", ["elsewhere", "by a link", "by dots"])
async def test_what_is_not_ends_the_job_by_name(
    stage: Stage, tmp_path: Path, what: str, how: str
) -> None:
    """Also where a symbolic link or a parent leads out."""
    inside, outside = place(tmp_path / "inside"), place(tmp_path / "outside")
    (inside / "link").symlink_to(outside)
    out = {
        "elsewhere": outside,
        "by a link": inside / "link",
        "by dots": inside / ".." / "outside",
    }[how]
    places = {
        "the script": inside,
        "the module of tool mine:shout": inside,
        "the workspace": inside,
        what: out,
    }
    script, folder, workspace = places.values()
    ended = await outcome(stage, inside, script / "s.yaml", folder, workspace)
    assert ended.status is JobStatus.FAILED
    assert f"NotAllowed: {what} {out}" in ended.reason
    assert ended.reason.endswith(f"is not below a directory that this worker was allowed: {inside}")


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("mine:shout", None),
        ("textwrap:dedent", ""),
        ("mine:dedent", "from textwrap import dedent"),
        ("textwrap:shout", TOOL),
    ],
    ids=["by a link", "installed", "by another name", "beside a module of its name"],
)
async def test_a_tool_that_is_installed_is_none_of_the_directories(
    stage: Stage, tmp_path: Path, target: str, text: str | None
) -> None:
    """With bounds a tool is a function of an allowed directory, not one that Python finds
    elsewhere.
    """
    inside, outside = place(tmp_path / "inside"), place(tmp_path / "outside")
    file = inside / (f"{target.partition(':')[0]}.py" if text == TOOL else "mine.py")
    (inside / "mine.py").unlink()
    if text is None:
        file.symlink_to(outside / "mine.py")
    else:
        file.write_text(text)
    ended = await outcome(stage, inside, inside / "s.yaml", inside, inside, target)
    assert f"NotAllowed: the module of tool {target}" in ended.reason


@pytest.mark.parametrize("sandbox", ["bwrap", "none"])
async def test_commands_are_in_a_sandbox(sandbox: Literal["bwrap", "none"]) -> None:
    """Without one they could run, read and change what is below no allowed directory."""
    key, writable = JobKey(batch="b", job="j"), Writable(sandbox=sandbox)
    opened = WorkspaceOpen(key=key, workspace="", writable=writable)
    held = HeldVersion(version="v", sandbox=sandbox)
    change = WorkspaceChange(
        key=key, turn=1, effect=0, held=held, writable=Writable(), operation="sh"
    )
    shell = ("the shell of commands without a sandbox", Path("/bin/sh"))
    for argument in (opened, change):
        assert list(named_by(argument)) == ([shell] if sandbox == "none" else [])


async def test_a_workspace_is_judged_however_it_is_written() -> None:
    """Also by a path from where the worker was started."""
    key, outside = JobKey(batch="b", job="j"), "../outside"
    opened = WorkspaceOpen(key=key, workspace=outside, writable=Writable())
    assert list(named_by(opened)) == [("the workspace", Path(outside))]


@pytest.mark.parametrize(
    ("command", "program"),
    [
        ("./notify.sh", "inside/notify.sh"),
        ("bin/notify --to=ops", "/bin/sh"),
        ("bin/notify --to ops@x.org,b", "inside/bin/notify"),
        ("../evil.sh", "evil.sh"),
        ("/usr/bin/curl http://x", "/usr/bin/curl"),
        ("curl http://x", "/bin/sh"),
        (". ./notify.sh", "/bin/sh"),
        ("exec ./notify.sh", "/bin/sh"),
        ("./notify.sh; rm x", "/bin/sh"),
        ("./notify.sh\nrm x", "/bin/sh"),
        ("./notify.sh $(rm x)", "/bin/sh"),
        ("A=1 ./notify.sh", "/bin/sh"),
        ("", "/bin/sh"),
    ],
)
async def test_a_command_that_is_told_of_ends_is_one_program(
    tmp_path: Path, command: str, program: str
) -> None:
    """Anything else is the shell's, which is below no allowed directory."""
    order = OnFinish(command=command, directory=str(tmp_path / "inside"))
    notice = FinishNotice(order=order, event=FinishEvent.JOB, key="k", batch="b")
    (_, folder), (what, path) = named_by(notice)
    assert (folder, what) == (tmp_path / "inside", "the program of on_finish")
    assert path is not None
    assert path.resolve() == (tmp_path / program).resolve()
