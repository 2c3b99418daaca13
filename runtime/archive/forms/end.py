"""The end of a run, which closes its chain of steps."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import field_validator

from runtime.archive import keys
from runtime.archive.forms.base import Digest, Form, TimeIfKnown
from runtime.archive.forms.told import checked_condensations, checked_execution, checked_nodes
from runtime.base.spec.models import Amount
from runtime.base.values import LeftOut, StepRef, Usage, Value
from runtime.job.aftermath import Aftermath


class Signature(Value):
    """A signature of a run's end; key and value in base64. See ``signing``."""

    algorithm: Literal["ed25519"]
    public_key: str
    value: str


class HandedPatch(Value):
    """A patch that is handed over with a job's result: where the archive has it, its digest and its
    bytes, and how many paths differ. ``masked`` values in it are masks; ``untold`` has a line for
    what no patch tells.
    """

    address: str
    digest: Digest
    bytes: int
    paths: int
    masked: int = 0
    untold: tuple[str, ...] = ()


def _no_score(score: float | None) -> bool:
    """A score of 0 is one."""
    return score is None


class NewEnd(Aftermath):
    """The end of a run, to be archived. ``parent`` is the last step, ``turn`` its turn, or the next
    one, if that had begun.

    ``score`` and ``remarks`` are those of the job's ``check``, ``lent`` is what its sub-jobs spent,
    and ``unread`` are the messages to it that came too late for a turn.
    """

    run: str
    turn: int
    parent: StepRef | None
    status: str
    reason: str = ""
    result: Any = None
    patch: Annotated[HandedPatch | None, LeftOut()] = None
    usage: Usage = Usage()
    cost_usd: float = 0.0
    ended_at: TimeIfKnown = ""
    score: Annotated[float | None, LeftOut(_no_score)] = None
    remarks: Annotated[str, LeftOut()] = ""
    lent: Annotated[Amount | None, LeftOut()] = None
    unread: Annotated[int, LeftOut()] = 0

    @property
    def turns(self) -> int:
        """How many turns have a reply: what ``parent`` is the step of, which a fork's job begins
        with.
        """
        place = None if self.parent is None else keys.parse_turn_key(self.parent.key)
        return 0 if place is None else place.turn


class End(NewEnd, Form):
    """The end of a run. ``signature`` is over the key and all other fields (see ``signing``)."""

    kind: Literal["end"] = "end"
    nodes_digest: Digest
    effects: dict[str, Digest]
    checkpoints: Annotated[dict[str, Digest], LeftOut()] = {}
    beside: Annotated[dict[str, Digest], LeftOut()] = {}
    definition: Annotated[StepRef | None, LeftOut()] = None
    signature: Annotated[Signature | None, LeftOut()] = None

    _condensations = field_validator("condensations")(checked_condensations)
    _execution = field_validator("execution")(checked_execution)
    _nodes = field_validator("nodes")(checked_nodes)

    internal: ClassVar[frozenset[str]] = Form.internal | {
        "nodes_digest", "effects", "checkpoints", "beside", "definition", "signature"
    }  # fmt: skip
