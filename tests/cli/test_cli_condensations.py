"""``log`` and ``show`` tell what was forgotten when, by which condensation, and what stands in its
place.
"""

import json
from pathlib import Path

import pytest

from runtime.base.fences import fenced
from tests.cli.command_line import UNHURRIED, CommandLine, wait_for

pytestmark = pytest.mark.server

POLICY = """
import pathlib, re


def respond(messages):
    if messages[0]["content"].startswith("Write a summary"):
        return SUMMARY
    turn = int(re.findall(r"budget: turn (\\d+) of", str(messages[-1]["content"]))[-1])
    return {"delay": DELAY, "code": "finish(9)" if LAST else f"x = {turn}\\nprint('turn {turn} ran')".replace("{turn}", str(turn))}
"""


def policy(summary: str, gate: Path | None = None) -> str:
    """A model that answers every request for a summary with ``summary``: of nine turns, or of so
    many as it takes until the file ``gate`` is there.
    """
    last = "turn == 9" if gate is None else f"pathlib.Path({str(gate)!r}).exists()"
    told = POLICY.replace("SUMMARY", repr(summary)).replace("LAST", last)
    return told.replace("DELAY", "0" if gate is None else "0.2")


def test_a_rolling_window_is_told(cli: CommandLine) -> None:
    """Nothing stands there: log says so where it happened, show before the prompt, its part with
    every event.
    """
    cli.write("nine.py", policy(""))
    rolling = "id: rolls, model: scripted/nine.py, condenser: {kind: rolling, max_size: 8}"
    assert cli("run", cli.jobs(rolling, batch="rolling")).code == 0
    line = (
        "condensed 5.c1: rolling (events) forgot 6 events of turns 1-3; nothing stands in their"
        " place"
    )
    said = cli("log", "rolls").out.splitlines()
    assert said[5] == f"      {line}"
    assert said[6].startswith("   5  ok")
    assert [text.split()[1] for text in said if "condensed" in text] == ["5.c1:", "8.c1:"]
    logged = cli("log", "rolls", "--json").json()["condensations"]
    assert logged[0] == {
        "id": "5.c1",
        "turn": 5,
        "condenser": "rolling",
        "reason": "events",
        "forgotten": ["1.1", "1.3", "2.1", "2.3", "3.1", "3.3"],
        "forgotten_turns": [1, 3],
        "sent": True,
        "stands_in": None,
        "summary": None,
        "failures": [],
        "unknown": [],
        "tokens": {"prompt": 0, "completion": 0},
        "cost_usd": 0.0,
    }
    assert cli("show", "rolls@4").out.startswith("--- system · contract")
    assert cli("show", "rolls@4", "--part", "forgotten").out == "nothing was forgotten\n"
    shown = cli("show", "rolls@6").out
    assert shown.splitlines()[0] == f"(not shown any more, before turn 5: {line})"
    assert "turn 2 ran" not in shown
    (row,) = cli("show", "rolls@6", "--part", "forgotten", "--json").json()["forgotten"]
    assert [(e["event"], e["kind"]) for e in row["events"]] == [
        ("1.1", "reply"),
        ("1.3", "result"),
        ("2.1", "reply"),
        ("2.3", "result"),
        ("3.1", "reply"),
        ("3.3", "result"),
    ]
    assert row["text"] is None
    before = {
        segment["digest"]
        for segment in cli("show", "rolls@4", "--part", "segments", "--json").json()["segments"]
    }
    assert {event["digest"] for event in row["events"]} <= before


def test_a_summary_is_told(cli: CommandLine) -> None:
    """What stands there is named with the turns that it stands for, and its text is shown; later
    ones take it in.
    """
    cli.write("nine.py", policy("They printed numbers."))
    summed = "id: sums, model: scripted/nine.py, condenser: {kind: summary, max_size: 8}"
    assert cli("run", cli.jobs(summed, batch="summary")).code == 0
    logged = cli("log", "sums", "--json").json()["condensations"]
    first, second = logged[0], logged[1]
    assert (first["stands_in"], second["forgotten"][0]) == ("5.c1-summary", "5.c1-summary")
    assert (first["forgotten_turns"][0], second["forgotten_turns"][0]) == (1, 1)
    assert first["summary"]["key"].endswith(".step")
    assert "event:5.c1-summary stands in their place; " in cli("log", "sums").out
    shown = cli("show", "sums@5").out
    assert "for turns 1-3, condensed 5.c1 (llm_summary) ---\n" in shown
    assert fenced("They printed numbers.") in shown
    told = cli("show", f"sums@{second['turn']}", "--part", "forgotten").out
    assert told.startswith("before turn 5: condensed 5.c1: llm_summary (events) forgot ")
    assert "  5.c1-summary says:\n" in told
    assert "\n    They printed numbers.\n" in told
    assert told.count("\n    They printed numbers.\n") == 2
    assert cli("show", "sums", "--turns", "5..6", "--part", "forgotten").code == 0


def test_what_a_group_took_out_is_told(cli: CommandLine) -> None:
    """With the turn and the group that shows it since, also a group in another; not what stands
    there on its own again.
    """
    cli.path.joinpath("notes.txt").write_text("first\nsecond\n")
    statements = [
        "a = view('notes.txt')\nb = view('notes.txt', pos='1')",
        "g = group(a, tokens=90)",
        "h = group(g, b, tokens=90)",
        "h.Remove(b)",
        "finish(1)",
    ]
    cli.write(
        "groups.yaml", "\n".join(f"- code: {json.dumps(statement)}" for statement in statements)
    )
    assert (
        cli(
            "run",
            cli.jobs(
                "id: grouped, model: scripted/groups.yaml, workspace: ., projection: inline",
                batch="groups",
            ),
        ).code
        == 0
    )
    assert cli("show", "grouped@2", "--part", "forgotten").out == "nothing was forgotten\n"
    told = cli("show", "grouped@3", "--part", "forgotten").out.splitlines()
    assert told[0] == "before turn 3: group-3 shows in short what stood there on its own"
    assert told[1].split()[:3] == ["view-1", "view", f"{_tokens(cli, 'grouped@2', 'node:view-1')}"]
    rows = cli("show", "grouped@4", "--part", "forgotten", "--json").json()["forgotten"]
    assert [
        (row["by"], row["turn"], row["group"], [one["node"] for one in row["nodes"]])
        for row in rows
    ] == [
        ("group", 3, "group-3", ["view-1"]),
        ("group", 4, "group-4", ["view-2", "group-3"]),
    ]
    rows = cli("show", "grouped@5", "--part", "forgotten", "--json").json()["forgotten"]
    assert [[one["node"] for one in row["nodes"]] for row in rows] == [["view-1"], ["group-3"]]


def _tokens(cli: CommandLine, turn: str, origin: str) -> int:
    rows = cli("show", turn, "--part", "segments", "--json").json()["segments"]
    return next(int(row["tokens"]) for row in rows if row["origin"] == origin)


def test_a_user_asks_for_a_condensation(cli: CommandLine) -> None:
    """``condense`` reaches a running job, which tells of it; one that has ended is a clear
    error.
    """
    cli.write("slow.py", policy("", cli.path / "gate"))
    file = cli.jobs(f"id: asked, model: scripted/slow.py, {UNHURRIED}", batch="asking")
    process = cli.start("run", file)
    # The first turn stays, and what no model has been shown yet does.
    wait_for(lambda: cli.turns("asking", "asked") >= 4, "four turns have ended", process)
    asked = cli("condense", "asked")
    assert (asked.code, asked.out) == (
        0,
        "asking/asked: the request is recorded; the job condenses before its next model call\n",
    )

    def reasons() -> list[str]:
        rows = cli("log", "asked", "--json").json()["condensations"]
        return [row["reason"] for row in rows]

    wait_for(lambda: bool(reasons()), "the job condenses", process)
    cli.write("gate", "")
    assert cli.finished(process).code == 0
    assert reasons() == ["request"]
    gone = cli("condense", "asked")
    assert (gone.code, "job asking/asked does not run" in gone.err) == (2, True)


def test_a_summary_that_failed_is_told(cli: CommandLine) -> None:
    """An extract stands there, and why."""
    cli.write("nine.py", policy(""))
    summed = "id: fails, model: scripted/nine.py, condenser: {kind: summary, max_size: 8}"
    assert cli("run", cli.jobs(summed, batch="failing")).code == 0
    assert "; an extract, since failed summaries: the summary is empty (" in cli("log", "fails").out
    row, *_ = cli("show", "fails", "--part", "forgotten", "--json").json()["forgotten"]
    assert "\nEarlier events were left out." in row["text"]


REFUSING = """
import re


def respond(messages):
    turn = int(re.findall(r"budget: turn (\\d+) of", str(messages[-1]["content"]))[-1])
    if turn == LAST:
        return {"fail": {"status": 400, "message": "No."}, "times": 9}
    return {"code": f"print('turn {turn} ' + 'was ' * LENGTH)"}
"""


def test_what_was_forgotten_for_no_call_is_told(cli: CommandLine) -> None:
    """A refusal that does not say why is answered with a smaller prompt. Where there is none, the
    prompt that was sent forgot nothing; where that is refused too, the first one did not.
    """
    cli.write("short.py", REFUSING.replace("LAST", "2").replace("LENGTH", "1"))
    cli.write("long.py", REFUSING.replace("LAST", "5").replace("LENGTH", "200"))
    extract = "condenser: extract"
    jobs = (f"id: {name}, model: scripted/{name}.py, {extract}" for name in ("short", "long"))
    assert cli("run", cli.jobs(*jobs, batch="refused")).code == 1
    (row,) = cli("log", "refused/short", "--json").json()["condensations"]
    assert (row["turn"], row["sent"]) == (2, False)
    assert "stands in their place; no call was made with it" in cli("log", "refused/short").out
    forgotten = ("show", "refused/short@2", "--part", "forgotten")
    assert cli(*forgotten).out == "nothing was forgotten\n"
    assert "condensed 2.c1" not in cli("show", "refused/short@2").out
    assert "no call" not in cli("log", "refused/long").out
    assert all(row["sent"] for row in cli("log", "refused/long", "--json").json()["condensations"])
    assert "condensed 5.c1" in cli("show", "refused/long@5", "--part", "forgotten").out
    first = ("show", "refused/long@5", "--attempt", "1", "--part", "forgotten")
    assert cli(*first).out == "nothing was forgotten\n"
