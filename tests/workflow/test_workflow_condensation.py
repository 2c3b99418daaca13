"""Jobs whose prompts outgrow the model's window: they condense and go on, and the archive tells
what was forgotten.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack

import pytest
from small_windows import WINDOW, AnthropicWindow, OpenAIWindow, SmallWindow
from stage import Stage, activities_of

from benchmarks.history_size import plain_bytes
from runtime.archive.forms import Step
from runtime.archive.job import JobArchive
from runtime.archive.verify import damage, verify_job
from runtime.base.spec.models import Budget, CondenserSpec
from runtime.job.condensed import CondensationOutcome
from runtime.job.condensing import FIRST_PAUSE, LONGEST_PAUSE
from runtime.job.stops import JobStatus
from runtime.projection.project import tokens_of
from runtime.projection.segments import SegmentKind
from runtime.server.authentic.compression import decompressed
from tests.eventually import until_turn
from tests.servers.refusals import REFUSALS
from workflows.messages import JobOutcome, Note

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

WORDS = " ".join(f"word{n}" for n in range(60))
SUMMARY = (CondenserSpec(kind="summary"),)


def counting(turns: int, words: str = WORDS) -> object:
    """A model that keeps each turn's number, prints some 150 tokens, and hands over all numbers in
    the last turn.
    """

    def statement(turn: int) -> dict[str, str]:
        if turn == 1:
            return {"code": f"seen = [1]\nprint('{words}')"}
        if turn == turns:
            return {"code": f"seen.append({turn})\nfinish(seen)"}
        return {"code": f"seen.append({turn})\nprint({turn}, '{words}')"}

    return statement


async def run(
    stage: Stage, model: SmallWindow, turns: int, **options: object
) -> tuple[JobOutcome, JobArchive]:
    async with model.serving():
        name, settings = model.model
        budget = Budget(turns=turns + 5, tokens=10**9, usd=1000.0)
        return await stage.run(name, model_options=settings, **{"budget": budget, **options})


def condensations(
    archive: JobArchive, outcome: JobOutcome
) -> list[tuple[Step, CondensationOutcome]]:
    """Every condensation of the run, with the step that recorded it."""
    return [(step, record) for step in archive.steps(outcome.run) for record in step.condensations]


def check_told(archive: JobArchive, outcome: JobOutcome) -> list[CondensationOutcome]:
    """The archive is sound and tells of each condensation what was forgotten and what stands there.

    Returns them.
    """
    taken = condensations(archive, outcome)
    forgotten = [event_id for _, record in taken for event_id in record.forgotten]
    assert len(forgotten) == len(set(forgotten)), "an event is forgotten once"
    for step, record in taken:
        shown = {segment.origin: segment for segment in archive.turn_layout(outcome.run, step.turn)}
        assert not {f"event:{event_id}" for event_id in record.forgotten} & shown.keys()
        later = {i for _, other in taken for i in other.forgotten}
        if record.stands_in is not None and record.stands_in not in later:
            assert shown[f"event:{record.stands_in}"].kind is SegmentKind.SUMMARY
        if record.summary is not None:
            written = archive.step(record.summary)
            assert written.run.startswith(f"{outcome.run}~{record.id}")
            assert written.parent == step.parent, "the side run starts from the last ordinary step"
            assert written.usage.total and record.usage.total >= written.usage.total
    assert damage(verify_job(archive)) == []
    return [record for _, record in taken]


@pytest.mark.parametrize(
    ("protocol", "turns", "context"),
    [(OpenAIWindow(), 300, 60_000), (AnthropicWindow(), 60, 60_000), (OpenAIWindow(), 60, WINDOW)],
    ids=["openai", "anthropic", "known"],
)
async def test_a_job_with_a_small_window_runs_on(
    stage: Stage, protocol: OpenAIWindow | AnthropicWindow, turns: int, context: int
) -> None:
    """Hundreds of turns in 8,000 tokens: each statement runs once, the provider's refusals teach
    the window's size.
    """
    model = SmallWindow(counting(turns), protocol=protocol)
    outcome, archive = await run(stage, model, turns, context_tokens=context)
    assert (outcome.status, outcome.turns, outcome.reason) == (
        JobStatus.SUCCEEDED,
        turns,
        "finished",
    )
    end = archive.end(outcome.run)
    assert end is not None and end.result == list(range(1, turns + 1))
    assert max(model.sizes) <= WINDOW
    assert len(model.refused) <= (3 if context > WINDOW else 1)
    taken = check_told(archive, outcome)
    assert len(taken) >= turns // 30
    assert all(
        record.condenser == "llm_summary" and record.summary and not record.failures
        for record in taken
    )
    assert len(archive.side_runs(outcome.run)) == len(taken) == len(model.summaries)
    assert archive.runs() == [outcome.run]
    steps = list(archive.steps(outcome.run))
    assert outcome.usage.total == sum(s.usage.total for s in steps) + sum(
        r.usage.total for r in taken
    )
    history = await stage.history()
    assert sum(map(plain_bytes, history.events)) / turns < 6_000, "history grows with what is new"


async def test_refusals_of_many_providers_are_answered(stage: Stage) -> None:
    """Whatever status and words the refusal has (tests/model has them all), the job condenses and
    ends as it should.
    """
    turns = 5
    models = [
        SmallWindow(counting(turns, WORDS * 16), protocol=OpenAIWindow(refusal))
        for refusal in REFUSALS[::4]
    ]
    async with AsyncExitStack() as serving:
        for model in models:
            await serving.enter_async_context(model.serving())
        specs = [
            stage.spec(model.model[0], model_options=model.model[1], id=f"refused-{n}")
            for n, model in enumerate(models)
        ]
        handles = [await stage.start(spec) for spec in specs]
        outcomes = await asyncio.gather(*(handle.result() for handle in handles))
    for spec, model, outcome in zip(specs, models, outcomes, strict=True):
        provider = model.protocol.refusal.provider
        assert (outcome.status, outcome.turns) == (JobStatus.SUCCEEDED, turns), (
            provider,
            outcome.reason,
        )
        assert len(model.refused) == 1, provider
        archive = JobArchive(stage.store, stage.batch, spec.id)
        assert "window" in {
            reason
            for record in check_told(archive, outcome)
            for reason in record.reason.split(", ")
        }


@pytest.mark.parametrize(
    ("summary", "fault"),
    [
        (lambda number: "", "the summary is empty"),
        (lambda number: "very long " * 1_100, "the summary is much longer than was asked for"),
    ],
    ids=["empty", "too-long"],
)
async def test_a_summary_that_is_of_no_use_becomes_an_extract(
    stage: Stage, summary: object, fault: str
) -> None:
    """After bounded retries of the same and of smaller inputs an extract stands in, and the job
    goes on.
    """
    model = SmallWindow(counting(40), summary=summary)  # type: ignore[arg-type]
    outcome, archive = await run(stage, model, 40, context_tokens=WINDOW)
    assert outcome.status is JobStatus.SUCCEEDED
    taken = check_told(archive, outcome)
    assert taken
    for record in taken:
        assert record.failures == (fault,) * 6
        assert record.summary is None and record.stands_in == f"{record.id}-summary"
    step, record = condensations(archive, outcome)[0]
    extract = next(
        s
        for s in archive.turn_layout(outcome.run, step.turn)
        if s.origin == f"event:{record.stands_in}"
    )
    assert "seen = [1]" in extract.text
    assert len(archive.side_runs(outcome.run)) == 6 * len(taken) == len(model.summaries)


async def test_a_summariser_that_fails_is_not_asked_again_at_once(stage: Stage) -> None:
    """Extracts stand in, and it is asked anew some turns later, ever more of them; the record says
    so of each.
    """
    failing = {"fail": {"status": 400, "message": "No."}, "times": 99}
    model = SmallWindow(counting(40), summary=lambda number: failing)
    outcome, archive = await run(stage, model, 40, context_tokens=WINDOW)
    assert outcome.status is JobStatus.SUCCEEDED
    taken = check_told(archive, outcome)
    assert all(
        record.summary is None and record.stands_in == f"{record.id}-summary" for record in taken
    )
    turns = [int(record.id.partition(".")[0]) for record in taken]
    until, asked = 0, 0
    for turn, record in zip(turns, taken, strict=True):
        if turn < until:
            assert record.failures == (
                f"not asked for before turn {until}, since summaries failed",
            )
        else:
            assert record.failures == ("BadRequestError: No. (HTTP 400)",)
            asked, until = asked + 1, turn + min(FIRST_PAUSE << asked, LONGEST_PAUSE)
    assert len(archive.side_runs(outcome.run)) == len(model.summaries) == asked < len(taken)


async def test_a_summary_may_succeed_the_second_time(stage: Stage) -> None:
    """The record says what went wrong before, and which step wrote what stands there."""
    model = SmallWindow(
        counting(40), summary=lambda number: "" if number == 1 else f"Summary {number}."
    )
    outcome, archive = await run(stage, model, 40, context_tokens=WINDOW)
    first = check_told(archive, outcome)[0]
    assert first.failures == ("the summary is empty",)
    assert first.summary is not None and archive.step(first.summary).reply.text == "Summary 2."


async def test_what_is_summarised_is_kept_from_the_last_prompt(stage: Stage) -> None:
    """A summary's activity carries no old text: its prompt is made of the stretches that the last
    prompt had.
    """
    model = SmallWindow(counting(40))
    outcome, archive = await run(stage, model, 40, context_tokens=WINDOW)
    history = await stage.history()
    sizes = [
        sum(
            len(decompressed(payload).data)
            for payload in event.activity_task_scheduled_event_attributes.input.payloads
        )
        for event in history.events
        if event.activity_task_scheduled_event_attributes.activity_type.name == "summarise"
    ]
    assert sizes and max(sizes) < 3_000
    side, *_ = archive.side_runs(outcome.run)
    (turn,) = [step.turn for step in archive.steps(side) if step.run == side]
    layout = archive.turn_layout(side, turn)
    assert tokens_of(layout) > 2_000
    assert {s.kind for s in layout[1:-1]} == {SegmentKind.REPLY, SegmentKind.RESULT}


async def test_nothing_is_forgotten_with_none(stage: Stage) -> None:
    """``condenser: none`` and a prompt that is full: the job ends, and the reason says why."""
    model = SmallWindow(counting(80), window=10**6)
    outcome, archive = await run(stage, model, 80, context_tokens=WINDOW, condenser=())
    assert outcome.status is JobStatus.FAILED
    assert outcome.reason.endswith("context_tokens allows 8,000; condenser: none keeps all turns")
    assert check_told(archive, outcome) == []


async def test_a_refusal_never_ends_a_job(stage: Stage) -> None:
    """Even with ``condenser: none`` a provider's refusal is answered: by a hard reset, which leaves
    an extract.
    """
    model = SmallWindow(counting(60))
    outcome, archive = await run(stage, model, 60, condenser=())
    assert outcome.status is JobStatus.SUCCEEDED
    taken = check_told(archive, outcome)
    assert taken and {record.condenser for record in taken} == {"hard_reset"}
    assert "window" in taken[0].reason


async def test_a_window_below_what_must_stay_is_a_clear_end(stage: Stage) -> None:
    """No condensation makes the contract fit into 1,000 tokens."""
    model = SmallWindow(counting(10), window=1_000)
    outcome, _ = await run(stage, model, 10)
    assert outcome.status is JobStatus.FAILED
    assert "when all that may be left out is left out (contract 2," in outcome.reason
    assert "; the model's window leaves room for" in outcome.reason


async def test_a_rolling_window_leaves_nothing_in_place(stage: Stage) -> None:
    """``rolling`` forgets by the number of events, and no model is asked."""
    model = SmallWindow(counting(40))
    rolling = (CondenserSpec(kind="rolling", max_size=20),)
    outcome, archive = await run(stage, model, 40, condenser=rolling)
    assert outcome.status is JobStatus.SUCCEEDED
    taken = check_told(archive, outcome)
    assert {(r.condenser, r.reason, r.stands_in) for r in taken} == {("rolling", "events", None)}
    assert not archive.side_runs(outcome.run) and not model.summaries


async def test_a_pipeline_takes_the_first_answer(stage: Stage) -> None:
    """Summaries by the number of events; what they answer, the second never sees."""
    model = SmallWindow(counting(40))
    both = (
        CondenserSpec(kind="summary", max_size=30),
        CondenserSpec(kind="rolling"),
    )
    outcome, archive = await run(stage, model, 40, condenser=both)
    taken = check_told(archive, outcome)
    assert {(r.condenser, r.reason) for r in taken} == {("llm_summary", "events")}


async def test_another_model_writes_the_summaries(stage: Stage) -> None:
    """``condenser.model`` is called for summaries, the job's own for its turns."""
    model, other = (
        SmallWindow(counting(40)),
        SmallWindow(counting(0), summary=lambda number: "From another."),
    )
    async with other.serving():
        name, options = other.model
        settings = {"name": name, "options": options}
        condenser = (CondenserSpec.model_validate({"kind": "summary", "model": settings}),)
        outcome, archive = await run(stage, model, 40, context_tokens=WINDOW, condenser=condenser)
    assert outcome.status is JobStatus.SUCCEEDED
    assert check_told(archive, outcome)
    assert other.summaries and not other.sizes and not model.summaries


async def test_summaries_count_for_the_budget(stage: Stage) -> None:
    """A job whose summary spent the last tokens stops before the next call, and the end tells of
    the condensation.
    """
    model = SmallWindow(
        counting(80),
        summary=lambda n: {"text": "S.", "usage": {"prompt_tokens": 10**6, "completion_tokens": 1}},
    )
    budget = Budget(turns=80, tokens=500_000, usd=1000.0)
    outcome, archive = await run(stage, model, 80, context_tokens=WINDOW, budget=budget)
    assert outcome.status is JobStatus.BUDGET
    assert "the budget of 500,000 tokens is spent" in outcome.reason
    end = archive.end(outcome.run)
    assert end is not None
    (record,) = end.condensations
    assert record.summary is not None and record.usage.total == 10**6 + 1


async def test_a_loop_without_progress_ends_in_a_reset(stage: Stage) -> None:
    """A limit on events that can never hold asks for no summary in every turn: the guard stops
    that.
    """
    model = SmallWindow(counting(30))
    tight = (CondenserSpec(kind="summary", max_size=3, keep_first=2),)
    outcome, archive = await run(stage, model, 30, condenser=tight)
    assert outcome.status is JobStatus.SUCCEEDED
    check_told(archive, outcome)
    assert len(model.summaries) < 30


ASKED = """
import re, time
from pathlib import Path

def respond(messages):
    turn = int(re.findall(r"budget: turn (\\d+) of", messages[-1]["content"])[-1])
    while turn == 5 and not Path(__file__).with_suffix(".go").exists():
        time.sleep(0.02)
    return {"code": {1: "x = 1", 3: "x += 1\\ncondense()", 7: "finish(x)"}.get(turn, "x += 1")}
"""


async def test_the_model_and_the_user_can_ask(stage: Stage) -> None:
    """``condense()`` in a statement and the signal ``condense``: before the next call, once
    each.
    """
    policy = stage.path / "policy.py"
    policy.write_text(ASKED)
    spec = stage.spec(f"scripted/{policy}")
    handle = await stage.start(spec)
    await until_turn(handle, 5)
    await handle.signal("condense", Note.of())
    policy.with_suffix(".go").touch()
    outcome = await handle.result()
    archive = JobArchive(stage.store, stage.batch, spec.id)
    taken = condensations(archive, outcome)
    assert [(step.turn, record.reason, record.condenser) for step, record in taken] == [
        (4, "request", "extract"),
        (6, "request", "extract"),
    ]
    check_told(archive, outcome)


async def test_a_scripted_model_can_be_asked_for_summaries(stage: Stage) -> None:
    """With ``condenser: summary`` a script's ``respond`` gets the transcript as one user
    message.
    """
    policy = stage.path / "policy.py"
    policy.write_text(
        "import re\ndef respond(messages):\n    if messages[0]['content'].startswith('Write a"
        " summary'):\n        return 'Turns told: ' + str(messages[1]['content'].count('##"
        " agent'))\n    turn = int(re.findall(r'budget: turn (\\d+) of',"
        " messages[-1]['content'])[-1])\n    return {'code': 'condense()' if turn == 4 else"
        " 'finish(1)' if turn == 6 else 'x = 1'}\n"
    )
    outcome, archive = await stage.run(f"scripted/{policy}", condenser=SUMMARY)
    assert outcome.status is JobStatus.SUCCEEDED
    (record,) = check_told(archive, outcome)
    assert record.summary is not None
    assert archive.step(record.summary).reply.text == "Turns told: 2"


async def test_user_messages_can_be_pinned(stage: Stage) -> None:
    """``pin_user_messages`` keeps what the user said in every later prompt, word for word."""
    model = SmallWindow(counting(40))
    async with model.serving():
        name, options = model.model
        budget = Budget(turns=50, tokens=10**9, usd=1000.0)
        spec = stage.spec(
            name,
            model_options=options,
            budget=budget,
            context_tokens=WINDOW,
            pin_user_messages=True,
        )
        handle = await stage.start(spec)
        await handle.signal("message", Note.of("Never touch b.py."))
        outcome = await handle.result()
    archive = JobArchive(stage.store, stage.batch, spec.id)
    assert check_told(archive, outcome)
    last = archive.turn_layout(outcome.run, outcome.turns)
    assert [s.text for s in last if s.kind is SegmentKind.MESSAGE] == ["Never touch b.py."]


async def test_thinking_and_bad_replies_stay_valid(stage: Stage) -> None:
    """One endless thinking loop, several calls in a reply, reused call ids: condensed, and every
    prompt is valid.
    """

    def statement(turn: int) -> object:
        reply = counting(40)(turn)  # type: ignore[operator]
        reply["ids"] = ["toolu_same"]
        if turn == 2:
            reply["blocks"] = [{"type": "thinking", "thinking": "Hm.", "signature": "c2ln"}]
        if turn % 7 == 0:
            call = {"name": "python", "arguments": '{"code": "print(1)"}'}
            return {
                "text": "Two at once.",
                "calls": [call, call],
                "ids": ["toolu_same", "toolu_other"],
            }
        return reply

    model = SmallWindow(statement, protocol=AnthropicWindow())
    outcome, archive = await run(stage, model, 40, context_tokens=5_500)
    assert outcome.status is JobStatus.SUCCEEDED
    assert check_told(archive, outcome)
    assert activities_of(await stage.history())[-1] == "end"


async def test_an_error_that_a_smaller_prompt_does_not_cure_ends_a_job_by_its_words(
    stage: Stage,
) -> None:
    """It may have been the window: the prompt is made smaller once, and then cannot be further."""
    refused = {"fail": {"status": 400, "message": "No such thing."}, "times": 99}
    outcome, _ = await stage.run(["x = 41\nx", refused])
    assert (outcome.status, outcome.turns) == (JobStatus.FAILED, 1)
    assert outcome.reason == "turn 2: BadRequestError: No such thing. (HTTP 400)"


async def test_a_refused_prompt_that_cannot_be_too_long_is_made_no_smaller(stage: Stage) -> None:
    """By an error that does not say why, of a model whose window is known: nothing is forgotten, no
    summary is paid for, and the job ends by the provider's words.
    """
    refused = {"fail": {"status": 400, "message": "No such thing."}, "times": 99}
    model = SmallWindow(
        lambda turn: "print('y' * 99)" if turn < 3 else refused, protocol=AnthropicWindow()
    )
    outcome, archive = await run(stage, model, 9)
    assert outcome.reason == "turn 3: BadRequestError: No such thing. (HTTP 400)"
    assert (len(model.sizes), len(model.summaries)) == (3, 0)
    end = archive.end(outcome.run)
    assert end is not None and end.condensations == ()
