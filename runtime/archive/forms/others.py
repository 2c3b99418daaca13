"""The forms of what is small: a job's definition, a run's start, effects, checkpoints, replays and
their claims.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import field_validator

from runtime.archive.forms.base import Count, Digest, Form, Sized, Time
from runtime.archive.forms.told import checked_order
from runtime.base.values import LeftOut, StepRef


class Definition(Form):
    """A job's definition; ``number`` counts from 1.

    ``run`` was begun by the ``order``, by which no other may begin.
    """

    kind: Literal["definition"] = "definition"
    number: int
    definition: dict[str, Any]
    order: Annotated[str, LeftOut()] = ""
    run: Annotated[str, LeftOut()] = ""


class RunStart(Form):
    """A run was started at ``turn``, from the step ``parent`` or from nothing.

    ``claims``: by which it is a replay.

    ``definition`` is the job's at the time; ``earlier`` are the heads of the job's runs before, as
    far as no other start names them. ``through`` are the runs, oldest first, that the job came
    through since ``parent``, and that are no part of its timeline for want of a call: what they
    read is.
    """

    kind: Literal["run"] = "run"
    run: str
    turn: int
    parent: StepRef | None
    started_at: Time
    claims: Annotated[dict[str, Digest], LeftOut()] = {}
    definition: Annotated[StepRef | None, LeftOut()] = None
    earlier: Annotated[dict[str, Digest], LeftOut()] = {}
    through: Annotated[tuple[str, ...], LeftOut()] = ()


class Effect(Form):
    """The result of a tool call or a change of a turn's statement, or of readings.

    Parts: ``stdout`` and ``stderr`` of a command, whole.

    ``uses``: what the store keeps for all jobs that it shows.
    """

    kind: Literal["effect"] = "effect"
    run: str
    turn: int
    effect: Count
    value: dict[str, Any]
    uses: Annotated[dict[str, Digest], LeftOut()] = {}


class CheckpointForm(Form):
    """A job's state after a turn.

    Parts: ``rest`` and perhaps ``session``; in earlier releases ``state``, or ``state.layout``.
    ``parent`` is the turn's step; ``against`` the checkpoint that its session is stored against,
    and ``number`` how many came before it.
    """

    kind: Literal["checkpoint"] = "checkpoint"
    run: str
    turn: int
    parent: StepRef
    interpreter: str
    state: Sized
    number: Annotated[Count, LeftOut()] = 0
    against: Annotated[StepRef | None, LeftOut()] = None


class ReplayForm(Form):
    """A replay was ordered."""

    kind: Literal["replay"] = "replay"
    id: str
    order: dict[str, Any]
    ordered_at: Time

    _order = field_validator("order")(checked_order)


class ClaimForm(Form):
    """A run is the replay ``id``. ``order`` is the digest of what was ordered."""

    kind: Literal["claim"] = "claim"
    id: str
    run: str
    order: Digest
