"""What the live context objects are: immutable states, one for each node.

A node never changes in place. A call or a tick makes a new state and the store puts it in the old
one's stead (``store.py``), so that taking a statement back is putting the old states back, and a
digest belongs to a value. The fields are those of docs/contract/executable-context.md sections 5.1
to 5.3.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal, Self

from pydantic import Field

from runtime.base.digests import digest_of
from runtime.base.values import Value
from runtime.context.sources import stands_in

NEVER = -1
"""``last_tick_turn`` of a node that no tick has reached yet."""

DIFF_LOD = 3
"""The level that shows what changed instead of what is there."""


class ContextValue(Value):
    """A value of this room: one that can be had again with some of its fields changed."""

    def evolve(self, **changes: Any) -> Self:
        """This value with ``changes``, validated like any other."""
        # No ``model_copy``, which validates nothing.
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_validate(fields | changes)


class Mode(StrEnum):
    """Whether ticks may update a node."""

    PAUSED = "paused"
    RUNNING = "running"


class FreqKind(StrEnum):
    """When a running node is updated: at each turn's tick; when its interval is over; prepared in
    the background.
    """

    SYNC = "Sync"
    PERIODIC = "Periodic"
    ASYNC = "Async"


class Freq(ContextValue):
    """A running node's schedule. ``seconds`` belongs to ``PERIODIC`` alone."""

    kind: FreqKind = FreqKind.SYNC
    seconds: float | None = None

    def spelled(self) -> str | list[Any]:
        """The value as the model writes it (a tuple becomes a list in JSON)."""
        return [self.kind.value, self.seconds] if self.seconds is not None else self.kind.value


class DirtyFlags(ContextValue):
    """Why what a node shows is behind: its position or policy was set, or its source is known to
    have moved on.
    """

    pos_changed: bool = False
    policy_changed: bool = False
    source_changed: bool = False

    @property
    def explicit(self) -> bool:
        """The model asked for something else: the next tick brings it, paused or not."""
        return self.pos_changed or self.policy_changed

    @property
    def any(self) -> bool:
        """Some flag is set."""
        return self.explicit or self.source_changed


class RenderedView(ContextValue):
    """A text that a node shows, and what it was made from.

    Lines are 0-based, ``last_line`` exclusive. ``pos``, ``budget`` (tokens asked for) and ``lod``
    are what was asked; ``basis`` and ``fingerprint`` are the reader's (``sources.ReadResult``),
    empty for a group.
    """

    text: str = ""
    tokens: int = 0
    lod: int = 0
    pos: str = "0:0"
    budget: int = 0
    basis: str = ""
    fingerprint: str = ""
    first_line: int = 0
    last_line: int = 0
    total_lines: int = 0
    truncated: bool = False
    note: str = ""


class NodeState(ContextValue):
    """What every node has.

    ``tokens`` is the budget for showing it, ``ALL_TOKENS`` for no bound of its own.

    ``base_lod`` is the last level other than 3: what level 3 compares. ``previous`` is what the
    model was shown before ``rendering``; ``pinned`` is the reason for which the node is pinned, if
    it is. ``last_tick_at`` is the workflow time of the last tick that reached the node, in seconds.
    """

    obj_id: str
    tokens: int
    lod: int
    base_lod: int
    mode: Mode = Mode.PAUSED
    freq: Freq | None = None
    min_turn_interval: int = Field(default=1, ge=1)
    last_tick_turn: int = NEVER
    last_tick_at: float | None = None
    dirty: DirtyFlags = DirtyFlags()
    pinned: str | None = None
    rendering: RenderedView = RenderedView()
    previous: RenderedView | None = None

    def digest(self) -> str:
        """Digest of the canonical JSON of all but ``last_tick_turn``, ``last_tick_at``, and a
        group's ``seen`` and ``details``.

        These move when a tick finds nothing that anyone would see; a digest that moved with them
        would make the archive record every running node in every turn, and a group recompute for
        the same summary.
        """
        return digest_of(
            self.model_dump(
                mode="json", exclude={"last_tick_turn", "last_tick_at", "seen", "details"}
            )
        )

    @property
    def awaits_summary(self) -> bool:
        """Whether something else stands in for its summary, which is to be prepared whether it runs
        or not.
        """
        return stands_in(self.rendering.note) and self.rendering.lod == self.base_lod

    def runs(self, kind: FreqKind) -> bool:
        """Whether the node is updated by ticks of this kind."""
        return self.mode is Mode.RUNNING and self.freq is not None and self.freq.kind is kind

    def is_due(self, turn: int, now: float) -> bool:
        """Whether it runs, and a tick of its kind may reach it now.

        Several missed intervals are one tick.
        """
        if self.runs(FreqKind.PERIODIC):
            return self.due_at() <= now
        return self.mode is Mode.RUNNING and self.throttle_allows(turn)

    def due_at(self) -> float:
        """The workflow time at which the next periodic tick is due; at once, if there was none
        since ``Run``.
        """
        if self.last_tick_at is None or self.freq is None or self.freq.seconds is None:
            return float("-inf")
        return self.last_tick_at + self.freq.seconds

    def ticked(self, turn: int, now: float) -> Self:
        """The node after a tick has reached it."""
        return self.evolve(last_tick_turn=turn, last_tick_at=now)

    def throttle_allows(self, turn: int) -> bool:
        """At least ``min_turn_interval`` turns have passed since the last tick."""
        return self.last_tick_turn == NEVER or turn - self.last_tick_turn >= self.min_turn_interval


class Change(StrEnum):
    """What became of a view's source: that it may have changed is all that is known of a listing,
    and where more files changed than are named.
    """

    CHANGED = "changed"
    DELETED = "deleted"
    MAYBE = "maybe"


class Written(ContextValue):
    """What a statement of the job's own did to a view's source, and in which turn.

    ``later``: the last turn after it whose statement may have changed it once more.
    """

    turn: int
    change: Change = Change.CHANGED
    # Left out where there is none, as ``written`` is.
    later: int | None = Field(default=None, exclude_if=lambda value: value is None)


class ViewState(NodeState):
    """A view onto a file.

    ``fault`` says why its source could not be read the last time, if it could not. ``written`` is
    what the job itself did to the source last, as long as nothing else is known to have changed it.
    """

    obj_type: Literal["view"] = "view"
    path: str
    pos: str
    fault: str | None = None
    # Left out where there is none: states of before have the digests that they had.
    written: Written | None = Field(default=None, exclude_if=lambda value: value is None)


class SeenMember(ContextValue):
    """A member as a summary was made from it: its state's digest, and the name by which it is
    referred to.

    ``changed`` is the turn of the last summary for which it was new or had changed, ``NEVER`` for
    none.
    """

    obj_id: str
    digest: str
    name: str
    changed: int = NEVER


class WrittenSummary(ContextValue):
    """A summary that a model wrote of a group, and the digest of what it was shown for it
    (``material.py``).
    """

    basis: str
    text: str


class Detail(ContextValue):
    """More of a member than it shows itself, read for a group.

    ``of`` is the fingerprint that the member's source then had.

    ``rendering`` is None where the source could not be read, or was another by then.
    """

    obj_id: str
    of: str
    budget: int
    rendering: RenderedView | None = None


class GroupState(NodeState):
    """A summary of its members.

    ``seen`` holds what the summary was made from: members' digests and names.

    ``details`` are what was read of members of which the group shows more than they do
    (``details.py``).

    ``summary`` is the last that a model wrote. It is shown as long as the members are as they were
    then.
    """

    obj_type: Literal["group"] = "group"
    members: tuple[str, ...]
    seen: tuple[SeenMember, ...] = ()
    summary: WrittenSummary | None = None
    details: tuple[Detail, ...] = ()


class NoteState(NodeState):
    """A note of the model's own. Its text is that of ``rendering``."""

    obj_type: Literal["note"] = "note"


class Wait(ContextValue):
    """Sleep for ``seconds`` (None: without end), or with ``change`` until one of ``nodes`` changes;
    of any, if none is named.
    """

    seconds: float | None = None
    change: bool = False
    nodes: tuple[str, ...] = ()


AnyNode = Annotated[ViewState | GroupState | NoteState, Field(discriminator="obj_type")]
