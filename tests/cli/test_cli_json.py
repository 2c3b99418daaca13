"""What ``--json`` prints has the shapes that ``docs/json-shapes.json`` pins, for every command that
has it.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from typer.main import get_command

from runtime.base.values import JobKey
from runtime.cli.main import app
from runtime.cli.output import JSON_VERSION
from runtime.cli.reporters import JsonReporter
from runtime.client.watch import Retried
from runtime.job.stops import JobStatus
from tests.cli.command_line import UNHURRIED, CommandLine, Done, script, unpack, wait_for
from tests.cli.json_shapes import misfits, unseen
from workflows.messages import JobOutcome

PINNED = json.loads((Path(__file__).parents[2] / "docs" / "json-shapes.json").read_text())

PARTS = (
    *("prompt", "request", "response", "statement", "nodes", "namespace"),
    *("events", "segments", "attempts", "forgotten", "chunks"),
)
STATEMENTS = [
    (
        "a = view('notes.txt', freq='Sync')\nb = view('notes.txt', pos='1')\nt ="
        " open('notes.txt').read()\nprint('needle', t)"
    ),
    "g = group(a, b, tokens=90)\nn = note('keep this')\ns = {1, 2}",
    "raise ValueError('no')",
    "x = [1, {'y': a}]",
    "pin(a, reason='why')\nb = None",
    "x.append(2)",
    "finish({'n': 1})",
]
OTHERS = """
import re

def respond(messages):
    turn = int(re.findall(r"budget: turn (\\d+) of", str(messages[-1]["content"]))[-1])
    if turn == 3:
        return {"code": "y = 1", "fail": {"status": 500, "message": "No."}, "times": 1}
    return {"delay": DELAY, "code": "finish(1)" if turn == LAST else f"x{turn} = {turn}"}
"""


class Printed:
    """The documents that commands print, by the command and the options that make it another
    document.
    """

    def __init__(self, cli: CommandLine) -> None:
        self.cli = cli
        self.documents: dict[str, list[Any]] = defaultdict(list)

    def __call__(self, command: str, *arguments: str | Path, of: str = "") -> Any:
        """Give a command with ``--json``; its document is one of ``of``, or of the command."""
        document = self.read(self.cli(command, *arguments, "--json"))
        self.documents[of or command].append(document)
        return document

    def read(self, done: Done) -> Any:
        assert done.out, done.err
        return json.loads(done.out)

    def first_run(self, job: str, *store: str) -> str:
        """A job's oldest run."""
        return str(self.read(self.cli("log", job, "--graph", "--json", *store))["runs"][0]["run"])

    def lines(self, done: Done) -> None:
        """What ``run --json`` printed, a document for each kind of line."""
        for line in done.out.splitlines():
            document = json.loads(line)
            self.documents[f"run: {document['event']}"].append(document)


@pytest.mark.server
def test_every_document_has_its_pinned_shape(cli: CommandLine, tmp_path: Path) -> None:
    """Jobs that end, fail, are replayed, forked and damaged: no key is missing or new, and each
    that is pinned was seen.
    """
    printed = Printed(cli)
    cli.write("ws/notes.txt", "first\nsecond\n")
    cli.write("a.json", script(*STATEMENTS))
    cli.write("b.py", OTHERS.replace("DELAY", "0").replace("LAST", "9"))
    # It has no last turn: the job runs until it is cancelled.
    cli.write("c.py", OTHERS.replace("DELAY", "1").replace("LAST", "0"))
    rolling = "id: b, model: scripted/b.py, condenser: {kind: rolling, max_size: 8}"
    file = cli.jobs("id: a, model: scripted/a.json, projection: inline", rolling, batch="shapes")
    printed.lines(cli("run", file, "--json"))
    cli.write("ws/notes.txt", "third\n")
    printed("replay", "shapes/a", "--from", "1", "--mode", "reexecute")
    printed("fork", "shapes/a@3", "--as", "again")
    printed("replay", "shapes/b", "--from", "8", "--detach", of="replay --detach")
    endless = f"id: c, model: scripted/c.py, {UNHURRIED}"
    slow = cli.jobs(endless, batch="slow", name="slow.yaml")
    process = cli.start("run", slow, "--json")
    wait_for(lambda: cli.turns("slow", "c") >= 2, "two turns have ended", process)
    for command, more in (("send", ["hello"]), ("condense", []), ("pause", []), ("resume", [])):
        printed(command, "slow/c", *more)
    for command, more in (("pause", []), ("send", ["hello"]), ("resume", [])):
        where = ("--where", "batch=slow and turns>0", *more)
        printed(command, *where, of=f"{command} --where")
    printed("cancel", "slow/c")
    printed("cancel", "--where", "batch=slow", of="cancel --where")
    printed.lines(cli.finished(process))
    printed("errors", "slow")
    printed("watch", "slow")
    printed("retry", "slow/c")
    printed("retry", "--where", "batch=slow", of="retry --where")
    cli.write("c.py", OTHERS.replace("DELAY", "0").replace("LAST", "1"))
    assert cli("run", slow, "--rerun-failed").code == 0
    read_everything(printed, "shapes/a")
    printed("show", "shapes/a@1", "--part", "statement", of="show --part statement")
    printed("show", "shapes/a@7", "--part", "namespace", of="show --part namespace")
    store = ("--store", str(damaged_copy(cli, tmp_path)))
    read_everything(printed, "shapes/b")
    for command, *arguments in (["ls"], ["log", "shapes/b"], ["cost"], ["verify", "shapes/b"]):
        printed(command, *arguments, *store)
    for command in ("blame", "diff"):
        printed(command, "shapes/b@3", *store)
    printed("show", "shapes/b@2", *store, of="show --part prompt")
    compare_with_the_pinned(printed.documents)


def read_everything(printed: Printed, job: str, *store: str) -> None:
    """Each command that reads an archive, of the job's fifth turn and of all of them."""
    printed("ls", *store)
    printed("log", job, *store)
    printed("log", job, "--graph", *store, of="log --graph")
    for part in PARTS:
        printed("show", f"{job}@5", "--part", part, *store, of=f"show --part {part}")
    printed("show", job, "--turns", "4..5", *store, of="show --turns")
    for command in ("blame", "diff", "nodes"):
        printed(command, f"{job}@5", *store)
    printed("diff", f"{job}@5", "--wire", *store, of="diff --wire")
    printed("why", f"{job}@5", "budget", *store)
    printed("why", f"{job}@5", "budget: turn 2 of", "--gone", *store, of="why --gone")
    printed("cost", *store)
    printed("results", job.partition("/")[0], *store)
    printed("errors", job.partition("/")[0], *store)
    printed("verify", job, *store)
    printed("divergences", job, *store)
    printed("compare", job, "--other-run", printed.first_run(job, *store), *store)


def damaged_copy(cli: CommandLine, tmp_path: Path) -> Path:
    """The archive with a step that is gone."""
    copy = tmp_path / "damaged"
    shutil.copytree(cli.home / "archive", copy)
    unpack(copy)
    (path,) = copy.glob("shapes/b/turns/*/00000/0000002.step")
    path.unlink()
    return copy


@pytest.mark.server
def test_the_servers_documents_have_their_pinned_shapes(own_cli: CommandLine) -> None:
    """What tells of the server: while it is there, and when it is not."""
    printed = Printed(own_cli)
    for command in ("status", "up", "status", "up", "down", "down"):
        printed(command)
        if command == "up":
            at = printed.documents["up"][-1]["address"]
            printed("init", "--address", at, "--namespace", "shapes")
            printed("doctor")
    printed.documents["--version"].append(printed.read(own_cli("--version", "--json")))
    compare_with_the_pinned(printed.documents)


def test_a_retry_has_its_pinned_shape(capsys: pytest.CaptureFixture[str]) -> None:
    """A line of ``run`` that few runs have."""
    failed = JobOutcome(
        key=JobKey(batch="b", job="a"), run="r", status=JobStatus.FAILED, cause="tool", reason="no"
    )
    JsonReporter().retried(Retried(failed, again=1))
    compare_with_the_pinned({"run: retried": [json.loads(capsys.readouterr().out)]})


def test_each_command_with_json_is_pinned() -> None:
    """Also those whose documents no other test here sees; nothing is pinned that there is not."""
    commands = get_command(app).commands  # type: ignore[attr-defined]
    for group in ("workspace", "archive"):
        inner = commands.pop(group).commands
        commands |= {f"{group} {name}": one for name, one in inner.items()}
    with_json = {
        name
        for name, command in commands.items()
        if any("--json" in p.opts for p in command.params)
    }
    assert {command_of(name) for name in PINNED["documents"]} == with_json | {"--version"}
    of_several = {
        f"{name} --where"
        for name, command in commands.items()
        if any("--where" in p.opts for p in command.params)
    }
    assert of_several == {name for name in PINNED["documents"] if name.endswith(" --where")}
    assert PINNED["version"] == JSON_VERSION


def command_of(document: str) -> str:
    """The command that prints a document: its name's first word, of a group's the first two."""
    words = document.replace(":", "").split()
    return " ".join(words[: 2 if words[0] in {"workspace", "archive"} else 1])


def compare_with_the_pinned(documents: dict[str, list[Any]]) -> None:
    """Every difference, a line each."""
    shapes = PINNED["documents"]
    found = [
        f"{name}: {line}"
        for name, values in documents.items()
        for value in values
        for line in misfits(shapes.get(name, {}), value)
    ]
    found += [
        f"{name}{line} is pinned, and was not seen"
        for name in documents
        for line in unseen(shapes.get(name, {}), documents[name])
    ]
    assert sorted(set(found)) == []
