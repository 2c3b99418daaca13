"""Types of single values: names, durations, deadlines, goals, URLs that a job may view."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, WithJsonSchema

from runtime.base.durations import PATTERN, parse_duration
from runtime.base.quoted import shown
from runtime.base.url_rules import PATTERN as PATTERN_OF_URLS
from runtime.base.url_rules import UrlRule
from runtime.jobsfile.written.bounds import MAX_GOAL_BYTES
from runtime.jobsfile.written.names import NAME_PATTERN, NAME_RULE, is_name
from runtime.jobsfile.written.wrong import WRONG_NUMBER, wrong


def _name(value: Any) -> Any:
    if isinstance(value, str) and is_name(value):
        return value
    # YAML reads 5 and true as no texts, which look like names.
    quotes = "; put it in quotes" if isinstance(value, int | float) else ""
    raise wrong(f"expected a name ({NAME_RULE}), got {shown(value)}{quotes}")


def _duration(value: Any) -> float:
    try:
        return parse_duration(value)
    except ValueError:
        text = f"expected a duration such as 6h or 90m, at most ten years, got {shown(value)}"
        raise wrong(text, WRONG_NUMBER) from None


def _deadline(value: Any) -> float | str:
    """A duration, or a time, which is given back in UTC."""
    try:
        # Durations first: a number of seconds is one of them, and no time.
        return parse_duration(value)
    except ValueError:
        pass
    try:
        at = datetime.fromisoformat(value) if isinstance(value, str) else None
        if at is None or at.tzinfo is None:
            raise ValueError("not a time with its zone")
        return at.astimezone(UTC).isoformat()
    except (ValueError, OverflowError):
        raise wrong(
            "expected a duration such as 8h, or a time with its zone such as"
            f" 2026-05-31T08:00:00+02:00, got {shown(value)}",
            WRONG_NUMBER,
        ) from None


def _url(value: str) -> str:
    try:
        UrlRule.of(value)
    except ValueError as error:
        raise wrong(f"{error}, got {shown(value)}") from None
    return value


def _goal(value: Any) -> Any:
    if isinstance(value, str):
        if not value.strip():
            raise wrong("expected a text that says what to do, got an empty one")
        size = len(value.encode("utf-8", "surrogatepass"))
        if size > MAX_GOAL_BYTES:
            raise wrong(
                f"expected at most {MAX_GOAL_BYTES} bytes, got {size}; put long material in the"
                " workspace"
            )
    return value


Name = Annotated[
    str, BeforeValidator(_name), WithJsonSchema({"type": "string", "pattern": NAME_PATTERN})
]
Duration = Annotated[
    float,
    BeforeValidator(_duration),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "pattern": PATTERN},
            ]
        }
    ),
]
Deadline = Annotated[
    float | str,
    BeforeValidator(_deadline),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "exclusiveMinimum": 0},
                {"type": "string", "pattern": f"{PATTERN}|T.*(Z|[+-][0-9]{{2}}:?[0-9]{{2}})$"},
            ]
        }
    ),
]
Goal = Annotated[str, BeforeValidator(_goal)]
Url = Annotated[
    str, WithJsonSchema({"type": "string", "pattern": PATTERN_OF_URLS}), AfterValidator(_url)
]
"""A URL beneath which a job may view pages, or a host."""
