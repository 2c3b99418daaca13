"""Reading one job's archive: runs, turns, steps, attempts, requests, responses, nodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any, Self, TypeVar
from urllib.parse import unquote

from runtime.archive import keys
from runtime.archive.container import ArchivedObject
from runtime.archive.forms import Attempt, Chunk, End, Exchange, Failure, Step
from runtime.archive.layouts import Layout, layout_of
from runtime.archive.lineage import Lineage
from runtime.archive.nodes import NodeStates
from runtime.archive.objects import Objects
from runtime.archive.requests import RequestReader
from runtime.archive.responses import read_chunks, read_response
from runtime.archive.run_order import named_by, oldest_first
from runtime.archive.stores.protocol import ObjectStore
from runtime.base.errors import NotFound, ObjectCorrupt, ObjectMissing
from runtime.base.values import JobKey, StepRef
from runtime.projection.segments import Segment

Item = TypeVar("Item")


class JobReader:
    """What an object store has of one job.

    Cheap to make; readers on one store share what they remember.

    Every method raises ``ObjectCorrupt`` for damaged objects and ``ArchiveError`` if the store
    fails.
    """

    def __init__(self, store: ObjectStore, batch: str, job: str) -> None:
        self.store = store
        self.job = JobKey(batch=batch, job=job)
        self.prefix = keys.job_prefix(batch, job)
        self.objects = Objects(store)
        self._caches = self.objects.caches
        self.lineage = Lineage(store, self.prefix, self._caches.starts)

    @classmethod
    def of(cls, store: ObjectStore, job: JobKey) -> Self:
        """What the store has of a job."""
        return cls(store, job.batch, job.job)

    def definition(self) -> dict[str, Any] | None:
        """The definition archived last, or None."""
        last = self._last_definition()
        return None if last is None else dict(last.header["definition"])

    def begun_last(self) -> str:
        """The run that was the last to begin the job by an order, whether it came to a call or
        not; empty if the archive does not say.
        """
        last = self._last_definition()
        return "" if last is None else str(last.header.get("run", ""))

    def definition_key(self) -> str | None:
        """The key of the definition archived last, whole or damaged, or None."""
        return _last(self.store.list(f"{self.prefix}/definition/"))

    def layout(self, parent: StepRef | None) -> tuple[Segment, ...]:
        """The full layout that a step's model was shown; empty for None."""
        return self._layout(parent).segments

    def layout_tokens(self, parent: StepRef | None) -> int:
        """The tokens of that layout's segments; 0 for None."""
        return self._layout(parent).tokens

    def layout_document(self, parent: StepRef) -> bytes:
        """The bytes of the layout that a step's model was shown."""
        return self._layout(parent).document

    def reply_segment(self, parent: StepRef | None) -> Segment | None:
        """The segment of a step's reply; None for None."""
        if parent is None:
            return None
        archived = self.objects.step(parent)
        segment = self._caches.replies.get(parent.key)
        if segment is None:
            step = Step.read(archived)
            segment = step.reply.segment(step.turn)
            self._caches.replies.put(parent.key, segment)
        return segment

    def effect(self, run: str, turn: int, effect: int) -> dict[str, Any] | None:
        """The archived result of a tool call, or None."""
        try:
            archived = self.objects.get(keys.effect_key(self.prefix, run, turn, effect), "effect")
        except ObjectMissing:
            return None
        return dict(archived.header["value"])

    def end(self, run: str) -> End | None:
        """The end of a run, or None if it is open."""
        try:
            return End.read(self.objects.get(keys.end_key(self.prefix, run), "end"))
        except ObjectMissing:
            return None

    def has_end(self, run: str) -> bool:
        """Whether a run has ended; also where its end cannot be read."""
        key = keys.end_key(self.prefix, run)
        # The first of those that begin with the key is the key itself, if there is it.
        return next(self.store.list(key), None) == key

    def end_without_calls(self) -> End | None:
        """The end of the newest run, if that ended before its first call, so that ``runs`` does not
        tell of it.
        """
        ends = [end for run in self.uncalled_runs() if (end := self.end(run)) is not None]
        newest = max(ends, key=lambda end: end.ended_at, default=None)
        if newest is None:
            return None
        last = next((when for when, _ in reversed(self._that_called())), "")
        return newest if newest.ended_at > last else None

    def uncalled_runs(self) -> list[str]:
        """The runs that ended before their first call, by their ids' order."""
        begun = {run for _, run in self._started()}
        # A run that has calls may have lost its start.
        return [
            run for run in self.ended_runs() if run not in begun and self._first_call(run) is None
        ]

    def ended_runs(self) -> list[str]:
        """The runs that have an end in the archive, readable or not, by their ids' order."""
        return [unquote(key.rpartition("/")[2]) for key in self.store.list(f"{self.prefix}/ends/")]

    def newest_end(self) -> End | None:
        """How the newest run ended, be it before its first call; None while it is open."""
        runs = self.runs_that_called()
        return self.end_without_calls() or (self.end(runs[-1]) if runs else None)

    def runs(self) -> list[str]:
        """The runs of this job, oldest first."""
        return [run for _, run in self._runs()]

    def runs_that_called(self) -> list[str]:
        """The runs of this job, oldest first, with those whose starts are gone: their calls tell
        of them.
        """
        return [run for _, run in self._that_called()]

    def side_runs(self, run: str) -> list[str]:
        """The runs beside ``run`` in which a model wrote summaries for it, oldest first.

        See ``keys.side_run``.
        """
        return [name for _, name in self._begun() if keys.is_side_run_of(name, run)]

    def has_side_run(self, name: str) -> bool:
        """Whether this job has a side run of that name."""
        return keys.is_side_run(name) and any(name == run for _, run in self._begun())

    def last_start(self) -> str | None:
        """When the newest run made its first call (ISO 8601, UTC); None if there was none."""
        return next((when for when, _ in reversed(self._runs())), None)

    def began_at(self, run: str) -> str | None:
        """When this job's part of a run's timeline made its first call (ISO 8601, UTC); None if it
        made none.
        """
        own = f"{self.prefix}/turns/"
        spans = [span for span in self.lineage.spans(run) if span.prefix.startswith(own)]
        return self.began(spans[0].run)

    def began(self, run: str) -> str | None:
        """When a run of this job made its first call (ISO 8601, UTC); None if it made none, or that
        cannot be read.
        """
        return self._began(run, self._start_of(run))

    def _began(self, run: str, start: Mapping[str, Any]) -> str | None:
        return str(start["started_at"]) if start else self._first_call(run) or None

    def beginnings(self) -> list[str]:
        """The runs that began the job from nothing, oldest first."""
        # ``run`` as the default: a start that cannot be read is no beginning.
        return [
            run
            for _, run in self._started()
            if not keys.is_side_run(run) and self._start_of(run).get("parent", run) is None
        ]

    def find_step(self, run: str, turn: int) -> Step | None:
        """The step of a turn of a run, or of the run that it started from; None if there is
        none.
        """
        for key in self._step_keys(run, turn):
            try:
                return Step.read(self.objects.get(key, "step"))
            except ObjectMissing:
                continue
        return None

    def step(self, ref: StepRef) -> Step:
        """The step at an address, its digest checked."""
        return Step.read(self.objects.step(ref))

    def step_at(self, key: str) -> Step:
        """The step of a key.

        Raises:
            ObjectMissing: if there is none.
        """
        return Step.read(self.objects.get(key, "step"))

    def steps(self, run: str | None = None) -> Iterator[Step]:
        """The steps of a run (the newest by default) in turn order, with those of the runs that it
        started from.
        """
        for key in self.lineage.keys(self._run(run)):
            if key.endswith(".step"):
                yield Step.read(self.objects.get(key, "step"))

    def attempts(self, run: str, turn: int) -> list[Attempt]:
        """The attempts at a turn, also one in flight, in their order."""
        return self._attempts_under(self.lineage.turn_prefix(run, turn))

    def attempts_of(self, run: str, turn: int) -> list[Attempt]:
        """The attempts at a turn that ``run`` itself made, whatever it went on from."""
        return self._attempts_under(keys.turn_prefix(self.prefix, run, turn))

    def has_turn(self, run: str, turn: int) -> bool:
        """Whether there is anything of a turn's call, whole or damaged."""
        listed = self.store.list(self.lineage.turn_prefix(run, turn))
        return any(key.endswith(".step") or keys.is_attempt(key) for key in listed)

    def first_attempt(self, prefix: str) -> str | None:
        """The key of the first attempt, whole or damaged, of the run whose turns have a prefix."""
        return next(filter(keys.is_attempt, self.store.list(prefix)), None)

    def failure(self, attempt: str) -> Failure | None:
        """How the attempt of this key failed, if that was archived."""
        try:
            return Failure.read(self.objects.get(keys.failure_key(attempt), "failure"))
        except ObjectMissing:
            return None

    def failed_response(self, attempt: str) -> bytes:
        """The bytes that were received of the response to the attempt of this key before it failed.

        Raises:
            ObjectMissing: if it has no archived failure.
        """
        return read_response(self.objects.get(keys.failure_key(attempt), "failure"))

    def failed_chunks(self, attempt: str) -> tuple[Chunk, ...]:
        """How those bytes arrived.

        Raises:
            ObjectMissing: as for ``failed_response``.
        """
        return read_chunks(self.objects.get(keys.failure_key(attempt), "failure"))

    def exchange(self, attempt: str) -> Exchange | None:
        """What came back of the attempt of this key beside its turn's reply, if that was
        archived.
        """
        try:
            return Exchange.read(self.objects.get(keys.exchange_key(attempt), "exchange"))
        except ObjectMissing:
            return None

    def exchanged_response(self, attempt: str) -> bytes:
        """The bytes of the response to an attempt that has such an exchange.

        Raises:
            ObjectMissing: if it has none.
        """
        return read_response(self.objects.get(keys.exchange_key(attempt), "exchange"))

    def exchanged_chunks(self, attempt: str) -> tuple[Chunk, ...]:
        """How those bytes arrived.

        Raises:
            ObjectMissing: as for ``exchanged_response``.
        """
        return read_chunks(self.objects.get(keys.exchange_key(attempt), "exchange"))

    def last_turn(self, run: str) -> int:
        """The last turn that a run has anything of, finished or in flight; 0 if there is none."""
        place = self._last_place(run)
        return place.turn if place is not None else 0

    def in_flight(self, run: str | None = None) -> Attempt | None:
        """The last attempt of a run (the newest by default) if its turn has no step yet."""
        place = self._last_place(self._run(run))
        if place is None:
            return None
        # What the turn's tick read was archived before the attempt, and comes after it in the order
        # of keys.
        of_turn = list(self.store.list(f"{place.prefix}{place.turn // 100:05d}/{place.turn:07d}."))
        attempts = keys.attempts_among(of_turn)
        if not attempts or any(key.endswith(".step") for key in of_turn):
            return None
        return Attempt.read(self.objects.get(attempts[-1], "attempt"))

    def wire_request(self, run: str, turn: int) -> bytes:
        """The exact request of a turn: that of its step's attempt, or of the last attempt if there
        is no step.

        Raises:
            NotFound: if there is no such turn.
        """
        return RequestReader(self.store.get).wire(self._attempt_key(run, turn))

    def wire_response(self, run: str, turn: int) -> bytes:
        """The exact body of a turn's response.

        Raises:
            NotFound: if the turn is not finished.
        """
        return read_response(self._found_step(run, turn))

    def chunks(self, run: str, turn: int) -> tuple[Chunk, ...]:
        """How a turn's response arrived; empty if that was not recorded."""
        return read_chunks(self._found_step(run, turn))

    def turn_layout(self, run: str, turn: int) -> tuple[Segment, ...]:
        """The layout of a turn: also of one in flight.

        Raises:
            NotFound: if there is no such turn.
        """
        return self._attempt_layout(self._attempt_key(run, turn)).segments

    def attempt_layout(self, attempt: str) -> tuple[Segment, ...]:
        """The layout of the attempt of this key."""
        return self._attempt_layout(attempt).segments

    def nodes(self, ref: StepRef | None) -> dict[str, dict[str, Any]]:
        """The states of all nodes that were live at a step, by ``obj_id``."""
        return dict(self._nodes_of(ref).states)

    # Inside

    def _attempts_under(self, prefix: str) -> list[Attempt]:
        keys_of_them = keys.attempts_among(self.store.list(f"{prefix}attempt-"))
        return [Attempt.read(self.objects.get(key, "attempt")) for key in keys_of_them]

    def _layout(self, step: StepRef | None) -> Layout:
        if step is None:
            return Layout.empty()
        return self._attempt_layout(self.objects.step(step).header["attempt"]["key"])

    def _attempt_layout(self, key: str) -> Layout:
        layout = self._caches.layouts.get(key)
        if layout is None:
            layout = layout_of(self._caches.request(self.store, key).layout)
            self._caches.layouts.put(key, layout)
        return layout

    def _nodes_of(self, step: StepRef | None) -> NodeStates:
        """The node states at a step: the last keyframe's, with the changes of the steps after
        it.
        """
        behind: list[ArchivedObject] = []
        states: NodeStates | None = NodeStates.none() if step is None else None
        while states is None and step is not None:
            states = self._caches.nodes.get(step.key)
            if states is None:
                behind.append(self.objects.step(step))
                keyframe, step = behind[-1].header["keyframe"], ref_of(behind[-1].header["parent"])
                states = NodeStates.none() if keyframe else None
        if states is None:
            raise ObjectCorrupt(
                f"{behind[-1].key}: neither a keyframe nor the child of another step"
            )
        # Each is remembered, so that the next turn looks one step back and not to the keyframe.
        for archived in reversed(behind):
            states, _ = states.updated(archived.header["nodes"])
            self._caches.nodes.put(archived.key, states)
        return states

    def _runs(self) -> list[tuple[str, str]]:
        """When each run started and its name, oldest first, without side runs."""
        return [(when, run) for when, run in self._started() if not keys.is_side_run(run)]

    def _that_called(self) -> list[tuple[str, str]]:
        """``_runs``, with those whose starts are gone."""
        return [(when, run) for when, run in self._begun() if not keys.is_side_run(run)]

    def _begun(self) -> list[tuple[str, str]]:
        """``_started``, with those whose starts are gone."""
        starts = self._starts()
        folders = map(unquote, self.store.folders(f"{self.prefix}/turns/"))
        lost = {
            run: when
            for run in folders
            if run not in starts and (when := self._first_call(run)) is not None
        }
        return self._in_order(starts, lost)

    def _started(self) -> list[tuple[str, str]]:
        return self._in_order(self._starts(), {})

    def _starts(self) -> dict[str, Mapping[str, Any]]:
        """The starts of runs; nothing of one that cannot be read."""
        listed = self.store.list(f"{self.prefix}/runs/")
        names = (unquote(key.rpartition("/")[2]) for key in listed)
        return {run: self._start_of(run) for run in names}

    def _in_order(
        self, starts: Mapping[str, Mapping[str, Any]], lost: Mapping[str, str]
    ) -> list[tuple[str, str]]:
        # A run of which nobody knows when it began comes first.
        times = {run: self._began(run, start) or "" for run, start in starts.items()}
        named = {run: named_by(start, self.prefix) for run, start in starts.items()}
        return oldest_first({**times, **lost}, named)

    def _first_call(self, run: str) -> str | None:
        """When a run made the first call that can be read; nothing if none can, None if it made
        none.
        """
        when = None
        for key in filter(keys.is_attempt, self.store.list(keys.run_prefix(self.prefix, run))):
            when = ""
            with suppress(ObjectCorrupt, ObjectMissing):
                return str(self.objects.get(key, "attempt").header["started_at"])
        return when

    def _start_of(self, run: str) -> Mapping[str, Any]:
        """The start of a run; nothing of one that cannot be read."""
        try:
            return self.objects.get(keys.run_key(self.prefix, run), "run").header
        except (ObjectCorrupt, ObjectMissing):
            return {}

    def _last_definition(self) -> ArchivedObject | None:
        return self.objects.last(f"{self.prefix}/definition/", "definition")

    def _run(self, run: str | None) -> str:
        if run is not None:
            return run
        runs = self.runs()
        if not runs:
            raise NotFound(f"the archive has no run of {unquote(self.prefix)}")
        return runs[-1]

    def _last_place(self, run: str) -> keys.TurnKey | None:
        """Where the last object of a run's turns stands."""
        last = _last(self.lineage.places(run))
        return last[1] if last else None

    def _step_keys(self, run: str, turn: int) -> Iterator[str]:
        """Where the turn's step may be: in the run itself, which costs no look at where the run
        started, and there.
        """
        own = keys.turn_prefix(self.prefix, run, turn)
        yield f"{own}step"
        inherited = self.lineage.turn_prefix(run, turn)
        if inherited != own:
            yield f"{inherited}step"

    def _asking(self, key: str) -> str:
        """The attempt that asked for what the attempt ``key`` got: a reply may be fetched by a
        request that says nothing.
        """
        asked = [key]
        attempt = self.objects.get(key, "attempt").header
        while not attempt["request"]["bytes"] and attempt["previous"] is not None:
            key = attempt["previous"]["key"]
            # A header that somebody made may lead in a circle.
            if key in asked:
                raise ObjectCorrupt(f"{asked[0]}: no attempt before it has a request")
            asked.append(key)
            attempt = self.objects.get(key, "attempt").header
        return key

    def _found_step(self, run: str, turn: int) -> ArchivedObject:
        for key in self._step_keys(run, turn):
            try:
                return self.objects.get(key, "step")
            except ObjectMissing:
                continue
        raise NotFound(
            f"turn {turn} of run {run} of {unquote(self.prefix)} has no reply in the archive"
        )

    def _attempt_key(self, run: str, turn: int) -> str:
        try:
            step = self.find_step(run, turn)
        except ObjectCorrupt:
            # What was sent can be read although what came back cannot.
            step = None
        if step is not None:
            return self._asking(step.attempt.key)
        attempts = self.attempts(run, turn)
        if not attempts:
            raise NotFound(f"the archive has no turn {turn} of run {run} of {unquote(self.prefix)}")
        return attempts[-1].key


def _last(items: Iterator[Item]) -> Item | None:
    last = deque(items, maxlen=1)
    return last[0] if last else None


def ref_of(value: Mapping[str, str] | None) -> StepRef | None:
    """A reference as a header has it, as a value."""
    return None if value is None else StepRef(key=value["key"], digest=value["digest"])
