"""Checks of what the model passes; each refusal says what is accepted."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeVar

from runtime.base.characters import as_literal
from runtime.context.outcomes import NodeRef, Refused
from runtime.context.sources import ALL_TOKENS
from runtime.context.states import Freq, FreqKind, Mode

T = TypeVar("T")

# Twelve digits: no file has more lines, and Python refuses to read an int of thousands of digits.
_POS = re.compile(r"(\d{1,12})(?::(\d{1,12}))?", re.ASCII)
_BACK = re.compile(r"-([1-9][0-9]{0,11})")
_POS_HELP = (
    'a 0-based line (40 or "40"), "line:column" ("120:0"), -40 for the fortieth line from the end,'
    ' or "/text" for the first line that contains text'
)
_FREQ_HELP = '"Sync", "Async", "Periodic" or ("Periodic", seconds)'

PERIODIC_SECONDS = 60.0
"""The interval of ``"Periodic"`` alone, as the founding document lists it."""

MOST_SECONDS = 366 * 24 * 3600
"""The longest interval or wait, in seconds: a year, and a day for the leap year."""

VIEW_LODS = {0: "excerpt", 1: "structure", 2: "semantic summary", 3: "diff"}
NOTE_LODS = {0: "text"}
GROUP_LODS = {0: "members' excerpts", 1: "structure", 2: "summary", 3: "diff"}


def _type_error(call: str, name: str, wanted: str, value: Any) -> Refused:
    return Refused(TypeError, f"{call}: {name} must be {wanted}, not {_kind(value)}")


def _kind(value: Any) -> str:
    if value is None:
        return "None"
    return "a handle" if isinstance(value, NodeRef) else type(value).__name__


def _is_int(value: Any) -> bool:
    # True is an int to Python, and no line, level or budget.
    return isinstance(value, int) and not isinstance(value, bool)


def _printable(call: str, name: str, value: Any) -> None:
    """Refuse a number that no message, event or prompt could say, at any depth of ``value``."""
    try:
        repr(value)
    except ValueError:
        raise Refused(
            ValueError, f"{call}: {name} has more digits than Python prints (4,300)"
        ) from None


def optional(check: Callable[[str, Any], T], call: str, value: Any) -> T | None:
    """``check``'s value, or ``None`` for ``None``."""
    return None if value is None else check(call, value)


def path(call: str, value: Any) -> str:
    """A path inside the workspace, as text. The reader decides whether it is inside."""
    if not isinstance(value, str):
        raise _type_error(call, "path", "a str or an opened file", value)
    if not value or "\x00" in value:
        raise Refused(
            ValueError, f"{call}: path must name a file of the workspace, not {as_literal(value)}"
        )
    return value


def pos(call: str, value: Any) -> str:
    """A position in its one spelling: ``"line:column"``, ``"-lines"`` from the end or
    ``"/text"``.
    """
    _printable(call, "pos", value)
    if _is_int(value) and value >= 0:
        return f"{value}:0"
    if not isinstance(value, str) and not _is_int(value):
        raise _type_error(call, "pos", f"an int or a str: {_POS_HELP}", value)
    text = str(value)
    # Nothing that has the end of a line in it stands in one line.
    if text.startswith("/") and len(text) > 1 and "\n" not in text:
        return text
    if (back := _BACK.fullmatch(text)) is not None:
        return f"-{int(back[1])}"
    match = _POS.fullmatch(text)
    if match is None:
        raise Refused(ValueError, f"{call}: pos must be {_POS_HELP}; not {as_literal(value)}")
    return f"{int(match[1])}:{int(match[2] or 0)}"


def tokens(call: str, value: Any) -> int:
    """A token budget: at least 1, or ``All``."""
    if not _is_int(value):
        raise _type_error(call, "tokens", "an int or All", value)
    _printable(call, "tokens", value)
    if value < 1 and value != ALL_TOKENS:
        raise Refused(ValueError, f"{call}: tokens must be at least 1, or All; not {value}")
    return int(value)


def _lod(call: str, value: Any, levels: dict[int, str]) -> int:
    help_ = ", ".join(f"{level} ({what})" for level, what in levels.items())
    if not _is_int(value):
        raise _type_error(call, "lod", f"an int: {help_}", value)
    _printable(call, "lod", value)
    if value not in levels:
        raise Refused(ValueError, f"{call}: lod must be one of {help_}; not {value}")
    return int(value)


def view_lod(call: str, value: Any) -> int:
    """A view's level of detail."""
    return _lod(call, value, VIEW_LODS)


def group_lod(call: str, value: Any) -> int:
    """A group's level of detail."""
    return _lod(call, value, GROUP_LODS)


def note_lod(call: str, value: Any) -> int:
    """A level of detail that a note has."""
    return _lod(call, value, NOTE_LODS)


def text(call: str, name: str, value: Any) -> str:
    """Any text."""
    if not isinstance(value, str):
        raise _type_error(call, name, "a str", value)
    return value


def seconds(call: str, name: str, value: Any) -> float:
    """A time to sleep, in seconds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _type_error(call, name, "a number of seconds", value)
    _printable(call, name, value)
    if not 0 <= value <= MOST_SECONDS:
        raise Refused(
            ValueError,
            f"{call}: {name} must be between 0 and {MOST_SECONDS:,} seconds, not {value!r}",
        )
    return float(value)


def mode(call: str, value: Any) -> Mode:
    """``"paused"`` or ``"running"``."""
    if not isinstance(value, str):
        raise _type_error(call, "mode", '"paused" or "running"', value)
    if value not in list(Mode):
        raise Refused(
            ValueError, f'{call}: mode must be "paused" or "running", not {as_literal(value)}'
        )
    return Mode(value)


def freq(call: str, value: Any) -> Freq:
    """A schedule."""
    if isinstance(value, tuple | list):
        _printable(call, "freq", value)
    seconds: float | None = None
    if isinstance(value, str) and value in (FreqKind.SYNC, FreqKind.ASYNC):
        kind = FreqKind(value)
    elif value == FreqKind.PERIODIC:
        kind, seconds = FreqKind.PERIODIC, PERIODIC_SECONDS
    elif isinstance(value, tuple | list) and len(value) == 2 and value[0] == FreqKind.PERIODIC:
        seconds = value[1]
        if (
            isinstance(seconds, bool)
            or not isinstance(seconds, int | float)
            or not 0 < seconds <= MOST_SECONDS
        ):
            raise Refused(
                ValueError,
                f'{call}: ("Periodic", seconds) needs more than 0 and at most {MOST_SECONDS:,}'
                f" seconds, not {seconds!r}",
            )
        kind = FreqKind.PERIODIC
    elif isinstance(value, str | tuple | list):
        raise Refused(ValueError, f"{call}: freq must be {_FREQ_HELP}, not {as_literal(value)}")
    else:
        raise _type_error(call, "freq", _FREQ_HELP, value)
    return Freq(kind=kind, seconds=seconds)


def interval(call: str, value: Any) -> int:
    """A throttle in turns, at least 1."""
    if not _is_int(value):
        raise _type_error(call, "min_turn_interval", "an int", value)
    _printable(call, "min_turn_interval", value)
    if value < 1:
        raise Refused(ValueError, f"{call}: min_turn_interval must be at least 1 turn, not {value}")
    return int(value)


def whole(call: str, name: str, value: Any) -> int:
    """Any int."""
    if not _is_int(value):
        raise _type_error(call, name, "an int", value)
    _printable(call, name, value)
    return int(value)


def node(call: str, name: str, value: Any) -> str:
    """The ``obj_id`` of a handle."""
    if not isinstance(value, NodeRef):
        raise _type_error(call, name, "a handle made by view(...), group(...) or note(...)", value)
    return value.obj_id


def reason(call: str, value: Any) -> str | None:
    """A pin's reason on one line; ``None`` unpins."""
    if value is None:
        return None
    if not isinstance(value, str):
        raise _type_error(call, "reason", "a str, or None to unpin", value)
    return " ".join(value.split()) or "pinned"
