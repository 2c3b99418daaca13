"""An archive whose objects are encrypted is an archive as any other to those who have the keys, and
says nothing to others but its names.
"""

from __future__ import annotations

import base64
import uuid
from pathlib import Path

import pytest
from archive_jobs import rich_archive

from runtime.archive.catalog import all_jobs, archive_id
from runtime.archive.container import is_sealed
from runtime.archive.job import JobArchive
from runtime.archive.keys import ARCHIVE_ID
from runtime.archive.lifecycle.copying import copy_archive
from runtime.archive.lifecycle.deletion import Wish, delete_jobs, sweep
from runtime.archive.stores import ObjectStore, create_encrypted, open_existing, open_store
from runtime.archive.stores.opening import _store_at
from runtime.archive.verify import damage, examine_job
from runtime.base.errors import ArchiveError, InputError, ObjectCorrupt
from runtime.cli.main import main
from tests.cli.command_line import damage as damage_file

KEYS = "HOLDFAST_ENCRYPTION_KEYS"
MARKER = "_holdfast/archive"
WORD = b"x = 1"
"""Stands in material and in a summary of every rich archive, which are stored as they are."""


def line(name: str) -> str:
    return f"{name} {base64.b64encode(name.encode() * 32)[:43].decode()}="


@pytest.fixture(params=["directory", pytest.param("s3", marks=pytest.mark.s3)])
def url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(KEYS, line("a"))
    if request.param == "directory":
        return str(tmp_path / "archive")
    request.getfixturevalue("aws")
    return str(request.getfixturevalue("s3_server").url(uuid.uuid4().hex))


def stored(url: str) -> dict[str, bytes]:
    """What stands in the directory or the bucket."""
    raw = _store_at(url)
    return {key: raw.get(key) for key in raw.list("") if key != MARKER}


def test_nothing_of_a_job_stands_in_the_store(url: str, tmp_path: Path) -> None:
    """No plain word, no frame of zstd, no object of the archive's form; the same search finds them
    in one that is not encrypted. It verifies.
    """
    store = create_encrypted(url)
    rich_archive(store)
    plain = open_store(str(tmp_path / "plain"))
    rich_archive(plain)
    shown = stored(str(tmp_path / "plain"))
    assert any(WORD in data for data in shown.values())
    assert any(is_sealed(data) for data in shown.values())
    hidden = stored(url)
    assert not any(WORD in data or data[:3] == b"HFA" for data in hidden.values())
    assert not any(b"\x28\xb5\x2f\xfd" in data for data in hidden.values())
    again = open_existing(url)
    for job in all_jobs(again):
        assert damage(examine_job(JobArchive.of(again, job)).findings) == []
    # By what each store has, in packs or not: a bucket has none.
    told = {key: plain.get(key) for key in plain.list("") if key != MARKER}
    assert {key: again.get(key) for key in again.list("") if key != MARKER} == told


def test_equal_objects_are_equal_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that content is stored once; at another place, or with another key, they are not."""
    monkeypatch.setenv(KEYS, line("a"))
    first, second = (str(tmp_path / name) for name in ("one", "two"))
    for url in (first, second):
        store = create_encrypted(url)
        assert store.put_if_absent("a/b/c", b"text") and store.put_if_absent("a/b/d", b"text")
    assert stored(first) == stored(second)
    assert len(set(stored(first).values())) == 2


def test_keys_can_be_changed(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was written with the old one is read as long as that is kept."""
    store = create_encrypted(url)
    store.put_if_absent("a/b/old", b"old")
    monkeypatch.setenv(KEYS, f"{line('b')}\n{line('a')}")
    later = open_store(url)
    later.put_if_absent("a/b/new", b"new")
    assert (later.get("a/b/old"), later.get("a/b/new")) == (b"old", b"new")
    monkeypatch.setenv(KEYS, line("b"))
    with pytest.raises(ArchiveError, match="the key 'a', which is not here"):
        open_store(url).get("a/b/old")
    monkeypatch.delenv(KEYS)
    with pytest.raises(InputError, match="is encrypted, at first with the key 'a'"):
        open_existing(url)


def test_what_was_changed_or_moved_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Any byte, another object's bytes, and an object that is not encrypted."""
    monkeypatch.setenv(KEYS, line("a"))
    url = str(tmp_path / "archive")
    store = create_encrypted(url)
    store.put_if_absent("a/b/c", b"text")
    store.put_if_absent("a/b/d", b"other")
    path = tmp_path / "archive" / "a" / "b" / "c"
    whole = path.read_bytes()
    changed = [whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole))]
    for data in (*changed, (path.parent / "d").read_bytes(), b"text", b""):
        path.write_bytes(data)
        with pytest.raises(ArchiveError):
            store.get("a/b/c")
    path.write_bytes(changed[-1])
    with pytest.raises(ObjectCorrupt):
        store.get("a/b/c")


@pytest.mark.parametrize("name", ["a", "b"])
def test_nothing_is_written_with_keys_of_another_archive(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also where they are called as its own are: nobody could read it, or bring it to an end. A
    copy begins nothing.
    """
    hidden, copy = str(tmp_path / "hidden"), tmp_path / "copy"
    monkeypatch.setenv(KEYS, line("a"))
    source = create_encrypted(hidden)
    rich_archive(source)
    archive_id(source)
    job = str(all_jobs(source)[0])
    before = stored(hidden)
    monkeypatch.setenv(KEYS, f"{name} {line('c').partition(' ')[2]}")
    for words in (
        ["archive", "hold", job, "--reason", "r", "--store", hidden],
        ["archive", "copy", hidden, str(copy)],
        ["archive", "copy", hidden, str(copy), "--plain"],
    ):
        assert main(words) != 0
        assert f"error: {ARCHIVE_ID}: is " in capsys.readouterr().err
    assert (stored(hidden), copy.exists()) == (before, False)


@pytest.mark.slow
def test_a_copy_encrypts_and_decrypts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An archive goes into one that is encrypted and back, object by object."""
    monkeypatch.setenv(KEYS, line("a"))
    plain = open_store(str(tmp_path / "plain"))
    rich_archive(plain)
    archive_id(plain)
    with pytest.raises(InputError, match="already, which is not encrypted"):
        create_encrypted(str(tmp_path / "plain"))
    hidden = create_encrypted(str(tmp_path / "hidden"))
    back = open_store(str(tmp_path / "back"))

    def copy(source: ObjectStore, target: ObjectStore) -> None:
        jobs = all_jobs(source)
        assert copy_archive(source, target, jobs, everything=True, tell=lambda _: None).whole

    copy(plain, hidden)
    copy(hidden, back)
    assert stored(str(tmp_path / "back")) == stored(str(tmp_path / "plain"))
    assert stored(str(tmp_path / "hidden")).keys() == stored(str(tmp_path / "plain")).keys()


@pytest.mark.slow
def test_a_copy_stays_encrypted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In a new place without a word more, and given again; into an archive that is readable to all
    nothing is copied but with ``--plain``, which also makes one.
    """
    monkeypatch.setenv(KEYS, line("a"))
    hidden, copy, plain, opened = (str(tmp_path / n) for n in ("hidden", "copy", "plain", "open"))
    source = create_encrypted(hidden)
    rich_archive(source)
    archive_id(source)
    open_store(plain)

    def give(*words: str) -> tuple[int, str, str]:
        capsys.readouterr()
        return (main(["archive", "copy", *words]), *capsys.readouterr())

    looked = " were there, which --compare alone looks at"
    for words, there in (((), " 0 were there"), ((), looked), (["--compare"], "and were compared")):
        code, told, _ = give(hidden, copy, *words)
        assert (code, told.endswith(f"{there}; {copy} is encrypted\n")) == (0, True)
    assert stored(copy) == stored(hidden)
    code, told, refused = give(hidden, plain)
    assert (code, told, stored(plain)) == (2, "", {})
    assert f"nothing was copied: FROM is encrypted, and the archive at {plain} is not" in refused
    for target in (plain, opened):
        code, told, _ = give(hidden, target, "--plain")
        assert (code, told.endswith(f"{target} is not encrypted\n")) == (0, True)
        assert any(WORD in data for data in stored(target).values())
    assert give(plain, str(tmp_path / "another"))[1].endswith("another is not encrypted\n")


def test_a_job_whose_summary_is_damaged_can_be_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The summary cannot be decrypted, and goes all the same."""
    monkeypatch.setenv(KEYS, line("a"))
    store = create_encrypted(str(tmp_path / "archive"))
    rich_archive(store)
    summary = "_holdfast/summaries/5e"
    damage_file(tmp_path / "archive" / summary)
    wish = Wish("alice", "2026-05-01T00:00:00+00:00", "asked for")
    delete_jobs(store, ["nightly/short"], wish, tell=lambda _: None)
    assert summary in sweep(store)
