"""Who is told when a job or the batch has ended."""

from __future__ import annotations

from typing import Literal
from urllib.parse import parse_qsl, urlsplit

from pydantic import Field, field_validator, model_validator

from runtime.base.spec.finish import VARIABLE
from runtime.jobsfile.written.base import Written
from runtime.jobsfile.written.patterns import COMMAND_PATTERN
from runtime.jobsfile.written.secret_names import is_secret_name
from runtime.jobsfile.written.values import Duration
from runtime.jobsfile.written.wrong import wrong


class WrittenFinish(Written):
    """Who is told when a job or the batch has ended: a command or a webhook."""

    command: str | None = Field(
        default=None,
        min_length=1,
        max_length=4_096,
        pattern=COMMAND_PATTERN,
        description=(
            "A shell command that a worker runs in the jobs file's directory. It gets what is told"
            " as JSON on stdin, the idempotency key in HOLDFAST_FINISH_KEY, and in"
            " HOLDFAST_FINISH_EVENT, _BATCH, _JOB (empty for the batch) and _STATUS what it is of."
        ),
    )
    webhook: str | None = Field(
        default=None,
        min_length=1,
        max_length=2_048,
        description=(
            "A URL to which a worker posts what is told, as JSON, with the header Idempotency-Key."
            " $NAME: the worker's environment variable NAME has the URL, which then stands neither"
            " in the file nor in the archive."
        ),
    )
    events: list[Literal["job", "batch"]] = Field(
        default=["job", "batch"],
        min_length=1,
        max_length=2,
        description="What is told of: the end of each job, the end of the batch, or both.",
    )
    timeout: Duration = Field(default=60.0, description="How long one try may take.", le=3_600.0)

    @model_validator(mode="after")
    def _one(self) -> WrittenFinish:
        if (self.command is None) == (self.webhook is None):
            raise wrong("expected one of 'command' and 'webhook'")
        return self

    @field_validator("webhook")
    @classmethod
    def _url_or_variable(cls, value: str | None) -> str | None:
        if value is None or VARIABLE.fullmatch(value):
            return value
        try:
            parts = urlsplit(value)
            whole = parts.scheme in ("http", "https") and bool(parts.hostname)
            # The port raises if it is no number.
            has_port = parts.port is None or parts.port > 0
        except ValueError:
            whole = has_port = False
        if not whole or not has_port:
            # What stands there is not repeated: it may be a secret.
            raise wrong("expected a URL that begins with http:// or https://, or $NAME")
        if (
            parts.username
            or parts.password
            or any(is_secret_name(n) for n, _ in parse_qsl(parts.query))
        ):
            raise wrong(
                "expected a URL without a secret: put it into an environment variable, $NAME"
            )
        return value
