"""One kill test's scene: a state directory, a jobs file, an endpoint in a process of its own, and
what they recorded.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from temporalio.client import Client

from runtime.archive.job import JobArchive
from runtime.archive.stores import open_store
from runtime.base.home import Home, state_home
from runtime.server.authentic import key_of, signed_converter
from runtime.server.embedded import NAMESPACE, ensure_server, pin_server
from runtime.server.process import read_info
from tests.kill.nursery import forked_endpoint
from tests.kill.policy import turn_of
from tests.kill.processes import (
    DEADLINE,
    Launch,
    Process,
    holdfast,
    kill_group,
    kill_what_is_left,
    processes_of,
    wait_for,
)
from tests.workflow.stage import replayer
from workflows.batch import BatchWorkflow
from workflows.job import JobWorkflow

HERE = Path(__file__).parent
BATCH, JOB = "kill", "job"
JOBS = """\
batch: {batch}
defaults:
  model: {{name: openai/local, api_base: "{address}/v1", price: free}}
  budget: {{turns: {budget}, tokens: 10000000000, usd: 1000.0, wall: 6h}}
  context_tokens: {context_tokens}
  condenser: {condenser}
jobs:
  - id: {job}
    goal: Take {turns} turns.
    workspace: ./workspace
    tools: ["kill_tools:append_lines"]
    result: {{type: object, required: [seen, lines, roll]}}
"""


@dataclass(frozen=True)
class Plot:
    """A job of ``turns`` turns, with a condenser as a jobs file has it.

    ``run_events`` are those of a history after which the server suggests to continue as new; None:
    its own number.
    """

    turns: int
    condenser: str = "auto"
    context_tokens: int = 60_000
    run_events: int | None = None


@dataclass(frozen=True)
class Received:
    """A request that the endpoint received: of a turn, or for a summary (``turn`` is None); SHA-256
    of its body.
    """

    turn: int | None
    digest: str


@dataclass(frozen=True)
class HistorySize:
    """How long the history of one run is."""

    events: int
    bytes: int


class Scene:
    """One job in ``path``. ``runs`` counts the commands given."""

    def __init__(self, path: Path, plot: Plot, launch: Launch = holdfast) -> None:
        self._launch = launch
        self.path = path
        self.plot = plot
        self.patience = max(DEADLINE, 10.0 * plot.turns)
        self._received: dict[str, Received] = {}
        self.home: Home = state_home({"HOLDFAST_HOME": str(path / "home")})
        self.requests = path / "requests"
        self.runs = 0
        self.process: Process | None = None

    @classmethod
    @contextmanager
    def open(cls, path: Path, plot: Plot, launch: Launch = holdfast) -> Iterator[Scene]:
        """A scene whose processes are gone at the end of the block."""
        path.mkdir(parents=True, exist_ok=True)
        scene = cls(path, plot, launch)
        if plot.run_events is not None:
            settings = {"limit.historyCount.suggestContinueAsNew": plot.run_events}
            scene.home.settings.write_text(json.dumps(settings))
        try:
            # The local model, in a process of its own.
            with forked_endpoint(HERE / "policy.py", scene.requests) as address:
                scene._lay_out(address)
                asyncio.run(pin_server(scene.home))
                yield scene
        finally:
            if scene.process is not None and scene.process.poll() is None:
                kill_group(scene.process)
            kill_what_is_left(scene.home)

    def start(self, *, failpoint: str = "", worker: bool = False) -> Process:
        """Give the command, once more if it was given before; with a fail point on if one is
        named.
        """
        self.runs += 1
        # Its own process is the worker, which is what the tests kill.
        run = ["run", str(self.path / "jobs.yaml"), "--workers", "0", "--json"]
        arguments = ["worker"] if worker else run
        extra = (
            {"HOLDFAST_FAILPOINT": failpoint, "HOLDFAST_FAILPOINT_ONCE": str(self.once())}
            if failpoint
            else {}
        )
        self.process = self._launch(self.home.path, arguments, self.output(), extra)
        return self.process

    def output(self) -> Path:
        """Where the newest process writes, without its suffix."""
        return self.path / f"run-{self.runs}"

    def once(self) -> Path:
        """The file that a fail point makes as it kills."""
        return self.path / f"fired-{self.runs}"

    def finish(self) -> dict[str, Any]:
        """Let the newest process end, and return the job's entry in its summary."""
        assert self.process is not None
        code = self.process.wait(timeout=self.patience)
        said = self.output().with_suffix(".out").read_text().splitlines()
        assert code == 0, (code, said[-2:], self.output().with_suffix(".err").read_text()[-2000:])
        (job,) = json.loads(said[-1])["jobs"]
        self.nothing_left()
        return dict(job)

    def kill_run(self) -> None:
        """``kill -9`` of the newest process and its children."""
        assert self.process is not None
        kill_group(self.process)

    def kill_server(self) -> None:
        """``kill -9`` of the Temporal server, by the id in ``server.json``."""
        info = json.loads((self.home.server / "server.json").read_text())
        os.kill(info["pid"], signal.SIGKILL)

    def nothing_left(self) -> None:
        """All processes of this scene but the server end by themselves once their parent has
        gone.
        """
        wait_for(
            lambda: set(processes_of(self.home.path)) <= self._server(), "only the server is left"
        )

    def archive(self) -> JobArchive:
        """The job's archive, opened anew: nothing is remembered."""
        return JobArchive(open_store(str(self.home.archive)), BATCH, JOB)

    def stamps(self) -> dict[str, tuple[int, int, bytes]]:
        """Every archived object: its inode, its time of change and the SHA-256 of its bytes; of one
        that is packed the last alone.
        """
        store = open_store(str(self.home.archive))
        found = {key: (0, 0, hashlib.sha256(store.get(key)).digest()) for key in store.list("")}
        for path in sorted(self.home.archive.rglob("*")):
            if path.is_file():
                status = path.stat()
                digest = hashlib.sha256(path.read_bytes()).digest()
                found[str(path.relative_to(self.home.archive))] = (
                    status.st_ino,
                    status.st_mtime_ns,
                    digest,
                )
        return found

    def received(self) -> list[Received]:
        """The requests that the endpoint received, in order."""
        for path in sorted(self.requests.glob("*.request")):
            if path.name not in self._received:
                body = path.read_bytes()
                turn = turn_of(json.loads(body)["messages"])
                self._received[path.name] = Received(turn, hashlib.sha256(body).hexdigest())
        return list(self._received.values())

    def newest_turn(self) -> int:
        """The last turn of any run that is archived; 0 if none is."""
        buckets = [bucket for run in self.turn_folders() for bucket in run.iterdir()]
        found = [int(path.name[:7]) for bucket in buckets for path in bucket.glob("*.step")]
        return max(found, default=0)

    def turn_folders(self) -> list[Path]:
        """The folders of the job's runs, in which its turns are archived."""
        turns = self.home.archive / BATCH / JOB / "turns"
        return list(turns.iterdir()) if turns.exists() else []

    def tool_runs(self) -> list[int]:
        """The turns whose statement's tool ran, in order, once for each run."""
        path = self.path / "tool-runs"
        return [int(line) for line in path.read_text().splitlines()] if path.exists() else []

    def replay(self) -> list[HistorySize]:
        """The histories of all runs of the job and of its batch pass the Replayer; how long those
        of the job are.
        """
        return asyncio.run(self._replay())

    def closed(self) -> bool:
        """Whether the server has closed the job's workflow."""
        # A job archives its end first, and to look there costs next to nothing.
        archived = any((self.home.archive / BATCH / JOB / "ends").glob("*"))
        return archived and asyncio.run(self._closed())

    async def client(self) -> Client:
        """A client of the scene's server, which is started if it does not run."""
        info = await ensure_server(self.home)
        return await Client.connect(
            info.address, namespace=NAMESPACE, data_converter=signed_converter(key_of(self.home))
        )

    async def _closed(self) -> bool:
        client = await self.client()
        query = f"WorkflowType = '{JobWorkflow.__name__}' AND ExecutionStatus != 'Running'"
        return bool([item async for item in client.list_workflows(query)])

    async def _replay(self) -> list[HistorySize]:
        client = await self.client()
        batches = [
            item
            async for item in client.list_workflows(f"WorkflowType = '{BatchWorkflow.__name__}'")
        ]
        jobs = [
            item async for item in client.list_workflows(f"WorkflowType = '{JobWorkflow.__name__}'")
        ]
        assert sorted(found.run_id for found in jobs) == sorted(self.archive().runs())
        sizes = {}
        for found in (*batches, *jobs):
            history = await client.get_workflow_handle(
                found.id, run_id=found.run_id
            ).fetch_history()
            await replayer(self.home).replay_workflow(history)
            sizes[found.run_id] = HistorySize(
                len(history.events), sum(event.ByteSize() for event in history.events)
            )
        return [sizes[run] for run in self.archive().runs()]

    def _server(self) -> set[int]:
        info = read_info(self.home)
        return {info.pid} if info is not None else set()

    def _lay_out(self, address: str) -> None:
        workspace = self.path / "workspace"
        workspace.mkdir(exist_ok=True)
        functions = "".join(f"def f{n}(x):\n    return x + {n}\n\n\n" for n in range(40))
        (workspace / "a.py").write_text(f'"""Forty functions."""\n\n\n{functions}')
        (workspace / "notes.md").write_text(
            "".join(f"## Note {n}\n\nThis is note {n}.\n\n" for n in range(40))
        )
        (workspace / "log.txt").write_text("line 1\n")
        shutil.copy(HERE / "kill_tools.py", self.path)
        plot = self.plot
        jobs = JOBS.format(
            batch=BATCH,
            job=JOB,
            address=address,
            turns=plot.turns,
            budget=max(100, plot.turns),
            context_tokens=plot.context_tokens,
            condenser=plot.condenser,
        )
        (self.path / "jobs.yaml").write_text(jobs)
