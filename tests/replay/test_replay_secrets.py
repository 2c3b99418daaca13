"""Records of secrets that a worker alone knows by value: masked in the archive, and no divergence
of a replay.
"""

from __future__ import annotations

import pytest

from runtime.archive.divergences import divergences
from runtime.job.stops import JobStatus
from tests.replay.replays import frozen_again, held
from tests.replay.timelines import archive_of, sound
from tests.workflow.stage import Stage
from workflows.messages import Note

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

WORD = "correct-horse-battery-staple"
PARTS = "word = 'correct-horse-' + 'battery-staple'\n"

STATEMENTS = [
    f"{PARTS}print(word)\nv = view('a.txt')\npin(v, reason=word)\nn = note(word)",
    f"{PARTS}x = [word]\nwait_for(v, timeout=1)\nraise ValueError(word)",
    f"{PARTS}import sys\nprint(word, file=sys.stderr)\nprint(open(word).read())",
    f"{PARTS}w = view('a.txt', pos='/' + word)\nw.SetTokens(50)\nopen('held.txt').read()",
    f"{PARTS}finish({{'word': word, word: 1}})",
]


@pytest.mark.parametrize("told", [False, True], ids=["alone", "with-a-message"])
async def test_a_secret_by_value_is_no_divergence(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    """A statement puts it together, prints, pins, raises, asks for it; a file and a message hold
    it: the frozen replay is the same.
    """
    monkeypatch.setenv("SERVICE_TOKEN", WORD)
    (stage.workspace / "a.txt").write_text(f"one\n{WORD}\n")
    (stage.workspace / "held.txt").write_text(f"{WORD}\n")
    model, gate = held(stage, STATEMENTS, 2)
    spec = stage.spec(model)
    handle = await stage.start(spec)
    if told:
        await handle.signal("message", Note.of(f"the word is {WORD}"))
    gate.touch()
    outcome = await handle.result()
    assert outcome.status is JobStatus.SUCCEEDED
    again, replayed = await frozen_again(stage, spec, outcome.run)
    assert (again.status, again.turns) == (outcome.status, outcome.turns)
    assert not [one.line() for one in divergences(replayed, again.run)], "\n".join(
        [one.line() for one in divergences(replayed, again.run)]
    )
    assert sound(replayed) and sound(archive_of(stage, spec.id))
    for key in stage.store.list(""):
        assert WORD.encode() not in stage.store.get(key)
