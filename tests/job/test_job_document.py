"""The examples of docs/contract/executable-context.md, sections 1.2, 5 and 9, word for word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from plain_loop import PlainLoop, statements

from runtime.base.spec.models import ProjectionPolicy
from runtime.interpreter.executions import ExecutionStatus
from runtime.projection.segments import SegmentKind

COMMENT = "// This is foo.cs. It is a long, long c# file with a lot of code.\n"

SECTION_1_2_FIRST_TURN = """\
foo_cs_file = open("~/Foo.cs")
foo_cs = view(foo_cs_file, pos=0, tokens=2000)
"""
SECTION_1_2_MANY_TURNS_LATER = """\
foo_cs.SetLod(1).SetTokens(All) # When view is reevaluated next, it will render only the summary
"""
SECTION_1_2_AS_REEVALUATED = """\
foo_cs_file = open("~/Foo.cs")
# foo_cs = view(foo_cs_file, pos=0, tokens=2000) # msg < 12
foo_cs = view(foo_cs_file, pos=0, tokens=All, lod=1)
"""
SECTION_9_1 = """\
foo_cs = view("~/Foo.cs", pos="0:0", tokens=2000)           # paused by default
foo_cs.Run(freq="Sync")                                     # running, per turn
foo_sum = group(foo_cs, tokens=500, lod=2).Run(freq="Sync") # group summary node
"""
SECTION_9_2 = """\
foo_cs.SetLod(1)
foo_cs.SetTokens(10000)
foo_cs.SetPos("120:0")
foo_cs.Scroll(50)
foo_cs.Refresh()             # explicit refresh
foo_cs.Pause()
"""
SECTION_9_3_EXPAND = """\
foo_detail = group(foo_cs, tokens=4000, lod=0)  # a more detailed façade
"""
SECTION_9_3_COMPRESS = """\
foo_sum.SetTokens(300)
foo_sum.SetLod(3)  # diff-only façade if supported
"""


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """The document's file: far more than 2,000 tokens."""
    methods = "".join(
        f"    public int Method{n}() {{\n        return {n};\n    }}\n" for n in range(200)
    )
    (tmp_path / "Foo.cs").write_text(COMMENT * 300 + "public class Foo {\n" + methods + "}\n")
    return tmp_path


def run(workspace: Path, *sources: str, **options: Any) -> PlainLoop:
    """Runs the statements, all of which must end well, and replays them."""
    loop = PlainLoop(workspace, statements(*sources), **options).run().replayed()
    assert [(e.status, e.exception) for e in loop.executions] == [(ExecutionStatus.OK, None)] * len(
        loop.executions
    )
    return loop


def shown(loop: PlainLoop, turn: int) -> str:
    """The view as the prompt of a turn has it."""
    (text,) = [s.text for s in loop.layouts[turn - 1] if s.kind is SegmentKind.VIEW]
    return text


def test_section_1_2(workspace: Path) -> None:
    """A view outputs its message where it was made, and is evaluated again there: first 2,000
    tokens, then the structure.

    That is what ``projection: inline`` always does, and ``auto`` where it costs no more.
    """
    inline = {"projection": ProjectionPolicy.INLINE}
    loop = run(
        workspace,
        SECTION_1_2_FIRST_TURN,
        "turns = 1",
        SECTION_1_2_MANY_TURNS_LATER,
        "turns = 2",
        options=inline,
    )
    assert shown(loop, 2).splitlines()[2] == shown(loop, 3).splitlines()[2] == COMMENT.strip()
    assert 1_900 < loop.job.desk.count(shown(loop, 3)) < 2_100
    assert "lod 1" in shown(loop, 4).splitlines()[0]
    assert "Method199" in shown(loop, 4)
    assert [s.origin for s in loop.layouts[3]].index("node:view-1") == [
        s.origin for s in loop.layouts[1]
    ].index("node:view-1")
    again = run(workspace, SECTION_1_2_AS_REEVALUATED, "turns = 1", options=inline)
    assert shown(again, 2) == shown(loop, 4)


def test_section_9(workspace: Path) -> None:
    """Constructors, view controls, and groups that expand and compress."""
    loop = run(
        workspace,
        SECTION_9_1,
        "print(foo_cs.mode, foo_cs.freq, foo_sum.mode, foo_sum.freq)",
        SECTION_9_2,
        "print(foo_cs.mode, foo_cs.lod, foo_cs.tokens, foo_cs.pos)",
        SECTION_9_3_EXPAND,
        SECTION_9_3_COMPRESS,
        "print(foo_sum.tokens, foo_sum.lod, foo_detail.tokens, foo_detail.lod)",
    )
    printed = [execution.stdout for execution in loop.executions if execution.stdout]
    assert printed == ["running Sync running Sync\n", "paused 1 10000 170:0\n", "300 3 4000 0\n"]


def test_section_9_4(workspace: Path) -> None:
    """Sync nodes are throttled by ``min_turn_interval``; the API accepts Async and Periodic."""
    loop = run(
        workspace,
        'foo_cs = view("~/Foo.cs").Run(freq="Sync", min_turn_interval=2)',
        "x = 1",
        "x = 2",
        'foo_cs.Run(freq="Async")',
        'foo_cs.Run(freq=("Periodic", 60))',
    )
    ticks = [entry for entry in loop.history if entry.kind == "tick"]
    assert len(ticks) == 3  # turns 2 and 4, and the first periodic one


def test_section_5_1_common_interface(workspace: Path) -> None:
    """Identity, state, policy and methods of every node."""
    loop = run(
        workspace,
        'nodes = [view("~/Foo.cs"), note("a plan")]\nnodes.append(group(*nodes))',
        "for n in nodes:\n    print(n.obj_id, n.obj_type, n.mode, n.freq, n.min_turn_interval,"
        " n.last_tick_turn >= -1, n.dirty, n.tokens, n.lod)\n    print(n.GetDigest()['obj_id'],"
        " len(n.Render()) > 0, len(n.Render(lod=0, tokens=All)) > 0)",
        "for n in (nodes[0], nodes[2]):\n    n.Pause().Run(freq='Sync')\n    print(n.mode)",
    )
    assert loop.executions[1].stdout.splitlines() == [
        "view-1 view paused None 1 True False 2000 0",
        "view-1 True True",
        "note-2 note paused None 1 True False 500 0",
        "note-2 True True",
        "group-3 group running Sync 1 True False 500 2",
        "group-3 True True",
    ]
    assert loop.executions[2].stdout == "running\nrunning\n"
