"""What the archived calls of jobs used and spent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial, reduce
from typing import Any
from urllib.parse import unquote

from runtime.archive import keys
from runtime.archive.catalog import all_jobs
from runtime.archive.divergences import replay_of
from runtime.archive.forms import WITHOUT_MODEL, End, opened
from runtime.archive.gaps import UNREADABLE
from runtime.archive.job import JobArchive
from runtime.archive.keys import TurnKey, step_key_in
from runtime.archive.other_attempts import OtherAttempts
from runtime.archive.reading import read_ahead
from runtime.archive.replays import has_replays
from runtime.archive.stores import ObjectStore
from runtime.archive.told_effects import worked_for
from runtime.base.spec.models import Amount
from runtime.base.values import Failed, JobKey, Usage
from runtime.job.purse import NOTHING, larger, plus

COUNTED = (
    *(
        "calls",
        "failed_attempts",
        "prompt",
        "completion",
        "cache_read",
        "cache_write",
        "unreported",
        "cost_usd",
    ),
    *("failed_tokens", "failed_usd", "moved_prefixes", "lost_usd", "commands", "command_seconds"),
    *("effects", "effect_seconds"),
)

_TOKENS = ("prompt", "completion", "cache_read", "cache_write")


def spent_in(store: ObjectStore, batch: str) -> Amount:
    """What the jobs of a batch have spent, in all their runs and with their sub-jobs and forks.

    Raises:
        ArchiveError: if the store cannot be read.
    """
    return reduce(plus, read_ahead(all_jobs(store, batch), partial(_spent_by, store)), NOTHING)


def _spent_by(store: ObjectStore, job: JobKey) -> Amount:
    archive = JobArchive.of(store, job)
    # The end of a replay has what its record paid for.
    if (end := _its_end(archive)) is not None and not has_replays(archive):
        return _amount(end)
    spending = _read(archive)
    told = spending.told()
    tokens = told["prompt"] + told["completion"]
    read = Amount(turns=spending.turns, tokens=tokens, usd=max(told["cost_usd"], 0.0))
    if not told["damaged"]:
        return read
    # What cannot be read was paid for all the same, and these hold most of it.
    ends = (_by_end(archive, run) for run in archive.beginnings())
    return larger(read, reduce(plus, filter(None, ends), NOTHING))


def _its_end(archive: JobArchive) -> End | None:
    """The end of a job that had one run alone, which began it: most have, and what they spent is
    told by that, without their turns.
    """
    try:
        runs = archive.runs_that_called()
    except UNREADABLE:
        return None
    return _own_end(archive, runs[0]) if len(runs) == 1 else None


def _own_end(archive: JobArchive, run: str) -> End | None:
    """The end of a run that began its job, so that it tells of nothing that others spent."""
    try:
        spans = archive.lineage.spans(run)
        # A span begins at 0 where its run's start is not there, so that nobody knows.
        return archive.end(run) if len(spans) == 1 and spans[0].first else None
    except UNREADABLE:
        return None


def _by_end(archive: JobArchive, run: str) -> Amount | None:
    """What a run spent that began its job, by its end; None if that is not there, or cannot be
    read. A fork's end has what the job spent that it was forked from.
    """
    try:
        end = archive.end(run)
    except UNREADABLE:
        return None
    return None if end is None else _amount(end)


def _amount(end: End) -> Amount:
    return Amount(turns=end.turns, tokens=end.usage.total, usd=max(end.cost_usd, 0.0))


def spent(archive: JobArchive) -> dict[str, Any]:
    """What all archived calls of a job used, those of failed attempts with them.

    Tokens read from a provider's cache are among the prompt's. ``failed_tokens`` and ``failed_usd``
    are what of it came to nothing; an attempt over which a worker died counts once its turn has a
    reply, or its job has ended.
    """
    return _read(archive).told()


def untold(archive: JobArchive, run: str) -> Failed:
    """What a run that has ended used beyond all that its objects tell: attempts over which a worker
    died in a turn that has no reply. Nothing where that is not known.
    """
    spending = _read(archive)
    return Failed() if spending.told()["damaged"] else spending.untold(run)


def _read(archive: JobArchive) -> _Spending:
    spending = _Spending(archive)
    for key in archive.store.list(f"{archive.prefix}/turns/"):
        if (place := keys.parse_turn_key(key)) is not None:
            spending.read(key, place)
    return spending


class _Spending:
    """What the objects of a job's turns say of its calls, as far as they were read."""

    def __init__(self, archive: JobArchive) -> None:
        self._archive = archive
        self._counted = dict.fromkeys(COUNTED, 0)
        self._cost = self._lost = 0.0
        # By run, with what was written beside it.
        self._used: defaultdict[str, Failed] = defaultdict(Failed)
        # Turns that were answered without a model: an end may count what their record paid for.
        self._restored: set[TurnKey] = set()
        # By where each was done: a run that goes on from a turn of another tells of its statement
        # again, or for it.
        self._ran: dict[TurnKey, float] = {}
        self._worked: dict[TurnKey, float] = {}
        self._frozen: dict[str, bool] = {}
        self._damaged: list[str] = []
        self._asked: set[TurnKey] = set()
        self._answered: set[TurnKey] = set()
        # The steps that others, or ends, go on from.
        self._named: set[TurnKey] = set()
        # Of a pack that cannot be read no turn is listed, but itself.
        self._packs = list(archive.store.list(f"{archive.prefix}/packs/"))
        self._turns: defaultdict[TurnKey, OtherAttempts] = defaultdict(OtherAttempts)

    @property
    def turns(self) -> int:
        """The turns that a model answered; one that cannot be read counts as such."""
        return sum(not keys.is_side_run(turn.run) for turn in self._answered - self._restored)

    def read(self, key: str, place: TurnKey) -> None:
        """Take in one object. That of an attempt is not opened: its key says all that counts."""
        # An attempt and the step that answers it meet in one key.
        turn = place._replace(kind="step", number=0)
        others = self._turns[turn]
        match place.kind:
            # Not opened: it holds the request, which is most of a job's bytes.
            case "attempt":
                self._asked.add(turn)
                others.numbers.add(place.number)
                return
            case "step":
                self._answered.add(turn)
            case "failure":
                self._counted["failed_attempts"] += 1
            case "exchange":
                pass
            case _:
                return
        try:
            header = opened(key, self._archive.store.get(key), place.kind).header
        except UNREADABLE:
            self._damaged.append(key)
            return
        if place.kind == "step":
            self._step(turn, header, others)
        elif place.kind == "failure":
            others.failed[place.number] = Failed.model_validate(header.get("spent", {}))
        elif header["reply"] is None:
            # A redirect was not paid for; a reply that lost the race for its turn was.
            others.aside.add(place.number)
        else:
            self._counted["calls"] += 1
            usage = Usage.model_validate(header["usage"])
            others.beaten[place.number] = Failed(
                attempts=1, usage=usage, cost_usd=header["cost_usd"]
            )

    def _step(self, turn: TurnKey, header: Mapping[str, Any], others: OtherAttempts) -> None:
        self._did(header)
        if header["capture"] not in WITHOUT_MODEL:
            self._counted["calls"] += 1
            # A number in quotes is one by the form.
            self._add(turn, Usage.model_validate(header["usage"]), float(header["cost_usd"]))
        else:
            self._restored.add(turn)
        others.told = Failed.model_validate(header.get("failed_attempts", {}))
        if (own := keys.parse_turn_key(header["attempt"]["key"])) is not None:
            others.aside.add(own.number)
        if (prefix := header.get("prefix")) is not None:
            self._counted["moved_prefixes"] += bool(prefix.get("broken"))
            self._lost += float(prefix.get("lost_usd", 0.0))

    def _did(self, header: Mapping[str, Any]) -> None:
        """The effects of a statement: its commands by their own time, all by what was worked for
        them. Those of a job that this is a fork of are that job's, and those that a frozen replay
        answers are its record's.
        """
        own = self._archive.prefix
        worked = worked_for(header.get("execution") or {})
        idle = {number for number, seconds in enumerate(worked) if seconds is None}
        self._ran |= {
            place: seconds
            for place, seconds in _commands(self._archive, header, self._damaged)
            if place.job == own and not (place.number in idle and self._is_frozen(place.run))
        }
        self._worked |= {
            place: seconds
            for place, seconds in zip(_places(header), worked, strict=False)
            if seconds is not None and place.job == own
        }
        if (parent := _parent_of(header)) is not None and parent.job == own:
            self._named.add(parent)

    def _is_frozen(self, run: str) -> bool:
        """Whether a run is a frozen replay, as far as that can be read."""
        if run not in self._frozen:
            try:
                replay = replay_of(self._archive, unquote(run))
            except UNREADABLE:
                replay = None
            self._frozen[run] = replay is not None and bool(replay.order.get("frozen"))
        return self._frozen[run]

    def _add(self, turn: TurnKey, usage: Usage, cost: float) -> None:
        self._used[keys.main_run(turn.run)] += Failed(usage=usage, cost_usd=cost)
        self._cost += cost
        self._counted["unreported"] += not usage.reported
        for name in _TOKENS:
            self._counted[name] += getattr(usage, name)

    def told(self) -> dict[str, Any]:
        """The sums, after the last object."""
        for end in _ends(self._archive, self._damaged):
            self._did(end)
        lost = _lost(self._asked, self._answered)
        for turn in self._named - self._answered:
            lost |= _before(self._archive, turn, self._answered)
        # A job that runs may have written one since its turns were listed.
        lost = {turn for turn in lost if not _is_there(self._archive, turn)}
        self._damaged += (step_key_in(turn.prefix, turn.turn) for turn in lost)
        # Those whose turns nothing tells of.
        told = {keys.pack_key(turn.prefix, turn.turn) for turn in lost}
        self._damaged += (key for key in self._packs if key not in told)
        nothing = Failed()
        for turn, others in self._turns.items():
            for race in others.paid_beside():
                self._add(turn, race.usage, race.cost_usd)
            self._used[keys.main_run(turn.run)] += (in_vain := others.spent_on_nothing())
            nothing += in_vain
        if not self._damaged:
            nothing += sum(map(self.untold, self._archive.ended_runs()), Failed())
        for name in _TOKENS:
            self._counted[name] += getattr(nothing.usage, name)
        return {
            **self._counted,
            "failed_tokens": nothing.usage.total,
            "failed_usd": nothing.cost_usd,
            "commands": len(self._ran),
            "command_seconds": round(sum(self._ran.values()), 3),
            "effects": len(self._worked),
            "effect_seconds": round(sum(self._worked.values()), 3),
            "cost_usd": round(self._cost + nothing.cost_usd, 9),
            "lost_usd": round(self._lost, 9),
            # A statement that runs on in another run is told of twice.
            "damaged": sorted(set(self._damaged)),
        }

    def untold(self, run: str) -> Failed:
        """What a run used by its end beyond all that was read of it."""
        end = _own_end(self._archive, run)
        if end is None or any(turn.run == keys.name(run) for turn in self._restored):
            return Failed()
        used = self._used[keys.name(run)]
        more = {
            name: max(getattr(end.usage, name) - getattr(used.usage, name), 0) for name in _TOKENS
        }
        if not any(more.values()):
            # Sums of the same costs may differ in their last digits.
            return Failed()
        cost = max(round(end.cost_usd - used.cost_usd, 9), 0.0)
        return Failed(usage=Usage(**more, reported=False), cost_usd=cost)


def _ends(archive: JobArchive, damaged: list[str]) -> Iterator[Mapping[str, Any]]:
    """The ends of a job's runs, which tell of the last statements; ``damaged`` gets the others."""

    for key in archive.store.list(f"{archive.prefix}/ends/"):
        try:
            yield opened(key, archive.store.get(key), "end").header
        except UNREADABLE:
            damaged.append(key)


def _places(header: Mapping[str, Any]) -> list[TurnKey]:
    """Where the effects of a record's statement were done: in the run of the turn before, or where
    the statement ran on in the record's own run, in that.
    """

    turn = _parent_of(header)
    if turn is None:
        return []
    count = len((header.get("execution") or {}).get("effects", ()))
    done = [turn._replace(kind="effect", number=number) for number in range(count)]
    for key in header.get("effects") or ():
        place = keys.parse_turn_key(key)
        if place is None or place[:2] == turn[:2] or place.turn != turn.turn:
            continue
        if place.number < count:
            done[place.number] = place
    return done


def _parent_of(header: Mapping[str, Any]) -> TurnKey | None:
    """The step that a step or an end goes on from."""
    parent = header.get("parent")
    return keys.parse_turn_key(parent["key"]) if parent else None


def _commands(
    archive: JobArchive, header: Mapping[str, Any], damaged: list[str]
) -> Iterator[tuple[TurnKey, float]]:
    """The commands that a record's statement ran, and their seconds; ``damaged`` gets the others
    that this job ran. One whose result was taken from another run ran there.
    """

    done = (header.get("execution") or {}).get("effects", ())
    numbers = {number for number, one in enumerate(done) if one["name"] == "sh"}
    for key in header.get("effects") or () if numbers else ():
        place = keys.parse_turn_key(key)
        if place is None or place.number not in numbers:
            continue
        try:
            value = archive.objects.get(key, "effect").header["value"].get("value")
        except UNREADABLE:
            if place.job == archive.prefix:
                damaged.append(key)
            continue
        seconds = value.get("seconds", 0.0) if isinstance(value, dict) else None
        if isinstance(seconds, int | float):
            yield place, float(seconds)


def _lost(asked: set[TurnKey], answered: set[TurnKey]) -> set[TurnKey]:
    """The steps that are not there although the run went on: what they cost is not known."""

    last: dict[str, int] = {}
    for turn in asked | answered:
        last[turn.run] = max(turn.turn, last.get(turn.run, 0))
    # The last turn of a run may only be under way.
    return {turn for turn in asked - answered if turn.turn < last.get(turn.run, 0)}


def _is_there(archive: JobArchive, turn: TurnKey) -> bool:
    key = step_key_in(turn.prefix, turn.turn)
    return next(archive.store.list(key), None) == key


def _before(archive: JobArchive, turn: TurnKey, answered: set[TurnKey]) -> set[TurnKey]:
    """A step that is not there, and those before it in its run up to one that is: of a pack that is
    gone nothing else tells.
    """
    try:
        first = archive.lineage.spans(unquote(turn.run))[-1].first
    except UNREADABLE:
        first = 0
    # Where nobody knows with which turn the run began, only what is named is missed for sure.
    lost = {turn}
    for number in range(turn.turn - 1, max(first, 1) - 1, -1) if first else ():
        if (earlier := turn._replace(turn=number)) in answered:
            break
        lost.add(earlier)
    return lost
