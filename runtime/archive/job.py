"""One job's archive: what the model activity writes before and after each call, and what readers read."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from itertools import count
from typing import Any
from urllib.parse import unquote

from runtime.archive import headers, keys
from runtime.archive.caches import caches_of
from runtime.archive.container import ArchivedObject, Part, header, seal, unseal
from runtime.archive.layouts import Layout, layout_of
from runtime.archive.lineage import Lineage
from runtime.archive.nodes import NodeStates
from runtime.archive.records import (
    Attempt,
    AttemptRecord,
    Chunk,
    EndRecord,
    Failure,
    FailureRecord,
    Signature,
    Step,
    StepRecord,
)
from runtime.archive.requests import RequestReader, plan
from runtime.archive.stores.protocol import ObjectStore
from runtime.digests import digest_of
from runtime.errors import ArchiveError, NotFound, ObjectCorrupt, ObjectMissing
from runtime.failpoints import failpoint
from runtime.projection.segments import Segment
from runtime.values import StepRef

KEYFRAME_EVERY = 32


class JobArchive:
    """The archive of one job on an object store. Cheap to make; archives on one store share what they remember.

    Every write is put-if-absent: two workers that race on a turn both get what the first of them wrote. Every method
    that reads raises ``ObjectCorrupt`` for damaged objects and ``ArchiveError`` if the store fails.
    """

    def __init__(self, store: ObjectStore, batch: str, job: str) -> None:
        self.store = store
        self.prefix = keys.job_prefix(batch, job)
        self._caches = caches_of(store)
        self.lineage = Lineage(store, self.prefix, self._caches.starts)

    # The job's definition

    def write_definition(self, definition: dict[str, Any]) -> None:
        """Archive the job's definition, unless it is the one archived last."""
        while True:
            last = self._last_definition()
            if last is not None and digest_of(last.header["definition"]) == digest_of(definition):
                return
            number = last.header["number"] + 1 if last is not None else 1
            fields = {"kind": "definition", "number": number, "definition": definition}
            if self._put(keys.definition_key(self.prefix, number), fields)[0]:
                return

    def definition(self) -> dict[str, Any] | None:
        """The definition archived last, or None."""
        last = self._last_definition()
        return None if last is None else dict(last.header["definition"])

    # A turn: attempt, call, step

    def layout(self, parent: StepRef | None) -> tuple[Segment, ...]:
        """The full layout that a step's model was shown; empty for None."""
        return self._layout(parent).segments

    def reply_segment(self, parent: StepRef | None) -> Segment | None:
        """The segment of a step's reply; None for None."""
        if parent is None:
            return None
        step = headers.read_step(self._step_object(parent))
        return step.reply.segment(step.turn)

    def begin_attempt(self, attempt: AttemptRecord) -> str:
        """Archive a request before the call, as the turn's next attempt in this run. Returns the attempt's key.

        Raises:
            ArchiveError: if it cannot be written, or the delta does not make the layout that the caller means.
        """
        base = None
        if attempt.parent is not None:
            parent_attempt = self._step_object(attempt.parent).header["attempt"]["key"]
            base = self._caches.requests.get(self.store, parent_attempt)
        try:
            layout = self._layout(attempt.parent).changed(attempt.delta, self.reply_segment(attempt.parent))
        except ValueError as error:
            raise ArchiveError(f"turn {attempt.turn} of run {attempt.run}: {error}") from error
        if attempt.layout_digest not in {None, layout.digest}:
            raise ArchiveError(
                f"turn {attempt.turn} of run {attempt.run}: the delta makes layout {layout.digest}, not "
                f"{attempt.layout_digest}; the archive's parent step is not the one that the workflow means"
            )
        fields: dict[str, Any] = {
            "layout": {"digest": layout.digest, "segments": len(layout.segments), "bytes": len(layout.document)},
            **self._start_run(attempt),
        }
        previous: StepRef | None = None
        failed: StepRef | None = None
        for number in count(1):
            key = keys.attempt_key(self.prefix, attempt.run, attempt.turn, number)
            flat = attempt.turn % KEYFRAME_EVERY == 0
            planned = plan(key, base, attempt.request, layout.document, flat=flat)
            described = headers.attempt_fields(attempt, number, previous, failed)
            written, archived = self._put(key, {**described, **fields, **planned.fields}, planned.parts)
            if written:
                break
            previous = StepRef(key=key, digest=archived.digest)
            failure = self.failure(key)
            failed = failure.ref if failure is not None else None
        self._caches.requests.put(planned.request)
        self._caches.layouts.put(key, layout)
        return key

    def fail_attempt(self, failure: FailureRecord) -> StepRef:
        """Archive what came back of an attempt that failed, in place of a step. What is archived first stays."""
        attempt = self._object(failure.attempt, "attempt")
        key = keys.failure_key(failure.attempt)
        fields = headers.failure_fields(failure, attempt)
        _, archived = self._put(key, fields, headers.failure_parts(failure))
        return StepRef(key=key, digest=archived.digest)

    def finish_step(self, step: StepRecord) -> StepRef:
        """Archive the reply after the call. If the turn has its step already, that one's address is returned."""
        attempt = self._object(step.attempt, "attempt")
        if (attempt.header["run"], attempt.header["turn"]) != (step.run, step.turn):
            raise ArchiveError(f"{step.attempt} is no attempt at turn {step.turn} of run {step.run}")
        parent = _ref(attempt.header["parent"])
        states, changed = self._nodes_of(parent).updated(step.nodes)
        keyframe = parent is None or step.turn % KEYFRAME_EVERY == 0
        definition = self._last_definition() if keyframe else None
        fields = {
            **headers.step_fields(step, attempt),
            "keyframe": keyframe,
            "nodes": list(states.records.values()) if keyframe else list(changed),
            "changed": [record["obj_id"] for record in changed],
            "nodes_digest": states.digest,
            **self._named_by(step, parent),
            "definition": None if definition is None else {"key": definition.key, "digest": definition.digest},
        }
        key = keys.step_key(self.prefix, step.run, step.turn)
        written, archived = self._put(key, fields, headers.step_parts(step))
        if written:
            self._caches.nodes.put(key, states)
        return StepRef(key=key, digest=archived.digest)

    # Tool results, and the end of a run

    def write_effect(self, run: str, turn: int, effect: int, value: dict[str, Any]) -> dict[str, Any]:
        """Archive the result of a read or a tool call of the turn's statement. The first one written stays, and is returned."""
        fields = {"kind": "effect", "run": run, "turn": turn, "effect": effect, "value": value}
        _, archived = self._put(keys.effect_key(self.prefix, run, turn, effect), fields)
        return dict(archived.header["value"])

    def effect(self, run: str, turn: int, effect: int) -> dict[str, Any] | None:
        """The archived result of a tool call, or None."""
        try:
            found = self._object(keys.effect_key(self.prefix, run, turn, effect), "effect")
        except ObjectMissing:
            return None
        return dict(found.header["value"])

    def write_end(self, end: EndRecord, signer: Callable[[bytes], Signature] | None = None) -> StepRef:
        """Close a run, signed if there is a ``signer``. If it is closed already, the address of that end is returned."""
        states, changed = self._nodes_of(end.parent).updated(end.nodes)
        fields = {
            "kind": "end",
            **end.model_dump(mode="json", exclude={"nodes", *headers.unsaid(end)}),
            "nodes": list(changed),
            "nodes_digest": states.digest,
            **self.named_after(end.run, end.parent),
        }
        key = keys.end_key(self.prefix, end.run)
        if signer is not None:
            fields["signature"] = signer(headers.signed_text(key, fields)).model_dump(mode="json")
        _, archived = self._put(key, fields)
        return StepRef(key=key, digest=archived.digest)

    def end(self, run: str) -> EndRecord | None:
        """The end of a run, or None if it is open."""
        try:
            return headers.read_end(self._object(keys.end_key(self.prefix, run), "end"))
        except ObjectMissing:
            return None

    # Reading

    def unbegun_end(self) -> EndRecord | None:
        """The end of the newest run, if that ended before its first call, so that ``runs`` does not tell of it."""
        begun = {run for _, run in self._started()}
        ended = [unquote(key.rpartition("/")[2]) for key in self.store.list(f"{self.prefix}/ends/")]
        found = [end for run in ended if run not in begun and (end := self.end(run)) is not None]
        newest = max(found, key=lambda end: end.ended_at, default=None)
        return newest if newest is not None and newest.ended_at > (self.last_start() or "") else None

    def runs(self) -> list[str]:
        """The runs of this job, oldest first."""
        return [run for _, run in self._runs()]

    def side_runs(self, run: str) -> list[str]:
        """The runs beside ``run`` in which a model wrote summaries for it, oldest first. See ``keys.side_run``."""
        return [name for _, name in self._started() if keys.is_side_run_of(name, run)]

    def has_side_run(self, name: str) -> bool:
        """Whether this job has a side run of that name."""
        return keys.is_side_run(name) and any(name == run for _, run in self._started())

    def last_start(self) -> str | None:
        """When the newest run made its first call (ISO 8601, UTC); None if there was none."""
        return next((when for when, _ in reversed(self._runs())), None)

    def find_step(self, run: str, turn: int) -> Step | None:
        """The step of a turn of a run, or of the run that it started from; None if there is none."""
        for key in self._step_keys(run, turn):
            try:
                return headers.read_step(self._object(key, "step"))
            except ObjectMissing:
                continue
        return None

    def step(self, ref: StepRef) -> Step:
        """The step at an address, its digest checked."""
        return headers.read_step(self._step_object(ref))

    def steps(self, run: str | None = None) -> Iterator[Step]:
        """The steps of a run (the newest by default) in turn order, with those of the runs that it started from."""
        for key in self.lineage.keys(self._run(run)):
            if key.endswith(".step"):
                yield headers.read_step(self._object(key, "step"))

    def attempts(self, run: str, turn: int) -> list[Attempt]:
        """The attempts at a turn, also one in flight, in their order."""
        prefix = self.lineage.turn_prefix(run, turn)
        return [
            headers.read_attempt(self._object(key, "attempt"))
            for key in self.store.list(f"{prefix}attempt-")
        ]  # fmt: skip

    def failure(self, attempt: str) -> Failure | None:
        """How the attempt of this key failed, if that was archived."""
        try:
            return headers.read_failure(self._object(keys.failure_key(attempt), "failure"))
        except ObjectMissing:
            return None

    def failed_response(self, attempt: str) -> bytes:
        """The bytes that were received of the response to the attempt of this key before it failed.

        Raises:
            ObjectMissing: if it has no archived failure.
        """
        return headers.read_response(self._object(keys.failure_key(attempt), "failure"))

    def failed_chunks(self, attempt: str) -> tuple[Chunk, ...]:
        """How those bytes arrived.

        Raises:
            ObjectMissing: as for ``failed_response``.
        """
        return headers.read_chunks(self._object(keys.failure_key(attempt), "failure"))

    def in_flight(self, run: str | None = None) -> Attempt | None:
        """The last attempt of a run (the newest by default) if its turn has no step yet."""
        last = _last(self.lineage.keys(self._run(run)))
        found = keys.parse_turn_key(last) if last else None
        if found is None:
            return None
        # What the turn's tick read was archived before the attempt, and comes after it in the order of keys.
        of_turn = list(self.store.list(f"{found.prefix}{found.turn // 100:05d}/{found.turn:07d}."))
        attempts = [key for key in of_turn if ".attempt-" in key]
        if not attempts or any(key.endswith(".step") for key in of_turn):
            return None
        return headers.read_attempt(self._object(attempts[-1], "attempt"))

    def wire_request(self, run: str, turn: int) -> bytes:
        """The exact request of a turn: that of its step's attempt, or of the last attempt if there is no step.

        Raises:
            NotFound: if there is no such turn.
        """
        return RequestReader(self.store.get).wire(self._attempt_key(run, turn))

    def wire_response(self, run: str, turn: int) -> bytes:
        """The exact body of a turn's response.

        Raises:
            NotFound: if the turn is not finished.
        """
        return headers.read_response(self._found_step(run, turn))

    def chunks(self, run: str, turn: int) -> tuple[Chunk, ...]:
        """How a turn's response arrived; empty if that was not recorded."""
        return headers.read_chunks(self._found_step(run, turn))

    def turn_layout(self, run: str, turn: int) -> tuple[Segment, ...]:
        """The layout of a turn: also of one in flight.

        Raises:
            NotFound: if there is no such turn.
        """
        return self._attempt_layout(self._attempt_key(run, turn)).segments

    def nodes(self, ref: StepRef | None) -> dict[str, dict[str, Any]]:
        """The records of all nodes that were live at a step, by ``obj_id``."""
        return dict(self._nodes_of(ref).records)

    def named_after(self, run: str, parent: StepRef | None) -> dict[str, dict[str, str]]:
        """What the record after a step names, so that the chain covers it, digests by key: the results of the effects of the
        step's statement, and checkpoints if there are any.
        """
        found = keys.parse_turn_key(parent.key) if parent else None
        if found is None:
            return {"effects": {}}
        # The statement of the last turn before a run may have run on in that run.
        places = {f"{found.prefix}{found.turn // 100:05d}/{found.turn:07d}."}
        places.add(keys.turn_prefix(self.prefix, run, found.turn))
        listed = [key for place in sorted(places) for key in self.store.list(place)]
        effects = {key: self._object(key, "effect").digest for key in listed if ".effect-" in key}
        # A checkpoint is large, and not remembered.
        saved = [key for key in listed if key.endswith(".checkpoint")]
        checkpoints = {key: unseal(key, self.store.get(key), "checkpoint").digest for key in saved}
        return {"effects": effects, **({"checkpoints": checkpoints} if checkpoints else {})}

    # Inside

    def _named_by(self, step: StepRecord, parent: StepRef | None) -> dict[str, dict[str, str]]:
        """What a step names of what came before its call: also what was prepared in the background, however long before, and
        applied by a tick since the parent.
        """
        named = self.named_after(step.run, parent)
        asleep = [(obj_id, turn, effect) for _, obj_id, turn, effect in step.interim.asleep]
        for _, turn, effect in (*step.interim.payloads, *asleep):
            for span in reversed(self.lineage.spans(step.run)):
                key = keys.effect_key_in(span.prefix, turn, effect)
                try:
                    named["effects"][key] = self._object(key, "effect").digest
                except ObjectMissing:
                    continue
                break
        return named

    def _put(self, key: str, fields: Mapping[str, Any], parts: tuple[Part, ...] = ()) -> tuple[bool, ArchivedObject]:
        """Write, or find out what is there. Returns whether it was written, and the object that is there now."""
        kind = fields["kind"]
        text = header(fields, parts)
        data, _ = seal(key, text, parts)
        failpoint(f"archive.{kind}.before_put")
        written = self.store.put_if_absent(key, data)
        failpoint(f"archive.{kind}.after_put")
        if not written:
            return False, self._object(key, kind)
        archived = unseal(key, data, kind)
        if kind != "checkpoint":
            self._caches.objects.put(key, archived)
        return True, archived

    def _object(self, key: str, kind: str) -> ArchivedObject:
        found = self._caches.objects.get(key)
        if found is None or found.header["kind"] != kind:
            found = unseal(key, self.store.get(key), kind)
            self._caches.objects.put(key, found)
        return found

    def _step_object(self, ref: StepRef) -> ArchivedObject:
        found = self._object(ref.key, "step")
        if found.digest != ref.digest:
            raise ObjectCorrupt(f"{ref.key} has digest {found.digest}, not {ref.digest} by which it is referred to")
        return found

    def _start_run(self, attempt: AttemptRecord) -> dict[str, str]:
        """Record the run's start, if this is its first turn. Returns what the attempt's header says of it: its digest.

        Workers may race on a first turn, and a kill may come between the two writes: which of them wrote the start is
        not known from its time, so the attempt names the start that stands.
        """
        parent = keys.parse_turn_key(attempt.parent.key) if attempt.parent else None
        if parent is not None and (parent.job, parent.run) == (self.prefix, keys.name(attempt.run)):
            return {}
        fields = {
            "kind": "run",
            "run": attempt.run,
            "turn": attempt.turn,
            "parent": headers.reference(attempt.parent),
            "started_at": attempt.started_at,
            **self._claimed(attempt.run),
        }
        return {"start": self._put(keys.run_key(self.prefix, attempt.run), fields)[1].digest}

    def _claimed(self, run: str) -> dict[str, dict[str, str]]:
        """The claims of the replays that a run is, digests by key; nothing if it is none."""
        listed = [key for key in self.store.list(f"{self.prefix}/replays/") if key.endswith(keys.CLAIM)]
        claims = [claim for claim in (self._object(key, "claim") for key in listed) if claim.header["run"] == run]
        return {"claims": {claim.key: claim.digest for claim in claims}} if claims else {}

    def _layout(self, step: StepRef | None) -> Layout:
        if step is None:
            return Layout.empty()
        return self._attempt_layout(self._step_object(step).header["attempt"]["key"])

    def _attempt_layout(self, key: str) -> Layout:
        layout = self._caches.layouts.get(key)
        if layout is None:
            layout = layout_of(self._caches.requests.get(self.store, key).layout)
            self._caches.layouts.put(key, layout)
        return layout

    def _nodes_of(self, step: StepRef | None) -> NodeStates:
        """The node states at a step: the last keyframe's, with the changes of the steps after it."""
        behind: list[ArchivedObject] = []
        states: NodeStates | None = NodeStates.none() if step is None else None
        while states is None and step is not None:
            states = self._caches.nodes.get(step.key)
            if states is None:
                behind.append(self._step_object(step))
                keyframe, step = behind[-1].header["keyframe"], _ref(behind[-1].header["parent"])
                states = NodeStates.none() if keyframe else None
        if states is None:
            raise ObjectCorrupt(f"{behind[-1].key}: neither a keyframe nor the child of another step")
        for archived in reversed(behind):
            states, _ = states.updated(archived.header["nodes"])
            self._caches.nodes.put(archived.key, states)
        return states

    def _runs(self) -> list[tuple[str, str]]:
        """When each run started and its name, oldest first, without side runs."""
        return [(when, run) for when, run in self._started() if not keys.is_side_run(run)]

    def _started(self) -> list[tuple[str, str]]:
        listed = self.store.list(f"{self.prefix}/runs/")
        return sorted(
            (self._object(key, "run").header["started_at"], unquote(key.rpartition("/")[2])) for key in listed
        )

    def _last_definition(self) -> ArchivedObject | None:
        last = _last(self.store.list(f"{self.prefix}/definition/"))
        return None if last is None else self._object(last, "definition")

    def _run(self, run: str | None) -> str:
        if run is not None:
            return run
        runs = self.runs()
        if not runs:
            raise NotFound(f"the archive has no run of {unquote(self.prefix)}")
        return runs[-1]

    def _step_keys(self, run: str, turn: int) -> Iterator[str]:
        """Where the turn's step may be: in the run itself, which costs no look at where the run started, and there."""
        own = keys.turn_prefix(self.prefix, run, turn)
        yield f"{own}step"
        inherited = self.lineage.turn_prefix(run, turn)
        if inherited != own:
            yield f"{inherited}step"

    def _found_step(self, run: str, turn: int) -> ArchivedObject:
        for key in self._step_keys(run, turn):
            try:
                return self._object(key, "step")
            except ObjectMissing:
                continue
        raise NotFound(f"turn {turn} of run {run} of {unquote(self.prefix)} has no reply in the archive")

    def _attempt_key(self, run: str, turn: int) -> str:
        step = self.find_step(run, turn)
        if step is not None:
            return step.attempt.key
        attempts = self.attempts(run, turn)
        if not attempts:
            raise NotFound(f"the archive has no turn {turn} of run {run} of {unquote(self.prefix)}")
        return attempts[-1].key


def _last(names: Iterator[str]) -> str | None:
    last = deque(names, maxlen=1)
    return last[0] if last else None


def _ref(value: Mapping[str, str] | None) -> StepRef | None:
    return None if value is None else StepRef(key=value["key"], digest=value["digest"])
