"""Which calls wait for a person."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from runtime.jobsfile.written.base import Written
from runtime.jobsfile.written.bounds import MAX_PATTERNS
from runtime.jobsfile.written.values import Duration

WrittenApproval = Literal["never", "always", "once-per-args"]


def _patterns_of_commands(value: Any) -> Any:
    """A word alone is for all commands."""
    return {"*": value} if isinstance(value, str) else value


class _OneForAll:
    """The JSON Schema of a mapping whose one value may stand alone, for all keys."""

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: Any, handler: Any) -> dict[str, Any]:
        """One value, or the mapping."""
        mapping = handler(core_schema)
        return {"anyOf": [mapping["additionalProperties"], mapping]}


class WrittenApprovals(Written):
    """Which calls wait for a person."""

    tools: dict[str, WrittenApproval] = Field(
        default={},
        max_length=100,
        description=(
            "Whether a person is asked before a tool is called, by its name (of a server's:"
            " server.method), in place of what the tool says: always, never, or once in the job for"
            " equal arguments."
        ),
    )
    sh: Annotated[
        dict[Annotated[str, Field(min_length=1, max_length=1000)], WrittenApproval],
        BeforeValidator(_patterns_of_commands),
        _OneForAll,
    ] = Field(
        default={},
        max_length=MAX_PATTERNS,
        description=(
            "The same for the commands of sh, by patterns of the shell (*, ?, [...]) of which the"
            " first one that fits holds; a word alone is for all commands. A command that holds"
            " several is asked about if one of them is."
        ),
    )
    wait: Duration | None = Field(
        default=None,
        description=(
            "When a question that nobody has answered is answered by itself; if left out, the job"
            " waits as long as it may last."
        ),
    )
    otherwise: Literal["reject", "approve"] = Field(
        default="reject", description="The answer that it then gets."
    )
