"""Who is told when a job or its batch has ended."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from urllib.parse import urlsplit

from pydantic import BaseModel, ConfigDict, Field

from runtime.base.redaction.marks import MASK

VARIABLE = re.compile(r"\$(\{)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)(?(1)\})")
"""A webhook that the worker's environment has: what stands in the jobs file is its name alone."""


class FinishEvent(StrEnum):
    """What has ended."""

    JOB = "job"
    BATCH = "batch"


class OnFinish(BaseModel):
    """A command or a webhook that is told of ends; one of the two is given.

    ``directory`` is where the command runs: the jobs file's.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    command: str | None = None
    webhook: str | None = None
    events: tuple[FinishEvent, ...] = (FinishEvent.JOB, FinishEvent.BATCH)
    timeout: float = Field(default=60.0, gt=0)
    """Seconds that one try may take."""
    directory: str = ""

    @property
    def shown(self) -> str:
        """What people are told of it: of a URL no more than its host, for the rest may be a
        secret.
        """
        if self.webhook is None:
            return f"command {self.command}"
        if variable_of(self.webhook):
            return f"webhook {self.webhook}"
        return f"webhook {masked_url(self.webhook)}"


def variable_of(webhook: str) -> str:
    """The name of the variable that a webhook is given by; empty where it is a URL."""
    named = VARIABLE.fullmatch(webhook)
    return named["name"] if named is not None else ""


def url_of(webhook: str, environment: Mapping[str, str]) -> str | None:
    """A webhook's URL, which the worker's environment may have; None if it has none there."""
    if not (name := variable_of(webhook)):
        return webhook
    url = environment.get(name, "")
    return url if url.startswith(("http://", "https://")) else None


def masked_url(url: str) -> str:
    """The scheme and the host of a URL: its path and query may be all that keeps others out."""
    try:
        parts = urlsplit(url)
        # The port is parsed only when it is asked for, and may be none.
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return MASK
    where = f"{parts.scheme}://{host}{f':{port}' if port else ''}"
    return where if parts.path in ("", "/") and not parts.query else f"{where}/{MASK}"
