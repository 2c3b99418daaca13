"""The runs of a job as a tree, and where two timelines part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any
from urllib.parse import unquote

from runtime.archive import keys
from runtime.archive.forms import End, Step
from runtime.archive.gaps import Gap, check_turns, named_gap, start_gap
from runtime.archive.job import JobArchive
from runtime.archive.recorded import end_after
from runtime.archive.replays import claimed_orders
from runtime.base.errors import ObjectCorrupt
from runtime.base.standings import DAMAGED
from runtime.base.values import Value

_APART = frozenset(
    {
        *("started_at", "ended_at", "cost", "divergences"),
        *("execution_id", "statement_id", "events"),
    }
)
"""Of an execution: what is another each time, what a replay adds, and what goes by the number of
events before it, of which a message is one.
"""


class Began(StrEnum):
    """How a run came to be."""

    FIRST = "first"
    """With the job, or anew."""
    CONTINUED = "continued"
    """The run before was full."""
    REPLAY = "replay"
    RESET = "reset"
    """By Temporal's own means."""
    FORK = "fork"


class Stands(StrEnum):
    """What has become of a run."""

    ENDED = "ended"
    """The archive has its end."""
    CONTINUED = "continued"
    TAKEN_BACK = "taken back"
    """A reset ended it, or it was ended from outside, before its own end."""
    OPEN = "open"


class RunNode(Value):
    """A run in the tree: the job and run it goes on from, after which turn, and why.

    Its calls are at the turns ``first`` to ``last``; of a run that ended before its first call,
    ``last`` is the turn before. ``order`` is the replay's that it is. ``next_run`` is the run in
    which a continued one goes on, or which came after one that was taken back. An open run is the
    newest one: whether Temporal still has it, it alone can tell.
    """

    job: str
    run: str
    parent_job: str | None
    parent_run: str | None
    first: int
    last: int
    order: dict[str, Any] | None
    status: str | None
    reason: str
    began: Began = Began.FIRST
    stands: Stands = Stands.OPEN
    next_run: str | None = None

    @property
    def is_fork(self) -> bool:
        """Whether it goes on from another job."""
        return self.parent_job not in {None, self.job}


def run_tree(archive: JobArchive, gaps: list[Gap]) -> list[RunNode]:
    """The job's runs, oldest first.

    What cannot be read of them is put into ``gaps``: an end makes its run ``damaged``, and a run of
    which nobody knows where it begins is left out.
    """
    orders = claimed_orders(archive, gaps)
    nodes = []
    for run in archive.runs_that_called():
        try:
            nodes.append(_node(archive, run, orders.get(run), gaps))
        except ObjectCorrupt as error:
            gaps.append(named_gap(error))
    _put_uncalled(archive, nodes, orders, gaps)
    lasts = {node.run: node.last for node in nodes if node.status is None}
    # In a second pass: how a run began depends on where the one before it stopped.
    begun = [node.model_copy(update={"began": _began(node, lasts)}) for node in nodes]
    return [
        node.model_copy(
            update=dict(zip(("stands", "next_run"), _stands(node, begun[place + 1 :]), strict=True))
        )
        for place, node in enumerate(begun)
    ]


def _put_uncalled(
    archive: JobArchive,
    nodes: list[RunNode],
    orders: dict[str, dict[str, Any]],
    gaps: list[Gap],
) -> None:
    """Put the runs that ended before their first call among those that called, by their times."""
    ends = []
    for run in archive.uncalled_runs():
        try:
            if (end := archive.end(run)) is not None:
                ends.append(end)
        except ObjectCorrupt as error:
            gaps.append(named_gap(error))
    for end in sorted(ends, key=lambda end: end.ended_at):
        earlier = (
            place
            for place, node in enumerate(nodes, 1)
            if (archive.began(node.run) or "") <= end.ended_at
        )
        nodes.insert(max(earlier, default=0), _uncalled(archive, end, orders.get(end.run)))


def _uncalled(archive: JobArchive, end: End, order: dict[str, Any] | None) -> RunNode:
    place = keys.parse_turn_key(end.parent.key) if end.parent is not None else None
    return RunNode(
        job=str(archive.job),
        run=end.run,
        **_parent(place),
        first=end.turns + 1,
        last=end.turns,
        order=order,
        status=end.status,
        reason=end.reason,
    )


def _parent(place: keys.TurnKey | None) -> dict[str, Any]:
    """The job and run of the step from which a run goes on."""
    return {
        "parent_job": str(keys.job_of(place.job)) if place is not None else None,
        "parent_run": unquote(place.run) if place is not None else None,
    }


def _began(node: RunNode, lasts: dict[str, int]) -> Began:
    if node.is_fork:
        return Began.FORK
    if node.order is not None:
        return Began.REPLAY
    if node.parent_run is None:
        return Began.FIRST
    last = lasts.get(node.parent_run)
    # A run that goes on begins right behind the last turn; a reset goes back before it.
    return Began.CONTINUED if last is not None and node.first == last + 1 else Began.RESET


def _stands(node: RunNode, later: list[RunNode]) -> tuple[Stands, str | None]:
    if node.status is not None:
        return Stands.ENDED, None
    if not later:
        return Stands.OPEN, None
    followed = next(
        (one for one in later if one.began is Began.CONTINUED and one.parent_run == node.run), None
    )
    return (
        (Stands.CONTINUED, followed.run)
        if followed is not None
        else (Stands.TAKEN_BACK, later[0].run)
    )


def _node(archive: JobArchive, run: str, order: dict[str, Any] | None, gaps: list[Gap]) -> RunNode:
    spans = archive.lineage.spans(run)
    if (gap := start_gap(archive, spans[-1].prefix)) is not None:
        gaps.append(gap)
    parent = (
        keys.parse_turn_key(keys.step_key_in(spans[-2].prefix, spans[-1].first - 1))
        if len(spans) > 1
        else None
    )
    own = [
        place.turn
        for key in archive.store.list(spans[-1].prefix)
        if (place := _call(key)) is not None
    ]
    status, reason, last = None, "", max(own, default=spans[-1].first)
    try:
        if (end := archive.end(run)) is not None:
            # Of a pack that cannot be read no turn is listed.
            status, reason, last = end.status, end.reason, max(last, end.turns)
    except ObjectCorrupt as error:
        gaps.append(named_gap(error))
        status = DAMAGED
    return RunNode(
        job=str(archive.job),
        run=run,
        **_parent(parent),
        first=spans[-1].first,
        last=last,
        order=order,
        status=status,
        reason=reason,
    )


def _call(key: str) -> keys.TurnKey | None:
    place = keys.parse_turn_key(key)
    return place if place is not None and place.kind in {"attempt", "step"} else None


@dataclass(frozen=True)
class Turn:
    """One turn of a timeline: its step, and the execution of its statement."""

    step: Step
    execution: dict[str, Any] | None


@dataclass(frozen=True)
class Parting:
    """Where two timelines part: turns, each None if that never differs as far as both go.

    ``shared`` is the last turn that is the same step in both. ``statement`` is the first whose
    reply differs, ``execution`` the first whose statement came to something else.
    """

    shared: int
    statement: int | None
    execution: int | None


def timeline_of(archive: JobArchive, run: str) -> tuple[dict[int, Turn], End | None]:
    """The turns of a run and how it ended.

    Raises:
        ObjectCorrupt: if a turn cannot be read.
    """
    check_turns(archive, run)
    steps, end = list(archive.steps(run)), archive.end(run)
    last = end_after(archive, run, steps[-1]) if steps else None
    after = [*[step.execution for step in steps[1:]], last.execution if last is not None else None][
        : len(steps)
    ]
    return {
        step.turn: Turn(step, execution) for step, execution in zip(steps, after, strict=True)
    }, end


def parting(first: dict[int, Turn], second: dict[int, Turn]) -> Parting:
    """Where two timelines part."""
    both = sorted(first.keys() & second.keys())
    shared = [n for n in both if first[n].step.ref == second[n].step.ref]
    return Parting(
        shared=max(shared, default=0),
        statement=next((n for n in both if _said(first[n].step) != _said(second[n].step)), None),
        execution=next((n for n in both if differing(first[n], second[n])), None),
    )


def _said(step: Step) -> Any:
    """What a reply says, without the ids that a provider gives."""
    reply = step.reply
    return (reply.text, reply.refusal, [(call.name, call.arguments) for call in reply.tool_calls])


def differing(first: Turn, second: Turn) -> list[str]:
    """What of their statements' outcomes is not the same, by the names that records have."""
    one, other = _done(first), _done(second)
    return [name for name in {**one, **other} if one.get(name) != other.get(name)]


def _done(turn: Turn) -> dict[str, Any]:
    return {name: value for name, value in (turn.execution or {}).items() if name not in _APART}


def branches(nodes: list[RunNode]) -> Iterator[tuple[int, RunNode, tuple[bool, ...]]]:
    """The runs in the order of a drawn tree: depth, run, and for each level above whether more
    comes there.
    """
    known = {node.run for node in nodes}
    children: dict[str | None, list[RunNode]] = {}
    for node in nodes:
        # A fork goes on from a run of another job: here it begins a tree of its own.
        children.setdefault(node.parent_run if node.parent_run in known else None, []).append(node)
    stack: list[tuple[int, RunNode, tuple[bool, ...]]] = []

    def push(parent: str | None, depth: int, above: tuple[bool, ...]) -> None:
        below = children.get(parent, [])
        for place in range(len(below) - 1, -1, -1):
            stack.append((depth, below[place], (*above, place < len(below) - 1)))

    push(None, 0, ())
    while stack:
        depth, node, more = stack.pop()
        yield depth, node, more
        push(node.run, depth + 1, more)
