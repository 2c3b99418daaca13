"""Archived jobs that change a workspace, written by the archive's own writers: a turn for each
statement, and the trees that its effects left.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runtime.archive.forms import NewEnd
from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore
from runtime.archive.trees import Trees, tree_key
from runtime.base.values import ToolCall
from runtime.projection.segments import Role, Segment, SegmentKind
from runtime.trees.entries import Entry, directory_entry, file_entry, link_entry
from runtime.trees.tree import Tree
from tests.archive.archive_jobs import Written, step_record

RUN = "run"
COMMAND = 3
"""The turn whose effect is a command's."""
What = Mapping[str, "bytes | tuple[str, Any] | None"]
"""What became of paths: bytes of a file, ``("link", target)``, ``("mode", (mode, bytes))``,
``("directory", mode)``, or None: it is gone.
"""


def entries(what: What) -> tuple[dict[str, Entry | None], dict[str, bytes]]:
    """Changes, and the bytes that are new, by digest."""
    changes: dict[str, Entry | None] = {}
    data: dict[str, bytes] = {}
    for path, told in what.items():
        mode = 0o644
        if isinstance(told, tuple) and told[0] == "mode":
            mode, told = told[1]
        if told is None:
            changes[path] = None
        elif isinstance(told, bytes):
            entry = file_entry(told, mode)
            changes[path], data[entry.content] = entry, told
        elif told[0] == "link":
            changes[path] = link_entry(told[1])
        else:
            changes[path] = directory_entry(told[1])
    return changes, data


def hands_job(
    store: ObjectStore,
    base: What,
    statements: Sequence[tuple[str, What]],
    *,
    job: str = "one",
    workspace: str = "",
    model: str = "openai/m-1",
) -> JobArchive:
    """A job ``hands/JOB`` that began with ``base``; each of ``statements`` is its source and what
    it changed. The last one finishes the job.
    """
    archive, trees = JobArchive(store, "hands", job), Trees(store)
    written = Written(archive)
    writable = {"exclude": ["*.log"], "keep": []}
    archive.write_definition(
        {"goal": "g", "model": {"name": model}, "workspace": workspace, "writable": writable}
    )
    changes, data = entries(base)
    tree = Tree().changed(changes)
    version = trees.write_base(tree, lambda path: data[_content(tree, path)]).tree.version
    archive.write_effect(RUN, 0, 0, {"version": version}, (tree_key(version),))
    parent, execution = None, None
    for turn, (source, what) in enumerate(statements, 1):
        contract = Segment(
            kind=SegmentKind.CONTRACT, origin="contract", role=Role.USER, text="c", tokens=1
        )
        attempt = written.begin(RUN, turn, parent, [contract])
        record = step_record(RUN, turn, attempt)
        call = ToolCall(id=f"c{turn}", name="python", arguments=json.dumps({"code": source}))
        reply = record.reply.model_copy(update={"tool_calls": (call,)})
        fields = {"reply": reply, "workspace": version, "execution": execution}
        parent = written.finished(record.model_copy(update=fields))
        execution = {"status": "ok", "effects": _records(source, what)}
        version = _effect(archive, trees, turn, version, what)
    end = NewEnd(
        run=RUN, turn=len(statements), parent=parent, status="succeeded", workspace=version,
        execution=execution, ended_at="2026-01-01T02:00:00Z",
    )  # fmt: skip
    archive.write_end(end)
    return archive


def _effect(archive: JobArchive, trees: Trees, turn: int, version: str, what: What) -> str:
    if not what:
        return version
    changes, data = entries(what)
    after = trees.write_change(version, changes, data).tree.version
    told = [[os.fsencode(path).decode("utf-8", "backslashreplace"), "M"] for path in changes]
    value: dict[str, Any] = {
        "version": after, "base": version, "changed": told, "count": len(told),
        "value": {"exit_code": 3, "seconds": 1.5} if turn == COMMAND else None,
    }  # fmt: skip
    archive.write_effect(RUN, turn, 0, value, (tree_key(after),))
    return after


def _records(source: str, what: What) -> list[dict[str, Any]]:
    """The records of a statement's one effect: a command, where it has one."""
    name = "sh" if "sh(" in source else "edit"
    path = "make" if name == "sh" else next(iter(what), "")
    return [{"kind": "change", "name": name, "path": path}] if what else []


def _content(tree: Tree, path: str) -> str:
    entry = tree.get(path)
    assert entry is not None
    return entry.content


def written_tree(root: Path) -> dict[str, object]:
    """What is in a directory: bytes and modes of files, targets of links, modes of directories."""
    found: dict[str, object] = {}
    for place in sorted(root.rglob("*")):
        path = str(place.relative_to(root))
        mode = place.lstat().st_mode & 0o777
        if place.is_symlink():
            found[path] = os.readlink(place)  # noqa: PTH115 as the tree has it
        elif place.is_dir():
            found[path] = mode
        else:
            found[path] = (mode, place.read_bytes())
    return found
