"""Divergences name digests; the archive has the texts that these stand for."""

from __future__ import annotations

import pytest

from runtime.archive.texts import Explained, Timeline, text_of
from runtime.cli.differences import explained_in, lines_of
from runtime.job.divergence import Aspect, Divergence
from tests.replay.replays import reexecution, replayed
from tests.replay.timelines import sound
from tests.workflow.stage import Stage

pytestmark = [pytest.mark.server, pytest.mark.asyncio(loop_scope="session")]

STATEMENTS = [
    "v = view('data.txt', tokens=100)",
    (
        "text = open('data.txt').read()\nimport sys\nprint('read', text)\nprint('warned', text,"
        " file=sys.stderr)\nprint(text.index('w'))"
    ),
    "gone = open('gone.txt').read()",
    "print(len(gone))\nfinish([text, gone])",
]


async def test_what_differs_is_shown_as_text(stage: Stage) -> None:
    """Output, also beside stderr and an exception, a file's contents, a view and the result: as
    they were and as they are.
    """
    for name in ("data.txt", "gone.txt"):
        (stage.workspace / name).write_text("one\ntwo\nthree\n")
    first, archive = await stage.run(STATEMENTS, id="job")
    (stage.workspace / "data.txt").write_text("one\n2\nthree\n")
    (stage.workspace / "gone.txt").unlink()
    again, found = await replayed(stage, "job", reexecution(stage, "job", first.run, 1))
    assert len(found) == len(set(found))
    told = {
        (one.divergence.turn, one.divergence.aspect): one
        for one in explained_in(archive, again.run)
    }
    old, new = "one\ntwo\nthree\n", "one\n2\nthree\n"
    assert _texts(told[2, Aspect.EFFECT_RESULT]) == (old, new)
    assert _texts(told[2, Aspect.STDOUT]) == (f"read {old}\n5\n", f"read {new}\n")
    assert _texts(told[2, Aspect.STDERR]) == (f"warned {old}\n", f"warned {new}\n")
    assert told[2, Aspect.EXCEPTION].divergence.now.startswith("ValueError")
    assert [view.splitlines()[3] for view in _texts(told[1, Aspect.NODE])] == ["two", "2"]
    assert _texts(told[3, Aspect.EFFECT_RESULT])[0] == old
    assert _texts(told[3, Aspect.EFFECT_RESULT])[1].startswith("FileNotFoundError: ")
    lines = list(lines_of(told[2, Aspect.EFFECT_RESULT]))
    assert lines == ["statement 2, effect result 0 open data.txt:", "  - two", "  + 2"]
    # What has no digest but is told whole, and what the archive never had, are told in one line.
    assert list(lines_of(told[3, Aspect.EXCEPTION])) == [
        told[3, Aspect.EXCEPTION].divergence.line()
    ]
    nowhere = Divergence(turn=9, aspect=Aspect.STDOUT, recorded="?", now="?")
    assert text_of(Timeline(archive, again.run), nowhere) is None
    assert sound(archive)


def _texts(one: Explained) -> tuple[str, str]:
    assert one.recorded is not None and one.now is not None
    return one.recorded, one.now
