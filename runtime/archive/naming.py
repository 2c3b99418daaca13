"""What an object names, by its digest, of what came before it: so that the chain of steps covers
everything beside it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from runtime.archive import keys
from runtime.archive.container import ArchivedObject
from runtime.archive.forms import NewAttempt, NewStep, RunStart
from runtime.archive.lineage import Lineage, newest_first
from runtime.archive.objects import Objects
from runtime.base.effect_numbers import UNWRITTEN
from runtime.base.errors import ObjectCorrupt, ObjectMissing
from runtime.base.values import StepRef

_OUTCOMES = frozenset({"step", "failure", "exchange"})
"""What came of a call. Each names its attempt."""

_CALLS = frozenset({"attempt", "failure", "exchange"})
"""What may stand in a turn beside its step's own attempt."""


class Naming:
    """What the objects of the job under ``prefix`` name."""

    def __init__(self, objects: Objects, prefix: str, lineage: Lineage) -> None:
        self._objects = objects
        self._prefix = prefix
        self._lineage = lineage

    def after(self, run: str, parent: StepRef | None) -> dict[str, dict[str, str]]:
        """What the object after a step names, digests by key: the results of the effects of the
        step's statement, checkpoints, and calls that nothing else names.
        """
        place = keys.parse_turn_key(parent.key) if parent else None
        if place is None:
            opened = self.effects_after(run, None)
            digests = {key: self._objects.get(key, "effect").digest for key in opened}
            return {"effects": digests, "beside": self._side_calls(run)}
        listed = self._of_turn(run, place)
        effects = {
            key: self._objects.get(key, "effect").digest for key in filter(_is_effect, listed)
        }
        saved = [key for key in listed if key.endswith(".checkpoint")]
        checkpoints = {key: self._objects.get(key, "checkpoint").digest for key in saved}
        calls = {**self._other_calls(listed), **self._side_calls(run)}
        for prefix in self._on_the_way(run, place):
            calls |= self._side_calls(keys.run_in(prefix))
        return {"effects": effects, "checkpoints": checkpoints, "beside": calls}

    def effects_after(self, run: str, parent: StepRef | None) -> list[str]:
        """The keys of the effects that the object after a step names."""
        place = keys.parse_turn_key(parent.key) if parent else None
        if place is None:
            # Before the first turn, a workspace of the job's own was opened.
            return list(self._objects.store.list(keys.turn_prefix(self._prefix, run, 0)))
        return list(filter(_is_effect, self._of_turn(run, place)))

    def _of_turn(self, run: str, place: keys.TurnKey) -> list[str]:
        # The statement of the last turn before a run may have run on in that run, and in others
        # on the way to it.
        runs = (keys.run_prefix(self._prefix, run), *self._on_the_way(run, place))
        prefixes = {keys.turn_prefix_in(prefix, place.turn) for prefix in runs}
        prefixes.add(keys.turn_prefix_of(place))
        return [key for prefix in sorted(prefixes) for key in self._objects.store.list(prefix)]

    def _on_the_way(self, run: str, place: keys.TurnKey) -> tuple[str, ...]:
        """The prefixes of the runs between ``place`` and ``run``, if that begins there."""
        begins = (place.job, place.run) != (self._prefix, keys.name(run))
        return self._lineage.through(run) if begins else ()

    def by_step(self, step: NewStep, parent: StepRef | None) -> dict[str, dict[str, str]]:
        """What a step names of what came before its call: also what was prepared in the background,
        however long before, and applied by a tick since the parent.
        """
        named = self.after(step.run, parent)
        asleep = [(obj_id, turn, effect) for _, obj_id, turn, effect in step.interim.asleep]
        for _, turn, effect in (*step.interim.payloads, *asleep):
            # No summary could be written, so nothing was archived.
            if effect == UNWRITTEN:
                continue
            # The newest run first: it wrote its own where a reset had it prepared anew.
            for one in newest_first(self._lineage.spans(step.run)):
                key = keys.effect_key_in(one.prefix, turn, effect)
                try:
                    named["effects"][key] = self._objects.get(key, "effect").digest
                except ObjectMissing:
                    continue
                break
        return named

    def remember(self, named: Mapping[str, Mapping[str, str]]) -> None:
        """A step was written that names this.

        What another process wrote is named once more, which does no harm.
        """
        for key in named.get("beside", ()):
            place = keys.parse_turn_key(key)
            if place is not None and keys.is_side_run(unquote(place.run)):
                done = place.kind == "step"
                one = f"{self._prefix}/runs/{place.run}" if done else key
                self._objects.caches.named.put(one, True)

    def definition(self) -> StepRef | None:
        """Where the job's definition is, which a run's start and end name."""
        last = self._objects.last(f"{self._prefix}/definition/", "definition")
        return None if last is None else StepRef(key=last.key, digest=last.digest)

    def start(self, attempt: NewAttempt) -> str | None:
        """Archive the run's start, if this is its first turn.

        Returns its digest, which the attempt names.

        Workers may race on a first turn, and a kill may come between the two writes: which of them
        wrote the start is not known from its time, so the attempt names the start that stands.
        """
        parent = keys.parse_turn_key(attempt.parent.key) if attempt.parent else None
        if parent is not None and (parent.job, parent.run) == (
            self._prefix,
            keys.name(attempt.run),
        ):
            return None
        aside = keys.is_side_run(attempt.run)
        form = RunStart.like(
            attempt,
            claims=self._claimed(attempt.run),
            # Without the heads of the runs before, a run that nothing goes on from could vanish.
            definition=None if aside else self.definition(),
            earlier={} if aside else self._heads_before(attempt.run),
        )
        return self._objects.put(keys.run_key(self._prefix, attempt.run), form)[1].digest

    def _claimed(self, run: str) -> dict[str, str]:
        """The claims of the replays that a run is, digests by key; nothing if it is none."""
        listed = [
            key
            for key in self._objects.store.list(f"{self._prefix}/replays/")
            if key.endswith(keys.CLAIM)
        ]
        claims = [
            claim
            for claim in (self._objects.get(key, "claim") for key in listed)
            if claim.header["run"] == run
        ]
        return {claim.key: claim.digest for claim in claims}

    def _heads_before(self, run: str) -> dict[str, str]:
        """The heads of the runs before, as far as no other start has named them."""
        starts = [key for key in self._objects.store.list(f"{self._prefix}/runs/") if _is_main(key)]
        ends = list(self._objects.store.list(f"{self._prefix}/ends/"))
        told: dict[str, str] = {}
        for key in starts:
            if (start := self._whole(key, "run")) is not None:
                told |= start.header.get("earlier", {})
        names = dict.fromkeys(key.rpartition("/")[2] for key in (*starts, *ends))
        heads = {
            key: digest
            for name in names
            if name != keys.name(run)
            for key, digest in self._head(name).items()
        }
        return {key: digest for key, digest in heads.items() if told.get(key) != digest}

    def _head(self, name: str) -> dict[str, str]:
        """The last object of a run, named as in its key: its end, its last step with what else its
        turn has, or its start.
        """
        end = self._whole(f"{self._prefix}/ends/{name}", "end")
        if end is not None:
            return {end.key: end.digest}
        listed = self._objects.store.list(f"{self._prefix}/turns/{name}/")
        steps = [key for key in listed if key.endswith(".step")]
        if steps:
            calls = self._other_calls(self._objects.store.list(steps[-1].removesuffix("step")))
            return {**calls, **self._digests([(steps[-1], "step")])}
        return self._digests([(f"{self._prefix}/runs/{name}", "run")])

    def _other_calls(self, listed: Iterable[str]) -> dict[str, str]:
        """The calls of a step's turn beside the one that it is the reply to: those that failed
        late, or lost a race.
        """
        calls = [
            (key, place.kind) for key in listed if (place := keys.parse_turn_key(key)) is not None
        ]
        calls = [(key, kind) for key, kind in calls if kind in _CALLS]
        # Of a turn with one attempt there is nothing to say: its step names it.
        return self._digests(calls) if len(calls) > 1 else {}

    def _side_calls(self, run: str) -> dict[str, str]:
        """What came of the calls by which a model wrote summaries for ``run``, as far as no step of
        this process named it.
        """
        if keys.is_side_run(run):
            return {}
        named = self._objects.caches.named
        digests: dict[str, str] = {}
        for start in self._objects.store.list(keys.run_key(self._prefix, keys.side_run(run, ""))):
            if named.get(start):
                continue
            for key in self._objects.store.list(
                f"{self._prefix}/turns/{start.rpartition('/')[2]}/"
            ):
                place = keys.parse_turn_key(key)
                if place is not None and place.kind in _OUTCOMES and not named.get(key):
                    digests |= self._digests([(key, place.kind)])
        return digests

    def _digests(self, wanted: Iterable[tuple[str, str]]) -> dict[str, str]:
        """The digests of objects that are whole.

        What is damaged can be named no more, and holds no job up: ``verify`` tells.
        """
        objects = [self._whole(key, kind) for key, kind in wanted]
        return {one.key: one.digest for one in objects if one is not None}

    def _whole(self, key: str, kind: str) -> ArchivedObject | None:
        try:
            return self._objects.get(key, kind)
        except (ObjectCorrupt, ObjectMissing):
            return None


def _is_effect(key: str) -> bool:
    return ".effect-" in key


def _is_main(key: str) -> bool:
    return not keys.is_side_run(unquote(key.rpartition("/")[2]))
