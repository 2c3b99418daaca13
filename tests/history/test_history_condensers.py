"""Condensers: what each forgets, how a summary is asked for, and what stands in when it fails."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from history_builders import action, forget, ids, log_of, message, result

from runtime.history.condensers import (
    Ask,
    ExtractSummary,
    Forget,
    GiveUp,
    HardReset,
    Keep,
    Limits,
    LLMSummary,
    LoopGuard,
    NoCondenser,
    Pipeline,
    RollingWindow,
    Situation,
    SummaryForm,
    SummaryReply,
    Trigger,
    extract,
    plan,
    triggers_of,
)
from runtime.history.content import text_content
from runtime.history.events import CondensationRequest, ObservationEvent, ShownEvent
from runtime.history.log import EventLog
from tests.history.oracle.provider_rules import check_view


def job(turns: int, *, thinking: str = "none") -> EventLog:
    """A job of ``turns`` calls with results behind a system prompt and a goal."""
    log = log_of(message("S", "system"), message("G", "goal"))
    for n in range(turns):
        log.append(action(f"A{n}", f"r{n}", f"t{n}", thinking=thinking == "once" and n == 0))
        log.append(result(f"O{n}", f"t{n}"))
    return log


def ten(event: ShownEvent) -> int:
    return 10


def situation(log: EventLog, *triggers: Trigger, window: int = 1000, **more: Any) -> Situation:
    return Situation(
        condensation_id="c",
        turn=1,
        triggers=frozenset(triggers),
        count=ten,
        prompt_tokens=10 * len(log.view),
        window=window,
        **more,
    )


def test_none_keeps_everything() -> None:
    """The condenser that never forgets."""
    log = job(50)
    assert (
        NoCondenser().condense(log.view, situation(log, Trigger.EVENTS, Trigger.TOKENS)) == Keep()
    )


def test_rolling_window_goes_down_to_half() -> None:
    """Above ``max_size`` the oldest go behind the first ``keep_first``, at unit boundaries, without
    a summary.
    """
    log = job(10)
    outcome = RollingWindow(max_size=20, keep_first=4).condense(
        log.view, situation(log, Trigger.EVENTS)
    )
    assert isinstance(outcome, Forget)
    assert log.append(outcome.condensation) == ()
    assert ids(log.view) == ["S", "G", "A0", "O0", "A7", "O7", "A8", "O8", "A9", "O9"]
    assert RollingWindow(max_size=20).condense(log.view, situation(log, Trigger.EVENTS)) == Keep()


def test_tokens_are_brought_below_half_of_the_window() -> None:
    """A prompt above the token limit forgets enough for half of the window."""
    log = job(20)
    outcome = RollingWindow(keep_first=2).condense(
        log.view, situation(log, Trigger.TOKENS, window=400)
    )
    assert isinstance(outcome, Forget)
    assert len(outcome.condensation.forgotten_event_ids) == 22


def test_request_forgets_half() -> None:
    """Who asks for a condensation gets one, however small the View is."""
    log = job(4)
    log.append(CondensationRequest(id="q", turn=1))
    outcome = plan(log, RollingWindow(), situation(log, Trigger.REQUEST))
    assert isinstance(outcome, Forget) and outcome.condensation.forgotten_event_ids == (
        "A0",
        "O0",
        "A1",
        "O1",
    )


def test_an_endless_loop_goes_as_a_whole() -> None:
    """Where one tool loop reaches to the end, no condenser is stuck."""
    log = job(30, thinking="once")
    outcome = RollingWindow(max_size=20).condense(log.view, situation(log, Trigger.EVENTS))
    assert isinstance(outcome, Forget) and len(outcome.condensation.forgotten_event_ids) == 60


def test_nothing_is_condensed_behind_a_pending_call() -> None:
    """While a call waits at the head of all that could go, there is nothing to forget."""
    log = log_of(
        message("S", "system"), action("A1", "r1", "t1"), *(message(f"U{n}") for n in range(30))
    )
    assert RollingWindow(max_size=10).condense(log.view, situation(log, Trigger.EVENTS)) == Keep()


def asked(log: EventLog, condenser: LLMSummary, at: Situation) -> Ask:
    outcome = condenser.condense(log.view, at)
    assert isinstance(outcome, Ask)
    return outcome


def test_summary_is_asked_with_whole_events() -> None:
    """The request holds the whole text of every event it stands for; the reply takes their
    place.
    """
    log, condenser = job(10), LLMSummary(max_size=20, keep_first=2)
    at = situation(log, Trigger.EVENTS)
    request = asked(log, condenser, at).request
    assert request.event_ids == tuple(f"{k}{n}" for n in range(6) for k in "AO")
    assert (
        request.form is SummaryForm.OWN_PROMPT
        and "out O5" in request.prompt
        and "out O6" not in request.prompt
    )
    reply = SummaryReply(text=" six turns \n", llm_response_id="resp-1")
    outcome = condenser.resume(log.view, at, request, reply)
    assert isinstance(outcome, Forget)
    assert (outcome.condensation.summary, outcome.condensation.llm_response_id) == (
        "six turns",
        "resp-1",
    )
    assert log.append(outcome.condensation) == ()
    assert ids(log.view)[:4] == ["S", "G", "c-summary", "A6"]


def test_input_is_bounded_by_tokens_at_a_unit() -> None:
    """Only as many whole units go into one request as its budget holds, and no more are
    forgotten.
    """
    log = job(30)
    request = asked(
        log,
        LLMSummary(max_size=10, input_tokens=300, summary_tokens=200),
        situation(log, Trigger.EVENTS, window=9000),
    ).request
    assert len(request.event_ids) == 30 and request.input_tokens == 300


def test_input_never_exceeds_the_models_window() -> None:
    """A small window bounds the request, whatever the budget."""
    log = job(500)
    request = asked(log, LLMSummary(), situation(log, Trigger.WINDOW, window=2000)).request
    assert request.input_tokens <= 2000 * 4 // 5 - 200 - 250


def test_only_an_event_beyond_the_budget_loses_its_middle() -> None:
    """A result larger than the whole budget is given with its beginning and its end; all others are
    whole.
    """
    log = job(0)
    log.append(action("A", "r", "t"))
    huge = "begin " + "x" * 9000 + " end"
    log.append(ObservationEvent(id="O", turn=0, tool_call_id="t", content=text_content(huge)))
    at = replace(
        situation(log, Trigger.REQUEST),
        count=lambda event: 3000 if event.id == "O" else 10,
        prompt_tokens=3030,
        window=10_000,
    )
    assert huge in asked(log, LLMSummary(input_tokens=5000), at).request.prompt
    prompt = asked(log, LLMSummary(input_tokens=600, summary_tokens=200), at).request.prompt
    assert (
        len(prompt) < 3500
        and "begin xx" in prompt
        and "characters left out] xx" in prompt
        and "x end" in prompt
    )


def test_agents_prefix_is_used_when_cheaper() -> None:
    """Reading the cached prompt at a tenth of the price beats sending the events anew, if it
    fits.
    """
    log, condenser = job(40), LLMSummary(max_size=20)
    warm = situation(log, Trigger.EVENTS, window=10_000, cached_tokens=800)
    assert asked(log, condenser, warm).request.form is SummaryForm.AGENT_PREFIX
    cold = situation(log, Trigger.EVENTS, window=10_000)
    assert asked(log, condenser, cold).request.form is SummaryForm.OWN_PROMPT
    tight = situation(log, Trigger.EVENTS, Trigger.WINDOW, window=10_000, cached_tokens=800)
    assert asked(log, condenser, tight).request.form is SummaryForm.OWN_PROMPT


@pytest.mark.parametrize(
    "reply", [SummaryReply(), SummaryReply(text=" \n"), SummaryReply(failure="HTTP 500")]
)
def test_failed_summaries_end_in_an_extract(reply: SummaryReply) -> None:
    """Two attempts, then two smaller inputs with two attempts each, then an extract of all: nothing
    is lost.
    """
    log, condenser = job(16), LLMSummary(max_size=20, keep_first=2)
    at = situation(log, Trigger.EVENTS)
    outcome = condenser.condense(log.view, at)
    sizes = []
    while isinstance(outcome, Ask):
        sizes.append((len(outcome.request.event_ids), outcome.request.attempt))
        outcome = condenser.resume(log.view, at, outcome.request, reply)
    assert sizes == [(24, 1), (24, 2), (12, 1), (12, 2), (6, 1), (6, 2)]
    assert isinstance(outcome, Forget)
    assert len(outcome.condensation.forgotten_event_ids) == 24
    assert "out O0" in (outcome.condensation.summary or "")
    assert (reply.failure or "the summary is empty") in outcome.condensation.reason
    assert log.append(outcome.condensation) == ()


def test_a_summary_longer_than_its_input_is_a_failure() -> None:
    """A model that copies instead of summarising makes no progress."""
    log, condenser = job(10), LLMSummary(max_size=20)
    at = situation(log, Trigger.EVENTS)
    request = asked(log, condenser, at).request
    outcome = condenser.resume(log.view, at, request, SummaryReply(text="x" * 10_000))
    assert isinstance(outcome, Ask) and outcome.request.failures == (
        "the summary is longer than what it stands for",
    )


def test_pipeline_takes_the_first_answer() -> None:
    """The first condenser that does something decides; the asker gets the reply."""
    log = job(10)
    pipeline = Pipeline((NoCondenser(), LLMSummary(max_size=20), RollingWindow(max_size=10)))
    at = situation(log, Trigger.EVENTS)
    outcome = pipeline.condense(log.view, at)
    assert isinstance(outcome, Ask)
    outcome = pipeline.resume(log.view, at, outcome.request, SummaryReply(text="sum"))
    assert isinstance(outcome, Forget) and outcome.condensation.condenser == "llm_summary"


def test_window_error_is_always_answered() -> None:
    """With no condenser at all, a prompt that the provider refused leads to a hard reset, which
    keeps the head.
    """
    log = job(10)
    outcome = plan(log, NoCondenser(), situation(log, Trigger.WINDOW, window=100))
    assert isinstance(outcome, Forget) and outcome.condensation.condenser == "hard_reset"
    log.append(outcome.condensation)
    assert ids(log.view) == ["S", "G", "c-summary"]
    assert check_view(log.view.events) == []


def test_hard_reset_gives_up_when_only_pinned_events_are_left() -> None:
    """The reason says that nothing is left to forget."""
    log = log_of(message("S", "system"), message("G", "goal"))
    outcome = HardReset().condense(log.view, situation(log, Trigger.WINDOW, window=10))
    assert (
        isinstance(outcome, GiveUp) and "nothing is left that could be forgotten" in outcome.reason
    )


def test_guard_ends_condensations_without_a_reply_between() -> None:
    """After six in a row a refused prompt is the end, with a reason; a soft limit is let be."""
    log = job(20)
    for n in range(6):
        log.append(forget(f"c{n}", [f"A{n}", f"O{n}"]))
    outcome = plan(log, RollingWindow(), situation(log, Trigger.WINDOW))
    assert outcome == GiveUp("6 condensations in a row did not make the prompt fit")
    assert plan(log, RollingWindow(max_size=4), situation(log, Trigger.EVENTS)) == Keep()
    log.append(action("A99", "r99", "t99"))
    log.append(result("O99", "t99"))
    assert isinstance(plan(log, RollingWindow(), situation(log, Trigger.WINDOW)), Forget)


def test_guard_takes_the_agent_s_own_words_for_a_reply() -> None:
    """A model that talks and calls nothing has answered all the same."""
    log = job(20)
    for n in range(6):
        log.append(message(f"M{n}", "agent"))
        log.append(forget(f"c{n}", [f"A{n}", f"O{n}"]))
    assert isinstance(plan(log, RollingWindow(), situation(log, Trigger.WINDOW)), Forget)
    for n in range(6, 9):
        log.append(message(f"M{n}", "agent"))
        log.append(forget(f"c{n}", [f"A{n}", f"O{n}"]))
    assert LoopGuard().futile(log.events)


def test_guard_stops_condensing_before_every_reply() -> None:
    """Limits below what must stay do not lead to a condensation every turn for ever."""
    log = job(3)
    for n in range(10, 20):
        log.append(forget(f"c{n}", [], "sum", 2))
        log.append(action(f"A{n}", f"r{n}", f"t{n}"))
        log.append(result(f"O{n}", f"t{n}"))
    assert LoopGuard().futile(log.events)
    assert plan(log, RollingWindow(max_size=4), situation(log, Trigger.EVENTS)) == Keep()
    assert isinstance(plan(log, RollingWindow(max_size=4), situation(log, Trigger.WINDOW)), Forget)
    log.append(action("A30", "r30", "t30"))
    log.append(result("O30", "t30"))
    assert not LoopGuard().futile(log.events)


def test_triggers() -> None:
    """Events, tokens, a request and a refusal, each by itself."""
    log = job(3)
    assert triggers_of(log.view, Limits(), 10**9, False) == frozenset()
    assert triggers_of(log.view, Limits(max_events=7), 0, False) == {Trigger.EVENTS}
    assert triggers_of(log.view, Limits(max_tokens=99), 100, False) == {Trigger.TOKENS}
    assert triggers_of(log.view, Limits(), 0, True) == {Trigger.WINDOW}
    log.append(CondensationRequest(id="q", turn=0))
    assert triggers_of(log.view, Limits(), 0, False) == {Trigger.REQUEST}


def test_extract_keeps_earlier_summaries_and_stays_small() -> None:
    """The extract holds what was summarised before, begins and ends of the rest, and counts what it
    cannot show.
    """
    log = job(200)
    log.append(forget("c1", ["A0", "O0"], "the first summary"))
    text = extract(list(log.view)[2:], 2000)
    assert text.startswith("the first summary\n") and "events are not shown at all" in text
    assert len(text) < 5000
    assert text == extract(list(log.view)[2:], 2000)


def test_a_long_job_never_outgrows_its_window() -> None:
    """Three hundred turns against a window that holds sixty events: every prompt fits and is
    valid.
    """
    log, condenser = job(0), LLMSummary(max_size=60, keep_first=2)
    for n in range(300):
        log.append(action(f"A{n}", f"r{n}", f"t{n}", thinking=n % 7 == 0))
        log.append(result(f"O{n}", f"t{n}"))
        limits = Limits(max_tokens=480)
        at = replace(
            situation(log, *triggers_of(log.view, limits, 10 * len(log.view), False), window=600),
            condensation_id=f"c{n}",
        )
        outcome = plan(log, condenser, at)
        while isinstance(outcome, Ask):
            outcome = condenser.resume(
                log.view, at, outcome.request, SummaryReply(text=f"all before turn {n}")
            )
        if isinstance(outcome, Forget):
            assert log.append(outcome.condensation) == ()
        assert len(log.view) <= 60 and check_view(log.view.events) == []
    assert ids(log.view)[:2] == ["S", "G"]
    assert EventLog.from_events(log.events).view == log.view


@pytest.mark.parametrize(
    ("condenser", "settings", "message"),
    [
        (RollingWindow, {"max_size": 0}, "rolling: max_size must be at least 1, not 0"),
        (RollingWindow, {"keep_first": -1}, "rolling: keep_first must be at least 0, not -1"),
        (
            RollingWindow,
            {"max_size": 8, "keep_first": 8},
            "rolling: keep_first: 8 events that always stay leave nothing to forget of max_size 8",
        ),
        (
            ExtractSummary,
            {"summary_tokens": 0},
            "extract: summary_tokens must be at least 1, not 0",
        ),
        (LLMSummary, {"attempts": 0}, "summary: attempts must be at least 1, not 0"),
        (LLMSummary, {"shrinks": -1}, "summary: shrinks must be at least 0, not -1"),
        (
            LLMSummary,
            {"input_tokens": 500},
            (
                "summary: summary_tokens: a summary of 1500 tokens is longer than input_tokens 500,"
                " which it stands for"
            ),
        ),
        (HardReset, {"share": 0}, "hard_reset: share must be between 0 and 1, not 0"),
        (
            Pipeline,
            {"condensers": ()},
            "pipeline: at least one condenser is needed; NoCondenser forgets nothing",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(
    condenser: Any, settings: dict[str, Any], message: str
) -> None:
    """At construction, with the condenser, the setting and what was expected."""
    with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
        condenser(**settings)
