"""The MCP servers whose tools a job may call."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from runtime.base.spec.servers import DEFAULT_TIMEOUT
from runtime.jobsfile.written.base import Written
from runtime.jobsfile.written.patterns import COMMAND_PATTERN, URL_PATTERN, VARIABLE_PATTERN
from runtime.jobsfile.written.values import Duration


class WrittenServer(Written):
    """An MCP server: a command, or a URL."""

    command: list[
        Annotated[str, Field(min_length=1, max_length=4_096, pattern=COMMAND_PATTERN)]
    ] = Field(
        default=[],
        max_length=100,
        description=(
            "The program that speaks the protocol over its standard streams, and its arguments; it"
            " is started once for each worker."
        ),
    )
    directory: str | None = Field(
        default=None,
        min_length=1,
        description="Where the command is started; the jobs file's directory if left out.",
    )
    url: str | None = Field(
        default=None,
        max_length=2_000,
        pattern=URL_PATTERN,
        description="Where the server is reached over streamable HTTP.",
    )
    env: list[Annotated[str, Field(pattern=VARIABLE_PATTERN)]] = Field(
        default=[],
        max_length=100,
        description=(
            "Names of the worker's environment variables that the command gets, beside PATH, HOME,"
            " LANG, LC_ALL and TMPDIR."
        ),
    )
    token: str | None = Field(
        default=None,
        pattern=VARIABLE_PATTERN,
        description=(
            "The name of the worker's environment variable whose value requests to the URL carry as"
            " bearer token."
        ),
    )
    timeout: Duration = Field(
        default=DEFAULT_TIMEOUT, description="How long a call may take.", le=6 * 3_600.0
    )
    effects: dict[str, Literal["pure", "idempotent", "once"]] = Field(
        default={},
        max_length=100,
        description=(
            "How often tools may run for one call, by the server's names for them, in place of what"
            " its annotations say: pure, idempotent or once."
        ),
    )
