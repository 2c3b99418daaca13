"""The archive's format is told so that another reader can be written: one that shares no code with
Holdfast.
"""

from __future__ import annotations

import importlib.util
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from archive_jobs import Written, blocks, chat, eventful_job, write_run

from runtime.archive.container import HEADER_DICTIONARY, unseal
from runtime.archive.dictionaries import LAYOUT_DICTIONARY, WIRE_DICTIONARY
from runtime.archive.forms import KINDS, NewStep, Step
from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore, open_store
from runtime.archive.stores.directory import DirectoryStore

ROOT = Path(__file__).parent.parent.parent


def reader() -> Any:
    """The module ``docs/archive/reader.py``."""
    spec = importlib.util.spec_from_file_location(
        "archive_reader", ROOT / "docs" / "archive" / "reader.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_dictionaries_are_those_of_the_format() -> None:
    """The files beside the page are the dictionaries that objects are compressed with."""
    found = [
        (ROOT / "docs" / "archive" / f"{name}.dictionary").read_bytes()
        for name in ("header", "wire", "layout")
    ]
    assert found == [HEADER_DICTIONARY, WIRE_DICTIONARY, LAYOUT_DICTIONARY]


@pytest.mark.slow
@pytest.mark.parametrize("load", [chat, blocks])
def test_another_reader_puts_each_request_together(load: Callable[..., Any]) -> None:
    """Over 150 turns of recipes, flat and relative: requests, layouts and responses, byte for
    byte.
    """
    store = MemoryStore()
    written = Written(JobArchive(store, "nightly", "licences"))
    write_run(written, "run-1", range(1, 151), None, load(random.Random(7)))
    other = reader().Archive(store.get)
    for place, ref in written.refs.items():
        header, _, digest = other.object(ref.key)
        request, layout = other.documents(header["attempt"]["key"])
        assert digest == ref.digest
        assert request == written.requests[place]
        assert layout.count(b"\n") == len(written.layouts[place])
        assert other.response(ref.key) == written.responses[place]


def test_another_reader_reads_every_object() -> None:
    """Of a job with failures, effects, replays, side runs and ends each object is taken apart, its
    digest checked.
    """
    store = MemoryStore()
    eventful_job(store)
    other = reader().Archive(store.get)
    kinds = {
        other.object(key)[0]["kind"] for key in store.list("") if not key.startswith("_holdfast/")
    }
    assert kinds >= {
        "definition",
        "run",
        "attempt",
        "step",
        "failure",
        "effect",
        "checkpoint",
        "replay",
        "claim",
        "end",
    }


def test_another_reader_reads_packs(tmp_path: Path) -> None:
    """What stands in the packs of a directory is read as what stands alone elsewhere; what a late
    writer left at the place of one counts for nothing.
    """
    alone = MemoryStore()
    written = eventful_job(alone)
    eventful_job(open_store(str(tmp_path)))
    raw = DirectoryStore(tmp_path)
    packed = written.refs["b", 34].key
    assert packed not in set(raw.list(""))
    raw.put_if_absent(packed, b"late")
    other = reader().Archive(raw.get)
    names = [key for key in other.unpack(list(raw.list(""))) if not key.startswith("_holdfast/")]
    assert names == [key for key in alone.list("") if not key.startswith("_holdfast/")]
    assert {key: other.object(key)[2] for key in names} == {
        key: unseal(key, alone.get(key)).digest for key in names
    }
    assert other.response(packed) == written.responses["b", 34]
    attempt = other.object(packed)[0]["attempt"]["key"]
    assert other.documents(attempt)[0] == written.requests["b", 34]


def documented() -> dict[str, set[str]]:
    """The fields of each kind's header that the page lists."""
    page = (ROOT / "docs" / "archive.md").read_text()
    rows = re.findall(r"^\| (`[^|]+) \| (.+) \|$", page.partition("## Headers")[2], re.MULTILINE)
    listed: dict[str, set[str]] = {}
    for kinds, fields in rows:
        # What stands in brackets is said of a field; a semicolon parts the kinds of a row, where
        # there are several.
        plain = re.sub(r"\([^()]*\)", "", fields)
        parts = plain.split(";") if ", " in kinds else [plain]
        for kind, part in zip(kinds.split(", "), parts, strict=True):
            listed[kind.strip("`")] = set(re.findall(r"`(\w+)`", part))
    return listed


def test_the_page_lists_each_kind_s_fields() -> None:
    """Every field of every form stands on the page, and no other."""
    told = {kind: set(form.model_fields) - {"kind", "parts"} for kind, form in KINDS.items()}
    assert documented() == told


def test_a_field_of_a_step_is_declared_once() -> None:
    """Writing, reading, checking and the published schema have their fields from one
    declaration.
    """
    declaring: dict[str, list[str]] = {}
    for owner in {*NewStep.__mro__, *Step.__mro__}:
        for name in vars(owner).get("__annotations__", ()):
            if name in Step.model_fields:
                declaring.setdefault(name, []).append(owner.__name__)
    several = {name for name, owners in declaring.items() if len(owners) > 1}
    # The writer names its attempt by the key that it was given, the archive by its address; each
    # kind narrows ``kind``.
    assert several == {"attempt", "response", "kind"}
    assert {name for name in Step.model_fields if name not in declaring} == set()
