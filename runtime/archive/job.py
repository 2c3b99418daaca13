"""One job's archive: what the model activity writes before and after each call. ``reader`` has what readers read."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from runtime.archive import headers, keys
from runtime.archive.naming import Naming
from runtime.archive.reader import JobReader, ref_of
from runtime.archive.records import AttemptRecord, EndRecord, ExchangeRecord, FailureRecord, Signature, StepRecord
from runtime.archive.requests import plan
from runtime.archive.stores.protocol import ObjectStore
from runtime.digests import digest_bytes, digest_of
from runtime.errors import ArchiveError
from runtime.values import StepRef

KEYFRAME_EVERY = 32


class JobArchive(JobReader):
    """The archive of one job on an object store, to read and to write.

    Every write is put-if-absent: two workers that race on a turn both get what the first of them wrote.
    """

    def __init__(self, store: ObjectStore, batch: str, job: str) -> None:
        super().__init__(store, batch, job)
        self.naming = Naming(self.objects, self.prefix, self.lineage)

    def write_definition(self, definition: dict[str, Any], *, order: str = "", run: str = "") -> bool:
        """Archive the job's definition, unless it is the one archived last, or with the ``order`` that ``run`` carries out.

        Returns whether the run may: False if another one has had that order, which is for one alone.
        """
        while True:
            names = list(self.store.list(f"{self.prefix}/definition/"))
            archived = [self.objects.get(key, "definition").header for key in (names if order else names[-1:])]
            for header in archived:
                if order and header.get("order") == order:
                    return bool(header["run"] == run)
            last = archived[-1] if archived else None
            if not order and last is not None and digest_of(last["definition"]) == digest_of(definition):
                return True
            number = last["number"] + 1 if last is not None else 1
            ordered = {"order": order, "run": run} if order else {}
            fields = {"kind": "definition", "number": number, "definition": definition, **ordered}
            if self.objects.put(keys.definition_key(self.prefix, number), fields)[0]:
                return True

    def begin_attempt(self, attempt: AttemptRecord) -> str:
        """Archive a request before the call, as the turn's next attempt in this run. Returns the attempt's key.

        Raises:
            ArchiveError: if it cannot be written, or the delta does not make the layout that the caller means.
        """
        base = None
        if attempt.parent is not None:
            parent_attempt = self.objects.step(attempt.parent).header["attempt"]["key"]
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
            **self.naming.start(attempt),
        }
        previous: StepRef | None = None
        outcome: dict[str, StepRef] = {}
        number = 0
        while True:
            number += 1
            key = keys.attempt_key(self.prefix, attempt.run, attempt.turn, number)
            flat = attempt.turn % KEYFRAME_EVERY == 0
            planned = plan(key, base, attempt.request, layout.document, flat=flat)
            described = headers.attempt_fields(attempt, number, previous, outcome)
            written, archived = self.objects.put(key, {**described, **fields, **planned.fields}, planned.parts)
            if written:
                break
            previous = StepRef(key=key, digest=archived.digest)
            outcome = self._outcome(key)
            number = max(number, self._last_attempt(attempt))
        self._caches.requests.put(planned.request)
        self._caches.layouts.put(key, layout)
        return key

    def fail_attempt(self, failure: FailureRecord) -> StepRef:
        """Archive what came back of an attempt that failed, in place of a step. What is archived first stays."""
        attempt = self.objects.get(failure.attempt, "attempt")
        key = keys.failure_key(failure.attempt)
        fields = headers.failure_fields(failure, attempt)
        _, archived = self.objects.put(key, fields, headers.failure_parts(failure))
        return StepRef(key=key, digest=archived.digest)

    def _last_attempt(self, attempt: AttemptRecord) -> int:
        """The number before the last attempt's at a turn: a reply that is polled for makes many, and each names the one before."""
        prefix = keys.turn_prefix(self.prefix, attempt.run, attempt.turn)
        return sum(1 for _ in self.store.list(f"{prefix}attempt-")) - 1

    def _outcome(self, attempt: str) -> dict[str, StepRef]:
        """The records of what came back of an attempt, by what the next attempt calls them."""
        failure, exchange = self.failure(attempt), self.exchange(attempt)
        found = {"failed": failure, "answered": exchange}
        return {name: record.ref for name, record in found.items() if record is not None}

    def keep_exchange(self, exchange: ExchangeRecord) -> StepRef:
        """Archive what came back of an attempt and is not its turn's reply. What is archived first stays."""
        attempt = self.objects.get(exchange.attempt, "attempt")
        key = keys.exchange_key(exchange.attempt)
        _, archived = self.objects.put(
            key, headers.exchange_fields(exchange, attempt), headers.exchange_parts(exchange)
        )
        return StepRef(key=key, digest=archived.digest)

    def finish_step(self, step: StepRecord) -> StepRef:
        """Archive the reply after the call. If the turn has its step already, that one's address is returned; then what
        ``step`` says is archived nowhere (see ``keep_exchange``).
        """
        attempt = self.objects.get(step.attempt, "attempt")
        if (attempt.header["run"], attempt.header["turn"]) != (step.run, step.turn):
            raise ArchiveError(f"{step.attempt} is no attempt at turn {step.turn} of run {step.run}")
        parent = ref_of(attempt.header["parent"])
        states, changed = self._nodes_of(parent).updated(step.nodes)
        keyframe = parent is None or step.turn % KEYFRAME_EVERY == 0
        definition = self._last_definition() if keyframe else None
        fields = {
            **headers.step_fields(step, attempt),
            "keyframe": keyframe,
            "nodes": list(states.records.values()) if keyframe else list(changed),
            "changed": [record["obj_id"] for record in changed],
            "nodes_digest": states.digest,
            **(named := self.naming.by_step(step, parent)),
            "definition": None if definition is None else {"key": definition.key, "digest": definition.digest},
        }
        key = keys.step_key(self.prefix, step.run, step.turn)
        written, archived = self.objects.put(key, fields, headers.step_parts(step))
        if written:
            self._caches.nodes.put(key, states)
            self.naming.remember(named)
        return StepRef(key=key, digest=archived.digest)

    def write_effect(
        self, run: str, turn: int, effect: int, value: dict[str, Any], uses: Iterable[str] = ()
    ) -> dict[str, Any]:
        """Archive the result of a read or a tool call of the turn's statement. The first one written stays, and is returned.

        ``uses`` are the keys of what the store keeps for all jobs, and this result was made from.
        """
        digests = {key: digest_bytes(self.store.get(key)) for key in sorted(set(uses))}
        used = {"uses": digests} if digests else {}
        fields = {"kind": "effect", "run": run, "turn": turn, "effect": effect, "value": value, **used}
        _, archived = self.objects.put(keys.effect_key(self.prefix, run, turn, effect), fields)
        return dict(archived.header["value"])

    def write_end(self, end: EndRecord, signer: Callable[[bytes], Signature] | None = None) -> StepRef:
        """Close a run, signed if there is a ``signer``. If it is closed already, the address of that end is returned."""
        states, changed = self._nodes_of(end.parent).updated(end.nodes)
        fields = {
            "kind": "end",
            **end.model_dump(mode="json", exclude={"nodes", *headers.unsaid(end)}),
            "nodes": list(changed),
            "nodes_digest": states.digest,
            **self.naming.after(end.run, end.parent),
            **self.naming.definition(),
        }
        key = keys.end_key(self.prefix, end.run)
        if signer is not None:
            fields["signature"] = signer(headers.signed_text(key, fields)).model_dump(mode="json")
        _, archived = self.objects.put(key, fields)
        return StepRef(key=key, digest=archived.digest)
