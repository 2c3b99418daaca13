"""A job that changes its workspace, and all that can be asked of it afterwards."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.cli.command_line import UNHURRIED, CommandLine, gated, script, wait_for
from tests.git.jobs import written_tree
from tests.small_disk import fill, small_disk

pytestmark = [pytest.mark.sandbox, pytest.mark.server]

STATEMENTS = [
    "print(open('a.py').read())\nedit('a.py', 'two', 'TWO')\nv = view('a.py', freq='Sync')",
    "r = sh('echo more >> a.py; exit 3')\nprint(r.exit_code, open('a.py').read())\nmove('a.py', 'b.py')",
    "write('c.txt', 'new')\nfinish('done', patch=True)",
]


@pytest.mark.smoke
def test_what_a_real_job_did_can_be_asked(cli: CommandLine, tmp_path: Path) -> None:
    """Effects are told beside reads, lines by their statements, and the patch makes its files."""
    source = tmp_path / "ws"
    cli.write("ws/a.py", "one\ntwo\nthree\n")
    cli.write("a.json", script(*STATEMENTS))
    workspace = f"workspace: {{from: {source}, write: true}}"
    done = cli("run", cli.jobs(f"id: real, model: scripted/a.json, {workspace}", batch="hands"))
    assert done.code == 0, done.err
    assert "hands/real: 3 paths changed: holdfast workspace diff hands/real\n" in done.out
    handed = cli("workspace", "patch", "hands/real", "--handed")
    assert cli("verify", "hands/real").code == 0
    assert handed.out == cli("workspace", "patch", "hands/real").out
    assert cli("results", "hands", "--json").json()[0]["patch"]["text"] == handed.out
    rows = cli("log", "hands/real", "--effects", "--json").json()["effects"]
    changes = [row for row in rows if row["kind"] == "change"]
    assert [(row["turn"], row["effect"], row["name"], row["exit_code"]) for row in changes] == [
        (1, 1, "edit", None),
        (2, 0, "sh", 3),
        (2, 2, "move", None),
        (3, 0, "write", None),
    ]
    assert [(one["path"], one["status"]) for row in changes for one in row["changed"]] == [
        *[("a.py", "M"), ("a.py", "M"), ("a.py", "D"), ("b.py", "A"), ("c.txt", "A")]
    ]
    lines = cli("blame", "hands/real", "b.py", "--json").json()["lines"]
    assert [(line["text"], line["turn"]) for line in lines] == [
        *[("one\n", 0), ("TWO\n", 1), ("three\n", 0), ("more\n", 2)]
    ]
    assert cli("cost", "hands/real", "--json").json()["jobs"][0]["commands"] == 1
    assert cli("workspace", "export", "hands/real", tmp_path / "out").code == 0
    assert cli("workspace", "apply", "hands/real", "--yes").code == 0
    assert written_tree(source) == written_tree(tmp_path / "out")
    assert cli("workspace", "export", "hands/real", tmp_path / "repo", "--git").code == 0
    log = ["git", "log", "--format=%s"]
    told = subprocess.run(log, cwd=tmp_path / "repo", capture_output=True, text=True, check=True)
    assert len(told.stdout.splitlines()) == 4


def test_what_no_job_left_is_missed_before_anything_starts(
    cli: CommandLine, tmp_path: Path
) -> None:
    """Told by the file's lines; not of jobs that have begun, nor where one of the file itself, or
    one that runs, may leave it yet.
    """
    cli.write("a.json", script("write('x', '1')", "finish(1)"))
    begins = "model: scripted/a.json, workspace: {sandbox: none, write: true"
    source = cli.jobs(f"id: one, {begins}}}", batch="left-by")
    assert cli("run", source).code == 0

    def beginning(*places: str, batch: str = "left-to") -> Path:
        jobs = [f"id: j{n}, {begins}, from: {place}}}" for n, place in enumerate(places)]
        return cli.jobs(*jobs, f"id: own, {begins}}}", batch=batch, name=f"{batch}.yaml")

    good = ["holdfast://left-by/one@2", "holdfast://own@1", "holdfast://left-to/own@9"]
    file = beginning("holdfast://left-by/none@1", "holdfast://left-by/one@3", *good)
    for dry in (["--dry-run"], []):
        done = cli("run", file, *dry)
        assert (done.code, done.out) == (2, "")
        first, second = done.err.splitlines()
        assert first.startswith(f"error: {file}:4: jobs[0].workspace.from: no job that has begun")
        assert f"{file}:5: jobs[1].workspace.from: left-by/one has no turn 3 in run " in second
    assert cli("ls", "left-to").out == ""
    assert cli("run", beginning(*good), "--dry-run").code == 0
    nowhere = cli("run", file, "--dry-run", "--store", tmp_path / "none")
    assert (nowhere.code, nowhere.err.count("no job that has begun is called")) == (2, 1)
    gate = tmp_path / "gate"
    cli.write("gated.py", gated(gate))
    running = begins.replace("a.json", "gated.py")
    process = cli.start("run", cli.jobs(f"id: a, {running}}}, {UNHURRIED}", batch="left-later"))
    wait_for(lambda: cli.turns("left-later", "a") > 0, "a turn", process)
    later = beginning("holdfast://left-later/a@99999", batch="left-then")
    assert cli("run", later, "--dry-run").code == 0
    gate.touch()
    assert cli.finished(process).code == 0
    assert cli("run", later, "--dry-run").code == 2
    begun = beginning("holdfast://left-by/one@1", batch="left-begun")
    assert cli("run", begun).code == 0
    assert cli("archive", "delete", "left-by/one", "--reason", "over").code == 0
    assert "2 done" in cli("run", begun).out
    assert cli("run", beginning("holdfast://left-by/one@1", batch="left-after")).code == 2


@pytest.mark.parametrize("sandbox", ["auto", "none"])
def test_a_command_that_leaves_too_much_is_told_with_its_time(
    cli: CommandLine, sandbox: str
) -> None:
    """Its statement gets an error, and its files are those before; what it printed is kept, and
    ``log`` and ``cost`` tell how long it ran, as of any command.
    """
    batch = f"left-{sandbox}"
    code = "try:\n    sh('echo made; sleep 0.2; truncate -s 300M big')\nexcept ValueError as e:\n"
    code += "    told = str(e)\nfinish([told, os.path.exists('big')])"
    cli.write("a.json", script(f"import os\n{code}"))
    job = f"id: much, model: scripted/a.json, workspace: {{write: true, sandbox: {sandbox}}}"
    assert cli("run", cli.jobs(job, batch=batch)).code == 0
    (told, there) = cli("results", batch, "--json").json()[0]["result"]
    assert (told[:38], there) == ("more than 268,435,456 bytes of files a", False)
    (row, _) = cli("log", f"{batch}/much", "--effects", "--json").json()["effects"]
    assert (row["error"], row["exit_code"], row["changed"]) == ("ValueError", 0, [])
    assert row["seconds"] >= 0.2
    (cost,) = cli("cost", f"{batch}/much", "--json").json()["jobs"]
    assert (cost["commands"], cost["command_seconds"]) == (1, row["seconds"])
    assert cli("verify", f"{batch}/much").code == 0


def test_a_batchs_summary_has_the_versions(cli: CommandLine, tmp_path: Path) -> None:
    """Of jobs that may change their workspace; what changed nothing left what it began with."""
    cli.write("ws/a.py", "one\n")
    cli.write("a.json", script("write('b', 'x')\nfinish(1)"))
    cli.write("b.json", script("finish(1)"))
    workspace = f"workspace: {{from: {tmp_path / 'ws'}, write: true}}"
    jobs = [
        f"id: wrote, model: scripted/a.json, {workspace}",
        f"id: idle, model: scripted/b.json, {workspace}",
        "id: reader, model: scripted/b.json",
    ]
    told = cli("run", cli.jobs(*jobs, batch="left"), "--json").summary()
    assert told["reader"]["workspace"] is None
    assert told["idle"]["workspace"]["base"] == told["idle"]["workspace"]["version"]
    listed = cli("workspace", "ls", "left/wrote", "--json").json()
    assert told["wrote"]["workspace"] == {
        "base": told["idle"]["workspace"]["version"],
        "version": listed["version"],
        "changed": 1,
        "kept": [],
    }


def test_what_a_job_keeps_is_handed_over(cli: CommandLine, tmp_path: Path) -> None:
    """Files that ``keep`` names are told with the result, and exported by themselves."""
    cli.write("ws/a.py", "one\n")
    statement = (
        "write('dist/x.whl', 'w')\nwrite('dist/y/z.txt', 'z')\nwrite('b.log', 'l')\nfinish(1)"
    )
    cli.write("a.json", script(statement))
    workspace = f"workspace: {{from: {tmp_path / 'ws'}, write: true, keep: [dist/, '*.log']}}"
    done = cli("run", cli.jobs(f"id: kept, model: scripted/a.json, {workspace}", batch="left"))
    assert "left/kept: 3 files kept: holdfast workspace export left/kept DIR --kept\n" in done.out
    assert cli("workspace", "export", "left/kept", tmp_path / "out", "--kept").code == 0
    assert sorted(written_tree(tmp_path / "out")) == [
        *("b.log", "dist", "dist/x.whl", "dist/y", "dist/y/z.txt")
    ]
    none = cli("workspace", "export", "left/kept", "--kept", "--agent-trace", tmp_path / "t")
    assert (none.code, "--kept is of a plain DIR" in none.err) == (2, True)


def test_an_export_to_a_full_disk_says_what_is_full(cli: CommandLine, tmp_path: Path) -> None:
    """Files, a repository and a trace; of the trace nothing is left that looks whole."""
    cli.write("ws/a.bin", "0123456789" * 20_000)
    cli.write("a.json", script("write('b', 'two')\nfinish(1)"))
    workspace = f"workspace: {{from: {tmp_path / 'ws'}, write: true}}"
    assert (
        cli("run", cli.jobs(f"id: a, model: scripted/a.json, {workspace}", batch="no-room")).code
        == 0
    )
    export = ("workspace", "export", "no-room/a")
    with small_disk(tmp_path / "disk", "64k") as disk:
        plain = cli(*export, disk / "plain")
        assert (plain.code, plain.err) == (
            1,
            f"error: {disk}/plain/a.bin cannot be written: No space left on device\n",
        )
        fill(disk)
        for argument in (["--git", disk / "git"], [tmp_path / "out", "--agent-trace", disk / "t"]):
            full = cli(*export, *argument)
            assert full.code == 1, full.err
            assert f"error: {argument[-1]} cannot be written: " in full.err
            assert "No space left on device" in full.err
        assert not (disk / "t").exists()


@pytest.mark.usefixtures("answered")
def test_log_tells_which_command_runs(cli: CommandLine) -> None:
    """With its last line, for as long as it runs."""
    command = 'while ! test -e "$GATE"; do echo waits; sleep 0.05; done'
    gate = {"GATE": str(cli.path / "gate")}
    cli.write("a.json", script(f"finish(sh({command!r}, timeout=900, env={gate!r}).exit_code)"))
    job = "id: slow, model: scripted/a.json, workspace: {write: true, sandbox: none}"
    process = cli.start("run", cli.jobs(job, batch="telling-commands"))

    def told() -> list[str]:
        # Before its first turn there is no such job.
        return cli("log", "telling-commands/slow").out.splitlines()[-1:]

    wait_for(
        lambda: told() == [f"now: running: runs: {command} | waits"], "log tells of it", process
    )
    assert cli("log", "telling-commands/slow", "--json").json()["now"] == {
        "status": "running",
        "reason": f"runs: {command} | waits",
    }
    cli.write("gate", "")
    assert cli.finished(process).code == 0
    assert told() == ["end: succeeded"]
    assert cli("log", "telling-commands/slow", "--json").json()["now"] is None
