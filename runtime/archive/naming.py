"""What a record names, by its digest, of what came before it: so that the chain of steps covers everything beside it."""

from __future__ import annotations

from typing import Any

from runtime.archive import headers, keys
from runtime.archive.lineage import Lineage
from runtime.archive.objects import Objects
from runtime.archive.records import AttemptRecord, StepRecord
from runtime.errors import ObjectMissing
from runtime.values import StepRef


class Naming:
    """What the records of the job under ``prefix`` name."""

    def __init__(self, objects: Objects, prefix: str, lineage: Lineage) -> None:
        self._objects = objects
        self._prefix = prefix
        self._lineage = lineage

    def after(self, run: str, parent: StepRef | None) -> dict[str, dict[str, str]]:
        """What the record after a step names, digests by key: the results of the effects of the step's statement, and
        checkpoints if there are any.
        """
        found = keys.parse_turn_key(parent.key) if parent else None
        if found is None:
            return {"effects": {}}
        # The statement of the last turn before a run may have run on in that run.
        places = {f"{found.prefix}{found.turn // 100:05d}/{found.turn:07d}."}
        places.add(keys.turn_prefix(self._prefix, run, found.turn))
        listed = [key for place in sorted(places) for key in self._objects.store.list(place)]
        effects = {key: self._objects.get(key, "effect").digest for key in listed if ".effect-" in key}
        saved = [key for key in listed if key.endswith(".checkpoint")]
        checkpoints = {key: self._objects.get(key, "checkpoint").digest for key in saved}
        return {"effects": effects, **({"checkpoints": checkpoints} if checkpoints else {})}

    def by_step(self, step: StepRecord, parent: StepRef | None) -> dict[str, dict[str, str]]:
        """What a step names of what came before its call: also what was prepared in the background, however long before, and
        applied by a tick since the parent.
        """
        named = self.after(step.run, parent)
        asleep = [(obj_id, turn, effect) for _, obj_id, turn, effect in step.interim.asleep]
        for _, turn, effect in (*step.interim.payloads, *asleep):
            for span in reversed(self._lineage.spans(step.run)):
                key = keys.effect_key_in(span.prefix, turn, effect)
                try:
                    named["effects"][key] = self._objects.get(key, "effect").digest
                except ObjectMissing:
                    continue
                break
        return named

    def start(self, attempt: AttemptRecord) -> dict[str, str]:
        """Record the run's start, if this is its first turn. Returns what the attempt's header says of it: its digest.

        Workers may race on a first turn, and a kill may come between the two writes: which of them wrote the start is
        not known from its time, so the attempt names the start that stands.
        """
        parent = keys.parse_turn_key(attempt.parent.key) if attempt.parent else None
        if parent is not None and (parent.job, parent.run) == (self._prefix, keys.name(attempt.run)):
            return {}
        fields = {
            "kind": "run",
            "run": attempt.run,
            "turn": attempt.turn,
            "parent": headers.reference(attempt.parent),
            "started_at": attempt.started_at,
            **self._claimed(attempt.run),
        }
        return {"start": self._objects.put(keys.run_key(self._prefix, attempt.run), fields)[1].digest}

    def _claimed(self, run: str) -> dict[str, Any]:
        """The claims of the replays that a run is, digests by key; nothing if it is none."""
        listed = [key for key in self._objects.store.list(f"{self._prefix}/replays/") if key.endswith(keys.CLAIM)]
        claims = [claim for claim in (self._objects.get(key, "claim") for key in listed) if claim.header["run"] == run]
        return {"claims": {claim.key: claim.digest for claim in claims}} if claims else {}
