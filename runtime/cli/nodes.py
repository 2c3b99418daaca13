"""``holdfast nodes``: the context objects as they stood at a turn."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

from runtime.cli.chosen import JobAtTurn, Run
from runtime.cli.options import Json, Store
from runtime.cli.output import json_document, say, say_all


def command(job: JobAtTurn, run: Run = None, store: Store = None, json: Json = False) -> None:
    """List the context objects as they stood at a turn.

    Those that changed since the turn before are marked with '*', with what happened to them. A turn
    in flight shows those of the turn before.
    """
    from runtime.cli.chosen import chosen_turn
    from runtime.cli.stores import archive_to_read

    turn = chosen_turn(archive_to_read(store), job, run)
    nodes, changed, events = turn.nodes(), turn.changed_nodes(), turn.recent_events()
    if json:
        about = {"job": turn.name, "run": turn.run, "turn": turn.turn}
        json_document({**about, "nodes": nodes, "changed": changed, "events": events})
        return
    if not nodes:
        say(f"{turn.address}: no nodes")
    say_all(node_lines(nodes, changed, events))


def node_lines(
    nodes: Mapping[str, Mapping[str, Any]],
    changed: Container[str],
    events: Sequence[dict[str, Any]],
) -> Iterator[str]:
    """A line for each node, a star before those that changed, and behind it what happened to it.
    What a job named is told on one line.
    """
    from runtime.cli.showing import node_line
    from runtime.job.happenings import line_of

    for obj_id, state in nodes.items():
        mark = "*" if obj_id in changed else " "
        yield f"{mark} {node_line(obj_id, state)}"
        for event in events:
            if obj_id in (event.get("obj_id"), event.get("group_id")):
                yield f"    {line_of(event)}"
