"""What statements did to the world, as commands tell it."""

from __future__ import annotations

from typing import Any

from runtime.archive.told_effects import ToldEffect
from runtime.base.plurals import counted
from runtime.base.visible import escaped
from runtime.cli.text import shortened

_SHOWN_PATHS = 6
_COMMAND_CHARS = 70


def effect_row(told: ToldEffect) -> dict[str, Any]:
    """For programs; ``changed`` has a path and A, M or D."""
    changed = [{"path": path, "status": letter} for path, letter in told.changed]
    return {**told.model_dump(mode="json"), "changed": changed}


def effect_line(row: dict[str, Any]) -> str:
    """``2.0  sh make test  exit 1, 3.2 s  M pkg/a.py, A out.txt``. What took no time to speak of
    is told without.
    """
    path = shortened(escaped(row["path"] or ""), _COMMAND_CHARS)
    words = [f"{row['turn']}.{row['effect']}", f"{row['name']} {path}".rstrip()]
    if row["error"] is not None:
        words.append(row["error"])
    if row["decision"] is not None:
        words.append(_decided(row["decision"]))
    took = f"{row['seconds']:.1f} s" if row["seconds"] is not None else ""
    if row["exit_code"] is not None:
        words.append(", ".join(filter(None, [f"exit {row['exit_code']}", took])))
    elif took and took != "0.0 s":
        words.append(took)
    shown = row["changed"][:_SHOWN_PATHS]
    if shown:
        names = ", ".join(f"{one['status']} {escaped(one['path'])}" for one in shown)
        more = row["count"] - len(shown)
        words.append(names + (f" and {counted(more, 'other path')}" if more > 0 else ""))
    if row["damaged"] is not None:
        words.append(f"DAMAGED: {row['damaged']}")
    return "  ".join(words)


def _decided(decision: dict[str, Any]) -> str:
    """``approved by ann@desk, with other arguments``, ``rejected by ann@desk: too much``; of one
    that nobody answered, why it was.
    """
    done = "approved" if decision["approved"] else "rejected"
    by, reason = (escaped(decision[name]) for name in ("by", "reason"))
    other = ", with other arguments" if decision["edited"] else ""
    return ": ".join(filter(None, [f"{done} by {by}{other}" if by else done, reason]))
