"""Keeping a prompt within its size: what gives way first, what never does, and that it always
ends.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from plain_loop import Messages, PlainLoop, Refused, TooLong, statements

from runtime.base.spec.models import Budget
from runtime.base.values import ModelReply
from runtime.history.events import Condensation
from runtime.job.stops import JobFailed
from runtime.projection.segments import SegmentKind


def text(size: int) -> str:
    """A tool with a long answer."""
    return "word " * size


def loop_of(
    workspace: Path, policy: Callable[[Messages], str | ModelReply], tokens: int, **more: Any
) -> PlainLoop:
    """A job with a small context."""
    return PlainLoop(
        workspace,
        policy,
        tools=[text],
        options={"context_tokens": tokens, **more.pop("options", {})},
        **more,
    )


def kinds(loop: PlainLoop, turn: int) -> list[str]:
    """The segments of a turn's prompt."""
    return [segment.kind.value for segment in loop.layouts[turn - 1]]


def test_the_oldest_view_gives_way_first_and_leaves_a_mark(workspace: Path) -> None:
    """What the last statement made stays whole."""
    sources = [f"v{n} = view('src/foo.py', tokens=500)" for n in range(4)]
    loop = loop_of(workspace, statements(*sources), 3400).run().replayed()
    nodes = [s for s in loop.layouts[4] if s.origin.startswith("node:")]
    assert [segment.kind for segment in nodes][-1] is SegmentKind.VIEW
    assert nodes[0].kind is SegmentKind.MARK
    assert (
        nodes[0].text
        == "[v0: view of src/foo.py; left out for room: v0.Refresh() brings it back, show(v0)"
        " prints it once]"
    )
    assert not any(isinstance(event, Condensation) for event in loop.job.log)


def test_a_view_that_was_left_out_comes_back_when_it_is_called(workspace: Path) -> None:
    """In its old place, if there is room again."""
    made = [f"v{n} = view('src/foo.py', tokens=500)" for n in range(4)]
    loop = (
        loop_of(workspace, statements(*made, "v1 = v2 = v3 = None\nv0.Refresh()", "x = 1"), 3400)
        .run()
        .replayed()
    )
    nodes = [s.kind.value for s in loop.layouts[5] if s.origin.startswith("node:")]
    assert nodes == ["view", "mark", "mark", "mark"]


def test_old_events_are_condensed_and_the_newest_stay(workspace: Path) -> None:
    """The goal stays the goal, the newest result stays whole, and one condensation is room for
    several turns.
    """
    loop = (
        loop_of(workspace, statements(*[f"n = {n}\nprint(text(150))" for n in range(20)]), 3400)
        .run()
        .replayed()
    )
    assert kinds(loop, 20)[:3] == ["contract", "goal", "summary"]
    assert loop.layouts[19][-2].text.startswith("[turn 19: ok]\n<<")
    assert "\nword word" in loop.layouts[19][-2].text
    condensed = [event.turn for event in loop.job.log if isinstance(event, Condensation)]
    assert 1 <= len(condensed) <= 6


def test_a_pinned_view_stays_when_its_statement_is_condensed(workspace: Path) -> None:
    """It moves to the tail; an unpinned one moves too, until the room is needed."""
    first = (
        "kept = view('src/bar.py', tokens=200)\npin(kept)\nloose = view('src/foo.py', tokens=100)"
    )
    loop = loop_of(workspace, statements(first, *["print(text(300))"] * 12), 3000).run().replayed()
    assert any(isinstance(event, Condensation) for event in loop.job.log)
    for layout in loop.layouts[1:]:
        assert any(
            s.kind is SegmentKind.VIEW and s.text.startswith("[kept: view of src/bar.py")
            for s in layout
        )


def test_what_must_stay_is_cut_to_smaller_budgets(workspace: Path) -> None:
    """Pinned nodes larger than the context are shown smaller, not dropped, and the job goes on."""
    source = "\n".join(f"p{n} = view('src/foo.py', tokens=2000)\npin(p{n})" for n in range(3))
    loop = (
        loop_of(workspace, statements(source, "x = 1", "print(p0.tokens)"), 2800).run().replayed()
    )
    nodes = [s for s in loop.layouts[2] if s.origin.startswith("node:")]
    assert [s.kind.value for s in nodes] == ["view"] * 3
    assert loop.executions[2].stdout == "2000\n"


def test_one_huge_result_does_not_end_the_job(workspace: Path) -> None:
    """Output is bounded by the context's size too; characters of one token each are the worst
    case.
    """
    loop = (
        loop_of(workspace, statements("print('é' * 9000)", "x = 1", "1 / 0"), 2800).run().replayed()
    )
    assert loop.job.turn == 4


def test_a_contract_that_does_not_fit_fails_the_job(workspace: Path) -> None:
    """At once, with both figures."""
    with pytest.raises(
        JobFailed, match=r"the prompt has [12],\d\d\d tokens .*; context_tokens allows 1,000"
    ):
        loop_of(workspace, statements("x = 1"), 1000).run()


def test_a_prompt_that_the_provider_finds_too_long_is_projected_smaller(workspace: Path) -> None:
    """Below what it was, not below what it might have been; the job goes on with the smaller
    size.
    """
    asked: list[int] = []

    def policy(messages: Messages) -> str:
        size = sum(len(str(message["content"])) for message in messages)
        asked.append(size)
        if size > 20_000:
            raise TooLong
        return "print(text(1500))" if len(asked) < 12 else "finish(None)"

    loop = loop_of(workspace, policy, 60_000).run()
    loop.replayed()
    assert loop.job.fitter.limit < 10_000
    assert sum(size > 20_000 for size in asked) == 1
    assert loop.stop is not None
    assert loop.stop.reason == "finished"


def _refusing(fits: Callable[[int], bool], asked: list[int]) -> Callable[[Messages], str]:
    """A policy whose provider says no more than "no" to prompts of sizes (in characters) that do
    not fit.
    """

    def policy(messages: Messages) -> str:
        asked.append(sum(len(str(message["content"])) for message in messages))
        if not fits(asked[-1]):
            raise Refused("no")
        return "print(text(600))" if len(asked) < 14 else "finish(None)"

    return policy


def test_a_refusal_without_a_reason_is_answered_with_a_smaller_prompt(workspace: Path) -> None:
    """Once, to the size that was accepted before; no later prompt grows beyond it, and a replay
    comes to the same.
    """
    asked: list[int] = []
    loop = loop_of(workspace, _refusing(lambda size: size < 25_000, asked), 60_000).run()
    assert loop.stop is not None and loop.stop.reason == "finished"
    (refused,) = [number for number, size in enumerate(asked) if size >= 25_000]
    assert asked[refused + 1] < asked[refused - 1]
    assert loop.job.fitter.limit == max(turn.tokens for turn in loop.turns[:refused])
    assert max(turn.tokens for turn in loop.turns) == loop.job.fitter.limit
    loop.replayed()


def test_a_smaller_prompt_that_is_refused_too_ends_the_job(workspace: Path) -> None:
    """In the provider's words, after two requests."""
    asked: list[int] = []
    with pytest.raises(Refused, match="no"):
        loop_of(workspace, _refusing(lambda _: len(asked) <= 5, asked), 60_000).run()
    assert len(asked) == 7
    assert asked[6] < asked[5]


def test_a_first_prompt_that_is_refused_ends_the_job(workspace: Path) -> None:
    """There is nothing to leave out of it: the request was bad."""
    asked: list[int] = []
    with pytest.raises(Refused, match="no"):
        loop_of(workspace, _refusing(lambda _: False, asked), 60_000).run()
    assert len(asked) == 1


@pytest.mark.slow
def test_a_long_job_in_a_small_context_never_fails(workspace: Path) -> None:
    """300 turns of views, groups, long outputs and errors, with files that change under them: each
    prompt fits.
    """
    choice = random.Random(7)

    def policy(_: Messages) -> str:
        if loop.job.turn == 1:
            return "live = view('notes.md', freq='Sync')"
        n = choice.randrange(6)
        return choice.choice(
            [
                (
                    f"v{n} = view('src/foo.py', pos={choice.randrange(90)},"
                    f" tokens={choice.choice([50, 300, 6000])})"
                ),
                f"pin(live)\nlive.SetTokens({choice.choice([50, 3000])})",
                "pin(live, reason=None)",
                (
                    "vs = [view('src/bar.py', pos=i, tokens=100) for i in"
                    f" range({choice.randrange(1, 9)})]"
                ),
                f"g{n} = group(*vs[:3], tokens={choice.choice([100, 2000])})",
                f"print(text({choice.randrange(1, 3000)}))",
                "print('é' * 9000)",
                f"v{n}.SetTokens(All).SetLod(1)",
                f"x{n} = {n}",
                "1 / 0",
            ]
        )

    def between(turn: int) -> None:
        (workspace / "notes.md").write_text(
            f"# Plan {turn}\n\n" + f"line {turn % 3}\n" * (turn % 50)
        )

    options = {"budget": Budget(turns=300, tokens=10**12, usd=1e9, wall_seconds=1e9)}
    messages = {5: ["hello " * 400], 50: ["please " * 900]}
    loop = loop_of(workspace, policy, 4000, options=options, between=between, messages=messages)
    loop.run()
    assert loop.job.turn == 300
    assert max(turn.tokens for turn in loop.turns) <= 4000
    assert all(layout[0].kind is SegmentKind.CONTRACT for layout in loop.layouts)
    assert all(layout[1].kind is SegmentKind.GOAL for layout in loop.layouts)
