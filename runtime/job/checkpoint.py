"""The whole of a job between two turns as one versioned JSON value, and the job that such a value
gives back.

What the job shows and knows is in it: the View's events, the context graph, the interpreter's
session (bytes of Monty, with the version that wrote them), budgets, and what the projection
remembers. What only looks back is not: events that were forgotten stay in the checkpoints and steps
before, and the previous prompt is there as the digests of its segments. So a checkpoint is as long
as the context, however long the job has run.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable
from importlib.metadata import version
from typing import Any, Literal

from pydantic import ValidationError

from runtime.base.errors import InputError
from runtime.base.spec.models import JobSpec
from runtime.base.values import fields_of
from runtime.interpreter import supplied
from runtime.job.job import Job, SavedJob

VERSION = 1
INTERPRETER = f"monty {version('pydantic-monty')} supplied {supplied.VERSION}"
"""The interpreter that writes sessions in this process, and the version of what it is supplied
with.

Another version takes them over at a checkpoint or not at all.
"""


class JobCheckpoint(SavedJob):
    """A job after ``turn`` turns.

    ``key`` seeds random numbers, ``started`` is seconds since 1970, ``session`` base64.

    Each part of a job says itself what is saved of it: ``saved`` makes those fields, and
    ``restore`` takes them.
    """

    version: Literal[1] = 1
    interpreter: str


def dump(job: Job) -> dict[str, Any]:
    """The job as JSON. Call it between two turns: after ``record`` and before ``ingest``."""
    saved = JobCheckpoint(**fields_of(job.saved()), interpreter=INTERPRETER)
    return saved.model_dump(mode="json", exclude_defaults=True)


def load(spec: JobSpec, data: dict[str, Any], *, count: Callable[[str], int]) -> Job:
    """The job that ``dump`` was given.

    ``spec`` is the job's definition, ``count`` its token counter.

    Raises:
        InputError: if the checkpoint is of another version or damaged.
    """
    # Before the rest: another version would be told field by field, as damage.
    if data.get("version", VERSION) != VERSION:
        raise InputError(
            f"checkpoint of version {data.get('version')!r}; this release reads version {VERSION}"
        )
    try:
        saved = JobCheckpoint.model_validate(data)
        # Made as a new job first, for what is in no checkpoint: what each part declares as
        # MADE_ANEW. Its own first two events go, as the log is put in place whole.
        job = Job(spec, key=saved.key, started=saved.started, count=count)
        job.restore(saved)
    except (ValidationError, binascii.Error) as error:
        raise InputError(f"the checkpoint is damaged: {error}") from error
    return job
