"""What came from outside and made a prompt shorter, in a record: a provider's refusals, and a
user's wish to condense.
"""

from __future__ import annotations

from typing import Any

import pytest

from activities.record import RunName
from runtime.archive.divergences import divergences
from runtime.archive.forgetting import forgettings
from runtime.client.resets import outcome_of_reset
from runtime.job.stops import JobStatus
from tests.replay.replays import fork_job, frozen_again, reexecution, replayed, rerun, turn_of
from tests.replay.timelines import archive_of, sound, timeline
from tests.servers.refusals import NO_REASON
from tests.workflow.small_windows import OpenAIWindow, SmallWindow
from tests.workflow.stage import Stage
from workflows.messages import Note

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

TURNS = 14
WORDS = "four words and more " * 90


def _statement(turn: int) -> dict[str, str]:
    if turn == TURNS:
        return {"code": f"finish({turn})"}
    return {"code": f"print('turn {turn}: {WORDS}')"}


@pytest.mark.parametrize(
    "said",
    [{}, {"protocol": OpenAIWindow(NO_REASON)}, {"cut_off": True}],
    ids=["named", "unnamed", "empty"],
)
async def test_a_record_has_the_refusals_of_its_provider(
    stage: Stage, said: dict[str, Any]
) -> None:
    """A frozen replay shows the same prompts though nobody refuses any; a fork goes on from the
    same one.

    Also where the provider does not say that the prompt is too long, or says nothing at all.
    """
    model = SmallWindow(_statement, window=6_000, **said)
    async with model.serving():
        name, options = model.model
        spec = stage.spec(name, model_options=options, context_tokens=60_000)
        outcome = await (await stage.start(spec)).result()
        assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, TURNS)
        archive = archive_of(stage, spec.id)
        steps = {step.turn: step for step in archive.steps(outcome.run)}
        refused = [turn for turn, step in steps.items() if step.interim.limits]
        assert refused and sum(len(step.interim.limits) for step in steps.values()) == len(
            model.refused
        )
        assert len(list(forgettings(archive, outcome.run))) > 1
        asked, summed = len(model.sizes), len(model.summaries)

        again, frozen = await frozen_again(stage, spec, outcome.run)
        assert (again.status, again.turns) == (JobStatus.SUCCEEDED, TURNS)
        assert timeline(frozen, again.run) == timeline(archive, outcome.run)
        assert divergences(frozen, again.run) == []
        assert [step.interim for step in frozen.steps(again.run)] == [
            step.interim for step in steps.values()
        ]
        assert (len(model.sizes), len(model.summaries)) == (
            asked,
            summed,
        ), "nobody was asked anything"

        order = reexecution(stage, spec.id, outcome.run, refused[0], frozen=True)
        reset, found = await replayed(stage, spec.id, order)
        assert (reset.status, found) == (
            JobStatus.SUCCEEDED,
            [],
        ), "a refusal before the reset point counts once"
        assert timeline(archive, reset.run) == timeline(archive, outcome.run)

        source = RunName(batch=stage.batch, job=spec.id, run=outcome.run)
        order = rerun(stage, spec.id, outcome.run, refused[0] + 1)
        forked = await outcome_of_reset(
            stage.client, await fork_job(stage, source, refused[0] + 1, "fork", order)
        )
        there = timeline(archive_of(stage, "fork"), forked.run)
        shown = [
            [turn["prompt"] for turn in turns[: refused[0] + 1]]
            for turns in (there, timeline(archive, outcome.run))
        ]
        assert shown[0] == shown[1], "also at the turn for which the model is asked anew"
        assert sound(frozen) and sound(archive) and sound(archive_of(stage, "fork"))


async def test_a_record_has_its_users_wishes_to_condense(stage: Stage) -> None:
    """A replay from before a wish condenses where the record did, not at once; so does one to which
    nobody sends the wish.
    """
    gate = stage.path / "gate"
    policy = stage.path / "policy.py"
    policy.write_text(POLICY.format(gate=str(gate), turns=TURNS, words=WORDS))
    spec = stage.spec(f"scripted/{policy}", context_tokens=60_000)
    handle = await stage.start(spec)
    archive = archive_of(stage, spec.id)
    await turn_of(archive, 7)
    await handle.signal("condense", Note.of())
    gate.touch()
    outcome = await handle.result()
    assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, TURNS)
    (told,) = forgettings(archive, outcome.run)
    wished = [step.turn for step in archive.steps(outcome.run) if step.interim.condense]
    assert len(wished) == 1 and wished[0] > 7 and told.turn == wished[0]

    again, frozen = await frozen_again(stage, spec, outcome.run)
    assert timeline(frozen, again.run) == timeline(archive, outcome.run)
    order = reexecution(stage, spec.id, outcome.run, 3, frozen=True)
    reset, found = await replayed(stage, spec.id, order)
    assert (reset.status, found) == (JobStatus.SUCCEEDED, [])
    assert timeline(archive, reset.run) == timeline(archive, outcome.run)
    assert sound(archive) and sound(frozen)


POLICY = """
import pathlib, re, time

def respond(messages):
    if messages[0]["content"].startswith("Write a summary"):
        return "Summed up."
    turn = int(re.findall(r"budget: turn (\\d+) of", str(messages[-1]["content"]))[-1])
    if turn == {turns}:
        return {{"code": "finish(1)"}}
    while turn == 8 and not pathlib.Path({gate!r}).exists():
        time.sleep(0.01)
    return {{"code": f"print('turn {{turn}}: {words}')"}}
"""
