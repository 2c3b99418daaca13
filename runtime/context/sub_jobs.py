"""The jobs that a job has started itself: which views show one (docs/batches.md)."""

from __future__ import annotations

from collections.abc import Iterable

from runtime.base.addresses import SCHEME
from runtime.base.digests import digest_of
from runtime.context.groups import inside_out
from runtime.context.index import creation_order
from runtime.context.sources import ReadRequest, ReadResult, ReadStatus
from runtime.context.states import (
    AnyNode,
    DirtyFlags,
    Freq,
    FreqKind,
    GroupState,
    Mode,
    ViewState,
)
from runtime.context.store import Cause, NodeStore

VIEW_TOKENS = 1_000
READ_SECONDS = 120.0
"""How often the view of a sub-job that runs is read."""

_NAME_CHARS, _DIGEST_CHARS = 80, 10
"""What of its job's name a sub-job's begins with, and what of a digest it ends with."""


def name_of(parent: str, asked: str) -> str:
    """The name of a sub-job of the job ``parent``, by the digest of what it was asked."""
    return f"{parent[:_NAME_CHARS]}.{asked.removeprefix('sha256:')[:_DIGEST_CHARS]}"


def is_named_after(name: str, parent: str) -> bool:
    """Whether a job of that name may be a sub-job of the job ``parent``."""
    digest = name.rpartition(".")[2]
    return len(digest) == _DIGEST_CHARS and name == name_of(parent, digest)


def address_of(job: str) -> str:
    """What a view of the job ``BATCH/JOB`` shows."""
    return f"{SCHEME}{job}"


def draft_of(obj_id: str, job: str, *, ended: bool) -> tuple[ViewState, ReadRequest]:
    """The view that ``spawn`` gives, and what it would ask its source for: the next tick does."""
    draft = ViewState(
        obj_id=obj_id,
        path=address_of(job),
        pos="0:0",
        tokens=VIEW_TOKENS,
        lod=0,
        base_lod=0,
        mode=Mode.PAUSED if ended else Mode.RUNNING,
        freq=Freq(kind=FreqKind.PERIODIC, seconds=READ_SECONDS),
    )
    request = ReadRequest(obj_id=obj_id, path=draft.path, tokens=VIEW_TOKENS)
    return draft, request


def first_reading(request: ReadRequest, goal: str) -> ReadResult:
    """What the view shows until the next tick reads the archive."""
    text = f"# Status\n\nstarted\n\n# Goal\n\n{goal}\n"
    return ReadResult(
        obj_id=request.obj_id,
        status=ReadStatus.OK,
        # No reader makes such a basis: the first true reading is never "unchanged".
        basis=digest_of(["sub-job", text]),
        fingerprint=digest_of(text),
        text=text,
        last_line=text.count("\n"),
        total_lines=text.count("\n"),
        size=len(text.encode()),
    )


def to_be_read(state: ViewState) -> ViewState:
    """The view of a sub-job that has ended: it is read once more, and no longer followed."""
    # As if the model had set it: that is read at the next tick, paused or not.
    dirty = DirtyFlags(policy_changed=True)
    return state.evolve(mode=Mode.PAUSED, dirty=dirty)


def mark_ended(store: NodeStore, addresses: Iterable[str]) -> None:
    """Have the views of sub-jobs that have ended show their ends from the next tick on."""
    for address in addresses:
        for obj_id in creation_order(store.index.paths.get(address, ())):
            store.put(to_be_read(store.view(obj_id)), Cause.CALL)


def is_sub_job(store: NodeStore, state: AnyNode) -> bool:
    """Whether the node is a view of a sub-job of the job's own."""
    return isinstance(state, ViewState) and state.path in store.sub_jobs


def has_ended(store: NodeStore, obj_id: str) -> bool:
    """Whether the node shows nothing but sub-jobs that have ended."""
    nodes = (store.nodes[one] for one in inside_out(store, [obj_id]))
    return all(
        isinstance(state, GroupState)
        or (isinstance(state, ViewState) and store.sub_jobs.get(state.path, False))
        for state in nodes
    )
