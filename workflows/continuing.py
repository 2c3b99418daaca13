"""How a job goes on in another run: checkpoints, and continuing as new (docs/design.md section 9).

A run ends where Temporal suggests it, or where replaying its statements would take a quarter of a
workflow task: at a checkpoint, between two turns. The next run begins with the address of that
checkpoint, the messages that nobody has read yet, and the replay that is going on, if one is. In
the archive the runs are one timeline: the first step of the next has the last step of this as its
parent.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.record import CheckpointPart, LoadOrder, Saved, SaveOrder
    from runtime.base.spec.models import JobSpec
    from runtime.base.tokens import encoding
    from runtime.base.values import JobKey, StepRef
    from runtime.interpreter.verdicts import InterpreterDrift
    from runtime.job import checkpoint, replay_version
    from runtime.job.job import Job
    from workflows.calling import call_within, result_of

CHECKPOINT_TURNS = 64
"""Turns between two checkpoints: what a fork may have to restore turn by turn."""

PART_BYTES = 380_000
"""Bytes of a checkpoint's compressed state that one payload has: 507 kB in base64. Temporal refuses
one of 2 MiB, and warns of each above 512 KiB, in the worker's log and in the server's.
"""

CARRIED_BYTES = 500_000
"""The most bytes of messages that nobody has read with which a job goes on in another run: its
order, of which Temporal takes 2 MiB, has them, and those that arrive as it ends.
"""

REPLAY_SHARE = 4
"""The part of a workflow task that replaying a run's statements may take: one of so many."""

LEAST_EVENTS = 200
"""A run that began with a large checkpoint does not go on in another before it has this many events
more.
"""


class OtherBuild(Exception):
    """The run was begun by a build whose histories this one does not replay."""


class History(Protocol):
    """What the SDK tells of a run's history; ``temporalio.workflow.Info`` does."""

    def get_current_history_length(self) -> int:
        """Its events so far."""
        ...

    def is_continue_as_new_suggested(self) -> bool:
        """Whether the server finds it long."""
        ...


@dataclass
class Run:
    """What this run has cost so far: the statements' compute time, and the events of its history,
    with how many it began.

    The history is looked at after each wait for the server, and at no other moment (see
    ``Moment``).
    """

    statement_ms: int = 0
    first_events: int = 0
    events: int = 0
    asked_to_end: bool = False

    def began(self) -> None:
        """The checkpoint is loaded, if there was one."""
        self.first_events = self.events

    def look(self, history: History) -> None:
        """Take note of how long the history is, and whether the server suggests to continue as
        new.
        """
        self.events = history.get_current_history_length()
        self.asked_to_end = history.is_continue_as_new_suggested()

    @property
    def looked(self) -> int:
        """What a record of the last look has: the events, if the server suggested to end; else
        0.
        """
        return self.events if self.asked_to_end else 0

    def recall(self, looked: int) -> None:
        """Know what the last look saw, as its record has it."""
        self.events, self.asked_to_end = looked or self.events, bool(looked)

    def is_full(self, task_timeout: timedelta) -> bool:
        """Whether the job should go on in another run."""
        # A worker that has lost the job replays all these statements within one workflow task.
        used_up = self.statement_ms > task_timeout.total_seconds() * 1000 / REPLAY_SHARE
        return used_up or (self.asked_to_end and self.events - self.first_events > LEAST_EVENTS)


def fit_an_order(messages: Iterable[str]) -> bool:
    """Whether a job with these ``messages``, which nobody has read, can go on in another run."""
    return sum(len(text.encode(errors="replace")) for text in messages) <= CARRIED_BYTES


def check_interpreter(recorded: str) -> None:
    """A run stays with the interpreter that it began with; another one takes a job over where it
    continues as new.

    Raises:
        InterpreterDrift: if this process has another one. It fails the workflow task: a worker that
            has it may come.
    """
    if recorded != checkpoint.INTERPRETER:
        raise InterpreterDrift(
            f"this run began with {recorded} and this worker has {checkpoint.INTERPRETER}: have a"
            f" worker with {recorded} take it to where it continues as new, or fork the job"
        )


def check_build(recorded: str, version: int) -> None:
    """A run stays with builds that make the commands of its history; any other takes the job over
    where it continues as new.

    Raises:
        OtherBuild: if this process has another one. It fails the workflow task: a worker that can
            may come.
    """
    if not replay_version.replays(version):
        raise OtherBuild(
            f"this run began with build {recorded or 'unknown'} (replay version {version}) and this"
            f" worker's code has replay version {replay_version.REPLAY_VERSION} ('holdfast"
            f" --version --json' tells its build): have a worker of build {recorded or 'unknown'}"
            " take it to where it continues as new (a full run does), from where this build goes"
            " on with it, or fork the job"
        )


async def save(job: Job, key: JobKey, parent: StepRef) -> StepRef:
    """Archive the job's state.

    It goes to the activity within the worker, so the history holds its address alone.
    """
    while True:
        # A dump costs time and is large: in a replay the recorded address is all that is needed.
        state = None if workflow.unsafe.is_replaying() else checkpoint.dump(job)
        saved: Saved = await call_within(
            "save_checkpoint",
            SaveOrder(
                batch=key.batch,
                job=key.job,
                turn=job.turn,
                parent=parent,
                interpreter=checkpoint.INTERPRETER,
                state=state,
            ),
            Saved,
        )
        # None: a replay that found no recorded result, and so had dumped nothing. Now it is live.
        if saved.checkpoint is not None:
            return saved.checkpoint


async def load(spec: JobSpec, ref: StepRef) -> Job:
    """The job of a checkpoint."""
    data: list[bytes] = []
    parts, size = 1, PART_BYTES
    start: int | None = 0
    # In parts, since a payload above 2 MiB would fail the workflow task for ever.
    while len(data) < parts:
        part: CheckpointPart = await result_of(
            "load_checkpoint",
            LoadOrder(checkpoint=ref, part=len(data), size=size, start=start),
            CheckpointPart,
            id=f"checkpoint-{len(data)}",
            summary="load the checkpoint",
        )
        # Checked before the state is loaded: one of another interpreter cannot be.
        check_interpreter(part.interpreter)
        check_build(part.build, part.replay_version)
        # A history may have the first part from a release that knew one size alone, or that
        # compressed the state as a whole.
        parts, size, start = part.parts, part.size, part.end
        data.append(base64.b64decode(part.data))
    compressed = data if start is not None else [b"".join(data)]
    state: dict[str, Any] = json.loads(b"".join(map(zlib.decompress, compressed)))
    return checkpoint.load(spec, state, count=encoding(spec.encoding).count)
