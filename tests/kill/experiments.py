"""The kill experiments, as the tests run them and the benchmark reports them."""

from __future__ import annotations

import json
import signal
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.kill import failpoints, strikes
from tests.kill.failpoints import GROUPS
from tests.kill.nursery import forked
from tests.kill.oracle import (
    Moment,
    between_runs,
    called_again,
    calls_by_turn,
    check_once,
    check_summaries,
    record,
)
from tests.kill.policy import FAILS_AT
from tests.kill.scene import HistorySize, Plot, Scene
from tests.kill.strikes import Later, Strike, Victim

AT_ONCE = 8
"""Experiments at a time: they mostly wait for the timeouts by which the server learns of a
death.

Their commands are forked; ``test_workers_go_on_without_run`` has those of a user.
"""

UNDISTURBED = "undisturbed"
CONDENSING = f"{UNDISTURBED}/condensing"
KILLED_CONDENSING = "condensation/killed"
KILLED_SAVING = "checkpoint/killed"

CONTINUED = f"{UNDISTURBED}/continued"
CONDENSATION = Plot(failpoints.CONDENSATION_TURNS, failpoints.CONDENSER)
SHORT_RUNS = Plot(strikes.CONTINUED_TURNS, context_tokens=8_000, run_events=60)
"""A job whose runs are some 200 events long: see ``workflows.continuing``."""


@dataclass(frozen=True)
class Survived:
    """One job, killed or not: its record, the number of kills, by turn its attempts and the calls
    that were sent.

    ``called_again`` counts the calls of turns that were finished when a kill came. ``summaries``
    are the attempts at each summary, in order, ``histories`` the lengths of its runs' histories. Of
    the kills of a worker, ``between_runs`` came after the last turn of a run and before the first
    call of the next.
    """

    record: dict[str, Any]
    kills: int
    attempts: Counter[int]
    calls: Counter[int]
    called_again: int
    summaries: tuple[int, ...]
    histories: tuple[HistorySize, ...]
    between_runs: int


def names() -> list[str]:
    """All experiments, the longest first.

    ``undisturbed/TURNS``, ``checkpoint/killed``, ``failpoints/GROUP`` and ``struck/NAME/SEED``;
    ``undisturbed/condensing`` and ``condensation/killed``; ``undisturbed/continued`` and
    ``continued/SEED``.
    """
    lengths = (failpoints.TURNS, failpoints.CHECKPOINT_TURNS)
    jobs = [f"{UNDISTURBED}/{turns}" for turns in lengths]
    seeded = [
        f"struck/{name}/{seed}" for name, (_, seeds) in strikes.STRUCK.items() for seed in seeds
    ]
    groups = [f"failpoints/{group}" for group in failpoints.GROUPS]
    continued = [f"continued/{seed}" for seed in strikes.CONTINUED_SEEDS]
    return [
        CONTINUED,
        *continued,
        *jobs,
        KILLED_SAVING,
        *seeded,
        *groups,
        CONDENSING,
        KILLED_CONDENSING,
    ]


def reference(name: str) -> str:
    """The undisturbed job that an experiment must equal."""
    if name.startswith("condensation/"):
        return CONDENSING
    if name.startswith("continued/"):
        return CONTINUED
    saves = name.startswith("checkpoint/")
    return f"{UNDISTURBED}/{failpoints.CHECKPOINT_TURNS if saves else failpoints.TURNS}"


def start(
    wanted: Iterable[str], path: Path, pool: ThreadPoolExecutor
) -> dict[str, Future[Survived]]:
    """Have ``pool`` make the experiments, each in a directory of its own under ``path``."""
    return {name: pool.submit(run, name, path / name.replace("/", "-")) for name in wanted}


def run(name: str, path: Path) -> Survived:
    """Make one experiment."""
    kind, _, what = name.partition("/")
    match kind:
        case "undisturbed" if name == CONDENSING:
            return undisturbed(path, CONDENSATION)
        case "undisturbed" if name == CONTINUED:
            return undisturbed(path, SHORT_RUNS)
        case "undisturbed":
            return undisturbed(path, Plot(int(what)))
        case "failpoints":
            return fail_points(path, GROUPS[what], Plot(failpoints.TURNS))
        case "checkpoint":
            return fail_points(path, failpoints.CHECKPOINTS, Plot(failpoints.CHECKPOINT_TURNS))
        case "condensation":
            return fail_points(path, failpoints.CONDENSATION, CONDENSATION)
        case "continued":
            return struck(path, strikes.continued_strikes(int(what)), SHORT_RUNS)
        case _:
            who, _, seed = what.partition("/")
            planned = strikes.strikes(int(seed), failpoints.TURNS, strikes.STRUCK[who][0])
            return struck(path, planned, Plot(failpoints.TURNS))


def undisturbed(
    path: Path, plot: Plot, watch: Callable[[Scene], None] = lambda _: None
) -> Survived:
    """A job that nobody kills; each turn is called once, but for the one whose first call the
    endpoint refuses.

    ``watch`` may look at it while it runs.
    """
    with Scene.open(path, plot, forked) as scene:
        scene.start()
        watch(scene)
        made = _survived(scene, [], kills=0)
        assert {turn for turn, number in made.attempts.items() if number != 1} == {FAILS_AT}
        return made


def fail_points(path: Path, points: Sequence[str], plot: Plot) -> Survived:
    """A job that dies at each of the fail points in turn."""
    with Scene.open(path, plot, forked) as scene:
        moments = []
        for point in points:
            process = scene.start(failpoint=point)
            assert process.wait(timeout=scene.patience) == -signal.SIGKILL, (
                f"{point}: the process did not come by"
            )
            assert scene.once().exists(), f"{point}: something else killed the process"
            scene.nothing_left()
            moments.append(Moment.of(scene))
        scene.start()
        return _survived(scene, moments, kills=len(moments))


def struck(path: Path, planned: Sequence[Strike | Later], plot: Plot) -> Survived:
    """A job that is struck again and again; the command is given anew whenever its process was
    killed.
    """
    with Scene.open(path, plot, forked) as scene:
        moments = []
        scene.start()
        for plan in planned:
            strike = plan.planned(scene) if isinstance(plan, Later) else plan
            try:
                strike.await_moment(scene)
            except AssertionError as error:
                said = [
                    scene.output().with_suffix(end).read_text()[-2_000:] for end in (".out", ".err")
                ]
                raise AssertionError(
                    f"{error}; after {len(moments)} kills it said: {said}"
                ) from error
            if strike.victim is not Victim.WORKER:
                scene.kill_server()
            if strike.victim is not Victim.SERVER:
                scene.kill_run()
                scene.nothing_left()
                moments.append(Moment.of(scene))
                scene.start()
        return _survived(scene, moments, kills=len(planned))


def resumed_at(scene: Scene) -> dict[str, Any]:
    """What the newest process said that it does with the job."""
    said = scene.output().with_suffix(".out").read_text().splitlines()
    (job,) = json.loads(said[0])["jobs"]
    return dict(job)


def _survived(scene: Scene, moments: list[Moment], *, kills: int) -> Survived:
    made = record(scene, scene.finish())
    attempts = check_once(scene, moments, kills=kills)
    calls = calls_by_turn(scene)
    return Survived(
        record=made,
        kills=kills,
        attempts=attempts,
        calls=calls,
        called_again=called_again(moments, calls),
        summaries=check_summaries(scene),
        histories=tuple(scene.replay()),
        between_runs=between_runs(scene, moments),
    )
