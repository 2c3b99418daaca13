"""``holdfast log --graph``: the runs of a job as a tree."""

from __future__ import annotations

from typing import Any

from runtime.archive.timelines import Began, RunNode, Stands, branches
from runtime.cli.text import one_line


def graph_lines(nodes: list[RunNode]) -> list[str]:
    """A line a run, each under the run it goes on from."""
    return [f"{_drawn(depth, more)}{_told(node)}" for depth, node, more in branches(nodes)]


def graph_document(nodes: list[RunNode]) -> list[dict[str, Any]]:
    """The runs as JSON, oldest first."""
    return [node.model_dump(mode="json") for node in nodes]


def _drawn(depth: int, more: tuple[bool, ...]) -> str:
    if depth == 0:
        return ""
    return "".join("│  " if level else "   " for level in more[1:-1]) + (
        "├─ " if more[-1] else "└─ "
    )


def _told(node: RunNode) -> str:
    reason = f": {one_line(node.reason)}" if node.reason and node.status != "succeeded" else ""
    turns = f"turns {node.first} to {node.last}" if node.last >= node.first else "no calls"
    return f"{node.run}  {turns}  {_why(node)}{_how(node)}{reason}"


def _how(node: RunNode) -> str:
    match node.stands:
        case Stands.OPEN:
            return "open"
        case Stands.CONTINUED:
            return f"goes on as run {node.next_run}"
        case Stands.TAKEN_BACK:
            return (
                f"ended before its end, by a reset or from outside; run {node.next_run} came"
                " after it"
            )
        case Stands.ENDED:
            return node.status or ""


def _why(node: RunNode) -> str:
    frozen = ", frozen" if node.order and node.order.get("frozen") else ""
    from_there = f"from statement {node.first}"
    if node.order is not None:
        # Of an order that cannot be read, the run alone tells where it began.
        start, mode = node.order.get("start", node.first), node.order.get("mode", "rerun")
        from_there = f"from statement {start} ({mode}{frozen})"
    match node.began:
        case Began.FORK:
            return f"fork of {node.parent_job} {from_there}  "
        case Began.REPLAY:
            return f"replay {from_there}  "
        case Began.RESET:
            return f"reset by Temporal's own means {from_there}  "
        case Began.CONTINUED:
            return f"continues run {node.parent_run}  "
        case Began.FIRST:
            return ""
