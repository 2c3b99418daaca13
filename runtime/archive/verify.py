"""Verifying a job's archive: every object, every link of the chain, every request put together
again.

What it can show: that no object which anything later refers to was altered, lost or moved. The last
step of a run that has not ended, the end of a run, and an attempt whose turn has no step have
nothing after them in the archive; ``witnesses`` are the addresses of such heads that something
outside the archive knows (Temporal's history holds every step's digest). Without a witness such a
chain is self-attested.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import unquote

from runtime.archive import keys
from runtime.archive.container import ArchivedObject, unseal
from runtime.archive.findings import Fault, Finding, Severity
from runtime.archive.forms import Signature, check_header
from runtime.archive.job import JobArchive
from runtime.archive.keys import TurnKey
from runtime.archive.lifecycle.tombstones import Tombstones
from runtime.archive.references import SHARED, references, shared_references
from runtime.archive.run_order import named_by, oldest_first
from runtime.archive.signing import is_valid, signed_text
from runtime.archive.stores.packed import unremembered
from runtime.archive.verify_content import Contents
from runtime.archive.verify_places import MALFORMED, says_what_its_key_says
from runtime.base.digests import digest_bytes
from runtime.base.effect_numbers import is_prepared
from runtime.base.errors import ArchiveError, ObjectCorrupt, ObjectMissing
from runtime.base.values import StepRef

_ASIDE = frozenset({"effect", "checkpoint"})
"""Kinds of which a turn that is another run's may have some in this one: a reset goes back into the
turn before N.
"""

_Turns = dict[int, dict[str, list[str]]]


@dataclass(frozen=True)
class Examination:
    """What verifying a job's archive came to: findings in the order of their keys, the digests of
    its objects that are whole, and the keys that these objects name, also those of other jobs'
    objects and of what all jobs share.
    """

    findings: tuple[Finding, ...]
    digests: Mapping[str, str]
    named: frozenset[str]


def examine_job(archive: JobArchive, witnesses: Iterable[StepRef] = ()) -> Examination:
    """Verify a job's archive. Reads every object once.

    Raises:
        ArchiveError: if the store cannot be read.
    """
    return _Verifier(archive).examination(witnesses)


def verify_job(archive: JobArchive, witnesses: Iterable[StepRef] = ()) -> list[Finding]:
    """All findings about a job's objects, damage and notes; see ``examine_job``."""
    return list(examine_job(archive, witnesses).findings)


def damage(findings: Iterable[Finding]) -> list[Finding]:
    """The findings that mean that the archive is not what was written."""
    return [finding for finding in findings if finding.severity is Severity.DAMAGE]


class _Verifier:
    def __init__(self, archive: JobArchive) -> None:
        self._archive = archive
        self._store = unremembered(archive.store)
        self._prefix = archive.prefix
        self._objects: dict[str, ArchivedObject | None] = {}
        self._findings: list[Finding] = []
        self._contents = Contents(self._store)
        self._covered: set[str] = set()
        self._named: set[str] = set()
        self._shared: dict[str, str | None] = {}
        # That one cannot be read is told where its own job is verified.
        self._graves = Tombstones(self._store, lenient=True)

    def examination(self, witnesses: Iterable[StepRef]) -> Examination:
        names = list(self._store.list(f"{self._prefix}/"))
        runs = self._sorted_in(names)
        for name in names:
            self._load(name)
        self._claims(
            [
                n
                for n in names
                if n.startswith(f"{self._prefix}/replays/") and n.endswith(keys.CLAIM)
            ]
        )
        self._definitions([n for n in names if n.startswith(f"{self._prefix}/definition/")])
        # Older runs first: a layout and node states are checked against those of the run it started
        # from.
        for run in self._by_start(runs):
            self._run(run, runs[run])
        for name in names:
            if (one := self._objects[name]) is not None:
                self._references(one)
        # Last: what nothing names is known only once every object's references are.
        for name in names:
            self._loose_ends(name, runs)
        for witness in witnesses:
            self._referred(witness.key, witness.digest, "a witness outside the archive")
        order = {name: position for position, name in enumerate(names)}
        findings = sorted(
            dict.fromkeys(self._findings), key=lambda f: (order.get(f.key, -1), f.fault)
        )
        whole = {
            name: archived.digest
            for name in names
            if (archived := self._objects.get(name)) is not None
        }
        return Examination(tuple(findings), whole, frozenset(self._named))

    def _sorted_in(self, names: Sequence[str]) -> dict[str, _Turns]:
        """The keys of each run's turns by turn and kind; runs as in keys."""
        runs: dict[str, _Turns] = {}
        for name in names:
            place = keys.parse_turn_key(name)
            if place is not None and place.prefix.startswith(f"{self._prefix}/turns/"):
                kinds = runs.setdefault(place.run, {}).setdefault(place.turn, {})
                kinds.setdefault(place.kind, []).append(name)
            # One that is whole is not listed: what is wrong with this one is told as it is read.
            elif keys.packed_prefix(name) is not None:
                continue
            elif name.removeprefix(f"{self._prefix}/").split("/")[0] not in {
                "definition",
                "runs",
                "ends",
                "replays",
            }:
                self._add(Fault.UNKNOWN, name, "is no object of an archive of this format")
        for name in names:
            if name.startswith(f"{self._prefix}/runs/"):
                runs.setdefault(name.rpartition("/")[2], {})
        return runs

    def _by_start(self, runs: Mapping[str, _Turns]) -> list[str]:
        """Runs so that each comes after the one it started from: a run starts from an older one."""

        starts = {run: self._objects.get(f"{self._prefix}/runs/{run}") for run in runs}
        times = {
            run: str(start.header.get("started_at", "")) if start else ""
            for run, start in starts.items()
        }
        named = {
            run: [keys.name(other) for other in named_by(start.header, self._prefix)]
            for run, start in starts.items()
            if start
        }
        return [run for _, run in oldest_first(times, named)]

    def _load(self, name: str) -> None:
        """Read and check an object by itself, and that it says of itself what its key says."""
        try:
            archived = unseal(name, self._store.get(name))
            check_header(archived)
        except (ObjectCorrupt, ObjectMissing) as error:
            self._objects[name] = None
            self._add(Fault.CORRUPT, name, _reason(error, name))
            return
        self._objects[name] = archived
        self._contents.know(archived)
        if not says_what_its_key_says(archived, self._prefix):
            self._add(Fault.MISPLACED, name, "is not the object that its key names")

    def _object(self, name: str) -> ArchivedObject | None:
        """An object that was read, or one of another job; None if it is missing or damaged (which
        is reported).
        """
        if name not in self._objects:
            # All of this job's objects were loaded before: what is not among them is not there.
            if name.startswith(f"{self._prefix}/"):
                return None
            self._load(name)
        return self._objects[name]

    def _definitions(self, names: Sequence[str]) -> None:
        for number, name in enumerate(names, 1):
            expected = keys.definition_key(self._prefix, number)
            if name != expected:
                # One is enough: all further numbers would be off as well.
                self._add(Fault.MISSING, expected, "is not there, but a later definition is")
                return

    def _claims(self, names: Sequence[str]) -> None:
        for name in names:
            claim = self._object(name)
            if claim is not None:
                self._referred(name.removesuffix(keys.CLAIM), claim.header["order"], name)
                self._covered.add(name.removesuffix(keys.CLAIM))

    def _run(self, run: str, turns: _Turns) -> None:
        start_key = f"{self._prefix}/runs/{run}"
        if not turns:
            self._add(Fault.UNFINISHED, start_key, "was started and has no turn yet", note=True)
            return
        # A run may begin with effects and a checkpoint of the turn before its first call, and end
        # with a tick's before one.
        called = [turn for turn, objects in turns.items() if objects.keys() - _ASIDE]
        if not called:
            self._add(Fault.UNFINISHED, start_key, "was started and has no turn yet", note=True)
            return
        first, last = min(called), max(called)
        for turn in turns.keys() - range(first, last + 1):
            self._checkpoint(turn, turns[turn])
        for turn in range(first, last + 1):
            try:
                self._turn(run, turn, turns.get(turn, {}), is_last=turn == last)
            except MALFORMED as error:
                key = (
                    turns.get(turn, {}).get("step")
                    or turns.get(turn, {}).get("attempt")
                    or [start_key]
                )[-1]
                self._add(Fault.CORRUPT, key, f"its contents are malformed: {error!r}")
        try:
            self._start(start_key, turns[first])
            self._end(run, turns)
        except MALFORMED as error:
            self._add(Fault.CORRUPT, start_key, f"its contents are malformed: {error!r}")

    def _start(self, key: str, first: Mapping[str, list[str]]) -> None:
        """A run's start says the same as each attempt at its first turn, which names it by its
        digest.
        """
        start = self._object(key)
        if key not in self._objects:
            self._add(Fault.MISSING, key, "is not there, but the run has turns")
        for name in first.get("attempt", ()):
            attempt = self._object(name)
            if start is None or attempt is None:
                continue
            for field in ("run", "turn", "parent"):
                if start.header[field] != attempt.header[field]:
                    self._add(Fault.ALTERED, key, f"its {field} is not that of {name}")
            self._referred(key, attempt.header.get("start"), name)
        for claim, digest in (start.header.get("claims", {}) if start is not None else {}).items():
            self._referred(claim, digest, key)
            self._covered.add(claim)

    def _end(self, run: str, turns: _Turns) -> None:
        key = f"{self._prefix}/ends/{run}"
        end = self._object(key)
        if end is None:
            return
        last = max(turn for turn, objects in turns.items() if objects.keys() - _ASIDE)
        parent = end.header["parent"]
        if parent is not None:
            self._referred(parent["key"], parent["digest"], f"the end of run {unquote(run)}")
            if (
                parent["key"] != f"{self._prefix}/turns/{run}/{last // 100:05d}/{last:07d}.step"
                and "step" in turns[last]
            ):
                self._beyond(key, parent, turns[last]["step"][0])
        self._effects(end)
        self._signature(end)
        states = self._contents.states(parent["key"]) if parent else None
        if (
            states is not None
            and states.updated(end.header["nodes"])[0].digest != end.header["nodes_digest"]
        ):
            self._add(Fault.NODES, key, "its nodes do not have the digest that it gives")

    def _beyond(self, key: str, parent: Mapping[str, str], name: str) -> None:
        """A run's last step, which its end does not follow: the reply to a call that a cancel broke
        off may arrive late.
        """
        step = self._object(name)
        late = step is not None and step.header["parent"] == parent
        if late:
            self._add(
                Fault.UNFINISHED,
                name,
                "is a reply that arrived when its run had been ended",
                note=True,
            )
        else:
            self._add(Fault.GAP, key, f"it follows {parent['key']}, but {name} is there")

    def _signature(self, end: ArchivedObject) -> None:
        """A signature, if there is one, is by the key that it names.

        Whether to trust that key is not asked here.
        """
        if end.header.get("signature") is not None:
            signature = Signature.model_validate(end.header["signature"])
            if not is_valid(signature, signed_text(end.key, end.header)):
                self._add(Fault.ALTERED, end.key, "its signature is not one of what it says")

    def _turn(
        self, run: str, turn: int, objects: Mapping[str, list[str]], *, is_last: bool
    ) -> None:
        step_key = f"{self._prefix}/turns/{run}/{turn // 100:05d}/{turn:07d}.step"
        self._attempts(run, turn, objects)
        self._failures(turn, objects)
        self._checkpoint(turn, objects)
        if "step" not in objects:
            if not is_last:
                self._add(
                    Fault.MISSING, step_key, "the turn has no step, but there are later turns"
                )
            elif "attempt" in objects:
                self._add(
                    Fault.UNFINISHED,
                    keys.attempts_among(objects["attempt"])[-1],
                    "is an attempt whose turn has no step",
                    note=True,
                )
            return
        step = self._object(step_key)
        if step is None:
            return
        chosen = step.header["attempt"]
        self._referred(chosen["key"], chosen["digest"], f"the step of turn {turn}")
        attempt = self._object(chosen["key"])
        if chosen["key"] not in objects.get("attempt", ()) and attempt is not None:
            self._add(
                Fault.MISPLACED, step_key, f"names an attempt at another turn, {chosen['key']}"
            )
        if attempt is not None and attempt.header["parent"] != step.header["parent"]:
            self._add(Fault.ALTERED, step_key, "has another parent than its attempt")
        self._effects(step)
        for fault, message in self._contents.check_step(step):
            self._add(fault, step_key, message)

    def _attempts(self, run: str, turn: int, objects: Mapping[str, list[str]]) -> None:
        names = objects.get("attempt", [])
        prefix = f"{self._prefix}/turns/{run}/"
        # A turn without any attempt lacks the first one.
        wanted = [keys.attempt_key_in(prefix, turn, n) for n in range(1, len(names) + 1)] or [
            keys.attempt_key_in(prefix, turn, 1)
        ]
        for name in wanted:
            if name not in names:
                self._add(Fault.MISSING, name, "is not there, but the turn has later objects")
        for name in names:
            attempt = self._object(name)
            if attempt is None:
                continue
            self._links(attempt, turn)
            for fault, key, message in self._contents.check_attempt(attempt):
                self._add(fault, key, message)
            if attempt.header["capture"] == "handed-over":
                message = "holds the request as handed over, not what went over the wire"
                self._add(Fault.HANDED_OVER, name, message, note=True)

    def _checkpoint(self, turn: int, objects: Mapping[str, list[str]]) -> None:
        """A checkpoint is that of its turn's step, and its state has the digest that it gives."""
        for name in objects.get("checkpoint", []):
            checkpoint = self._object(name)
            if checkpoint is None:
                continue
            parent, state = checkpoint.header["parent"], checkpoint.header["state"]
            for named in (parent, checkpoint.header.get("against")):
                if named is not None:
                    self._referred(named["key"], named["digest"], f"the checkpoint of turn {turn}")
            if self._object(parent["key"]) is None:
                continue
            try:
                text = self._contents.state(checkpoint)
            except (ObjectCorrupt, ObjectMissing) as error:
                self._add(Fault.CORRUPT, name, _reason(error, name))
                continue
            if (digest_bytes(text), len(text)) != (state["digest"], state["bytes"]):
                self._add(Fault.ALTERED, name, "its state does not have the digest that it gives")

    def _failures(self, turn: int, objects: Mapping[str, list[str]]) -> None:
        """Each failure or exchange is that of an attempt at this turn, and holds what it says it
        received.
        """
        for kind, key_of in (("failure", keys.failure_key), ("exchange", keys.exchange_key)):
            for name in objects.get(kind, []):
                outcome = self._object(name)
                if outcome is None:
                    continue
                attempt = outcome.header["attempt"]
                self._referred(attempt["key"], attempt["digest"], f"the {kind} at turn {turn}")
                if name != key_of(attempt["key"]):
                    self._add(
                        Fault.MISPLACED, name, f"is the {kind} of another attempt, {attempt['key']}"
                    )
                for fault, message in self._contents.check_response(outcome):
                    self._add(fault, name, message)

    def _links(self, attempt: ArchivedObject, turn: int) -> None:
        """The attempt's parent is the step of the turn before, and each attempt names the one
        before it.
        """
        parent, previous = attempt.header["parent"], attempt.header["previous"]
        if parent is not None:
            self._referred(parent["key"], parent["digest"], f"turn {turn}")
            place = keys.parse_turn_key(parent["key"])
            if place is None or place.turn != turn - 1 or place.kind != "step":
                self._add(
                    Fault.GAP,
                    attempt.key,
                    f"its parent {parent['key']} is not the step of turn {turn - 1}",
                )
        if previous is not None:
            self._referred(
                previous["key"],
                previous["digest"],
                f"attempt {attempt.header['number']} at turn {turn}",
            )
        failed = attempt.header.get("failed")
        if failed is not None:
            self._referred(
                failed["key"],
                failed["digest"],
                f"attempt {attempt.header['number']} at turn {turn}",
            )
            self._covered.add(failed["key"])

    def _effects(self, child: ArchivedObject) -> None:
        for key, digest in {
            **child.header["effects"],
            **child.header.get("checkpoints", {}),
        }.items():
            self._referred(key, digest, child.key)
            self._covered.add(key)
        for condensation in child.header.get("condensations", ()):
            if summary := condensation.get("summary"):
                self._referred(summary["key"], summary["digest"], child.key)
                self._covered.add(summary["key"])
        parent = child.header["parent"]
        # By the turn's prefix: its effects should be named now, for its next step is there. Not so
        # of a run that was cut short: the worker of a call hears of that at its next heartbeat, and
        # may archive what came of it meanwhile.
        if parent and child.header.get("status", "succeeded") == "succeeded":
            self._covered.add(parent["key"].removesuffix("step"))

    def _loose_ends(self, name: str, runs: Mapping[str, _Turns]) -> None:
        """What nothing later names; ends of runs that have no turn."""
        place = keys.parse_turn_key(name)
        if (
            name not in self._covered
            and name not in self._named
            and (loose := self._loose(name, place))
        ):
            self._add(Fault.UNCOVERED, name, f"is {loose} that no later record names", note=True)
        if place is not None and place.kind == "failure" and name not in self._covered:
            self._add(
                Fault.UNCOVERED,
                name,
                "is a failed attempt's record that no later attempt names",
                note=True,
            )
        if place is not None and place.kind == "effect" and name not in self._covered:
            # What was prepared in the background may come late, and is named by the step whose tick
            # applied it, if one did.
            late = is_prepared(place.number)
            followed = name.partition("effect-")[0] in self._covered and not late
            message = "is a tool result that no step names" + (
                ", though the next step is there" if followed else ""
            )
            self._add(Fault.UNCOVERED, name, message, note=not followed)
        if name.startswith(f"{self._prefix}/ends/") and not runs.get(name.rpartition("/")[2]):
            end = self._objects[name]
            if end is not None and end.header.get("parent") is not None:
                self._add(
                    Fault.GAP, name, "ends a run that has no turns", note=self._ends_elsewhere(end)
                )

    def _loose(self, name: str, place: TurnKey | None) -> str | None:
        """What an object is that nothing names, where that is worth a note: heads and attempts in
        flight are none.
        """
        if name.startswith(f"{self._prefix}/replays/"):
            return "a claim" if name.endswith(keys.CLAIM) else "an order of a replay"
        if name.startswith(f"{self._prefix}/definition/"):
            return "a definition"
        if place is None:
            return None
        if place.kind == "step":
            return "a summary" if keys.is_side_run(unquote(place.run)) else None
        if place.kind == "attempt":
            # An attempt whose turn has no step is told of with its turn.
            step = keys.step_key_in(place.prefix, place.turn)
            return "an attempt" if step in self._objects else None
        return {"checkpoint": "a checkpoint", "exchange": "a reply that was not taken"}.get(
            place.kind
        )

    def _ends_elsewhere(self, end: ArchivedObject) -> bool:
        """A run that ended before its first turn follows a step of another run."""
        parent = end.header["parent"]
        self._referred(parent["key"], parent["digest"], end.key)
        place = keys.parse_turn_key(parent["key"])
        return place is not None and place.run != end.key.rpartition("/")[2]

    def _references(self, archived: ArchivedObject) -> None:
        """What an object names is there.

        The links of the chain, of which more is to be said, are looked at with their turns.
        """
        try:
            named = list(references(archived))
        except MALFORMED as error:
            self._add(Fault.CORRUPT, archived.key, f"its contents are malformed: {error!r}")
            return
        for key, digest, link in named:
            self._named.add(key)
            if not link:
                self._referred(key, digest, archived.key)
                self._covered.add(key)

    def _look_at_shared(self, key: str, digest: str, by: str) -> None:
        """``key`` belongs to no job. What it names in turn is looked at once."""
        if key not in self._shared:
            try:
                data = self._store.get(key)
            except ObjectMissing:
                self._shared[key] = None
            except ObjectCorrupt as error:
                # What else is wrong with the job is told all the same.
                self._add(Fault.CORRUPT, key, str(error))
                self._shared[key] = digest
            else:
                self._shared[key] = digest_bytes(data)
                for reference in shared_references(data):
                    self._named.add(reference.key)
                    self._covered.add(reference.key)
                    self._referred(reference.key, reference.digest, key)
        current = self._shared[key]
        if current is None and self._was_deleted(key, digest, by):
            return
        if current is None:
            self._add(Fault.MISSING, key, f"is not there, but {by} refers to it")
        elif current != digest:
            self._add(
                Fault.ALTERED, key, f"has digest {current}, but {by} refers to it as {digest}"
            )

    def _referred(self, key: str, digest: str | None, by: str) -> None:
        """``key`` must be there and have ``digest``.

        Damage of the object itself is reported where it is read.
        """
        if key.startswith(SHARED) and digest is not None:
            self._look_at_shared(key, digest, by)
            return
        if not self._is_there(key) and self._was_deleted(key, digest, by):
            return
        try:
            archived = self._object(key)
        except ArchiveError:
            archived = None
        if archived is None:
            if self._objects.get(key, None) is None and key not in self._objects:
                self._add(Fault.MISSING, key, f"is not there, but {by} refers to it")
        elif archived.digest != digest:
            self._add(
                Fault.ALTERED,
                key,
                f"has digest {archived.digest}, but {by} refers to it as {digest}",
            )

    def _is_there(self, key: str) -> bool:
        return self._objects.get(key) is not None or key in self._store.list(key)

    def _was_deleted(self, key: str, digest: str | None, by: str) -> bool:
        """Whether a tombstone covers what is not there, which is then told."""
        grave = self._graves.covering(key, digest)
        if grave is not None:
            message = f"{grave.told} (with {grave.job}); {by} refers to it"
            self._add(Fault.DELETED, key, message, note=True)
        return grave is not None

    def _add(self, fault: Fault, key: str, message: str, *, note: bool = False) -> None:
        place: TurnKey | None = keys.parse_turn_key(key)
        run = (
            place.run
            if place
            else key.rpartition("/")[2]
            # Only there: a batch or a job may be called so.
            if key.split("/")[2:3] in (["runs"], ["ends"])
            else None
        )
        self._findings.append(
            Finding(
                fault=fault,
                severity=Severity.NOTE if note else Severity.DAMAGE,
                run=None if run is None else unquote(run),
                turn=place.turn if place else None,
                key=key,
                message=message,
            )
        )


def _reason(error: Exception, key: str) -> str:
    return str(error).removeprefix(f"{key}: ")
