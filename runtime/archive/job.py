"""One job's archive: what the model activity writes before and after each call.

``reader`` has what readers read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from runtime.archive import keys
from runtime.archive.container import ArchivedObject, Part
from runtime.archive.forms import (
    Attempt,
    Definition,
    Effect,
    End,
    Exchange,
    Failure,
    Form,
    NewAttempt,
    NewEnd,
    NewExchange,
    NewFailure,
    NewReceived,
    NewStep,
    Signature,
    Step,
)
from runtime.archive.forms.attempt import LayoutSize, changes_of
from runtime.archive.forms.base import Sized, sized
from runtime.archive.frames import compress
from runtime.archive.naming import Naming
from runtime.archive.packing import pack_before, pack_ended, pack_left
from runtime.archive.reader import JobReader, ref_of
from runtime.archive.requests import plan
from runtime.archive.responses import response_parts
from runtime.archive.signing import signed_text
from runtime.archive.stores.protocol import ObjectStore
from runtime.base.digests import digest_bytes, digest_of
from runtime.base.errors import ArchiveError
from runtime.base.values import StepRef

KEYFRAME_EVERY = keys.INTERVAL


class JobArchive(JobReader):
    """The archive of one job on an object store, to read and to write.

    Every write is put-if-absent: two workers that race on a turn both get what the first of them
    wrote.
    """

    def __init__(self, store: ObjectStore, batch: str, job: str) -> None:
        super().__init__(store, batch, job)
        self.naming = Naming(self.objects, self.prefix, self.lineage)

    def write_definition(
        self, definition: dict[str, Any], *, order: str = "", run: str = ""
    ) -> bool:
        """Archive the job's definition, unless it is the one archived last, or with the ``order``
        that ``run`` carries out.

        Returns whether the run may: False if another one has had that order, which is for one
        alone.
        """
        while True:
            # Looked at anew after each lost race: another writer's definition may be this one.
            names = list(self.store.list(f"{self.prefix}/definition/"))
            archived = [
                self.objects.get(key, "definition").header
                for key in (names if order else names[-1:])
            ]
            for header in archived:
                if order and header.get("order") == order:
                    return bool(header.get("run", "") == run)
            last = archived[-1] if archived else None
            if (
                not order
                and last is not None
                and digest_of(last["definition"]) == digest_of(definition)
            ):
                return True
            number = last["number"] + 1 if last is not None else 1
            ordered = {"order": order, "run": run} if order else {}
            form = Definition(number=number, definition=definition, **ordered)
            if self.objects.put(keys.definition_key(self.prefix, number), form)[0]:
                return True

    def carried_out_by(self, order: str) -> str | None:
        """The first run that carried an order out; None for one that none has, and for none."""
        archived = (
            self.objects.get(key, "definition").header
            for key in self.store.list(f"{self.prefix}/definition/")
        )
        return next(
            (str(header["run"]) for header in archived if order and header.get("order") == order),
            None,
        )

    def begin_attempt(self, attempt: NewAttempt) -> str:
        """Archive a request before the call, as the turn's next attempt in this run.

        Returns the attempt's key.

        Raises:
            ArchiveError: if it cannot be written, or the delta is none of the parent's layout.
        """
        base = None
        if attempt.parent is not None:
            parent_attempt = self.objects.step(attempt.parent).header["attempt"]["key"]
            base = self._caches.request(self.store, parent_attempt)
        # Before anything is written: a delta that does not fit leaves nothing behind.
        try:
            layout = self._layout(attempt.parent).changed(
                attempt.delta, self.reply_segment(attempt.parent)
            )
        except ValueError as error:
            raise ArchiveError(f"turn {attempt.turn} of run {attempt.run}: {error}") from error
        # The run's start first, since the attempt names it: a kill in between leaves a start
        # without a turn, which the next try finds.
        same = {
            "delta": changes_of(attempt.delta),
            "layout": LayoutSize(
                digest=layout.digest, segments=len(layout.segments), bytes=len(layout.document)
            ),
            "start": self.naming.start(attempt),
        }
        previous: StepRef | None = None
        outcome: dict[str, StepRef] = {}
        number = 0
        while True:
            number += 1
            # Put if absent until a number is free: two workers at one turn each get an attempt of
            # their own.
            key = keys.attempt_key(self.prefix, attempt.run, attempt.turn, number)
            # A flat recipe names its sources itself, so no chain of recipes is longer than 32.
            flat = attempt.turn % KEYFRAME_EVERY == 0
            planned = plan(key, base, attempt.request, layout.document, flat=flat)
            form = Attempt.like(
                attempt,
                number=number,
                previous=previous,
                request=Sized(digest=planned.digest, bytes=len(attempt.request)),
                **outcome,
                **same,
                **planned.fields,
            )
            written, archived = self.objects.put(key, form, planned.parts)
            if written:
                break
            previous = StepRef(key=key, digest=archived.digest)
            outcome = self._outcome(key)
            number = max(number, self._last_attempt(attempt))
        # Once it is written: nothing else may be what the next request is stored against.
        self._caches.requests.put(planned.request)
        self._caches.layouts.put(key, layout)
        return key

    def fail_attempt(self, failure: NewFailure) -> StepRef:
        """Archive what came back of an attempt that failed, in place of a step.

        What is archived first stays.
        """
        form = Failure.like(failure, **self._called(failure))
        return self._put(keys.failure_key(failure.attempt), form, response_parts(failure))

    def _last_attempt(self, attempt: NewAttempt) -> int:
        """The number before the last attempt's at a turn: a reply that is polled for makes many,
        and each names the one before.
        """
        prefix = keys.turn_prefix(self.prefix, attempt.run, attempt.turn)
        return sum(1 for _ in self.store.list(f"{prefix}attempt-")) - 1

    def _outcome(self, attempt: str) -> dict[str, StepRef]:
        """The objects of what came back of an attempt, by what the next attempt calls them."""
        failure, exchange = self.failure(attempt), self.exchange(attempt)
        outcomes = {"failed": failure, "answered": exchange}
        return {name: form.ref for name, form in outcomes.items() if form is not None}

    def keep_exchange(self, exchange: NewExchange) -> StepRef:
        """Archive what came back of an attempt and is not its turn's reply.

        What is archived first stays.
        """
        form = Exchange.like(exchange, **self._called(exchange))
        return self._put(
            keys.exchange_key(exchange.attempt), form, response_parts(exchange, exchange.reply)
        )

    def finish_step(self, step: NewStep) -> StepRef:
        """Archive the reply after the call.

        If the turn has its step already, that one's address is returned; then what ``step`` says is
        archived nowhere (see ``keep_exchange``).
        """
        attempt = self.objects.get(step.attempt, "attempt")
        if (attempt.header["run"], attempt.header["turn"]) != (step.run, step.turn):
            raise ArchiveError(
                f"{step.attempt} is no attempt at turn {step.turn} of run {step.run}"
            )
        parent = ref_of(attempt.header["parent"])
        states, changed = self._nodes_of(parent).updated(step.nodes)
        keyframe = parent is None or step.turn % KEYFRAME_EVERY == 0
        definition = self._last_definition() if keyframe else None
        named = self.naming.by_step(step, parent)
        form = Step.like(
            step,
            attempt=_address(attempt),
            response=sized(step.response),
            **{name: attempt.header[name] for name in ("parent", "capture", "started_at")},
            keyframe=keyframe,
            nodes=tuple(states.states.values()) if keyframe else changed,
            changed=tuple(state["obj_id"] for state in changed),
            nodes_digest=states.digest,
            **named,
            definition=None if definition is None else _address(definition),
        )
        prefix = keys.run_prefix(self.prefix, step.run)
        if parent is not None:
            # Before the step: broken off by a kill, it is done again with it.
            pack_left(self.store, prefix, parent.key)
        key = keys.step_key_in(prefix, step.turn)
        written, archived = self.objects.put(key, form, response_parts(step, step.reply))
        # If another worker's step is there, its states may be others than ours.
        if written:
            self._caches.nodes.put(key, states)
            self.naming.remember(named)
        if keyframe:
            pack_before(self.store, prefix, step.turn)
        return StepRef(key=key, digest=archived.digest)

    def write_effect(
        self,
        run: str,
        turn: int,
        effect: int,
        value: dict[str, Any],
        uses: Iterable[str] = (),
        texts: Mapping[str, bytes] | None = None,
    ) -> dict[str, Any]:
        """Archive the result of a read, a tool call or a change of the turn's statement.

        The first one written stays, and is returned.

        ``uses`` are the keys of what the store keeps for all jobs, and this result was made from.
        ``texts`` are what it printed, whole, by the names of streams.
        """
        # What is named must be there before the effect that names it is: a crash between leaves no
        # lie.
        digests = {key: digest_bytes(self.store.get(key)) for key in sorted(set(uses))}
        form = Effect(run=run, turn=turn, effect=effect, value=value, uses=digests)
        parts = tuple(
            Part(name, compress(text), len(text)) for name, text in (texts or {}).items() if text
        )
        _, archived = self.objects.put(keys.effect_key(self.prefix, run, turn, effect), form, parts)
        return dict(archived.header["value"])

    def write_end(self, end: NewEnd, signer: Callable[[bytes], Signature] | None = None) -> StepRef:
        """Close a run, signed if there is a ``signer``.

        If it is closed already, the address of that end is returned.
        """
        states, changed = self._nodes_of(end.parent).updated(end.nodes)
        form = End.like(
            end,
            nodes=changed,
            nodes_digest=states.digest,
            **self.naming.after(end.run, end.parent),
            definition=self.naming.definition(),
        )
        key = keys.end_key(self.prefix, end.run)
        # The signature is over the header without itself, and so is made last.
        if signer is not None:
            form = form.model_copy(update={"signature": signer(signed_text(key, form.header()))})
        ref = self._put(key, form)
        prefix = keys.run_prefix(self.prefix, end.run)
        if end.parent is not None:
            pack_left(self.store, prefix, end.parent.key)
        pack_ended(self.store, prefix, end.turn)
        return ref

    def forget(self) -> None:
        """Keep nothing of it in memory: the job has ended. What is asked for all the same is read
        anew.
        """
        self._caches.forget(self.prefix)

    def _put(self, key: str, form: Form, parts: tuple[Part, ...] = ()) -> StepRef:
        return _address(self.objects.put(key, form, parts)[1])

    def _called(self, received: NewReceived) -> dict[str, Any]:
        """What the archive itself knows of what came back: the call."""
        attempt = self.objects.get(received.attempt, "attempt")
        call = {name: attempt.header[name] for name in ("run", "turn", "number")}
        return {**call, "attempt": _address(attempt), "response": sized(received.response)}


def _address(archived: ArchivedObject) -> StepRef:
    return StepRef(key=archived.key, digest=archived.digest)
