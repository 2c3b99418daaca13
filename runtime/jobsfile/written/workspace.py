"""The directory that a job reads, or the workspace of its own that it may change."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, field_validator, model_validator

from runtime.base.quoted import shown
from runtime.base.spec.models import DEFAULT_EXCLUDE
from runtime.jobsfile.written.base import Written
from runtime.jobsfile.written.bounds import MAX_PATTERNS, MAX_REDACTIONS, MAX_SETUP
from runtime.jobsfile.written.patterns import COMMAND_PATTERN, VARIABLE_PATTERN
from runtime.jobsfile.written.wrong import wrong


class WrittenWorkspace(Written):
    """A workspace of the job's own, which it may change; nobody else's files are written."""

    from_: str | None = Field(
        default=None,
        alias="from",
        min_length=1,
        description=(
            "The directory that it begins as a copy of, relative to the jobs file, or another"
            " job's workspace after its turn N (holdfast://JOB@N). Left out: it begins empty."
        ),
    )
    write: bool = Field(
        default=True,
        description="Whether the job may change it. A path alone is a directory that it may not.",
    )
    exclude: list[Annotated[str, Field(min_length=1, max_length=1000)]] = Field(
        default=list(DEFAULT_EXCLUDE),
        max_length=MAX_PATTERNS,
        description=(
            "Patterns as in .gitignore: what they match is neither copied nor kept. Replaces the"
            f" default ones, which are what tools make anew: {', '.join(DEFAULT_EXCLUDE)}."
        ),
    )
    setup: str = Field(
        default="",
        max_length=MAX_SETUP,
        pattern=COMMAND_PATTERN,
        description=(
            "Shell commands that fill /env (for example: python3 -m venv /env && /env/bin/pip"
            " install pytest). They run once for equal inputs on a host, with network, before the"
            " first turn; commands find /env read-only, and /env/bin in their PATH."
        ),
    )
    sandbox: Literal["auto", "bwrap", "none"] = Field(
        default="auto",
        description=(
            "What commands run in: bubblewrap, or nothing (none), which lets them do all that the"
            " worker's user may. auto is bubblewrap, and refuses to start without."
        ),
    )
    network: bool = Field(default=False, description="Whether commands reach the network.")
    keep: list[Annotated[str, Field(min_length=1, max_length=1000)]] = Field(
        default=[],
        max_length=MAX_PATTERNS,
        description="Patterns as in .gitignore of files that are handed over with the result.",
    )
    secrets: list[Annotated[str, Field(pattern=VARIABLE_PATTERN)]] = Field(
        default=[],
        max_length=MAX_REDACTIONS,
        description=(
            "Names of the worker's environment variables that commands are given; their values are"
            " masked in what comes back."
        ),
    )

    @model_validator(mode="before")
    @classmethod
    def _from_path(cls, value: Any) -> Any:
        if isinstance(value, str):
            return {"from": value, "write": False}
        if not isinstance(value, dict):
            raise wrong(f"expected a directory or a mapping, got {shown(value)}")
        if value.get("write") is False:
            if value.get("from") is None:
                raise wrong("expected 'from': a workspace that is not written is a directory's")
            if more := sorted(value.keys() - {"from", "write"}):
                raise wrong(f"{more[0]!r} is for a workspace that the job may write")
        return value

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> dict[str, Any]:
        """A path alone is a workspace too."""
        mapping = handler.resolve_ref_schema(handler(core_schema))
        description = mapping.pop("description")
        return {"description": description, "anyOf": [{"type": "string", "minLength": 1}, mapping]}

    @field_validator("exclude", "keep")
    @classmethod
    def _patterns(cls, patterns: list[str]) -> list[str]:
        from pathspec import GitIgnoreSpec

        for pattern in patterns:
            try:
                GitIgnoreSpec.from_lines([pattern])
            except ValueError:
                raise wrong(f"expected a pattern as in .gitignore, got {shown(pattern)}") from None
        return patterns
