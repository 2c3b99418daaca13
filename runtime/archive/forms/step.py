"""A finished turn: the reply to a call, and what came of the statement before it."""

from __future__ import annotations

from operator import attrgetter
from typing import Annotated, ClassVar, Literal

from pydantic import field_validator

from runtime.archive.forms.attempt import Capture
from runtime.archive.forms.base import Digest, Time, TimeIfKnown
from runtime.archive.forms.received import NewReceived, ReceivedForm, StoredReply
from runtime.archive.forms.told import checked_condensations, checked_execution, checked_nodes
from runtime.base.values import Failed, LeftOut, StepRef, Usage, Value
from runtime.job.aftermath import BetweenCalls
from runtime.projection.prefix import Prefix
from runtime.projection.prices import Prices, prompt_cost


class StoredPrefix(Value):
    """How much of a prompt stood as in the one before, in tokens of the job's encoding (see
    ``projection.prefix``).

    ``broken`` is the kind and origin of the first segment that moved in front of the tail,
    ``reason`` what moved it, ``lost`` the tokens that had to be written to the provider's cache
    anew and ``lost_usd`` what that cost more than reading them. ``estimated_usd`` is the whole
    prompt's price if the cache served the stable part. US dollars are 0 for an unknown price.
    """

    share: float
    stable: int
    new: int
    tail: int
    broken: str = ""
    reason: str = ""
    lost: int = 0
    lost_usd: float = 0.0
    estimated_usd: float = 0.0

    @classmethod
    def of(cls, prefix: Prefix, prices: Prices, reason: str) -> StoredPrefix:
        """That of a prompt's prefix; ``reason`` counts only where something moved."""
        broken = prefix.broken
        moved = "" if broken is None else f"{broken.kind} {broken.origin}"
        cost = prompt_cost(prices, stable=prefix.stable, new=prefix.new, tail=prefix.tail)
        return cls(
            share=round(prefix.share, 4),
            stable=prefix.stable,
            new=prefix.new,
            tail=prefix.tail,
            broken=moved,
            reason=reason if moved else "",
            lost=prefix.lost,
            lost_usd=round(prefix.lost * prices.rewrite * prices.usd, 9),
            estimated_usd=round(cost * prices.usd, 9),
        )


class StepFields(BetweenCalls):
    """What a step says that its writer knows: the reply, and what it cost.

    ``failed_attempts`` is what the turn's others used. ``clock`` is the time at which the clock of
    the reply's statement stands, where that is another than ``finished_at``: a record's.
    """

    run: str
    turn: int
    reply: StoredReply
    usage: Usage = Usage()
    cost_usd: float = 0.0
    failed_attempts: Annotated[Failed, LeftOut(attrgetter("empty"))] = Failed()
    prefix: Annotated[StoredPrefix | None, LeftOut()] = None
    finished_at: TimeIfKnown = ""
    clock: Annotated[TimeIfKnown, LeftOut()] = ""


class NewStep(StepFields, NewReceived):
    """A finished turn, to be archived. Its attempt holds the request and the parent."""


class Step(StepFields, ReceivedForm):
    """A reply, after its call.

    Parts: ``response``, ``chunks`` (pairs of integers: microseconds since the last, bytes).

    ``execution`` is that of the statement before. ``nodes`` are the states of the nodes that
    ``changed``, in a ``keyframe`` of all; ``nodes_digest`` is that of the digests of all.
    ``effects`` are the tool results of the statement before, ``checkpoints`` the job's state
    between the two turns, ``beside`` the calls since then that nothing else names (see ``naming``),
    ``definition`` the job's at the time, in keyframes. ``failed_attempts`` is what the turn's
    others used. ``reset_event_id`` is where a Temporal reset goes back to before this call.
    """

    kind: Literal["step"] = "step"
    parent: StepRef | None
    keyframe: bool
    capture: Capture
    changed: tuple[str, ...]
    nodes_digest: Digest
    effects: dict[str, Digest]
    checkpoints: Annotated[dict[str, Digest], LeftOut()] = {}
    beside: Annotated[dict[str, Digest], LeftOut()] = {}
    definition: StepRef | None
    started_at: Time

    _condensations = field_validator("condensations")(checked_condensations)
    _execution = field_validator("execution")(checked_execution)
    _nodes = field_validator("nodes")(checked_nodes)

    internal: ClassVar[frozenset[str]] = ReceivedForm.internal | {"checkpoints", "beside"}
