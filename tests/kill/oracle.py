"""What a job that was killed must have in common with one that was not, and what no kill may ever bring about."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from runtime.archive.job import JobArchive
from runtime.archive.records import Capture
from runtime.archive.requests import RequestReader
from runtime.archive.verify import damage, verify_job
from runtime.history.condensed import CondensationRecord
from tests.kill.policy import FAILS_AT, turn_of
from tests.kill.scene import Scene
from tests.timeless import segment_without_times, without_times
from tests.workflow.prompt_rules import violations_of

# A turn's step; that of a summary stands in a side run, whose name has a ~.
_STEP = re.compile(r"/[^/~]+/\d+/(\d{7})\.step$")


@dataclass(frozen=True)
class Moment:
    """What had happened when a kill came: archived objects, requests received by turn, runs of the tool by turn.

    Requests for summaries are not among them: see ``check_summaries``.
    """

    objects: dict[str, tuple[int, int, bytes]]
    calls: Counter[int]
    tool_runs: Counter[int]

    @classmethod
    def of(cls, scene: Scene) -> Moment:
        """Now; the processes that could change it are dead."""
        return cls(scene.stamps(), calls_by_turn(scene), Counter(scene.tool_runs()))


def record(scene: Scene, summary: dict[str, Any]) -> dict[str, Any]:
    """All that a job did and was shown, without times, attempt numbers and addresses (run ids, event ids, ports)."""
    archive = scene.archive()
    (run,) = archive.runs()
    end = archive.end(run)
    assert end is not None
    steps = list(archive.steps(run))
    return {
        "summary": summary,
        "end": without_times(end.model_dump(mode="json", exclude={"run", "parent"})),
        "turns": [
            {
                "turn": step.turn,
                # The endpoint numbers its responses by the requests that it got.
                "reply": step.reply.model_dump(mode="json", exclude={"response_id"}),
                "execution": without_times(step.execution),
                "nodes": list(step.nodes),
                "nodes_digest": step.nodes_digest,
                "usage": step.usage.model_dump(mode="json"),
                "condensations": [_condensation(archive, record) for record in step.condensations],
                "effects": _effects(archive, run, step.turn),
                "layout": [segment_without_times(segment) for segment in archive.turn_layout(run, step.turn)],
            }
            for step in steps
        ],
    }


def check_once(scene: Scene, moments: list[Moment], *, kills: int) -> Counter[int]:
    """Each finished turn was called once; what more was sent is an attempt in the archive, and nothing was ever changed.

    ``moments`` are those at which everything stood still, ``kills`` is the number of all kills. Returns how many attempts
    each turn had.
    """
    archive = scene.archive()
    (run,) = archive.runs()
    bodies, calls = _bodies_by_turn(scene), calls_by_turn(scene)
    attempts: Counter[int] = Counter()
    for step in archive.steps(run):
        made = archive.attempts(run, step.turn)
        attempts[step.turn] = len(made)
        assert [attempt.number for attempt in made] == list(range(1, len(made) + 1))
        assert [attempt.key for attempt in made].count(step.attempt.key) == 1, "one attempt became the step"
        # The archive is written first: there is no request that it does not hold, and they are all the same bytes.
        wire = {RequestReader(archive.store.get).wire(attempt.key) for attempt in made}
        assert {attempt.capture for attempt in made} == {Capture.WIRE}
        assert set(bodies[step.turn]) == wire, f"turn {step.turn}"
        assert 1 <= calls[step.turn] <= len(made), f"turn {step.turn} was called without an attempt in the archive"
        failed = sum(archive.failure(attempt.key) is not None for attempt in made)
        assert failed <= (step.turn == FAILS_AT)
        assert len(made) <= 1 + kills + failed, f"turn {step.turn} was attempted again without a kill"
    assert set(calls) == set(attempts), "no call belongs to another turn"
    now = Moment.of(scene)
    for moment in moments:
        _check_kept(moment, now)
    assert damage(verify_job(archive)) == []
    assert violations_of(archive) == []
    return attempts


def called_again(moments: list[Moment], calls: Counter[int]) -> int:
    """How many requests were sent for turns that were finished when a kill came."""
    done = ((kill, int(step[1])) for kill in moments for key in kill.objects if (step := _STEP.search(key)) is not None)
    return sum(calls[turn] - kill.calls[turn] for kill, turn in done)


def check_summaries(scene: Scene) -> tuple[int, ...]:
    """Each summary that was written is used, and was asked for with the same bytes each time.

    Returns how many attempts each had.
    """
    archive = scene.archive()
    (run,) = archive.runs()
    attempts = []
    asked = Counter(body for body in scene.bodies() if turn_of(json.loads(body)["messages"]) is None)
    used = [record.summary for step in archive.steps(run) for record in step.condensations]
    assert len(archive.side_runs(run)) == len(used)
    for ref in used:
        assert ref is not None
        summary = archive.step(ref)
        made = archive.attempts(summary.run, summary.turn)
        (wire,) = {RequestReader(archive.store.get).wire(attempt.key) for attempt in made}
        assert 1 <= asked.pop(wire) <= len(made)
        attempts.append(len(made))
    assert not asked, "no request for a summary that the archive does not hold"
    return tuple(attempts)


def differences(one: Any, other: Any, where: str = "") -> list[str]:
    """Where two records differ, and what each has there."""
    match one, other:
        case dict(), dict():
            names = sorted(one.keys() | other.keys())
            return [line for name in names for line in differences(one.get(name), other.get(name), f"{where}.{name}")]
        case list(), list() if len(one) == len(other):
            pairs = enumerate(zip(one, other, strict=True))
            return [line for index, (a, b) in pairs for line in differences(a, b, f"{where}[{index}]")]
        case _:
            return [] if one == other else [f"{where}: {one!r} is not {other!r}"]


def calls_by_turn(scene: Scene) -> Counter[int]:
    """How many requests the endpoint got for each turn."""
    return Counter({turn: len(bodies) for turn, bodies in _bodies_by_turn(scene).items()})


def _check_kept(kill: Moment, now: Moment) -> None:
    """Nothing that was archived at a kill was written again, called again, or run again."""
    assert called_again([kill], now.calls) == 0, "a turn was finished, and called again"
    assert {key: now.objects.get(key) for key in kill.objects} == kill.objects
    for key in kill.objects:
        if (effect := re.search(r"/(\d{7})\.effect-", key)) is not None:
            turn = int(effect[1])
            assert now.tool_runs[turn] == kill.tool_runs[turn], f"turn {turn}'s tool had a result, and ran again"


def _bodies_by_turn(scene: Scene) -> dict[int, list[bytes]]:
    found: dict[int, list[bytes]] = {}
    for body in scene.bodies():
        turn = turn_of(json.loads(body)["messages"])
        if turn is not None:
            found.setdefault(turn, []).append(body)
    return found


def _condensation(archive: JobArchive, record: CondensationRecord) -> dict[str, Any]:
    """What was forgotten and what stands there; the summary's words in place of its address."""
    said = archive.step(record.summary).reply.text if record.summary is not None else None
    return {**record.model_dump(mode="json", exclude={"summary"}), "summary": said}


def _effects(archive: JobArchive, run: str, turn: int) -> list[dict[str, Any]]:
    """The archived results of the turn's tool calls."""
    found: list[dict[str, Any]] = []
    while (value := archive.effect(run, turn, len(found))) is not None:
        found.append(value)
    return found
