"""Sub-jobs of a job that is forked and replayed: which are begun anew, and which are not."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.cli.command_line import CommandLine

pytestmark = pytest.mark.server

POLICY = """
CODES = [
    "a = spawn('Count.')",
    "wait_for(a)",
    "b = spawn('Count again.')",
    "wait_for(b)",
    "finish(['counted' in one.text for one in (a, b)])",
]

def respond(messages):
    if "Count" in str(messages[1]["content"]):
        return {"code": "finish('counted')"}
    return {"code": CODES[sum(m["role"] == "assistant" for m in messages)]}
"""


def test_a_fork_keeps_those_of_the_turns_before_it(cli: CommandLine) -> None:
    """It starts its own from its statement on; a frozen replay starts none."""
    cli.write("policy.py", POLICY)
    spawn = "spawn: {max: 5, turns: 3, tokens: 100000, usd: 1.0}"
    jobs = cli.jobs(f"id: parent, model: scripted/policy.py, {spawn}", batch="lent")

    def begun() -> Counter[str]:
        rows = cli("ls", "lent", "--json").json()
        assert {row["status"] for row in rows} == {"succeeded"}
        return Counter(row["parent"] for row in rows if row["parent"])

    ran = cli("run", jobs)
    assert ran.code == 0, ran.err
    # What they used is in the sum, as in that of ``results``.
    summed = cli("results", "lent").out.splitlines()[-1].removeprefix("3 succeeded")
    assert ran.out.splitlines()[-1] == f"1 succeeded{summed}, with 2 sub-jobs"
    assert begun() == {"parent": 2}
    for at, name in ((3, "late"), (1, "early")):
        forked = cli("fork", f"lent/parent@{at}", "--as", name)
        assert forked.code == 0, forked.err
    assert begun() == {"parent": 2, "late": 1, "early": 2}
    for name in ("late", "early"):
        assert cli("log", f"lent/{name}", "--json").json()["end"]["result"] == [True, True]
    frozen = cli("replay", "lent/parent", "--from", "1", "--mode", "reexecute", "--frozen")
    assert (frozen.code, "no divergence" in frozen.out + frozen.err) == (0, True)
    assert begun() == {"parent": 2, "late": 1, "early": 2}
