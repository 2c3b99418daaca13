"""More of a group's members than they show themselves: what expands them
(docs/contract/executable-context.md section 9.3).

A group at level 0 has a budget of its own. Where a member's part of it is larger than what the
member shows, and its source has more, a tick reads that much for the group; the member stays as it
is. What is read is shown as long as the member shows the same content of its source, so that a
paused member's group is no newer than the member.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

from runtime.context.index import creation_order
from runtime.context.sources import ALL_TOKENS, ReadRequest, ReadResult, ReadStatus
from runtime.context.states import AnyNode, Detail, DirtyFlags, GroupState, Mode, ViewState
from runtime.context.store import Cause, NodeStore
from runtime.context.views import rendering_of

MOST_MEMBERS = 50
"""Members of a group that are expanded; the further ones show what they show themselves."""

WHOLE_TOKENS = 20_000
"""What all members of a group without a budget are expanded to together."""

_BETWEEN = "/"


def due(store: NodeStore, reading: Collection[str]) -> tuple[ReadRequest, ...]:
    """What a tick that reads the views ``reading`` reads for groups.

    The id of each request names the group and the member.
    """
    groups = (store.group(obj_id) for obj_id in creation_order(store.index.groups))
    return tuple(request for group in groups for request in _wanted(store, group, reading))


def is_detail(obj_id: str) -> bool:
    """Whether a request of this id is for a group's member."""
    return _BETWEEN in obj_id


def take(store: NodeStore, request: ReadRequest, result: ReadResult) -> None:
    """Keep what was read; the group is recomputed at this tick."""
    group_id, _, member = request.obj_id.partition(_BETWEEN)
    group, state = store.group(group_id), store.view(member)
    if result.status is ReadStatus.UNCHANGED:
        return
    # A source that has changed since its member was read would make the group newer than its
    # member.
    same = result.status is ReadStatus.OK and result.fingerprint == state.rendering.fingerprint
    rendering = rendering_of(request, result, store.count) if same else None
    made = Detail(
        obj_id=member, of=state.rendering.fingerprint, budget=request.tokens, rendering=rendering
    )
    # Without those of members that were taken out since.
    others = tuple(d for d in group.details if d.obj_id != member and d.obj_id in group.members)
    dirty = DirtyFlags(policy_changed=True) if rendering is not None else group.dirty
    store.put(group.evolve(details=(*others, made), dirty=dirty), Cause.TICK)


def expanded(group: GroupState, state: AnyNode) -> AnyNode:
    """A member as the group shows it: with what was read for the group, if that is still of the
    same content.
    """
    for detail in group.details:
        if detail.obj_id == state.obj_id and detail.rendering is not None and _is_of(detail, state):
            return state.evolve(rendering=detail.rendering)
    return state


def _is_of(detail: Detail, state: AnyNode) -> bool:
    """Whether a member shows the content and the position that the detail was read at."""
    shown, read = state.rendering, detail.rendering
    return detail.of == shown.fingerprint and (read is None or read.pos == shown.pos)


def _wanted(store: NodeStore, group: GroupState, reading: Collection[str]) -> Iterator[ReadRequest]:
    """The readings that a group lacks.

    One that is paused takes none but those for what it was set to.
    """
    if group.base_lod != 0 or group.lod != 0:
        return
    share = (WHOLE_TOKENS if group.tokens == ALL_TOKENS else group.tokens) // len(group.members)
    known = {detail.obj_id: detail for detail in group.details}
    for member in group.members[:MOST_MEMBERS]:
        state = store.nodes[member]
        if (
            not isinstance(state, ViewState)
            or state.fault is not None
            or not _has_more(state, share)
        ):
            continue
        detail = known.get(member)
        if detail is not None and detail.budget == share:
            current = _is_of(detail, state) and member not in reading
            if current or (group.mode is Mode.PAUSED and not group.dirty.explicit):
                continue
        basis = (
            detail.rendering.basis if detail is not None and detail.rendering is not None else None
        )
        place = f"{group.obj_id}{_BETWEEN}{member}"
        yield ReadRequest(
            obj_id=place, path=state.path, pos=state.pos, tokens=share, lod=0, known=basis
        )


def _has_more(state: ViewState, share: int) -> bool:
    shown = state.rendering
    # A member that is behind would be expanded to what it does not show yet.
    return (shown.truncated or shown.lod != 0) and not state.dirty.any and share > shown.tokens
