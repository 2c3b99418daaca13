"""What a job wrote as an Agent Trace record, version 0.1 (agent-trace.dev): of each file the ranges
of lines, by the conversation that produced them. Here a conversation is a turn.
"""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any
from urllib.parse import quote

from runtime.archive.trees import Trees
from runtime.archive.workspace_history import WorkspaceHistory
from runtime.trees.entries import shown
from runtime.workspace.git.differences import differences
from runtime.workspace.git.lines import Line, lines_of

VERSION = "0.1"
_MODEL_CHARS = 250


def trace_record(
    trees: Trees,
    history: WorkspaceHistory,
    turn: int,
    *,
    run: str,
    models: Mapping[int, str],
    at: str,
    tool: str,
    revision: str,
) -> dict[str, Any]:
    """The record of the files after a turn. ``models`` are those that wrote the turns' statements,
    ``at`` is when the last of them came (ISO 8601), ``tool`` Holdfast's version, ``revision`` the
    commit of a repository that has those files.

    The same record comes out each time. Lines that the job began with are in none of its ranges,
    nor are binary files.
    """
    version = history.after(turn)
    address = f"{_url(history.name, turn)}?run={quote(run, safe='')}&version={version}"
    record: dict[str, Any] = {
        "version": VERSION,
        # Made of the address, so that the same record has the same id each time.
        "id": str(uuid.uuid5(uuid.NAMESPACE_URL, address)),
        "timestamp": at,
    }
    if revision:
        record["vcs"] = {"type": "git", "revision": revision}
    return {
        **record,
        "tool": {"name": "holdfast", "version": tool},
        "files": list(_files(trees, history, turn, models)),
        "metadata": {
            "holdfast": {
                "job": history.name,
                "run": run,
                "turn": turn,
                "base": history.base,
                "version": version,
            }
        },
    }


def _files(
    trees: Trees, history: WorkspaceHistory, turn: int, models: Mapping[int, str]
) -> Iterator[dict[str, Any]]:
    """The files after a turn that have lines of the job."""
    for change in differences(trees, history.base, history.after(turn)).files:
        if change.new is None or not change.new.is_file or change.binary:
            continue
        lines = lines_of(trees, history, turn, change.path)
        conversations = list(_conversations(history.name, lines, models))
        if conversations:
            yield {"path": shown(change.path), "conversations": conversations}


def _conversations(
    name: str, lines: Sequence[Line], models: Mapping[int, str]
) -> Iterator[dict[str, Any]]:
    """A conversation for each turn that wrote some of the lines."""
    ranges: dict[int, list[dict[str, Any]]] = {}
    numbered = enumerate(lines, 1)
    for turn, group in groupby(numbered, key=lambda pair: pair[1].turn):
        held = list(group)
        text = b"".join(line.text for _, line in held)
        ranges.setdefault(turn, []).append(
            {
                "start_line": held[0][0],
                "end_line": held[-1][0],
                "content_hash": f"sha256:{hashlib.sha256(text).hexdigest()}",
            }
        )
    for turn in sorted(ranges):
        # Turn 0 stands for what the job began with, which nobody here wrote.
        if turn:
            contributor = {"type": "ai", "model_id": models.get(turn, "")[:_MODEL_CHARS]}
            yield {"url": _url(name, turn), "contributor": contributor, "ranges": ranges[turn]}


def _url(name: str, turn: int) -> str:
    """``holdfast://BATCH/JOB@N``, as views name another job's turn."""
    return f"holdfast://{quote(name)}@{turn}"
