"""A batch as a jobs file in which nothing is left to fill in (``holdfast run --print-config``)."""

from __future__ import annotations

from io import StringIO
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.scalarstring import DoubleQuotedScalarString, LiteralScalarString

from runtime.base.durations import format_deadline, format_duration
from runtime.base.spec.models import (
    Approvals,
    BatchBudget,
    BatchSpec,
    Budget,
    JobSpec,
    Retry,
    ToolSpec,
)
from runtime.base.spec.servers import ServerSpec
from runtime.jobsfile.changes import written_approvals
from runtime.jobsfile.condensers import condenser_value


def resolved_yaml(batch: BatchSpec) -> str:
    """The YAML of ``batch``, every default written out and every path absolute; loading it gives
    ``batch`` again.
    """
    value: dict[str, Any] = {"batch": batch.batch, "concurrency": batch.concurrency}
    if batch.store is not None:
        value["store"] = _exact(batch.store)
    if batch.budget is not None:
        value["budget"] = _batch_budget(batch.budget)
    if limits := batch.limits.model_dump(exclude_defaults=True):
        value["limits"] = _exact(limits)
    if batch.priority is not None:
        value["priority"] = batch.priority
    if (finish := batch.on_finish) is not None:
        told = finish.model_dump(mode="json", exclude={"directory"}, exclude_none=True)
        value["on_finish"] = _exact({**told, "timeout": format_duration(finish.timeout)})
    search_paths = {tool.search_path for job in batch.jobs for tool in _functions(job)}
    if search_paths:
        # A file has one path for all its tools.
        (path,) = search_paths
        value["tools_path"] = _exact(path)
    value["jobs"] = [_job(job) for job in batch.jobs]
    yaml = YAML()
    yaml.width = 2**31  # a folded line is harder to search for, and to read back exactly
    yaml.indent(mapping=2, sequence=4, offset=2)
    # Parts that jobs share are written out: a reader need not look for anchors.
    yaml.representer.ignore_aliases = lambda _: True
    out = StringIO()
    yaml.dump(value, out)
    return out.getvalue()


def _batch_budget(budget: BatchBudget) -> dict[str, Any]:
    value = budget.model_dump(exclude_none=True)
    if budget.wall_seconds is not None:
        value["wall"] = format_duration(value.pop("wall_seconds"))
    return value


def _functions(job: JobSpec) -> tuple[ToolSpec, ...]:
    """The tools, and the check."""
    return job.tools if job.check is None else (*job.tools, job.check)


def _job(job: JobSpec) -> dict[str, Any]:
    value: dict[str, Any] = {
        "id": job.id,
        "goal": _text(job.goal),
        "workspace": _workspace(job),
        "model": _exact({"name": job.model.name, **job.model.options}),
        "form": job.form,
        "budget": _budget(job.budget),
        "retry": _retry(job.retry),
        "context_tokens": job.context_tokens,
        "sections": job.sections.model_dump(exclude_none=True),
        "condenser": _exact(condenser_value(job.condenser)),
        "pin_user_messages": job.pin_user_messages,
        "projection": job.projection.value,
        "tools": [tool.target for tool in job.tools],
    }
    if job.secrets:
        value["secrets"] = list(job.secrets)
    if job.mcp:
        value["mcp"] = {server.name: _server(server) for server in job.mcp}
    if job.approvals != Approvals():
        value["approvals"] = _exact(_approvals(job.approvals))
    if job.summary_model is not None:
        value["summary_model"] = _exact(
            {"name": job.summary_model.name, **job.summary_model.options}
        )
    if job.urls:
        value["urls"] = _exact(list(job.urls))
    if redact := job.redact.model_dump(mode="json"):
        value["redact"] = _exact(redact)
    if job.check is not None:
        value["check"] = job.check.target
    if (spawn := job.spawn) is not None:
        numbers = spawn.model_dump(mode="json", exclude={"model"})
        model = spawn.model
        own = {} if model is None else {"model": {"name": model.name, **model.options}}
        value["spawn"] = _exact({**numbers, **own})
    if job.result is not None:
        value["result"] = _exact(job.result)
    return value


def _budget(budget: Budget) -> dict[str, Any]:
    value = {
        "turns": budget.turns,
        "tokens": budget.tokens,
        "usd": budget.usd,
        "wall": format_duration(budget.wall_seconds),
    }
    if budget.deadline is not None:
        value["deadline"] = format_deadline(budget.deadline)
    return value


def _retry(retry: Retry) -> dict[str, Any]:
    waits = {key: format_duration(getattr(retry, key)) for key in ("time", "first_byte", "stall")}
    return {"on": list(retry.on), "times": retry.times, "attempts": retry.attempts, **waits}


def _approvals(approvals: Approvals) -> dict[str, Any]:
    value = written_approvals(approvals)
    if approvals.sh:
        value["sh"] = {rule.pattern: rule.approval.value for rule in approvals.sh}
    return {**value, "otherwise": approvals.otherwise}


def _server(server: ServerSpec) -> dict[str, Any]:
    value = server.model_dump(mode="json", exclude={"name"}, exclude_defaults=True)
    return {**_exact(value), "timeout": format_duration(server.timeout)}


def _workspace(job: JobSpec) -> Any:
    if job.writable is None:
        return _exact(job.workspace)
    fields = job.writable.model_dump(mode="json")
    # No directory means that the workspace begins empty, which is written as no 'from'.
    begins = {"from": job.workspace} if job.workspace else {}
    return _exact({**begins, "write": True, **fields, "setup": _text(fields["setup"])})


def _text(text: str) -> Any:
    """``text`` as a literal block where it has several lines that a block can hold exactly."""
    lines = text.split("\n")
    # A block takes its indentation from its first line, so that one may not begin with a blank.
    plain = all(
        line.isprintable() and line == line.rstrip() for line in lines
    ) and not text.startswith((" ", "\n"))
    return LiteralScalarString(text) if len(lines) > 1 and plain else _exact(text)


def _exact(value: Any) -> Any:
    """``value`` with every text that has line breaks or control characters in double quotes, which
    escape them.
    """
    if isinstance(value, str):
        return value if value.isprintable() else DoubleQuotedScalarString(value)
    if isinstance(value, dict):
        return {_exact(key): _exact(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_exact(item) for item in value]
    return value
