"""Whether a job's definition is the one it was started with, and what is different if not.

Everything in a ``JobSpec`` affects the run, so everything counts. What only affects the batch (its
concurrency, its archive's address, which other jobs it has) is not in a ``JobSpec`` and does not. A
tool counts by its place, signature and description, a script by its path: code may be mended under
a job that is under way.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from runtime.base.digests import digest_of
from runtime.base.durations import format_deadline, format_duration
from runtime.base.spec.models import Approvals, JobSpec, Retry, ToolSpec
from runtime.jobsfile.condensers import condenser_value

_LONGEST_SHOWN = 60
_ABSENT = object()
_WHOLE = frozenset({"goal", "result"})
"""Keys whose values are too long to compare part by part in a line."""


def definition_digest(job: JobSpec) -> str:
    """The digest of all that ``job`` says: equal definitions have equal ones."""
    value = job.model_dump(mode="json")
    if job.retry == Retry():
        # A key that a release brought changes no definition that does not use it.
        del value["retry"]
    elif (job.retry.on, job.retry.times) == (Retry().on, Retry().times):
        del value["retry"]["on"], value["retry"]["times"]
    if job.budget.deadline is None:
        del value["budget"]["deadline"]
    if job.approvals == Approvals():
        del value["approvals"]
    elif not job.approvals.sh:
        del value["approvals"]["sh"]
    if not job.secrets:
        del value["secrets"]
    if not job.mcp:
        del value["mcp"]
    for tool in value["tools"]:
        for name in ("effect", "timeout", "retries", "approval", "workspace", "queue"):
            if tool[name] == ToolSpec.model_fields[name].default:
                del tool[name]
    if job.writable is None:
        del value["writable"]
    if job.check is None:
        del value["check"]
    if job.spawn is None:
        del value["spawn"]
    if not job.parent:
        del value["parent"]
    return digest_of(value)


def changes(old: JobSpec, new: JobSpec) -> list[str]:
    """What is different in ``new``, a line each (``budget.turns: 40 -> 60``, ``goal changed``);
    empty if nothing is.
    """
    return list(_changes(_comparable(old), _comparable(new), ""))


def _comparable(job: JobSpec) -> dict[str, Any]:
    """The definition with its parts named as the jobs file names them, tools by their names."""
    value = job.model_dump(mode="json")
    if (writable := value.pop("writable")) is not None:
        value["workspace"] = {"from": value["workspace"], **writable}
    value["tools"] = {
        tool.name: tool.model_dump(mode="json", exclude={"name"}, exclude_none=True)
        for tool in job.tools
    }
    value["approvals"] = written_approvals(job.approvals)
    value["mcp"] = {
        server.name: server.model_dump(mode="json", exclude={"name"}, exclude_defaults=True)
        for server in job.mcp
    }
    value["condenser"] = condenser_value(job.condenser)
    value["sections"] = job.sections.model_dump(exclude_none=True)
    for key in ("time", "first_byte", "stall"):
        value["retry"][key] = format_duration(value["retry"][key])
    value["budget"]["wall"] = format_duration(value["budget"].pop("wall_seconds"))
    if (deadline := value["budget"].pop("deadline")) is not None:
        value["budget"]["deadline"] = format_deadline(deadline)
    return value


def written_approvals(approvals: Approvals) -> dict[str, Any]:
    """What differs from the default ones, with the wait as the jobs file has it."""
    value = approvals.model_dump(mode="json", exclude_defaults=True)
    return value if approvals.wait is None else {**value, "wait": format_duration(approvals.wait)}


def _changes(old: Any, new: Any, path: str) -> Iterator[str]:
    if _same(old, new):
        return
    if isinstance(old, dict) and isinstance(new, dict) and path not in _WHOLE:
        for key in sorted(old.keys() | new.keys()):
            yield from _changes(
                old.get(key, _ABSENT), new.get(key, _ABSENT), f"{path}.{key}" if path else key
            )
        return
    # The whole of a tool or server does not fit in a line.
    if path.startswith(("tools.", "mcp.")) and _ABSENT in (old, new):
        yield f"{path} {'added' if old is _ABSENT else 'removed'}"
        return
    texts = _text(old), _text(new)
    if path in _WHOLE or None in texts:
        yield f"{path} changed"
    else:
        yield f"{path}: {texts[0]} -> {texts[1]}"


def _same(old: Any, new: Any) -> bool:
    """Equality as JSON has it: ``True`` is not ``1``."""
    if old is _ABSENT or new is _ABSENT:
        return old is new
    return bool(old == new) and digest_of(old) == digest_of(new)


def _text(value: Any) -> str | None:
    """``value`` in a few characters of one line, or None where that cannot be."""
    if value is _ABSENT:
        return "not set"
    text = (
        value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
    )
    return text if text.isprintable() and 0 < len(text) <= _LONGEST_SHOWN else None
