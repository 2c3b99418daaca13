"""Jobs with all that they leave out filled in."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeVar

from runtime.base.places import is_directory
from runtime.base.quoted import shown
from runtime.base.redaction.rules import Redaction
from runtime.base.spec.models import JobSpec, ProjectionPolicy, Spawn, Writable
from runtime.jobsfile.problems import Location, Problems
from runtime.jobsfile.resolve.approvals import approvals_of
from runtime.jobsfile.resolve.condensers import condensers_of
from runtime.jobsfile.resolve.disk import REMEMBERED, Disk
from runtime.jobsfile.resolve.merged import budget_of, retry_of, sections_of
from runtime.jobsfile.resolve.models import model_of, summary_model_of
from runtime.jobsfile.resolve.servers import servers_of
from runtime.jobsfile.resolve.tools import Tools
from runtime.jobsfile.resolve.workspace import workspace_of
from runtime.jobsfile.written.file import WrittenHeader
from runtime.jobsfile.written.job import WrittenJob
from runtime.jobsfile.written.redaction import WrittenRedaction
from runtime.jobsfile.written.settings import WrittenSettings
from runtime.jobsfile.written.spawn import WrittenSpawn

P = TypeVar("P")


class _Values:
    """What a job's settings are: its own, else the defaults'.

    ``inherited`` has the parts that come of defaults alone: they are made once for all jobs.
    """

    def __init__(
        self, index: int, job: WrittenJob, defaults: WrittenSettings, inherited: dict[str, Any]
    ) -> None:
        self._index = index
        self._job = job
        self._defaults = defaults
        self._inherited = inherited

    def of(self, key: str) -> tuple[Any, Location]:
        """A setting as it is written, and where."""
        if key in self._job.model_fields_set:
            return getattr(self._job, key), ("jobs", self._index, key)
        return getattr(self._defaults, key), ("defaults", key)

    def once(self, make: Callable[[], P], part: str, *also: str) -> P:
        """The part called as its key is, made of that key and ``also`` of others."""
        if not self._job.model_fields_set.isdisjoint((part, *also)):
            return make()
        if part not in self._inherited:
            self._inherited[part] = make()
        shared: P = self._inherited[part]
        return shared


class Resolver:
    """The resolution of one file's jobs.

    Args:
        disk: what the file's paths lead to.
        header: the file's checked header.
        problems: takes what is wrong.
    """

    def __init__(self, disk: Disk, header: WrittenHeader, problems: Problems) -> None:
        self._disk = disk
        self._header = header
        self._defaults = header.defaults
        self._problems = problems
        self._inherited: dict[str, Any] = {}
        self._schema_fault = lru_cache(REMEMBERED)(_schema_fault)
        self._tools_path = disk.path(header.tools_path or ".", ("tools_path",))
        self._tools = Tools(self._tools_path, header.limits.tools, problems)

    def close(self) -> None:
        """End the process in which tools were imported."""
        self._tools.close()

    def jobs(self, written: Iterable[tuple[int, WrittenJob]]) -> Iterator[JobSpec]:
        """The resolved jobs; those that cannot be are left out, and what is wrong with them is
        noted.
        """
        if self._header.tools_path and not is_directory(self._tools_path):
            self._problems.add(("tools_path",), f"no such directory: {shown(self._tools_path)}")
        # Also where every job names a model of its own: all that is wrong in the file is told.
        if self._defaults.model is not None:
            model_of(self._defaults.model, ("defaults", "model"), self._disk, self._problems)
        for index, job in written:
            resolved = self._job(index, job)
            if resolved is not None:
                yield resolved

    def _job(self, index: int, job: WrittenJob) -> JobSpec | None:
        """One job, or None where something it needs is missing."""
        disk, problems = self._disk, self._problems
        values = _Values(index, job, self._defaults, self._inherited)
        missing = [key for key in ("model", "workspace") if values.of(key)[0] is None]
        for key in missing:
            problems.add(("jobs", index, key), "required key is missing, here and in 'defaults'")
        # Also of a job that lacks something: all that is wrong is told at once.
        secrets = tuple(values.of("secrets")[0])
        tools = self._tools.of_job(*values.of("tools"), secrets)
        servers = servers_of(*values.of("mcp"), {tool.name for tool in tools}, disk, problems)
        schema, at = values.of("result")
        self._result(schema, at)
        if missing:
            return None
        workspace, writable = values.once(
            lambda: workspace_of(*values.of("workspace"), disk, problems), "workspace"
        )
        if writable is None:
            self._tools.note_files(tools, *values.of("tools"))
        self._tools.note_queues(tools, *values.of("tools"))
        form = values.of("form")[0]
        return JobSpec(
            id=job.id,
            goal=job.goal,
            workspace=workspace,
            writable=writable,
            tools=tools,
            secrets=secrets,
            mcp=servers,
            # It is checked against all of these, so it is shared only where none is the job's own.
            approvals=values.once(
                lambda: approvals_of(
                    *values.of("approvals"), tools, servers, writable, job.id, problems
                ),
                *("approvals", "tools", "secrets", "mcp", "workspace"),
            ),
            result=schema,
            form="tool" if form == "auto" else form,
            context_tokens=values.of("context_tokens")[0],
            pin_user_messages=values.of("pin_user_messages")[0],
            urls=tuple(values.of("urls")[0]),
            projection=ProjectionPolicy(values.of("projection")[0]),
            redact=values.once(
                lambda: _redaction(values.of("redact")[0], writable, secrets),
                *("redact", "workspace", "secrets"),
            ),
            check=self._tools.check(*values.of("check"), secrets),
            spawn=values.once(lambda: self._spawn(*values.of("spawn")), "spawn"),
            **self._bounds(values, job),
            **self._models(values),
        )

    def _bounds(self, values: _Values, job: WrittenJob) -> dict[str, Any]:
        """What the job may use: its own bounds, then the defaults' ones."""
        defaults = self._defaults
        return {
            "budget": values.once(lambda: budget_of(defaults.budget, job.budget), "budget"),
            "retry": values.once(lambda: retry_of(defaults.retry, job.retry), "retry"),
            "sections": values.once(
                lambda: sections_of(defaults.sections, job.sections), "sections"
            ),
        }

    def _models(self, values: _Values) -> dict[str, Any]:
        """The models that the job asks, and what has them asked for summaries."""
        disk, problems = self._disk, self._problems
        model = values.once(lambda: model_of(*values.of("model"), disk, problems), "model")
        return {
            "model": model,
            # By the model too, which decides what 'auto' is.
            "condenser": values.once(
                lambda: condensers_of(*values.of("condenser"), model, disk, problems),
                *("condenser", "model"),
            ),
            "summary_model": summary_model_of(*values.of("summary_model"), disk, problems),
        }

    def _spawn(self, written: WrittenSpawn | None, at: Location) -> Spawn | None:
        """How many sub-jobs the job may start."""
        if written is None:
            return None
        model = None
        if written.model is not None:
            model = model_of(written.model, (*at, "model"), self._disk, self._problems)
        numbers = written.model_dump(exclude={"model"})
        return Spawn(**numbers, model=model)

    def _result(self, schema: dict[str, Any] | None, at: Location) -> None:
        if schema is None:
            return
        # As text, which a cache can look up.
        if fault := self._schema_fault(json.dumps(schema, sort_keys=True)):
            self._problems.add(at, fault)


def _redaction(
    written: WrittenRedaction, writable: Writable | None, of_tools: tuple[str, ...]
) -> Redaction:
    """What is masked: the secrets that commands and tools are given too."""
    fields = {name: tuple(texts) for name, texts in written.model_dump().items()}
    secrets = () if writable is None else writable.secrets
    fields["env"] = tuple(dict.fromkeys((*fields["env"], *secrets, *of_tools)))
    return Redaction(**fields)


def _schema_fault(schema: str) -> str | None:
    """What is wrong with a result schema, in JSON."""
    from runtime.base.result_schemas.faults import schema_fault

    return schema_fault(json.loads(schema))
