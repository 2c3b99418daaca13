"""The model of capacity: what it is made of is what the program has, and wrong figures are
refused.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from activities.heartbeats import HEARTBEAT_SECONDS
from benchmarks.blocks import block_of
from docs_tools import capacity as page
from infra.capacity import main
from infra.sizing import counts
from infra.sizing.limits import limits
from infra.sizing.load import Load
from infra.sizing.model import Job, Need
from infra.sizing.prices import actions_usd
from runtime.base.open_jobs import open_jobs
from runtime.worker.worker import CALLS, HEARTBEAT_INTERVAL

HISTORIES = Path(__file__).parents[1] / "histories"
DAY = ["--jobs-per-day", "1000"]


def document(capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    assert main([*DAY, *more, "--json"]) == 0
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


def test_the_page_is_what_the_model_says() -> None:
    """``docs/capacity.md`` has its tables; else ``python -m docs_tools.capacity --write``."""
    assert block_of(page.DOCUMENT.read_text(), page.BLOCK) == page.tables()


def test_constants_are_the_program_s(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeats, calls and jobs of a worker are as the worker has them."""
    monkeypatch.delenv("HOLDFAST_OPEN_JOBS", raising=False)
    beats = max(HEARTBEAT_SECONDS, HEARTBEAT_INTERVAL.total_seconds())
    assert beats == counts.HEARTBEAT_SECONDS
    assert counts.FIRST_HEARTBEAT_SECONDS == HEARTBEAT_SECONDS
    assert (CALLS, open_jobs()) == (counts.CALLS_OF_A_WORKER, counts.JOBS_OF_A_WORKER)


def test_a_further_run_takes_what_recorded_ones_took() -> None:
    """A start, a marker of the checkpoint that was saved, the activity that reads it; and four for
    the mark, the memo's change and the timer that there were not when they were recorded.
    """
    first, second = (
        json.loads(gzip.decompress((HISTORIES / f"continued-{n}.json.gz").read_bytes()))["events"]
        for n in (1, 2)
    )
    (saved,) = (event for event in first if "save_checkpoint" in _marked(event))
    (read,) = (event for event in second if _activity(event).startswith("checkpoint"))
    started = [event for event in second if "workflowExecutionStartedEventAttributes" in event]
    assert len([saved, read, *started]) + 4 == counts.A_FURTHER_RUN


def _activity(event: dict[str, Any]) -> str:
    return str(event.get("activityTaskScheduledEventAttributes", {}).get("activityId", ""))


def _marked(event: dict[str, Any]) -> str:
    import base64

    data = event.get("markerRecordedEventAttributes", {}).get("details", {}).get("data", {})
    return "".join(
        base64.b64decode(one["data"]).decode(errors="replace") for one in data.get("payloads", ())
    )


def test_heartbeats_are_actions(capsys: pytest.CaptureFixture[str]) -> None:
    """A job of two turns with calls of five seconds has three heartbeats in each: after one, three
    and five.
    """
    more = ("--turns", "2", "--effects", "0", "--call-seconds")
    long, short = document(capsys, *more, "5")["job"], document(capsys, *more, "0.9")["job"]
    assert (long["heartbeats"], short["heartbeats"]) == (6, 0)
    assert long["actions"] - short["actions"] == 6
    assert short["actions"] == counts.A_JOB.actions + 2 * counts.A_TURN.actions


def test_what_is_needed_grows_with_the_jobs() -> None:
    """Ten times the jobs are ten times all that a day has; no job is another."""
    one, ten = Need.of(Load(1_000)), Need.of(Load(10_000))
    assert one.job == ten.job == Job.of(Load(1))
    for name in ("actions_a_day", "database_bytes", "archive_bytes", "s3_writes_a_day"):
        assert getattr(ten, name) == pytest.approx(10 * getattr(one, name))


def test_what_breaks_first_is_in_front() -> None:
    """A provider's limit that is known takes its place; what is not known stands at the end."""
    need = Need.of(Load(10_000))
    first = limits(need, tokens_a_minute=1_000)[0]
    assert (first.name, first.used) == ("a provider's tokens a minute", need.tokens_a_minute / 1000)
    assert [one.used is None for one in limits(need)][-2:] == [True, True]


def test_dollars(capsys: pytest.CaptureFixture[str]) -> None:
    """Tiers as their page computes them; a price that is given is used, and what has none is no
    sum.
    """
    assert actions_usd(11.25e6) == pytest.approx(525)
    told = document(capsys, "--price", "million_actions=10", "--price", "vcpu_hour=0.5")
    usd = told["usd_a_month"]
    assert usd["Temporal Cloud: Actions"] == pytest.approx(told["actions_a_day"] * 30 / 1e6 * 10)
    assert usd["workers: processors"] == 0.5 * 720 * told["worker_processes"]
    assert usd["models: prompts"] is None
    assert told["prices"]["vcpu_hour"]["source"] == "given"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: --jobs-per-day"),
        (["--jobs-per-day", "many"], "--jobs-per-day"),
        (["--jobs-per-day", "-1"], "--jobs-per-day: expected a number above 0, got -1"),
        (["--jobs-per-day", "nan"], "--jobs-per-day: expected a number above 0"),
        (["--jobs-per-day", "1e300"], "--jobs-per-day: expected at most 1e+12"),
        (["--jobs-per-day", "inf"], "--jobs-per-day: expected at most 1e+12"),
        ([*DAY, "--provider-tokens-per-minute", "x"], "expected a number above 0, got 'x'"),
        ([*DAY, "--turns", "0.5"], "--turns: a job has one at least"),
        ([*DAY, "--peak", "0.5"], "--peak: the busiest hour"),
        ([*DAY, "--worker-cores", "2"], "--worker-cores: expected at most 1"),
        ([*DAY, "--effects", "-1"], "--effects: expected a number, 0 or more"),
        ([*DAY, "--price", "gold=1"], "'gold' is no price"),
        ([*DAY, "--price", "vcpu_hour=much"], "vcpu_hour: expected dollars"),
        ([*DAY, "--provider-tokens-per-minute", "0"], "expected a number above 0"),
        ([*DAY, "--turn", "3"], "--turn"),
    ],
)
def test_what_makes_no_sense_is_one_error(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line names the option; the exit code is 2, and nothing is printed."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    said = capsys.readouterr()
    assert (ended.value.code, said.out) == (2, "")
    assert said.err.startswith("error: ")
    assert message in said.err
    assert said.err.count("\n") == 1
