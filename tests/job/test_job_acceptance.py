"""The acceptance criteria 1 to 4 and milestones M0 to M2 of the executable context, and its
examples, run as they stand.
"""

from __future__ import annotations

from pathlib import Path

from plain_loop import Messages, PlainLoop, statements

from runtime.base.fences import fenced
from runtime.base.spec.models import ProjectionPolicy
from runtime.history.events import (
    GroupRecomputed,
    MethodCalled,
    NodeChanged,
    StatementExecuted,
    TickApplied,
)
from runtime.interpreter.executions import ExecutionStatus
from runtime.projection.segments import SegmentKind


def run(workspace: Path, *sources: str, **options: object) -> PlainLoop:
    """Runs the statements, and replays them."""
    return PlainLoop(workspace, statements(*sources), **options).run().replayed()  # type: ignore[arg-type]


def prompt(messages: Messages) -> str:
    """All that the model is shown."""
    return "\n".join(str(message["content"]) for message in messages)


def test_design_section_5_runs_as_written(workspace: Path) -> None:
    """The contract that the model is told of, but for what is not built, which says so."""
    loop = run(
        workspace,
        'foo = view("src/foo.py", pos="120:0", tokens=2000, lod=0)\nbar = view("src/bar.py")\nbaz ='
        ' view("notes.md")',
        'foo.SetLod(1).SetTokens(All); foo.SetPos("40"); foo.Scroll(50); foo.Refresh();'
        " foo.Pause()",
        'foo.Run(freq="Sync")',
        's = group(foo, bar, tokens=500, lod=2).Run(freq="Sync")',
        "s.Add(baz); s.Remove(bar); s.SetTokens(300)",
        'ls(); show(foo, lod=0, tokens=800); pin(s, reason="the plan"); tick()',
        "wait(3600); wait_for(foo, timeout=60)",
        'foo.Run(freq=("Periodic", 60))',
        "finish(None)",
    )
    assert [execution.status.value for execution in loop.executions] == ["ok"] * 9
    assert loop.job.graph.state("view-1").pos == "90:0"  # type: ignore[union-attr]
    assert loop.job.graph.state("group-4").members == ("view-1", "view-3")  # type: ignore[union-attr]


def test_the_dsl_of_section_9_runs_as_written(workspace: Path) -> None:
    """Constructors, view controls, and groups that expand and compress."""
    (workspace / "Foo.cs").write_text("// This is foo.cs.\n" * 500)
    loop = run(
        workspace,
        'foo_cs = view("Foo.cs", pos="0:0", tokens=2000)\n'
        'foo_cs.Run(freq="Sync")\n'
        'foo_sum = group(foo_cs, tokens=500, lod=2).Run(freq="Sync")',
        'foo_cs.SetLod(1)\nfoo_cs.SetTokens(10000)\nfoo_cs.SetPos("120:0")\nfoo_cs.Scroll(50)\nfoo_cs.Refresh()\nfoo_cs.Pause()',
        "foo_detail = group(foo_cs, tokens=4000, lod=0)\nfoo_sum.SetTokens(300)\nfoo_sum.SetLod(3)",
        "print(foo_cs.pos, foo_cs.mode, foo_sum.lod, foo_detail.tokens)",
    )
    assert {execution.status for execution in loop.executions} == {ExecutionStatus.OK}
    assert loop.executions[3].stdout == "170:0 paused 3 4000\n"


def test_section_1_2_a_view_of_an_opened_file_is_reevaluated_where_it_stands(
    workspace: Path,
) -> None:
    """After ``SetLod(1).SetTokens(All)`` the old place shows the structure, and what stands before
    it is the same.
    """
    defs = "".join(f"def foo_{n}():\n    return {n}\n" for n in range(100))
    (workspace / "src" / "foo.py").write_text("# comment\n" * 5 + defs)
    loop = run(
        workspace,
        'foo_file = open("src/foo.py")\nfoo = view(foo_file, pos=0, tokens=50)',
        "x = 1",
        "foo.SetLod(1).SetTokens(All)",
        "x = 2",
    )
    before, after = loop.prompts[2][3]["content"], loop.prompts[4][3]["content"]
    assert "# comment" in before
    assert "lod 0, 50 tokens, more in the source]" in before.splitlines()[3]
    assert "def foo_99()" in after and "return 99" not in after
    assert "lod 0" not in after
    assert ", lod 1, " in after.splitlines()[3]
    assert loop.prompts[4][:3] == loop.prompts[2][:3]


def test_criterion_1_a_view_is_created_adjusted_and_seen_in_later_statements(
    workspace: Path,
) -> None:
    """What a statement set is what the next one reads, and each mutation is one event with both
    digests.
    """
    loop = run(
        workspace,
        'foo = view("src/foo.py", tokens=100)',
        "foo.SetLod(1)\nfoo.SetTokens(60)",
        "print(foo.lod, foo.tokens)",
    )
    assert loop.executions[2].stdout == "1 60\n"
    calls = [event for event in loop.job.log if isinstance(event, MethodCalled) and event.turn == 2]
    assert [(call.method, call.args) for call in calls] == [
        ("SetLod", ("1",)),
        ("SetTokens", ("60",)),
    ]
    assert calls[0].before_digest != calls[0].after_digest == calls[1].before_digest
    assert sum(isinstance(event, StatementExecuted) for event in loop.job.log) == 4
    assert any(isinstance(event, NodeChanged) for event in loop.job.log)


def test_criterion_2_a_group_is_the_surface_of_its_members(workspace: Path) -> None:
    """Members leave a mark where they stood; a pinned one is shown on its own as well."""
    loop = run(
        workspace,
        'foo = view("src/foo.py", tokens=60)\nbar = view("src/bar.py", tokens=60)',
        "s = group(foo, bar, tokens=200)",
        "pin(bar, reason='needed')",
        "s = None",
        options={"projection": ProjectionPolicy.INLINE},
    )
    kinds = [
        [segment.kind for segment in layout if segment.origin.startswith("node:")]
        for layout in loop.layouts
    ]
    assert kinds[1] == [SegmentKind.VIEW, SegmentKind.VIEW]
    assert kinds[2] == [SegmentKind.MARK, SegmentKind.MARK, SegmentKind.GROUP]
    assert kinds[3] == [SegmentKind.MARK, SegmentKind.VIEW, SegmentKind.GROUP]
    assert kinds[4] == [SegmentKind.VIEW, SegmentKind.VIEW]
    assert "[foo: view of src/foo.py; summarised by s]" in prompt(loop.prompts[2])
    assert "[s: group of foo, bar, lod 2," in prompt(loop.prompts[2])


def test_criterion_3_running_nodes_follow_their_source_at_ticks_alone(workspace: Path) -> None:
    """A running view shows the new content and its group is recomputed; a paused one keeps its last
    known state.
    """
    files = {1: "one = 1\n", 3: "one = 2\ntwo = 2\n"}

    def between(turn: int) -> None:
        (workspace / "live.py").write_text(files[max(t for t in files if t <= turn)])

    loop = run(
        workspace,
        'live = view("live.py", freq="Sync")\nstill = view("live.py")\ns = group(live)',
        "print(live.text)",
        "print(live.text, still.text)",
        between=between,
    )
    assert loop.executions[1].stdout == "one = 1\n"
    assert loop.executions[2].stdout == "one = 2\ntwo = 2 one = 1\n"
    ticks = [(event.turn, event.obj_id) for event in loop.job.log if isinstance(event, TickApplied)]
    assert ticks == [(3, "view-1"), (3, "view-2")]  # the second is told that its source has changed
    assert [event.turn for event in loop.job.log if isinstance(event, GroupRecomputed)] == [
        2,
        3,
    ]  # at 2 for the name


def test_criterion_4_the_prompt_has_handles_summaries_and_deltas(workspace: Path) -> None:
    """And its tail says what is left of the budgets."""

    def between(turn: int) -> None:
        (workspace / "live.py").write_text("one = 2\n" if turn > 2 else "one = 1\n")

    loop = run(
        workspace,
        'live = view("live.py", freq="Sync")\ns = group(live)',
        "x = 1",
        "x = 2",
        between=between,
    )
    kinds = [segment.kind.value for segment in loop.layouts[2]]
    assert kinds[:7] == ["contract", "goal", "reply", "result", "mark", "reply", "result"]
    assert kinds[7:] == ["group", "delta", "handles", "budget"]
    delta, handles, budget = (segment.text for segment in loop.layouts[2][-3:])
    feed, diff = (
        "[changed since the last turn]\nlive: its source changed, +1 -1 lines of those shown\n",
        "@@ -0,1 +0,1 @@\n-one = 1\n+one = 2",
    )
    assert delta.startswith(feed + fenced(diff))
    assert handles.splitlines()[1].startswith("live = view live.py@0:0 | running Sync | lod 0 | ")
    assert handles.splitlines()[1].endswith("changed")
    assert budget.startswith("[budget: turn 3 of 1000; ")


def test_throttled_and_paused_nodes_are_not_read(workspace: Path) -> None:
    """``min_turn_interval`` skips turns; ``Pause`` stops the reading."""
    loop = run(
        workspace,
        'a = view("notes.md", freq="Sync")\nb = view("src/foo.py").Run(freq="Sync",'
        " min_turn_interval=3)",
        *["x = 1"] * 4,
        "a.Pause()\nb.Pause()",
        "x = 2",
    )
    ticks = [entry for entry in loop.history if entry.kind == "tick"]
    assert [entry.value.count('"obj_id"') for entry in ticks] == [2, 1, 1, 2, 1]


def test_a_running_view_that_nothing_holds_is_paused(workspace: Path) -> None:
    """Neither a variable, nor a pin, nor a group in sight: it is read no more, and runs again when
    it is told to.
    """
    loop = run(
        workspace,
        "a = view('notes.md', freq='Sync')\nb = view('src/foo.py', freq='Sync')\nc ="
        " view('src/bar.py', freq='Sync')\nd = [view('notes.md', freq='Sync')]\ns ="
        " group(b)\npin(c)\nkeep = lambda: a0\na0 = a",
        "a = a0 = b = c = None",
        "s = None",
        "x = d[0].path",
        "pin(d[0])\nd = None",
    )
    ticks = [entry for entry in loop.history if entry.kind == "tick"]
    assert [entry.value.count('"obj_id"') for entry in ticks] == [4, 3, 2, 2, 2]
    graph = loop.job.graph
    assert [graph.state(f"view-{n}").mode.value for n in range(1, 5)] == [
        "paused",
        "paused",
        "running",
        "running",
    ]
    assert graph.state("group-5").mode.value == "paused"
    assert "view-1: now paused" in prompt(loop.prompts[2])
