"""When a group's summary is recomputed, in which order, and what membership is allowed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from runtime.base.digests import digest_of
from runtime.context import material
from runtime.context.details import expanded
from runtime.context.outcomes import Refused
from runtime.context.sources import (
    ALL_TOKENS,
    GROUP_STANDS_IN,
    SUMMARY_LOD,
    ReadRequest,
    ReadResult,
    note_after,
)
from runtime.context.states import (
    NEVER,
    AnyNode,
    DirtyFlags,
    FreqKind,
    GroupState,
    Mode,
    RenderedView,
    SeenMember,
    WrittenSummary,
)
from runtime.context.store import Cause, NodeStore
from runtime.context.summary import (
    LEAST_WRITTEN,
    RECENT_TURNS,
    Member,
    room_beside_names,
    summarise,
    with_names,
)


def reaches(store: NodeStore, start: str, target: str) -> bool:
    """Whether ``target`` is ``start`` itself or a member of it, at any depth."""
    stack, visited = [start], set[str]()
    while stack:
        obj_id = stack.pop()
        if obj_id == target:
            return True
        state = store.nodes[obj_id]
        if obj_id not in visited and isinstance(state, GroupState):
            visited.add(obj_id)
            stack.extend(state.members)
    return False


def with_members(store: NodeStore, group: GroupState, added: Iterable[str]) -> GroupState:
    """``group`` with more members; one that it has already is left where it is.

    Raises:
        Refused: with a ``ValueError``, if a group would contain itself.
    """
    members = list(group.members)
    for obj_id in added:
        if reaches(store, obj_id, group.obj_id):
            raise Refused(
                ValueError,
                f"Add: {store.name(obj_id)} contains {store.name(group.obj_id)}; a group cannot"
                " contain itself",
            )
        if obj_id not in members:
            members.append(obj_id)
    return group.evolve(members=tuple(members), dirty=DirtyFlags(policy_changed=True))


def seen_now(store: NodeStore, group: GroupState) -> tuple[SeenMember, ...]:
    """What a summary made now would be made from; equal to ``seen`` if no member has changed."""
    before = {member.obj_id: member.changed for member in group.seen}
    return tuple(
        SeenMember(
            obj_id=m, digest=store.digest(m), name=store.name(m), changed=before.get(m, NEVER)
        )
        for m in group.members
    )


def changed_members(group: GroupState, now: Iterable[SeenMember]) -> frozenset[str]:
    """The members that are new or have changed since the group's last summary; none before the
    first.
    """
    before = {member.obj_id: member.digest for member in group.seen}
    return frozenset(m.obj_id for m in now if before and before.get(m.obj_id) != m.digest)


def is_due(store: NodeStore, group: GroupState, cause: Cause) -> bool:
    """Its policy was set, or it runs, its throttle or interval allows it, and a member changed.

    While a job sleeps, no turn passes between two ticks, and the throttle, which counts turns, does
    not hold.
    """
    if group.dirty.explicit:
        return True
    allowed = group.is_due(store.turn, store.now) or (
        cause is Cause.ASLEEP and group.mode is Mode.RUNNING and not group.runs(FreqKind.PERIODIC)
    )
    return allowed and seen_now(store, group) != group.seen


def is_behind(store: NodeStore, state: AnyNode) -> bool:
    """Whether a node shows something older than what is known: a flag is set, or a group's member
    has changed.
    """
    if isinstance(state, GroupState):
        return state.dirty.any or seen_now(store, state) != state.seen
    return state.dirty.any


def summary_of(store: NodeStore, group: GroupState, *, lod: int, tokens: int) -> RenderedView:
    """The group's rendering from its members' present states."""
    now = seen_now(store, group)
    changed = changed_members(group, now)
    newest = max(member.changed for member in now)
    members = [
        Member(
            member.name,
            expanded(group, store.nodes[member.obj_id]) if lod == 0 else store.nodes[member.obj_id],
            changed=member.obj_id in changed,
            recent=member.changed != NEVER and newest - member.changed < RECENT_TURNS,
        )
        for member in now
    ]
    note = ""
    if lod == SUMMARY_LOD and _can_be_written(store, members, tokens):
        written = group.summary
        # A written summary of members as they were says nothing of them as they are.
        if written is not None and written.basis == material.basis_of(store, group):
            text = with_names(members, written.text, budget=tokens, count=store.count)
            return RenderedView(text=text, tokens=store.count(text), lod=lod, budget=tokens)
        note = note_after(group.rendering.note, GROUP_STANDS_IN)
    text = summarise(members, lod=lod, budget=tokens, count=store.count)
    return RenderedView(text=text, tokens=store.count(text), lod=lod, budget=tokens, note=note)


def _can_be_written(store: NodeStore, members: Iterable[Member], tokens: int) -> bool:
    """Whether a model could sum the members up: there is one, something to tell, and room for
    it.
    """
    known = tuple(members)
    if not store.writer or all(not member.state.rendering.text.strip() for member in known):
        return False
    return tokens == ALL_TOKENS or room_beside_names(known, tokens, store.count) >= LEAST_WRITTEN


def bases_in_all(store: NodeStore, obj_ids: Iterable[str]) -> dict[str, str | None]:
    """For each node the digest of its state but for summaries that a model writes, its own and
    those of its members; None where there is none. Those of what they are made of are among them.
    """
    bases: dict[str, str | None] = {}
    for obj_id in inside_out(store, obj_ids):
        bases[obj_id] = _basis_in_all(store, obj_id, bases)
    return bases


def _basis_in_all(store: NodeStore, obj_id: str, known: Mapping[str, str | None]) -> str | None:
    state = store.nodes[obj_id]
    bases = [known[member] for member in state.members] if isinstance(state, GroupState) else []
    if not store.writer or (state.base_lod != SUMMARY_LOD and not any(bases)):
        return None
    # What differs by when a summary was written, and by nothing that anybody asked for.
    beside = {"last_tick_turn", "last_tick_at", "seen", "dirty", "summary", "rendering", "previous"}
    own = state.model_dump(mode="json", exclude=beside)
    if isinstance(state, GroupState):
        parts = [basis or store.digest(m) for m, basis in zip(state.members, bases, strict=True)]
    else:
        parts = [state.rendering.fingerprint]
    return digest_of([own, parts])


def is_ripe(store: NodeStore, group: GroupState, *, asleep: bool) -> bool:
    """Whether a model may sum the group up now: it shows its members as they are, and their own
    summaries are there.

    A member that changed at this turn's tick may change at the next, and a summary of it would be
    paid for in vain; a job that sleeps has let that time pass.
    """
    return (
        not group.dirty.explicit
        and seen_now(store, group) == group.seen
        and not any(store.nodes[member].awaits_summary for member in group.members)
        and (asleep or all(member.changed < store.turn for member in group.seen))
    )


def request_for(group: GroupState) -> ReadRequest:
    """What asks for the group's summary.

    It names no source: what it is made from is archived beside it.
    """
    return ReadRequest(obj_id=group.obj_id, path="", tokens=group.tokens, lod=SUMMARY_LOD)


def with_written(store: NodeStore, group: GroupState, result: ReadResult) -> GroupState:
    """``group`` with the summary that a model wrote of its members as they are."""
    # ``payloads.holds`` was asked before: the members are those that the model was shown.
    summary = WrittenSummary(basis=material.basis_of(store, group), text=result.text)
    changed = group.evolve(summary=summary)
    rendering = summary_of(store, changed, lod=group.base_lod, tokens=group.tokens)
    return changed.evolve(rendering=rendering, previous=store.last_shown(group.obj_id))


def recomputed(store: NodeStore, group: GroupState) -> GroupState:
    """``group`` with a summary of its members as they are now."""
    rendering = summary_of(store, group, lod=group.base_lod, tokens=group.tokens)
    # The same text is no change: level 3 goes on comparing with what was shown before it.
    previous = group.previous if rendering == group.rendering else store.last_shown(group.obj_id)
    now = seen_now(store, group)
    changed = changed_members(group, now)
    seen = tuple(m.evolve(changed=store.turn) if m.obj_id in changed else m for m in now)
    return group.evolve(rendering=rendering, previous=previous, seen=seen, dirty=DirtyFlags())


def inside_out(store: NodeStore, roots: Iterable[str]) -> list[str]:
    """The nodes and all that they are made of, each once, members before their groups; otherwise in
    the order given.
    """
    order: list[str] = []
    visited: set[str] = set()
    # With a stack of its own: groups may be nested deeper than Python's calls, and one may be a
    # member of many.
    stack = [(obj_id, False) for obj_id in reversed(list(roots))]
    while stack:
        obj_id, done = stack.pop()
        state = store.nodes[obj_id]
        if done:
            order.append(obj_id)
        elif obj_id not in visited:
            visited.add(obj_id)
            stack.append((obj_id, True))
            if isinstance(state, GroupState):
                stack.extend((member, False) for member in reversed(state.members))
    return order


def recompute_due(store: NodeStore, roots: Iterable[str], cause: Cause) -> None:
    """Recompute every due group under ``roots``, members before the groups that contain them."""
    for obj_id in inside_out(store, roots):
        group = store.nodes[obj_id]
        if isinstance(group, GroupState) and is_due(store, group, cause):
            done = recomputed(store, group)
            # A call does not know the time; an interval runs from tick to tick.
            done = (
                done.evolve(last_tick_turn=store.turn)
                if cause is Cause.CALL
                else done.ticked(store.turn, store.now)
            )
            store.put(done, cause)
