"""Verifying that an object stands where it says that it stands."""

from __future__ import annotations

from runtime.archive import keys
from runtime.archive.container import ArchivedObject

MALFORMED = (KeyError, TypeError, ValueError, IndexError, AttributeError)
"""What reading a header of another shape raises."""


def says_what_its_key_says(archived: ArchivedObject, job: str) -> bool:
    """Whether an object's header has the run, turn and number that its key under ``job`` has."""
    header = archived.header
    try:
        match header["kind"]:
            case "attempt" | "step" | "effect" | "failure" | "exchange" | "checkpoint" as kind:
                place = keys.parse_turn_key(archived.key)
                if place is None or place.kind != kind:
                    return False
                alone = kind in {"step", "checkpoint"}
                number = 0 if alone else header["effect" if kind == "effect" else "number"]
                return (place.run, place.turn, place.number) == (
                    keys.name(header["run"]),
                    header["turn"],
                    number,
                )
            case "definition":
                return archived.key == keys.definition_key(job, header["number"])
            case "run":
                return archived.key == keys.run_key(job, header["run"])
            case "end":
                return archived.key == keys.end_key(job, header["run"])
            case "replay" | "claim" as kind:
                suffix = ".run" if kind == "claim" else ""
                return archived.key == f"{job}/replays/{keys.name(header['id'])}{suffix}"
    except MALFORMED:
        return False
    return False
