"""A stored object's form: what is read of a header makes that header again, of this release's
objects and of earlier ones'.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from archive_jobs import rich_archive

from runtime.archive.container import ArchivedObject, Part, header, seal, sealed, unseal
from runtime.archive.forms import KINDS, End, Step, check_header, opened
from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore, ObjectStore, open_existing
from runtime.base.digests import canonical_json
from runtime.base.errors import ObjectCorrupt
from tests.releases.record import Release, releases

CONDENSED = {"id": "35.1", "condenser": "llm", "reason": "events", "forgotten": ["30.1"]}


def objects(store: ObjectStore) -> list[ArchivedObject]:
    """All objects of a store that have a header."""
    return [
        unseal(key, store.get(key)) for key in store.list("") if not key.startswith("_holdfast/")
    ]


def written_again(archived: ArchivedObject) -> bytes:
    """The header that is made of what was read of one."""
    form = KINDS[archived.header["kind"]].read(archived)
    return canonical_json(form.header())


def test_what_is_read_is_written_again_byte_for_byte() -> None:
    """Of every kind of object."""
    store = MemoryStore()
    rich_archive(store)
    found = objects(store)
    assert {archived.header["kind"] for archived in found} == set(KINDS)
    for archived in found:
        assert written_again(archived) == archived.header_bytes, archived.key


def test_what_was_written_is_remembered_as_it_would_be_read() -> None:
    """Of every kind of object, with its parts."""
    store = MemoryStore()
    rich_archive(store)
    for read in objects(store):
        data = store.get(read.key)
        made = sealed(read.key, read.header_bytes, data)
        assert made == read
        assert made.parts() == read.parts()


@pytest.mark.parametrize("release", releases(), ids=lambda release: release.name)
def test_objects_of_earlier_releases_are_read_and_written_again(
    release: Release, tmp_path: Path
) -> None:
    """With defaults for fields that they did not have."""
    for place in release.unpack(tmp_path):
        for archived in objects(open_existing(str(place))):
            before, again = (
                dict(archived.header),
                KINDS[archived.header["kind"]].read(archived).header(),
            )
            new = again.keys() - before.keys()
            assert {**before, **{name: again[name] for name in new}} == again
            assert {again[name] for name in new} <= {None}, archived.key


def test_a_header_without_a_field_that_it_must_have_is_damage() -> None:
    """A default is for writers: a header has every field that is not marked as one that may be left
    out.
    """
    store = MemoryStore()
    rich_archive(store)
    for archived in objects(store):
        check_header(archived)
        for name in KINDS[archived.header["kind"]].required():
            fields = {
                field: value
                for field, value in archived.header.items()
                if field not in {name, "parts"}
            }
            damaged = unseal(archived.key, seal(archived.key, header(fields))[0])
            with pytest.raises(
                ObjectCorrupt,
                match="there is no kind" if name == "kind" else "its header is none of",
            ):
                check_header(damaged)


def test_a_reader_takes_no_object_with_another_header_than_its_kinds() -> None:
    """Its digest fits, as that of what somebody made or a later release wrote: a field is gone, or
    is of another type.
    """
    store = MemoryStore()
    rich_archive(store)
    for archived in objects(store):
        kind, fields = archived.header["kind"], dict(archived.header)
        fields.pop("parts", None)
        for name in {*KINDS[kind].required()} - {"kind"}:
            gone = {field: value for field, value in fields.items() if field != name}
            for other in (gone, {**fields, name: {"x": [[1]]}}):
                data, _ = seal(archived.key, header(other))
                try:
                    taken = opened(archived.key, data, kind)
                except ObjectCorrupt as error:
                    assert f"{archived.key}: its header is none of a {kind}: " in str(error)
                else:
                    # What any value will do for.
                    assert isinstance(taken.header[name], dict), (archived.key, name)


@pytest.mark.parametrize(
    ("kind", "fields", "words"),
    [
        ("step", {"execution": {"effects": [{"name": "sh"}]}}, "execution: .*effects.0.kind"),
        ("step", {"execution": {"effects": None}}, "execution: .*effects"),
        ("step", {"execution": {"exception": "x"}}, "execution: .*exception"),
        ("step", {"execution": {"cost": {"effects": 3}}}, "execution: .*cost.effects"),
        (
            "step",
            {"execution": {"state_diff": {"changed": {"x": {}}}}},
            "execution: .*changed.x.after",
        ),
        ("step", {"execution": {"cost": {"effects": ["3"]}}}, "execution: .*cost.effects.0"),
        ("end", {"execution": {"events": [1]}}, "execution: .*events.0"),
        ("end", {"nodes": [{"kind": "file"}]}, "nodes: .*0.obj_id"),
        ("step", {"started_at": "yesterday"}, "started_at: .*isoformat"),
        ("step", {"finished_at": "2026-01-01"}, "finished_at: .*without its offset"),
        ("replay", {"order": {"start": "x"}}, "order: .*start"),
        ("replay", {"order": {"source": {"batch": "b"}}}, "order: .*source.job"),
        (
            "step",
            {"condensations": [CONDENSED | {"forgotten": [""]}]},
            "condensations: .*no turn begins the id ''",
        ),
        (
            "step",
            {"condensations": [CONDENSED | {"forgotten": []}]},
            "condensations: .*'35.1' forgot nothing",
        ),
        (
            "end",
            {"condensations": [CONDENSED | {"id": "x"}]},
            "condensations: .*no turn begins the id 'x'",
        ),
    ],
)
def test_what_an_object_holds_as_json_is_as_readers_take_it(
    kind: str, fields: dict[str, object], words: str
) -> None:
    """Also what a form leaves to the job that made it."""
    store = MemoryStore()
    rich_archive(store)
    archived = next(one for one in objects(store) if one.header["kind"] == kind)
    parts = archived.parts()
    data, _ = seal(archived.key, header({**archived.header, **fields}, parts), parts)
    with pytest.raises(ObjectCorrupt, match=f"its header is none of a {kind}: {words}"):
        opened(archived.key, data, kind)


@pytest.mark.parametrize("size", ["x", -1, 1.5, True, None, [1]])
def test_the_size_of_a_part_is_a_number_of_bytes(size: object) -> None:
    """Whatever digest fits."""
    part = Part("wire", b"stored", 6, b"stored")
    text = canonical_json({"kind": "attempt", "parts": [["wire", size]]})
    data, _ = seal("a", text, (part,))
    with pytest.raises(ObjectCorrupt, match="a: its "):
        unseal("a", data)


def test_runs_are_listed_beside_a_start_with_another_header() -> None:
    """Of a run whose parent is a number, its first call tells."""
    store = MemoryStore()
    archive = rich_archive(store)["licences"].archive
    runs, key = archive.runs_that_called(), f"{archive.prefix}/runs/{archive.runs()[-1]}"
    fields = {**unseal(key, store.get(key)).header, "parent": 5}
    store.replace(key, seal(key, header(fields))[0])
    again = MemoryStore()
    for name in store.list(""):
        again.put_if_absent(name, store.get(name))
    assert sorted(JobArchive.of(again, archive.job).runs_that_called()) == sorted(runs)


def test_an_object_from_before_a_field_is_read_with_its_default() -> None:
    """Steps and ends of archives from before events were recorded have none, and are no damage."""
    store = MemoryStore()
    rich_archive(store)
    for archived in objects(store):
        if archived.header["kind"] in {"step", "end"}:
            fields = {
                name: value
                for name, value in archived.header.items()
                if name not in {"events", "parts"}
            }
            old = unseal(archived.key, seal(archived.key, header(fields))[0])
            check_header(old)
            form = Step.read(old) if fields["kind"] == "step" else End.read(old)
            assert form.events is None
