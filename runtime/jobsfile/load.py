"""From a jobs file to a ``BatchSpec``: read, check every part, resolve, or one error with all that
is wrong.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from runtime.base.errors import InputError
from runtime.base.quoted import shown
from runtime.base.spec.models import BatchSpec, JobSpec
from runtime.jobsfile.expand import Expansion, too_many
from runtime.jobsfile.limited import Unmatched
from runtime.jobsfile.messages import describe, without_consequences
from runtime.jobsfile.packed import Packed
from runtime.jobsfile.problems import Location, Problems
from runtime.jobsfile.resolve.disk import Disk
from runtime.jobsfile.resolve.header import batch_budget, limits_of, on_finish_of, store_of
from runtime.jobsfile.resolve.resolver import Resolver
from runtime.jobsfile.source import is_jsonl, read_jsonl, read_text, read_yaml
from runtime.jobsfile.templates import as_expected
from runtime.jobsfile.written.bounds import MAX_JOBS
from runtime.jobsfile.written.file import WrittenHeader
from runtime.jobsfile.written.job import WrittenJob
from runtime.jobsfile.written.names import NAME_RULE, is_name

W = TypeVar("W", bound=BaseModel)

_NO_YAML = frozenset({".toml", ".csv"})
"""Suffixes of files that read as YAML would be told as a bad one."""


@dataclass(frozen=True)
class Loaded:
    """A batch without a problem so far, and what takes further ones, which knows the file's
    lines.
    """

    batch: BatchSpec
    problems: Problems


def load_jobs_file(path: Path | str) -> BatchSpec:
    """The batch that the jobs file at ``path`` describes, with all its jobs in memory. Errors as
    ``load``.
    """
    batch = load(path).batch
    return batch.model_copy(update={"jobs": tuple(batch.jobs)})


def load(path: Path | str) -> Loaded:
    """The batch that the jobs file at ``path`` describes: YAML, or JSONL by its suffix.

    Tools are imported. The jobs are packed: what they take of memory does not grow with them.

    Raises:
        InputError: with every problem, by line.
    """
    path = Path(path)
    problems = Problems(str(path))
    raw = _read(path, problems)
    # Without the jobs, which are checked one at a time: there may be a million.
    header = checked(WrittenHeader, {k: v for k, v in raw.items() if k != "jobs"}, (), problems)
    written = _jobs(raw, problems, path.parent.resolve())
    # What the jobs would inherit is not known: they are read for problems of their own alone, as
    # resolving them would report consequences.
    if header is None:
        # Gone through for what is noted on the way.
        deque(written, maxlen=0)
        problems.raise_if_any()
        raise AssertionError("a header that does not validate has a problem")
    batch = header.batch or _stem(path, problems)
    limits = limits_of(header.limits)
    unmatched = Unmatched(limits)
    disk = Disk(path.parent.resolve(), problems)
    resolver = Resolver(disk, header, problems)
    # Tools were imported in a process, which is not needed any longer then.
    with closing(resolver):
        jobs = Packed(unmatched.of(resolver.jobs(written)), _as_json, JobSpec.model_validate)
    store = store_of(header.store, disk, problems)
    problems.raise_if_any()
    # Of jobs that are all there: what one that is wrong has is not known.
    unmatched.note(problems)
    problems.raise_if_any()
    return Loaded(
        BatchSpec(
            batch=batch,
            concurrency=header.concurrency,
            store=store,
            budget=batch_budget(header.budget),
            limits=limits,
            priority=header.priority,
            on_finish=on_finish_of(header.on_finish, disk),
            jobs=jobs,
        ),
        problems,
    )


def _as_json(spec: JobSpec) -> dict[str, Any]:
    return spec.model_dump(mode="json")


def _read(path: Path, problems: Problems) -> dict[str, Any]:
    """The file's plain value; ``problems`` learns the lines."""
    if is_jsonl(path):
        problems.hidden = 2
        return {"jobs": read_jsonl(path, problems)}
    if (suffix := path.suffix.lower()) in _NO_YAML:
        raise InputError(f"{path}: expected a jobs file in YAML or JSONL, got one named {suffix}")
    raw = read_yaml(read_text(path), problems)
    if not isinstance(raw, dict):
        problems.add((), f"expected a mapping with 'jobs', got {shown(raw)}")
        problems.raise_if_any()
    return dict(raw)


def _stem(path: Path, problems: Problems) -> str:
    """The batch's name where the file gives none."""
    if not is_name(path.stem):
        way = "rename the file" if is_jsonl(path) else "give 'batch' or rename the file"
        problems.add(
            ("batch",),
            f"expected a name ({NAME_RULE}), got the file's stem {shown(path.stem)}; {way}",
        )
    return path.stem


def _jobs(
    raw: dict[str, Any], problems: Problems, directory: Path
) -> Iterator[tuple[int, WrittenJob]]:
    """The jobs that are well formed, each with its index, one at a time; ids that come twice are
    noted.
    """
    items = raw.get("jobs")
    if "jobs" not in raw:
        problems.add(("jobs",), "required key is missing")
    elif not isinstance(items, list | Packed):
        problems.add(("jobs",), f"expected a list of jobs, got {shown(items)}")
    elif not items:
        problems.add(("jobs",), "expected at least one job, got none")
    elif len(items) > MAX_JOBS:
        problems.add(("jobs",), too_many(len(items)))
    else:
        seen: dict[bytes, int] = {}
        for index, item in enumerate(Expansion(directory, problems).jobs(items)):
            job = _job(item, ("jobs", index), problems)
            # Ids are compared also of jobs that are wrong: both mistakes are told at once.
            _unique_id(item, index, seen, problems)
            if job is not None:
                yield index, job


def _job(value: Any, at: tuple[str, int], problems: Problems) -> WrittenJob | None:
    """A job; of one that another stands for, the values of fields in the forms that keys expect."""
    if problems.origins.of(at[1]) is None or not isinstance(value, dict):
        return checked(WrittenJob, value, at, problems)
    # As it is, first: what only needs another form must leave no note.
    try:
        return WrittenJob.model_validate(value)
    except ValidationError as error:
        for detail in error.errors(include_url=False):
            _put(value, _as_written(detail["loc"], value), detail["type"])
    return checked(WrittenJob, value, at, problems)


def _put(value: Any, at: Location, kind: str) -> None:
    """Give a value that a key refused the form that the key expects, if it has one."""
    for part in at[:-1]:
        if isinstance(value, dict):
            value = value.get(str(part))
        elif isinstance(value, list) and isinstance(part, int):
            value = value[part]
        else:
            return
    last: Any = at[-1]
    if isinstance(value, list) or (isinstance(value, dict) and last in value):
        value[last] = as_expected(kind, value[last])


def _unique_id(item: Any, index: int, seen: dict[bytes, int], problems: Problems) -> None:
    """Note an id that an earlier job has; jobs that are wrong otherwise count too.

    ``seen`` has digests of the ids, which may be of any length where they are wrong.
    """
    id_ = item.get("id") if isinstance(item, dict) else None
    if not isinstance(id_, str):
        return
    # Lone surrogates are noted where they stand: here they must do no harm.
    first = seen.setdefault(blake2b(id_.encode("utf-8", "replace"), digest_size=16).digest(), index)
    if first != index:
        problems.add(
            ("jobs", index, "id"),
            f"expected a unique id, got {shown(id_)} as {_place(first, problems)}",
        )


def _place(index: int, problems: Problems) -> str:
    """Where the job of that index stands: ``on line 3``, or ``for items.jsonl:3``."""
    origin = problems.origins.of(index)
    if origin is not None and origin.file:
        return f"for {origin.file}:{origin.line}"
    return f"on line {problems.lines.of(problems.in_file(('jobs', index, 'id')))}"


def checked(model: type[W], value: Any, at: Location, problems: Problems) -> W | None:
    """``value`` as a ``model``, or None after noting what is wrong with it at ``at``."""
    try:
        return model.model_validate(value)
    except ValidationError as error:
        for detail in without_consequences(error.errors(include_url=False)):
            problems.add((*at, *_as_written(detail["loc"], value)), describe(detail, model))
        return None


def _as_written(location: Location, value: Any) -> Location:
    """``location`` without the list that one condenser alone was put into, and the mark that it is
    a mapping's key.
    """
    if location[-1:] == ("[key]",):
        location = location[:-1]
    for place, part in enumerate(location):
        if (
            part == "condenser"
            and isinstance(value, dict)
            and not isinstance(value.get(part), list)
        ):
            return (*location[: place + 1], *location[place + 2 :])
        value = value.get(part) if isinstance(value, dict) else None
    return location
