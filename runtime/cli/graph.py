"""``holdfast log --graph``: the runs of a job as a tree."""

from __future__ import annotations

from typing import Any

from runtime.archive.job import JobArchive
from runtime.archive.timelines import RunNode, branches, run_tree
from runtime.cli.text import one_line


def graph_lines(archive: JobArchive) -> list[str]:
    """A line a run, each under the run it goes on from."""
    return [f"{_drawn(depth, more)}{_told(node)}" for depth, node, more in branches(run_tree(archive))]


def graph_document(archive: JobArchive) -> list[dict[str, Any]]:
    """The runs as JSON, oldest first."""
    return [node.model_dump(mode="json") for node in run_tree(archive)]


def _drawn(depth: int, more: tuple[bool, ...]) -> str:
    if depth == 0:
        return ""
    return "".join("│  " if level else "   " for level in more[1:-1]) + ("├─ " if more[-1] else "└─ ")


def _told(node: RunNode) -> str:
    how = node.status or "open, or continued in another run, or ended by a reset"
    reason = f": {one_line(node.reason)}" if node.reason and node.status != "succeeded" else ""
    return f"{node.run}  turns {node.first} to {node.last}  {_why(node)}{how}{reason}"


def _why(node: RunNode) -> str:
    if node.order is not None:
        frozen = ", frozen" if node.order.get("frozen") else ""
        mode = node.order.get("mode", "rerun")
        what = f"fork of {node.parent_job}" if node.is_fork else "replay"
        return f"{what} from statement {node.order['start']} ({mode}{frozen})  "
    if node.parent_run is None:
        return ""
    return f"fork of {node.parent_job}@{node.first}  " if node.is_fork else "goes on  "
