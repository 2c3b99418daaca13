"""``ContextGraph``: all live context objects of a job, as the rest of the runtime sees them.

A turn uses it in this order (docs/design.md section 3): ``due_reads`` and ``apply_tick``;
``take_deltas``, ``render`` and ``handle_table`` for the projection; then, for the statement,
``snapshot``, the calls, ``learn_names``, and ``restore`` should the statement have to be taken
back; ``take_events`` and ``changed_states`` for the log and the archive. Nothing here reads, waits
or looks at a clock.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Self, get_args

from runtime.context import (
    api,
    checkpoint,
    feed,
    groups,
    holding,
    own_changes,
    sub_jobs,
    ticks,
    waits,
)
from runtime.context.background import Background
from runtime.context.calls import Calls, framed, missing, text_of
from runtime.context.describe import small_digest
from runtime.context.feed import Delta
from runtime.context.handles import HandleTable, Table
from runtime.context.index import creation_order
from runtime.context.outcomes import NodeRef, Outcome, PendingCall, Raised, Returned
from runtime.context.own_changes import OwnChanges
from runtime.context.sources import ALL_TOKENS, ReadRequest, ReadResult
from runtime.context.states import AnyNode, GroupState, ViewState, Wait
from runtime.context.store import Cause, NodeStore, Snapshot
from runtime.history.events import (
    AsyncPayloadApplied,
    AsyncPayloadPrepared,
    GroupRecomputed,
    MethodCalled,
    NodeChanged,
    TickApplied,
)

ContextEvent = (
    MethodCalled
    | NodeChanged
    | TickApplied
    | GroupRecomputed
    | AsyncPayloadPrepared
    | AsyncPayloadApplied
)
_EVENTS: dict[str, type[ContextEvent]] = {event.__name__: event for event in get_args(ContextEvent)}


class ContextGraph:
    """The nodes, and what may be done with them.

    ``count_tokens`` counts a text with the job's encoding.

    ``writer`` tells whether a model writes summaries in this job.
    """

    def __init__(self, count_tokens: Callable[[str], int], *, writer: bool = False) -> None:
        self._store = NodeStore(count_tokens, writer=writer)
        self._calls = Calls(self._store)
        self.background = Background(self._store)
        self._table = HandleTable(self._store, self._calls.changed)
        self._stored_at = 0

    # They look at the store; what was archived is compared anew.
    MADE_ANEW: ClassVar[frozenset[str]] = frozenset({"_calls", "_table", "_stored_at"})

    def call_function(
        self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], *, turn: int
    ) -> Outcome:
        """One of the contract's functions, but ``finish``."""
        with self._store.open(turn):
            outcome = self._calls.function(name, args, kwargs)
            if name == "tick" and isinstance(outcome, Returned):
                ticks.bring_forward(self._store)
            return outcome

    def call_method(
        self, obj_id: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], *, turn: int
    ) -> Outcome:
        """A method of a node, in either spelling.

        An unknown ``obj_id`` is a ``KeyError``: handles do not get lost.
        """
        with self._store.open(turn):
            return self._calls.method(obj_id, name, args, kwargs)

    def complete(self, call: PendingCall, result: ReadResult, *, turn: int) -> Outcome:
        """Go on with a call that needed a read.

        A ``ValueError`` if ``result`` answers another one.
        """
        with self._store.open(turn):
            return self._calls.complete(call, result)

    def spawned(
        self,
        job: str,
        goal: str,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        ended: bool,
        turn: int,
    ) -> Outcome:
        """The view of the sub-job ``job`` (``BATCH/JOB``), which a call has started."""
        with self._store.open(turn):
            return self._calls.spawned(job, goal, args, kwargs, ended=ended)

    def know_sub_jobs(self, ended: Mapping[str, bool]) -> None:
        """The job's own sub-jobs by ``BATCH/JOB``, and whether each has ended."""
        self._store.sub_jobs = {sub_jobs.address_of(job): over for job, over in ended.items()}

    def sub_jobs_ended(self, jobs: Iterable[str], *, turn: int) -> None:
        """Have the views of sub-jobs that have ended read once more, at the next tick."""
        with self._store.open(turn):
            sub_jobs.mark_ended(self._store, [sub_jobs.address_of(job) for job in jobs])

    def views_of(self, jobs: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
        """The names of the views of sub-jobs among ``known`` and what they show."""
        store, addresses = self._store, {sub_jobs.address_of(job) for job in jobs}
        shown = ((obj_id, store.nodes[obj_id]) for obj_id in waits.under(store, known))
        return tuple(
            store.name(obj_id)
            for obj_id, state in shown
            if isinstance(state, ViewState) and state.path in addresses
        )

    def files_changed(self, changes: OwnChanges, *, turn: int) -> None:
        """Mark the views of files that the job's own statement of ``turn`` has just changed."""
        with self._store.open(turn):
            own_changes.mark(self._store, changes)

    def get_attribute(self, obj_id: str, name: str) -> Outcome:
        """An attribute of a node; an unknown one raises ``AttributeError`` in the statement."""
        state = self._store.nodes[obj_id]
        if name not in api.HANDLES[state.obj_type].attributes:
            return Raised("AttributeError", missing(state, name))
        # Attributes are answered from what is known: only calls may read.
        return Returned(self._attribute(state, name))

    def ticked_at(self, obj_id: str, ticked: int, *, turn: int) -> None:
        """Know at which turn a node was ticked last in the record that is followed: it does not
        have the ticks that brought nothing new.
        """
        with self._store.open(turn):
            state = self._store.nodes[obj_id].evolve(last_tick_turn=ticked)
            self._store.put(state, Cause.CALL)

    def _attribute(self, state: AnyNode, name: str) -> Any:
        match name:
            case "text":
                # What it was set to shows when it has been read so.
                set_only = isinstance(state, ViewState) and state.dirty.explicit
                return text_of(
                    self._store, state, state.lod, ALL_TOKENS if set_only else state.tokens
                )
            case "mode":
                return state.mode.value
            case "freq":
                spelled = None if state.freq is None else state.freq.spelled()
                return tuple(spelled) if isinstance(spelled, list) else spelled
            case "dirty":
                return groups.is_behind(self._store, state)
            case "members" if isinstance(state, GroupState):
                return [NodeRef(member) for member in state.members]
            case "first_line" | "last_line" | "total_lines" | "truncated":
                return getattr(state.rendering, name)
            case _:
                return getattr(state, name)

    def due_reads(
        self, *, turn: int, now: float, also: Sequence[str] = ()
    ) -> tuple[ReadRequest, ...]:
        """What the tick of ``turn`` at workflow time ``now`` has to read: sync ticks and ``also``,
        then periodic ones.
        """
        return ticks.due(self._store, turn, now, frozenset(also))

    def marked(self, requests: Sequence[ReadRequest]) -> bool:
        """Whether a mark, or a fault, calls one of the views behind that are to be read."""
        return ticks.marked(self._store, requests)

    def reached(self, due: Sequence[ReadRequest], told: Collection[str]) -> tuple[str, ...]:
        """Of what is ``due``, what a record's tick reached; of some its events have ``told``."""
        return ticks.reached(self._store, due, told)

    def unread(
        self, results: Sequence[ReadResult], ticked: Sequence[str]
    ) -> tuple[ReadResult, ...]:
        """What a record has no reading of, beside ``results``, though its tick read it, as it did
        the ``ticked``: it had nothing new.
        """
        return ticks.unread(self._store, results, ticked)

    def apply_tick(self, results: Sequence[ReadResult], *, turn: int, now: float) -> None:
        """The tick: readings into their views, then due groups. ``now`` is that of ``due_reads``.

        Raises:
            ValueError: for a reading nobody asked for.
        """
        with self._store.open(turn, now):
            ticks.apply(self._store, results)

    def apply_tick_asleep(
        self, results: Sequence[ReadResult], *, turn: int, now: float, also: Sequence[str]
    ) -> None:
        """``apply_tick`` between two turns, of which ``turn`` was the first.

        ``also`` is that of ``due_reads``.
        """
        with self._store.open(turn, now):
            ticks.apply(self._store, results, frozenset(also), Cause.ASLEEP)

    def take_waits(self) -> tuple[Wait, ...]:
        """What the statement asked to sleep for, in order."""
        taken = tuple(self._store.waits)
        self._store.waits.clear()
        return taken

    def awaited(self, wait: Wait) -> dict[str, str]:
        """The nodes whose change ends ``wait``, with the signatures of what they have to show."""
        return {
            obj_id: waits.signature(self._store, obj_id)
            for obj_id in waits.awaited(self._store, wait)
        }

    def changed_since(self, known: Mapping[str, str]) -> tuple[str, ...]:
        """The names of the nodes among ``known`` that no longer have the signature given there."""
        store = self._store
        return tuple(store.name(o) for o, was in known.items() if waits.signature(store, o) != was)

    def to_look_at(self, known: Iterable[str]) -> tuple[str, ...]:
        """The views that must be read to learn whether one of ``known`` has changed."""
        return tuple(waits.to_look_at(self._store, known))

    def unwritten(self, known: Iterable[str]) -> tuple[str, ...]:
        """The nodes among ``known`` and what they show for whose summaries something else stands
        in.
        """
        return tuple(waits.unwritten(self._store, known))

    def to_prepare_asleep(self, known: Iterable[str], *, falling: bool) -> tuple[str, ...]:
        """The nodes that are prepared while the job sleeps and waits for ``known``: these, and what
        they show.

        With ``falling``, when it falls asleep, also all others whose summaries are still to be
        written.
        """
        others = waits.summaries_wanted(self._store) if falling else []
        return tuple(dict.fromkeys((*waits.under(self._store, known), *others)))

    def name(self, obj_id: str) -> str:
        """The variable that held the node when the last statement ended, or its id."""
        return self._store.name(obj_id)

    def next_due(self) -> float:
        """The workflow time of the next periodic tick; infinity if there is none."""
        return waits.next_due(self._store)

    @property
    def goes_by_time(self) -> bool:
        """Whether what a tick comes to depends on its time."""
        return waits.goes_by_time(self._store)

    def learn_names(self, names: Mapping[str, str]) -> None:
        """The statement's variables that hold handles, by name: summaries and deltas call nodes by
        them.
        """
        # The first of a node's names is the one that it is called by.
        self._store.names = {obj_id: name for name, obj_id in reversed(list(names.items()))}

    def pause_out_of_sight(self, *, turn: int) -> None:
        """Pause the running nodes that no variable holds any more, and no wait waits for.

        Call it at a statement's end, after ``learn_names``.
        """
        with self._store.open(turn):
            awaited = (node for wait in self._store.waits for node in wait.nodes)
            # Waits too: a node that is only waited for must go on being read.
            self._store.held = tuple(dict.fromkeys((*self._store.names, *awaited)))
            holding.pause_out_of_sight(self._store)

    def take_events(self, next_id: Callable[[], str]) -> tuple[ContextEvent, ...]:
        """What happened since the last time, in order, each with an id from ``next_id``."""
        events = tuple(
            _EVENTS[e.type].model_validate({"id": next_id()} | e.fields) for e in self._store.events
        )
        self._store.events.clear()
        return events

    def take_deltas(self) -> tuple[Delta, ...]:
        """The delta feed since the last time. Call it once for each projection.

        It is the moment at which the present renderings count as shown: later deltas and level 3
        compare with them.
        """
        deltas = feed.pending(self._store)
        self._store.changed = frozenset(delta.obj_id for delta in deltas)
        self._store.shown_before.clear()
        return deltas

    def render(self, obj_id: str, tokens: int | None = None) -> str:
        """A node's text under its header, from what is known: no read.

        ``tokens`` cuts it by whole lines; the node's own bound does by default.
        """
        state = self._store.nodes[obj_id]
        bound = state.tokens if tokens is None else tokens
        text = text_of(self._store, state, state.lod, bound)
        return framed(self._store, state, state.lod, text)

    def handle_table(self, names: Mapping[str, str], budget: int | None = None) -> Table:
        """One line for each node that a variable holds, and for each running or pinned one that
        none does.

        ``changed`` marks what ``take_deltas`` named last, and what changed after that. Lines beyond
        ``budget`` tokens are counted.
        """
        return self._table.of(names, budget)

    def changed_states(self) -> tuple[dict[str, Any], ...]:
        """The states in small, for the archive, whose digest moved since they were last asked for.

        Those of what a model sums up in the background have a ``basis``, the digest of all but
        that, and say whether nothing else changed (``rewritten``): when a summary is there is
        chance.
        """
        store = self._store
        candidates = store.index.changed_since(self._stored_at)
        self._stored_at = store.index.clock
        states: list[dict[str, Any]] = []
        stored = creation_order(obj_id for obj_id in candidates if obj_id in store.nodes)
        bases = groups.bases_in_all(store, stored)
        for obj_id in stored:
            digest, basis = store.digest(obj_id), bases[obj_id]
            before, _, basis_before = store.recorded.get(obj_id, "").partition(" ")
            if before != digest:
                state = dict(small_digest(store.nodes[obj_id], digest))
                if basis is not None:
                    state |= {"basis": basis, "rewritten": basis == basis_before}
                states.append(state)
            store.recorded[obj_id] = digest if basis is None else f"{digest} {basis}"
        return tuple(states)

    def digest(self, obj_id: str) -> str:
        """The digest of a node's state."""
        return self._store.digest(obj_id)

    def state(self, obj_id: str) -> AnyNode:
        """A node's state. ``KeyError`` if there is no such node."""
        return self._store.nodes[obj_id]

    @property
    def clock(self) -> int:
        """This moment, for ``touched_since``."""
        return self._store.index.clock

    def touched_since(self, clock: int) -> list[str]:
        """The nodes that became another state, or are gone, after that moment.

        As long as what has changed.
        """
        return self._store.index.changed_since(clock)

    def regrouped_since(self, clock: int) -> bool:
        """Whether a group was recomputed after that moment: its interval runs from then on, also
        where it shows what it did.
        """
        return any(obj_id in self._store.index.groups for obj_id in self.touched_since(clock))

    def has(self, obj_id: str) -> bool:
        """Whether there is such a node."""
        return obj_id in self._store.nodes

    @property
    def groups(self) -> list[str]:
        """The groups among the nodes, in creation order."""
        return creation_order(self._store.index.groups)

    @property
    def obj_ids(self) -> tuple[str, ...]:
        """All nodes, in creation order."""
        return tuple(self._store.nodes)

    def snapshot(self) -> Snapshot:
        """The present as a value, for ``restore``."""
        return self._store.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Undo all that happened since ``snapshot``, ids and events included."""
        self._store.restore(snapshot)
        # All are looked at once more: what was archived is compared anew.
        self._stored_at = 0

    def dump(self) -> dict[str, Any]:
        """The whole graph as JSON data."""
        return checkpoint.dump(self._store) | {"background": self.background.dump()}

    @classmethod
    def load(
        cls, data: dict[str, Any], count_tokens: Callable[[str], int], *, writer: bool = False
    ) -> Self:
        """The graph that ``dump`` gave. ``InputError`` if it is of another version or damaged."""
        graph = cls(count_tokens, writer=writer)
        graph.background.load(checkpoint.load(graph._store, data).background)
        return graph
