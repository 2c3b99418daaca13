"""What a job that was killed must have in common with one that was not, and what no kill may ever
bring about.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

from runtime.archive.forms import Capture
from runtime.archive.job import JobArchive
from runtime.archive.requests import RequestReader
from runtime.archive.timelines import run_tree
from runtime.archive.verify import damage, verify_job
from runtime.job.condensed import CondensationOutcome
from tests.kill.policy import FAILS_AT
from tests.kill.scene import Scene
from tests.timeless import segment_without_times, without_times
from tests.workflow.prompt_rules import violations_of

# A turn's step; that of a summary stands in a side run, whose name has a ~.
_STEP = re.compile(r"/[^/~]+/\d+/(\d{7})\.step$")


@dataclass(frozen=True)
class Moment:
    """What had happened when a kill came: archived objects, requests received by turn, runs of the
    tool by turn.

    Requests for summaries are not among them: see ``check_summaries``.
    """

    objects: dict[str, tuple[int, int, bytes]]
    calls: Counter[int]
    tool_runs: Counter[int]

    @classmethod
    def of(cls, scene: Scene) -> Moment:
        """Now; the processes that could change it are dead."""
        return cls(scene.stamps(), calls_by_turn(scene), Counter(scene.tool_runs()))


_SPENT = re.compile(r"(?<=; )[\d,]+(?= of [\d,]+ tokens; )")
"""In the line of budgets: a call that was broken off is booked as well."""


def record(scene: Scene, summary: dict[str, Any]) -> dict[str, Any]:
    """All that a job did and was shown, without times, attempt numbers and addresses (run ids,
    event ids, ports).

    Calls that were broken off are booked, so what the job has used is compared with its own steps,
    and told for each alone.

    Nor does it tell in which of its runs a turn was taken. What a prompt has in common with the one
    before stands there.
    """
    archive = scene.archive()
    run = last_run(archive)
    end = archive.end(run)
    assert end is not None
    turns, shown, used = [], {}, 0
    for step in archive.steps(run):
        used += step.usage.total + step.failed_attempts.usage.total
        for condensation in step.condensations:
            used += condensation.usage.total
            if condensation.summary is not None:
                used += archive.step(condensation.summary).failed_attempts.usage.total
        before, shown = shown, _segments(archive, run, step.turn)
        turns.append(
            {
                "turn": step.turn,
                # The endpoint numbers its responses by the requests that it got.
                "reply": step.reply.model_dump(mode="json", exclude={"response_id"}),
                "execution": without_times(step.execution),
                "nodes": list(step.nodes),
                "nodes_digest": step.nodes_digest,
                "events": step.events,
                "usage": step.usage.model_dump(mode="json"),
                "condensations": [_condensation(archive, record) for record in step.condensations],
                "effects": _effects(archive, step.run, step.turn),
                "layout": [sys.intern(digest) for digest in shown],
                "new in the layout": [
                    segment for digest, segment in shown.items() if digest not in before
                ],
            }
        )
    assert used == end.usage.total == summary["tokens"], (
        "what is told is what the steps used, broken calls included"
    )
    return {
        "summary": {name: value for name, value in summary.items() if name != "tokens"},
        "end": without_times(
            {n: v for n, v in end.document().items() if n not in {"run", "parent", "usage"}}
        ),
        "turns": turns,
    }


def last_run(archive: JobArchive) -> str:
    """The last run of a job that nobody reset: each of its runs goes on from the one before."""
    runs = archive.runs()
    parents = [node.parent_run for node in run_tree(archive, [])]
    assert parents == [None, *runs[:-1]], "the runs are no chain"
    return runs[-1]


def check_once(scene: Scene, moments: list[Moment], *, kills: int) -> Counter[int]:
    """Each finished turn was called once; what more was sent is an attempt in the archive, and
    nothing was ever changed.

    ``moments`` are those at which everything stood still, ``kills`` is the number of all kills.
    Returns how many attempts each turn had.
    """
    archive = scene.archive()
    run = last_run(archive)
    bodies, calls = _bodies_by_turn(scene), calls_by_turn(scene)
    attempts: Counter[int] = Counter()
    for step in archive.steps(run):
        made = archive.attempts(run, step.turn)
        attempts[step.turn] = len(made)
        assert [attempt.number for attempt in made] == list(range(1, len(made) + 1))
        assert [attempt.key for attempt in made].count(step.attempt.key) == 1, (
            "one attempt became the step"
        )
        # The archive is written first: there is no request that it does not hold, and they are all
        # the same bytes.
        wire = {_wire(archive, attempt.key) for attempt in made}
        assert {attempt.capture for attempt in made} == {Capture.WIRE}
        assert set(bodies[step.turn]) == wire, f"turn {step.turn}"
        assert 1 <= calls[step.turn] <= len(made), (
            f"turn {step.turn} was called without an attempt in the archive"
        )
        failed = sum(archive.failure(attempt.key) is not None for attempt in made)
        assert failed <= (step.turn == FAILS_AT)
        assert len(made) <= 1 + kills + failed, (
            f"turn {step.turn} was attempted again without a kill"
        )
    assert list(attempts) == list(range(1, scene.plot.turns + 1)), "each turn has one step"
    assert set(calls) == set(attempts), "no call belongs to another turn"
    now = Moment.of(scene)
    for moment in moments:
        _check_kept(moment, now)
    assert damage(verify_job(archive)) == []
    assert violations_of(archive) == []
    return attempts


def called_again(moments: list[Moment], calls: Counter[int]) -> int:
    """How many requests were sent for turns that were finished when a kill came."""
    done = (
        (kill, int(step[1]))
        for kill in moments
        for key in kill.objects
        if (step := _STEP.search(key)) is not None
    )
    return sum(calls[turn] - kill.calls[turn] for kill, turn in done)


def between_runs(scene: Scene, moments: list[Moment]) -> int:
    """How many moments were after the last turn of a run, and before the first call of the run that
    goes on from it.
    """
    starts = {node.first for node in run_tree(scene.archive(), [])[1:]}
    found = 0
    for moment in moments:
        last = {kind: _last_of(moment, kind) for kind in ("attempt", "step")}
        found += last["attempt"] == last["step"] and last["step"] + 1 in starts
    return found


def check_summaries(scene: Scene) -> tuple[int, ...]:
    """Each summary that was written is used, and was asked for with the same bytes each time.

    Returns how many attempts each had.
    """
    archive = scene.archive()
    attempts = []
    asked = Counter(request.digest for request in scene.received() if request.turn is None)
    used = [
        record.summary for step in archive.steps(last_run(archive)) for record in step.condensations
    ]
    assert sum(len(archive.side_runs(run)) for run in archive.runs()) == len(used)
    for ref in used:
        assert ref is not None
        summary = archive.step(ref)
        made = archive.attempts(summary.run, summary.turn)
        (wire,) = {_wire(archive, attempt.key) for attempt in made}
        assert 1 <= asked.pop(wire) <= len(made)
        attempts.append(len(made))
    assert not asked, "no request for a summary that the archive does not hold"
    return tuple(attempts)


def differences(one: Any, other: Any, where: str = "") -> list[str]:
    """Where two records differ, and what each has there."""
    match one, other:
        case dict(), dict():
            names = sorted(one.keys() | other.keys())
            return [
                line
                for name in names
                for line in differences(one.get(name), other.get(name), f"{where}.{name}")
            ]
        case list(), list() if len(one) == len(other):
            pairs = enumerate(zip(one, other, strict=True))
            return [
                line for index, (a, b) in pairs for line in differences(a, b, f"{where}[{index}]")
            ]
        case _:
            return [] if one == other else [f"{where}: {one!r} is not {other!r}"]


def calls_by_turn(scene: Scene) -> Counter[int]:
    """How many requests the endpoint got for each turn."""
    return Counter({turn: len(bodies) for turn, bodies in _bodies_by_turn(scene).items()})


def _check_kept(kill: Moment, now: Moment) -> None:
    """Nothing that was archived at a kill was written again, called again, or run again."""
    assert called_again([kill], now.calls) == 0, "a turn was finished, and called again"
    for key, stamp in kill.objects.items():
        # It stands there untouched, or went into a pack as it was.
        assert now.objects.get(key) in (stamp, (0, 0, stamp[2])), f"{key} was written again"
        if (effect := re.search(r"/(\d{7})\.effect-", key)) is not None:
            turn = int(effect[1])
            assert now.tool_runs[turn] == kill.tool_runs[turn], (
                f"turn {turn}'s tool had a result, and ran again"
            )


def _last_of(moment: Moment, kind: str) -> int:
    """The last turn that has an object of a kind; 0 if none has."""
    named = (re.search(rf"/[^/~]+/\d+/(\d{{7}})\.{kind}", key) for key in moment.objects)
    return max((int(match[1]) for match in named if match is not None), default=0)


def _bodies_by_turn(scene: Scene) -> dict[int, list[str]]:
    """The digests of the requests for each turn."""
    found: dict[int, list[str]] = {}
    for request in scene.received():
        if request.turn is not None:
            found.setdefault(request.turn, []).append(request.digest)
    return found


def _wire(archive: JobArchive, attempt: str) -> str:
    """The digest of an attempt's request as it went over the wire."""
    return hashlib.sha256(RequestReader(archive.store.get).wire(attempt)).hexdigest()


def _segments(archive: JobArchive, run: str, turn: int) -> dict[str, dict[str, Any]]:
    """A turn's prompt, by the digests of its segments without times, and without the tokens that
    kills cost.
    """
    made = [segment_without_times(segment) for segment in archive.turn_layout(run, turn)]
    made = [{**one, "text": _SPENT.sub("", one["text"])} for one in made]
    return {hashlib.sha256(json.dumps(segment).encode()).hexdigest(): segment for segment in made}


def _condensation(archive: JobArchive, record: CondensationOutcome) -> dict[str, Any]:
    """What was forgotten and what stands there; the summary's words in place of its address."""
    said = archive.step(record.summary).reply.text if record.summary is not None else None
    return {**record.model_dump(mode="json", exclude={"summary"}), "summary": said}


def _effects(archive: JobArchive, run: str, turn: int) -> list[dict[str, Any]]:
    """The archived results of the turn's tool calls."""
    found: list[dict[str, Any]] = []
    while (value := archive.effect(run, turn, len(found))) is not None:
        found.append(value)
    return found
