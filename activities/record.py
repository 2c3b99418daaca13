"""What workflows and activities say to each other of a run's record: checkpoints, replays, recorded
turns.

Like ``contracts``: no I/O and no heavy imports, small and bounded values.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from runtime.base.spec.models import Budget
from runtime.base.values import Compact, JobKey, ModelReply, StepRef
from runtime.context.interim import Interim


class RecordValue(Compact):
    """A frozen value that crosses the activity boundary."""


class RunName(JobKey):
    """A run of a job, as the archive names it.

    Its record holds the turns of the runs that it started from, too.
    """

    run: str


class ReplayMode(StrEnum):
    """Where statements come from.

    ``RERUN``: from the model. ``REEXECUTE``: from a record, executed anew and compared with it.
    ``RESTORE``: from a record, to come to where that was; nothing is archived, and another outcome
    is an error. But for a statement that the record ends in the midst of (``ReplayOrder.midst``).
    """

    RERUN = "rerun"
    REEXECUTE = "reexecute"
    RESTORE = "restore"


class AfterRecord(StrEnum):
    """What a replay does where the record ends."""

    STOP = "stop"
    CONTINUE = "continue"


class ReplayOrder(RecordValue):
    """How a run differs from its record from turn ``start`` on.

    ``source`` is the record, needed to follow it; ``until`` is the last turn that is taken from it
    (None: as long as it lasts). ``frozen`` answers effects from it too. ``statement`` is executed
    in place of the reply of turn ``start``, ``message`` is shown at that turn; ``model`` (what
    litellm is called with) and ``budget`` hold from it on.

    ``midst``: the record does not say that the statement of turn ``until`` ended. So the turn is
    the run's own, with the record's reply, and its statement goes on as after a killed worker: what
    has a result is not done again, and what was claimed is not called again.
    """

    id: str
    start: int
    mode: ReplayMode = ReplayMode.RERUN
    source: RunName | None = None
    until: int | None = None
    midst: bool = False
    frozen: bool = False
    then: AfterRecord = AfterRecord.STOP
    statement: str | None = None
    message: str | None = None
    model: dict[str, Any] | None = None
    budget: Budget | None = None

    @property
    def follows(self) -> bool:
        """Statements come from the record."""
        return self.mode is not ReplayMode.RERUN

    @property
    def answers(self) -> bool:
        """Effects are answered from the record."""
        return self.frozen or self.mode is ReplayMode.RESTORE

    def goes_on_with(self, turn: int) -> bool:
        """The statement of ``turn`` was in its midst, and goes on."""
        return self.midst and turn == self.until

    @property
    def begins(self) -> bool:
        """The first turn of the job that follows the record is archived, and what that begins
        with.
        """
        return self.mode is not ReplayMode.RESTORE or self.goes_on_with(1)


class EffectName(RecordValue):
    """One effect of a record. ``kept``: its result is archived in the new run too. ``missing``: the
    record has another call there, and so no result of the one that is asked for.
    """

    source: RunName
    kept: bool = True
    missing: bool = False


class ReplySource(RecordValue):
    """A reply for which no model is called: an edited ``statement``, or that of the turn of
    ``source``; with the time that it has there, where the statement goes on. ``clock``: the
    statement's clock stands there (seconds since 1970), since a record answers for the world.
    """

    statement: str | None = None
    source: RunName | None = None
    goes_on: bool = False
    clock: float = 0.0


class RecordedQuestion(RecordValue):
    """Which turn of a record is asked for, and whether the digests of its prompt's segments are
    wanted.

    ``summary`` asks for the summary of that name which was written for the turn's prompt, in place
    of the turn. The turn's statement goes on in the run of ``going_on`` that asks: what the record
    has of its effects is archived there too.
    """

    source: RunName
    turn: int
    layout: bool = False
    summary: str = ""
    going_on: JobKey | None = None


class RecordedTurn(RecordValue):
    """A turn of a record: the reply, its step, and what came of it.

    ``at`` is where the statement's clock stood (seconds since 1970). ``messages`` are the user's
    that the turn began with. ``execution`` is the statement's; ``nodes`` are the states of nodes
    that changed until the next call, or if ``ended`` until the run's end, without a tick, and
    ``events`` the context's until then; None if that is not recorded, or not of the turn alone.
    ``layout`` are the digests of the prompt's segments. ``interim`` is what came before its call,
    and ``read_of`` of its payloads the turn and the number of the reading, and the version of the
    job's own workspace that was read. ``woken`` tells, as ``Interim`` does, of the sleep behind it,
    if the turn after that is a call without a reply.
    """

    reply: ModelReply
    step: StepRef
    at: float
    messages: tuple[str, ...] = ()
    execution: dict[str, Any] | None = None
    nodes: tuple[dict[str, Any], ...] | None = None
    events: tuple[dict[str, Any], ...] | None = None
    ended: bool = False
    layout: tuple[str, ...] = ()
    interim: Interim = Interim()
    read_of: tuple[tuple[int, int, str], ...] = ()
    woken: str = ""


class ClaimQuestion(RecordValue):
    """A run that finds itself reset asks what to do; ``turn`` is the turn it is in, ``parent`` the
    step before.
    """

    batch: str
    job: str
    turn: int
    parent: StepRef | None = None


class Claim(RecordValue):
    """The answer: the replay that reset this run, if it was one, the recorded execution of the
    turn's statement, and the runs that were reset on the way here since the step before the turn,
    oldest first.
    """

    replay: ReplayOrder | None = None
    execution: dict[str, Any] | None = None
    bases: tuple[str, ...] = ()


class SaveOrder(RecordValue):
    """A checkpoint to be archived; ``state`` is None while the workflow replays."""

    batch: str
    job: str
    turn: int
    parent: StepRef | None = None
    interpreter: str
    state: dict[str, Any] | None = None


class Saved(RecordValue):
    """Where a checkpoint is archived; None if no state was given and none recorded yet."""

    checkpoint: StepRef | None = None


FIRST_PART_BYTES = 750_000
"""Of the parts of workers that did not know yet of parts with another size."""


class LoadOrder(RecordValue):
    """Part ``part`` of a checkpoint, from 0, of at most ``size`` bytes when compressed: what the
    JSON of its state has from ``start`` on.

    ``start`` None: the JSON is compressed as a whole, and that is cut. So it was before, and two
    workers with different zlibs cut different bytes.
    """

    checkpoint: StepRef
    part: int = 0
    size: int = FIRST_PART_BYTES
    start: int | None = None


class CheckpointPart(RecordValue):
    """A part of a checkpoint: base64 of it, compressed, and of how many bytes it was to be at most,
    before that.

    ``end`` is where the next one starts, and ``parts`` how many there are at least, up to that. Of
    a state that was compressed as a whole ``end`` is None, and ``parts`` how many there are.

    ``interpreter`` and ``build`` are those of the worker that loaded it, which takes the state
    over.
    """

    data: str
    parts: int
    size: int = FIRST_PART_BYTES
    end: int | None = None
    interpreter: str
    build: str = ""
    replay_version: int = 0
