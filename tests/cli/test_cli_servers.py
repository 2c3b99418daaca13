"""Jobs with MCP servers: real ones from the package index, and one that means no good."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from runtime.archive.verify import damage, verify_job
from runtime.jobsfile.load import load_jobs_file
from runtime.server.ports import unused_ports
from tests.cli.command_line import ROOT, CommandLine, script, wait_for

BIN = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
HOSTILE = f"[{sys.executable}, {ROOT / 'tests' / 'servers' / 'hostile_mcp.py'}, .]"


def installed(program: str) -> str:
    """The path of a server that the development extra brings."""
    found = shutil.which(program, path=BIN)
    assert found is not None, program
    return found


@contextmanager
def searching() -> Iterator[str]:
    """The URL of ``duckduckgo-mcp-server``, which speaks streamable HTTP."""
    (port,) = unused_ports(1)
    command = [installed("duckduckgo-mcp-server"), "--transport", "streamable-http"]
    with subprocess.Popen(
        [*command, "--port", str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            wait_for(lambda: _listens(port), "the server listens")
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            server.kill()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_real_servers_over_both_transports(cli: CommandLine) -> None:
    """Two over standard streams, one over HTTP: their tools are methods, checked before anything
    runs, and their results are values.
    """
    repository = cli.path / "ws"
    cli.write("ws/a.txt", "hello\n")
    for command in (["init", "-q"], ["add", "."], ["commit", "-qm", "First words"]):
        name = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *name, *command], cwd=repository, check=True)
    first = (
        't = clock.convert_time(source_timezone="UTC", time="12:30", target_timezone="Asia/Tokyo")\n'
        f'log = git.git_log(repo_path="{repository}", max_count=3)\n'
        'page = web.fetch_content(url="http://127.0.0.1:1/")'
    )
    wrong = "never = git.git_log(repo_path=str(repo), max_count='three')"
    last = 'finish([t["time_difference"], "First words" in log, "127.0.0.1" in page["result"]])'
    cli.write("a.json", script(first, "repo = 'ws'", wrong, last))
    with searching() as url:
        servers = (
            f"clock: {{command: [{installed('mcp-server-time')}, --local-timezone, UTC]}},"
            f" git: {{command: [{installed('mcp-server-git')}]}}, web: {{url: '{url}'}}"
        )
        jobs = cli.jobs(f"id: a, model: scripted/a.json, mcp: {{{servers}}}", batch="real")
        done = cli("run", jobs, "--json")
    assert (done.code, done.err) == (0, "")
    assert done.summary()["a"]["result"] == ["+9.0h", True, True]
    contract = cli("show", "real/a@1").out
    assert "# Servers\nObjects of this job" in contract
    assert (
        "clock.convert_time(*, source_timezone: str, time: str, target_timezone: str)" in contract
    )
    # The third statement is refused before anything ran.
    execution = cli.archive("real", "a").find_step(cli.archive("real", "a").runs()[0], 4).execution
    assert execution["exception"]["type"] == "TypeCheckError"
    assert execution.get("effects", []) == []
    assert damage(verify_job(cli.archive("real", "a"))) == []


def test_what_servers_offered_is_in_the_record(cli: CommandLine) -> None:
    """A replay and a fork do not ask them: they come to the same though the server is gone, and a
    frozen one calls nothing.
    """
    cli.write("a.json", script("x = bad.echo(text='a', times=2)", "y = x", "finish([x, y])"))
    jobs = cli.jobs(
        f"id: a, model: scripted/a.json, mcp: {{bad: {{command: {HOSTILE}}}}}", batch="record"
    )
    assert cli("run", jobs, "--json").summary()["a"]["result"] == ["aa", "aa"]
    (cli.path / "down").touch()
    frozen = cli("replay", "record/a", "--from", "1", "--mode", "reexecute", "--frozen", "--json")
    assert frozen.code == 0, frozen.err
    forked = cli("fork", "record/a@3", "--as", "b", "--json")
    assert forked.code == 0, forked.err
    assert (cli.path / "calls").read_text() == "echo\n"
    for job in ("a", "b"):
        archive = cli.archive("record", job)
        assert [archive.end(run).status for run in archive.runs()][-1] == "succeeded"
        assert damage(verify_job(archive)) == []


def test_a_job_outlives_its_servers(cli: CommandLine) -> None:
    """One that is not there when the job begins offers nothing, and one that crashes ends a call:
    the model is told, and the job goes on.
    """
    code = (
        "told = []\n"
        "for call in (lambda: gone.anything(n=1), lambda: bad.crash(), lambda: bad.pay(how='crash')):\n"
        "    try:\n"
        "        told.append(call())\n"
        "    except OutcomeUnknown as error:\n"
        "        told.append('unknown')\n"
        "    except RuntimeError as error:\n"
        "        told.append(str(error))\n"
        "told.append(bad.echo(text='well'))"
    )
    cli.write("a.json", script(code, "finish(told)"))
    servers = f"bad: {{command: {HOSTILE}}}, gone: {{command: ['false']}}"
    jobs = cli.jobs(f"id: a, model: scripted/a.json, mcp: {{{servers}}}", batch="outlives")
    # In a process of its own: its worker's warnings go to its standard error.
    done = cli.finished(cli.start("run", jobs, "--json"))
    (told,) = done.err.splitlines()
    assert told.startswith(
        "warning: outlives/a goes on without a server's tools: the server gone cannot be"
    )
    assert done.code == 0
    gone, *others = done.summary()["a"]["result"]
    assert gone.startswith("gone.anything(): the server gone cannot be reached: ")
    assert others == ["the server bad ended with exit code 3", "unknown", "well"]


def test_the_printed_file_is_the_same_job(cli: CommandLine) -> None:
    """``--print-config`` writes servers out, with absolute paths."""
    servers = (
        "one: {command: [x, y], env: [A], timeout: 2m, effects: {z: pure}},"
        " two: {url: 'https://example.org/mcp', token: TOKEN}"
    )
    cli.write("a.json", json.dumps(["finish()"]))
    jobs = cli.jobs(f"id: a, model: scripted/a.json, mcp: {{{servers}}}", batch="printed")
    printed = cli("run", jobs, "--print-config")
    assert printed.code == 0, printed.err
    other = cli.write("elsewhere/printed.yaml", printed.out)
    assert load_jobs_file(other).jobs == load_jobs_file(jobs).jobs
