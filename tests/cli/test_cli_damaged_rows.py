"""One damaged object makes its own job ``damaged``, and hides none of its batch."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from runtime.archive.approvals import QUESTIONS
from runtime.archive.container import header, seal, unseal
from runtime.archive.forms import NewEnd
from runtime.archive.forms.end import HandedPatch
from runtime.archive.job import JobArchive
from runtime.archive.stores import open_store
from runtime.base.digests import digest_bytes
from runtime.base.values import Usage
from runtime.cli.main import main
from tests.cli.command_line import damage

sys.path.insert(0, str(Path(__file__).parents[1] / "archive"))
from archive_jobs import Written, segment

HARMED = "whole.0123456789"
"""Called as a sub-job, so that its definition is asked for its parent."""


def job(root: Path, batch: str, id: str, *, is_open: bool = False, patch: bool = False) -> None:
    """A job of one turn; its ``patch`` was never written."""
    written = Written(JobArchive(open_store(str(root)), batch, id))
    written.archive.write_definition({"goal": id, "model": "scripted/x", "parent": "whole"})
    step = written.finish("run", 1, written.begin("run", 1, None, [segment("Hello.")]))
    handed = HandedPatch(address="turn/1", digest=digest_bytes(b"x"), bytes=1, paths=1)
    if not is_open:
        end = NewEnd(
            run="run",
            turn=1,
            parent=step,
            status="succeeded",
            result=1,
            patch=handed if patch else None,
            usage=Usage(prompt=1, completion=1),
            ended_at="2026-01-01T01:00:00Z",
        )
        written.archive.write_end(end)


def harm(root: Path, pattern: str) -> None:
    """Damage the one object of the sub-job whose key is of a pattern."""
    (path,) = (one for one in (root / "night" / HARMED).rglob(pattern) if one.is_file())
    damage(path)


def forge(root: Path, pattern: str) -> None:
    """Give that object a field in its reply that this release does not know, and the digest that
    fits.
    """
    (path,) = (root / "night" / HARMED).rglob(pattern)
    key = path.relative_to(root).as_posix()
    archived = unseal(key, path.read_bytes())
    fields = {**archived.header, "reply": {**archived.header["reply"], "of_later": 1}}
    parts = archived.parts()
    path.chmod(0o600)
    path.write_bytes(seal(key, header(fields, parts), parts)[0])


@pytest.fixture
def root(tmp_path: Path, clean_environment: None, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the archive is that commands read."""
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HOLDFAST_STORE", str(tmp_path / "archive"))
    return tmp_path / "archive"


@pytest.mark.slow
@pytest.mark.parametrize("what", ["definition", "start", "patch"])
def test_a_damaged_object_makes_its_job_a_damaged_row(
    root: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    """``results``, ``errors``, ``compare``, ``export --format inspect`` and ``ls`` tell the others.
    A patch is told of by those alone that read it.
    """
    for batch in ("night", "other"):
        job(root, batch, "whole")
        harmed = batch == "night"
        job(
            root,
            batch,
            HARMED,
            is_open=harmed and what == "start",
            patch=harmed and what == "patch",
        )
    if what == "start":
        (root / "night" / HARMED / "runs").mkdir(exist_ok=True)
        (root / "night" / HARMED / "runs" / "run").write_bytes(b"damaged")
    elif what == "definition":
        harm(root, "definition/*")

    def said(*arguments: str) -> str:
        capsys.readouterr()
        assert main(list(arguments)) == 0
        return capsys.readouterr().out

    rows = {row["id"]: row for row in json.loads(said("results", "night", "--json"))}
    assert {id: row["status"] for id, row in rows.items()} == {
        "whole": "succeeded",
        HARMED: "damaged",
    }
    assert rows[HARMED]["damaged"] and not rows["whole"]["damaged"]
    assert f"run 'holdfast verify night/{HARMED}'" in said("results", "night")
    log = json.loads(said("export", "night", "--format", "inspect"))
    assert [one["metadata"]["status"] for one in log["samples"]] == ["succeeded", "damaged"]
    assert json.loads(said("compare", "night", "other", "--json"))["unfinished"] == 1
    listed = {row["id"]: row["status"] for row in json.loads(said("ls", "night", "--json"))}
    groups = json.loads(said("errors", "night", "--json"))
    seen = "succeeded" if what == "patch" else "damaged"
    assert listed == {"whole": "succeeded", HARMED: seen}
    assert [one["statuses"] for one in groups] == ([] if what == "patch" else [{"damaged": 1}])


@pytest.mark.parametrize(
    ("arguments", "code"),
    [("show {}@1 --part response", 4), ("log {}", 0), ("export {}", 0), ("verify {}", 4)],
)
def test_a_step_of_a_later_release_is_told_as_one_that_cannot_be_read(
    root: Path, capsys: pytest.CaptureFixture[str], arguments: str, code: int
) -> None:
    """By its key and what is unknown in it."""
    job(root, "night", HARMED, is_open=True)
    forge(root, "*.step")
    assert main(arguments.format(f"night/{HARMED}").split()) == code
    said = capsys.readouterr()
    assert "0000001.step" in said.out + said.err
    assert "reply.of_later: Extra inputs are not permitted" in said.out + said.err


@pytest.mark.parametrize("what", ["end", "question"])
def test_what_waits_is_told_beside_a_job_that_cannot_be_read(
    root: Path, capsys: pytest.CaptureFixture[str], what: str
) -> None:
    """A job that has ended asks nothing, whatever its end says; one that asks what cannot be read
    is named, and the others are listed.
    """
    asked = {"id": "q", "tool": "pay", "args": [3], "kwargs": {}, "asked_at": "2026-01-01"}
    for id in ("whole", HARMED):
        is_open = id == "whole" or what == "question"
        job(root, "night", id, is_open=is_open)
        archive = JobArchive(open_store(str(root)), "night", id)
        archive.write_effect("run", 1, QUESTIONS, {"question": asked})
    harm(root, "ends/run" if what == "end" else f"*effect-{QUESTIONS}")
    code = main(["approvals", "--json"])
    said = capsys.readouterr()
    assert [row["job"] for row in json.loads(said.out)] == ["night/whole"]
    if what == "end":
        assert (code, said.err) == (0, "")
    else:
        assert code == 4
        assert f"what night/{HARMED} asks cannot be read" in said.err
        assert f"'holdfast verify night/{HARMED}'" in said.err
