"""The fleet of ``infra/local``: two hosts with workers by role, and what goes wrong there."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict

from benchmarks.fleet import BATCH, archives, batch, came_of, turns_of, wait_for
from infra.local.__main__ import main
from infra.local.fleet import ROOT, Fleet
from infra.local.processes import Component
from runtime.server.connection import connect
from runtime.server.target import Target
from tests.archive.s3_server import sockets
from tests.cli.test_cli_metrics import queries


@pytest.fixture
def fleet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fleet]:
    """A fleet that is up, to whose server and store this process is led."""
    for name in list(os.environ):
        if name.startswith(("TEMPORAL_", "HOLDFAST_")):
            monkeypatch.delenv(name)
    made = Fleet.at(tmp_path / "fleet")
    for name, value in made.environment.items():
        monkeypatch.setenv(name, value)
    try:
        made.up()
        yield made
    finally:
        made.down()


@pytest.mark.server
@pytest.mark.s3
@pytest.mark.kill
@pytest.mark.slow
@pytest.mark.sandbox
def test_a_host_is_lost_in_mid_batch(fleet: Fleet, tmp_path: Path) -> None:
    """Jobs are carried out by workers of both roles, and the fleet shows what it should. Then a
    host is lost: with its network, where hosts have one, else with its processes; and the store is
    killed meanwhile. The other host finishes everything, and each command is carried out once, also
    when the first comes back; when all is down nothing runs or is left outside of its folder.
    """
    jobs = 4
    finish = batch(tmp_path, jobs)
    made = archives(jobs)
    wait_for(lambda: all(turns_of(job) > 0 for job in made), "each job has done a turn")
    _check_shown(fleet)
    lost = [one for name, one in fleet.components.items() if name.startswith("one-")]
    if fleet.network is not None:
        fleet.network.cut("one")
    else:
        for one in lost:
            one.kill()
    fleet.components["s3"].kill()
    fleet.components["s3"].start()
    known = [turns_of(job) for job in made]
    wait_for(
        lambda: all(turns_of(job) > turns for job, turns in zip(made, known, strict=True)),
        "the other host goes on with each job",
    )
    finish()
    wait_for(lambda: all(job.end(job.runs()[-1]) is not None for job in made), "all have ended")
    if fleet.network is not None:
        fleet.network.mend("one")
    for one in lost:
        one.start()
    for job in made:
        came = came_of(job)
        assert came.well
        assert came.lines > 0
    fleet.down()
    assert [name for name, one in fleet.components.items() if one.pid is not None] == []
    assert sockets(fleet.settings["ports"].values()) == []


def _check_shown(fleet: Fleet) -> None:
    """Payloads are encrypted, and the codec server shows them to those who send its token alone.
    Every exporter tells its metrics; Prometheus, where it is installed, has them of both hosts and
    answers the dashboard's query of turns.
    """
    asked = asyncio.run(_input_of_the_job())
    assert b"Write a line" not in b64decode(asked["data"])
    assert _decoded(fleet, asked) == (401, None)
    assert _decoded(fleet, asked, "another-token-than-this") == (401, None)
    status, shown = _decoded(fleet, asked, fleet.settings["token"])
    assert status == 200
    assert b"Write a line" in shown

    for addresses in fleet.exporters().values():
        for address in addresses:
            with urllib.request.urlopen(f"http://{address}/metrics", timeout=60) as answer:
                assert answer.status == 200
    told = "\n".join(fleet.told())
    assert fleet.settings["token"] in told
    if "prometheus" in fleet.components:
        wait_for(lambda: _found(fleet, 'up{job="holdfast"} == 1') == 4, "both hosts are scraped")
        turns = queries()["Turns a second, by model A"]
        wait_for(lambda: _found(fleet, turns) == 1, "the dashboard's query has data")
    else:
        assert "prometheus   left out: it is not installed" in told


async def _input_of_the_job() -> dict[str, Any]:
    """The payload that the job's workflow was started with, as it lies in the server."""
    async with connect(Target()) as connection:
        handle = connection.client.get_workflow_handle(f"holdfast/{BATCH}/j0")
        (first, *_) = (await handle.fetch_history()).events
    (payload, *_) = first.workflow_execution_started_event_attributes.input.payloads
    return MessageToDict(payload)


def _decoded(
    fleet: Fleet, payload: dict[str, Any], token: str | None = None
) -> tuple[int, bytes | None]:
    """The status with which the codec server answers as Temporal's tools ask, and what it shows."""
    request = urllib.request.Request(
        f"{fleet.codec}/decode",
        json.dumps({"payloads": [payload]}).encode(),
        {"Content-Type": "application/json", "X-Namespace": "default"},
    )
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            (shown,) = json.loads(answer.read())["payloads"]
            return answer.status, b64decode(shown["data"])
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, None


def _found(fleet: Fleet, query: str) -> int:
    """How many series Prometheus has for a query."""
    asked = urllib.parse.urlencode({"query": query})
    url = f"http://{fleet.prometheus}/api/v1/query?{asked}"
    with urllib.request.urlopen(url, timeout=60) as answer:
        return len(json.loads(answer.read())["data"]["result"])


@pytest.mark.parametrize("command", ["status", "down"])
def test_a_folder_without_a_fleet_has_none(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a mistyped folder nobody is told that all is down, and none is made there."""
    folder = tmp_path / "fleet"
    assert main([command, str(folder)]) == 2
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", f"error: there is no fleet in {folder}: 'up' makes one\n")
    assert not folder.exists()


@pytest.mark.slow
def test_a_status_whose_reader_has_gone(tmp_path: Path) -> None:
    """``status DIR | head``: nothing is said of it, and nothing has failed."""
    Fleet.at(tmp_path)
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "infra.local", "status", str(tmp_path)],
        cwd=ROOT,
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_folder_of_something_else_is_one_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It names the file."""
    (tmp_path / "fleet.json").write_text("{")
    assert main(["up", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith(f"error: {tmp_path / 'fleet.json'} is not JSON: ")


def test_another_s_answer_is_not_the_component_s(tmp_path: Path) -> None:
    """One that ends since its port is taken does not serve, though that port answers."""

    def another() -> bool:
        wait_for(lambda: component.pid is None, "it has ended")
        return True

    command = [sys.executable, "-c", "raise SystemExit('address in use')"]
    component = Component("one", command, {}, tmp_path, another)
    with pytest.raises(RuntimeError, match="one does not serve: address in use"):
        component.start()
