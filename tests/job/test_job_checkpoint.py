"""Checkpoints: a job that was dumped between two turns and loaded goes on as the one that went on
in memory.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from plain_loop import PlainLoop, TurnState, count, statements

from runtime.base.digests import digest_of
from runtime.base.errors import InputError
from runtime.history.codec import event_to_json
from runtime.interpreter.session import SavedSession
from runtime.job import checkpoint
from runtime.job.job import Job
from tests.tiers.tiers import examples

STATEMENTS = (
    "a = view('a.py', tokens=120)",
    "b = view('b.md', tokens=80, lod=1)\nb.Run(freq='Sync')",
    "g = group(a, b, tokens=60).Run(freq='Sync')",
    "a.Run(freq='Sync')",
    "a.SetPos('3').SetTokens(60)",
    "pin(b, reason='the plan')",
    "a.Pause()",
    "seen = [open('a.py').read()[:20]]",
    "import random\nroll = random.random()\nprint(roll)",
    "x = {'n': 1}\nprint('y' * 300)",
    "x['n'] += 1\nprint(x)",
    "1 / 0",
    "view(3)",
    "print(double(21))",
    "import datetime\nprint(datetime.datetime.now())",
)


def double(number: int) -> int:
    """Twice the number."""
    return 2 * number


def _loop(path: Path, sources: list[str], **options: object) -> PlainLoop:
    (path / "a.py").write_text("".join(f"def f{n}():\n    return {n}\n\n" for n in range(30)))
    (path / "b.md").write_text("".join(f"# Part {n}\n\ntext {n}\n" for n in range(30)))

    def touch(turn: int) -> None:
        (path / "b.md").write_text(
            "".join(f"# Part {n}\n\ntext {n} {turn // 3}\n" for n in range(30))
        )

    said = {2: ("look at b.md",), 5: ("and again", "twice")}
    return PlainLoop(
        path, statements(*sources), tools=(double,), options=options, messages=said, between=touch
    )


def _state(loop: PlainLoop) -> TurnState:
    """The turn's state; a log after a checkpoint begins with the View, so the View stands for
    it.
    """
    shown = digest_of([event_to_json(event) for event in loop.job.log.view])
    return dataclasses.replace(loop.turns[-1], events=shown)


def _resumed(loop: PlainLoop, job: Job, at: int) -> PlainLoop:
    """``loop`` from its history's entry ``at`` on, with a job that was loaded."""
    again = loop.again()
    again.job, again._at, again.layouts = job, at, list(loop.layouts)
    return again


@pytest.mark.slow
@settings(max_examples=examples(12), suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(st.sampled_from(STATEMENTS), min_size=2, max_size=8), st.sampled_from([100_000, 6_000])
)
def test_a_loaded_job_goes_on_as_the_dumped_one(sources: list[str], room: int) -> None:
    """After any prefix of any job, ``load(dump(job))`` makes the same prompts, states and end from
    there on.
    """
    with TemporaryDirectory() as folder:
        loop = _loop(Path(folder), sources, context_tokens=room)
        states: list[TurnState] = []
        saved: list[tuple[str, int, int]] = []
        while (stop := loop.job.stop(loop.now)) is None:
            loop.turn()
            states.append(_state(loop))
            saved.append((json.dumps(checkpoint.dump(loop.job)), loop._at, len(loop.layouts)))
        for turn, (text, at, shown) in enumerate(saved[:-1], 1):
            job = checkpoint.load(loop.job.spec, json.loads(text), count=count)
            assert json.dumps(checkpoint.dump(job)) == text
            again = _resumed(loop, job, at)
            again.layouts = loop.layouts[:shown]
            for expected in states[turn:]:
                again.turn()
                assert _state(again) == expected
            assert again.job.stop(again.now) == stop


class Watched:
    """A part of a job, and which of its attributes a method reads and sets."""

    def __init__(self, part: Any) -> None:
        self.__dict__.update(watched_part=part, was_read=set(), was_set=set())

    def __getattr__(self, name: str) -> Any:
        self.was_read.add(name)
        return getattr(self.watched_part, name)

    def __setattr__(self, name: str, value: Any) -> None:
        self.was_set.add(name)
        setattr(self.watched_part, name, value)


def test_every_attribute_of_a_job_is_saved_or_made_anew(tmp_path: Path) -> None:
    """A new attribute of a part must be put into what it saves and restores, or declared as made
    anew.
    """
    job = _loop(tmp_path, ["a = view('a.py')"]).run().job
    saved = job.saved()
    parts = (job, job.desk, job.surface, job.places, job.ledger, job.fitter)
    for part in (*parts, job.condensing, job.sleeping, job.happenings):
        kept = set(vars(part)) - part.MADE_ANEW
        assert set(vars(part)) >= part.MADE_ANEW, "what is declared is there"
        saving, restoring = Watched(part), Watched(part)
        arguments = (["an event"],) if part is job.places else ()
        type(part).saved(saving, *arguments)
        type(part).restore(restoring, saved)
        whole = {name for name in kept if hasattr(vars(part)[name], "restore")}
        assert kept <= saving.was_read, type(part).__name__
        assert kept == restoring.was_set | (restoring.was_read & whole), type(part).__name__
    # Parts of parts, each with one thing that is saved; the graph has a test of its own.
    assert [set(vars(part)) for part in (job.desk.outputs, job.ledger.sub_jobs)] == [{"known"}] * 2
    session = {field.name for field in dataclasses.fields(job.session)}
    names = {field.name for field in dataclasses.fields(job.session.names)}
    assert session == {"dump", "names", "pieces"}
    assert {*SavedSession.model_fields} == {"session", "supplied", *names}


@pytest.mark.slow
def test_a_checkpoint_is_as_long_as_the_context_not_as_the_job(tmp_path: Path) -> None:
    """With a context that is full, more turns leave a checkpoint about as long as it was.

    The session is left out: Monty keeps some 100 bytes of each source that it was fed.
    """
    loop = _loop(tmp_path, ["print('x ' * 400)"] * 120, context_tokens=6_000)
    sizes = []
    for _ in range(120):
        loop.turn()
        sizes.append(len(json.dumps(checkpoint.dump(loop.job) | {"session": None})))
    assert max(sizes[60:]) < 1.1 * max(sizes[:60])


@pytest.mark.parametrize(
    "change",
    [{"version": 2}, {"turn": "many"}, {"session": "?"}, {"graph": {"version": 9}}, {"surplus": 1}],
)
def test_a_damaged_checkpoint_is_refused(tmp_path: Path, change: dict[str, object]) -> None:
    """Another version or shape is an error that says so, never a job that is half right."""
    loop = _loop(tmp_path, ["a = 1"]).run()
    data = checkpoint.dump(loop.job) | change
    with pytest.raises(InputError, match="checkpoint"):
        checkpoint.load(loop.job.spec, data, count=count)
