"""What a statement printed, what it changed, and what happened to the context, as the commands tell
it.
"""

from __future__ import annotations

import json

import pytest

from tests.cli.command_line import CommandLine, script
from tests.cli.test_cli_json import compare_with_the_pinned

pytestmark = pytest.mark.server

SOURCES = [
    "a = view('a.txt')\nacc = list(range(100))",
    (
        "a.SetTokens(50)\nacc[40] = -1\nimport sys\nprint('one')\nprint('two')\nprint('no',"
        " file=sys.stderr)"
    ),
    "a.SetPos('1')\nfinish(1)",
]


def test_the_events_of_a_job_are_told_by_every_command(cli: CommandLine) -> None:
    """``log --events``, ``nodes``, ``show --part events`` and ``export``, and ``verify`` finds them
    sound.
    """
    cli.write("ws/a.txt", "hello\nworld\n")
    cli.write("model.json", script(*SOURCES))
    assert cli("run", cli.jobs("id: eventful, model: scripted/model.json", batch="told")).code == 0
    call, change = "method_called  view-1.SetTokens(50)", "node_changed  view-1  tokens 2,000 to 50"
    lines = [line.strip() for line in cli("log", "eventful", "--events").out.splitlines()]
    (at,) = [number for number, line in enumerate(lines) if line.endswith(call)]
    assert lines[at + 1].endswith(change)
    assert [lines[at + n].split()[0] for n in (-1, 0, 1, 2, 3)] == ["2", "2.2", "2.3", "3.1", "3"]
    document = cli("log", "eventful", "--events", "--json").json()
    compare_with_the_pinned({"log --events": [document]})
    logged = document["events"]
    statement, tick = ["method_called", "node_changed"], ["tick_applied"]
    told = [(event["step"], event["type"]) for event in logged]
    assert told == [
        (step, type_)
        for step, types in ((2, statement), (3, statement + tick), (None, statement))
        for type_ in types
    ]
    assert call in cli("nodes", "eventful@3").out
    events = cli("show", "eventful@3", "--part", "events", "--json").json()["events"]
    shown = cli("show", "eventful@2", "--part", "statement", "--json").json()["statement"]
    assert (shown["stdout"], shown["stderr"], shown["events"]) == ("one\ntwo\n", "no\n", events[:2])
    assert shown["execution"]["events"] == [event["id"] for event in events[:2]]
    text = cli("show", "eventful@2", "--part", "statement").out
    assert "--- stdout ---\none\ntwo\n--- stderr ---\nno\n--- events ---\n" in text
    assert "acc: list[100]" in cli("show", "eventful@3", "--part", "namespace").out
    assert "(changed: acc[40])" in cli("show", "eventful@3", "--part", "namespace").out
    exported = [json.loads(line) for line in cli("export", "eventful").out.splitlines()]
    assert [line["events"] for line in exported if line["type"] == "step"][2] == events
    assert cli("verify", "eventful").code == 0
