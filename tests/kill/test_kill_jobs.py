"""Jobs that are killed, and the same command given again: each ends as one that nobody killed.

One file, since pytest-xdist gives a file to one process, and the tests share their experiments.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from benchmarks.blocks import block_of
from benchmarks.durability import BLOCK, kill_row
from tests.kill.experiments import (
    CONDENSING,
    CONTINUED,
    KILLED_CONDENSING,
    UNDISTURBED,
    Survived,
    names,
    reference,
    resumed_at,
)
from tests.kill.failpoints import TURNS, named_in_the_source, tried
from tests.kill.oracle import Moment, check_once, differences, record
from tests.kill.processes import DEADLINE, ROOT, await_gone, await_interpreters, wait_for
from tests.kill.scene import Plot, Scene
from tests.kill.strikes import CONTINUED_SEEDS, Mark, Strike, Victim

FIGURES = ROOT / "docs" / "benchmarks.md"


def test_every_fail_point_is_tried() -> None:
    """The table of fail points names those of the source, all of them and no other."""
    assert tried() == named_in_the_source()


@pytest.mark.kill
@pytest.mark.server
@pytest.mark.parametrize(
    "experiment", [name for name in names() if not name.startswith(UNDISTURBED)]
)
def test_a_killed_job_ends_as_another(experiment: str, outcome: Callable[[str], Survived]) -> None:
    """Its result, statements, executions and prompts are those of the undisturbed job, and
    docs/benchmarks.md tells of it.

    ``failpoints`` and ``checkpoint`` die at fail points, in turn; ``struck`` at seeded random
    moments of 24 turns, the worker, the server or both, as ``continued`` does in a job of many
    runs; ``condensation`` before, in and behind the call for a summary.
    """
    undisturbed, killed = outcome(reference(experiment)), outcome(experiment)
    assert differences(killed.record, undisturbed.record) == []
    assert (
        kill_row(experiment, killed, undisturbed)
        in block_of(FIGURES.read_text(), BLOCK).splitlines()
    )


@pytest.mark.kill
@pytest.mark.server
@pytest.mark.parametrize("experiment", [f"continued/{seed}" for seed in CONTINUED_SEEDS])
def test_a_job_is_killed_as_it_goes_on_in_another_run(
    experiment: str, outcome: Callable[[str], Survived]
) -> None:
    """Undisturbed and killed it has some seven runs; a kill between two of them loses none."""
    undisturbed, killed = outcome(CONTINUED), outcome(experiment)
    assert min(len(undisturbed.histories), len(killed.histories)) > 5
    assert killed.between_runs > 0


@pytest.mark.kill
@pytest.mark.server
def test_a_summary_is_asked_for_again_only_if_it_was_broken_off(
    outcome: Callable[[str], Survived],
) -> None:
    """One kill broke off a reply, one came behind it; what was summarised stands in the record."""
    undisturbed, killed = outcome(CONDENSING), outcome(KILLED_CONDENSING)
    assert (undisturbed.summaries, killed.summaries) == ((1, 1), (2, 1))
    condensed = [record for turn in undisturbed.record["turns"] for record in turn["condensations"]]
    assert [record["condenser"] for record in condensed] == ["llm_summary", "llm_summary"]
    assert all(record["summary"] and "failures" not in record for record in condensed)


@pytest.mark.kill
@pytest.mark.server
def test_workers_go_on_without_run(tmp_path: Path, outcome: Callable[[str], Survived]) -> None:
    """``run`` is killed, then a ``worker``; the next worker ends the job, and ``run`` finds it
    done.
    """
    with Scene.open(tmp_path, Plot(TURNS)) as scene:
        moments = []
        for turn in (5, 14):
            process = scene.start(worker=turn > 5)
            Strike(turn, Mark.STEP, 0, Victim.WORKER).await_moment(scene)
            interpreters = await_interpreters(process)
            # The worker alone: its interpreter processes must see by themselves that it is gone.
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            await_gone(interpreters)
            scene.nothing_left()
            moments.append(Moment.of(scene))
        worker = scene.start(worker=True)
        wait_for(scene.closed, "the job ends", alive=worker)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=DEADLINE) == 0
        scene.start()
        assert (
            differences(record(scene, scene.finish()), outcome(f"{UNDISTURBED}/{TURNS}").record)
            == []
        )
        assert (resumed_at(scene)["start"], resumed_at(scene)["turn"]) == ("done", TURNS)
        check_once(scene, moments, kills=len(moments))
        scene.replay()
