"""A batch, or a job of it, as a log of Inspect (inspect.aisi.org.uk): one sample a job.

The format is ``inspect_ai.log.EvalLog`` as JSON, version 2. A sample's messages are the prompt of
the job's last turn and its reply, which is what the model last saw; what was condensed by then is
not among them (``export --format jsonl`` has all of it).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from runtime.archive import keys
from runtime.archive.forms import Step
from runtime.archive.gaps import UNREADABLE, Gap, named_gap, readable
from runtime.archive.job import JobArchive
from runtime.archive.reading import read_ahead
from runtime.archive.standings import ResultRow, result_row
from runtime.archive.stores import ObjectStore
from runtime.base.errors import NotFound
from runtime.base.native_arguments import read_arguments
from runtime.base.standings import DAMAGED, OPEN
from runtime.base.values import JobKey, Usage
from runtime.projection.segments import Role, Segment

VERSION = 2
SUCCESS = "success"
"""The name of the score that every sample has: whether the job succeeded."""

CORRECT, INCORRECT = "C", "I"


def inspect_log(
    store: ObjectStore, jobs: list[JobKey], gaps: dict[JobKey, list[str]] | None = None
) -> Iterator[str]:
    """The log of jobs of one batch, in pieces: each sample is one. What of a job's calls cannot be
    read its sample tells as ``damaged`` of its metadata, and is put into ``gaps``.

    Raises:
        ArchiveError: if the store cannot be read.
    """

    def row(key: JobKey) -> ResultRow:
        # The result is told with the sample: of thousands of jobs the rows alone are held.
        return _without_result(result_row(JobArchive.of(store, key)))

    rows = list(read_ahead(jobs, row))
    archive = JobArchive.of(store, jobs[0])
    head = _head(jobs[0].batch, rows, archive)
    text = json.dumps(head)
    # Without the closing brace: the samples are its last field, and are written one by one.
    yield text[:-1] + ', "samples": ['

    def told(key: JobKey) -> tuple[str, list[str]]:
        sample = _sample(JobArchive.of(store, key))
        return json.dumps(sample), sample["metadata"].get("damaged", [])

    for number, (key, (sample, damaged)) in enumerate(
        zip(jobs, read_ahead(jobs, told), strict=True)
    ):
        if damaged and gaps is not None:
            gaps[key] = damaged
        yield (",\n" if number else "\n") + sample
    yield "\n]}\n"


def _without_result(row: ResultRow) -> ResultRow:
    from dataclasses import replace

    return replace(row, result=None)


def _head(batch: str, rows: list[ResultRow], archive: JobArchive) -> dict[str, Any]:
    """All but the samples."""
    models = sorted({row.model for row in rows if row.model})
    ended = [row for row in rows if row.status not in {OPEN, DAMAGED}]
    created = archive.last_start() or "1970-01-01T00:00:00+00:00"
    task = {"task": batch, "task_id": _id(batch), "task_version": 0, "task_args": {}}
    return {
        "version": VERSION,
        "status": SUCCESS if len(ended) == len(rows) else "started",
        "eval": {
            "eval_id": _id(f"{batch}#eval"),
            "run_id": _id(f"{batch}#run"),
            "created": created,
            **task,
            "dataset": {
                "name": batch,
                "samples": len(rows),
                "sample_ids": [row.id for row in rows],
                "shuffled": False,
            },
            "model": models[0] if len(models) == 1 else "mixed" if models else "none",
            "model_args": {},
            "config": {},
            "packages": {},
            "metadata": {"archive": str(archive.store), "models": models},
        },
        "plan": {"name": "plan", "steps": [], "config": {}},
        "results": _results(rows, ended),
        "stats": {"started_at": created, "completed_at": created, "model_usage": {}},
    }


def _results(rows: list[ResultRow], ended: list[ResultRow]) -> dict[str, Any]:
    succeeded = [float(row.status == "succeeded") for row in ended]
    scores = [_score(SUCCESS, "accuracy", succeeded)]
    scored = [row.score for row in ended if row.score is not None]
    if scored:
        scores.append(_score("check", "mean", scored))
    return {"total_samples": len(rows), "completed_samples": len(ended), "scores": scores}


def _score(name: str, metric: str, values: list[float]) -> dict[str, Any]:
    value = sum(values) / len(values) if values else 0.0
    return {
        "name": name,
        "scorer": name,
        "params": {},
        "metrics": {metric: {"name": metric, "value": value, "params": {}}},
    }


def _sample(archive: JobArchive) -> dict[str, Any]:
    """A job, by its newest run."""
    row = result_row(archive)
    definition = _definition(archive)
    run = _called(archive, row)
    steps, gaps = _steps(archive, run)
    layout = _layout(archive, run, row.turns, steps, gaps)
    damaged = [str(gap) for gap in dict.fromkeys(gaps)]
    messages = [_message(segment) for segment in layout]
    answer: dict[str, Any] = {"role": "assistant", "content": ""}
    usage = Usage()
    if steps:
        answer = _message(steps[-1].reply.segment(steps[-1].turn))
        messages.append(answer)
    for step in steps:
        usage = usage + step.usage
    model = row.model or "none"
    said = "" if row.result is None else json.dumps(row.result, ensure_ascii=False)
    choice = {"message": {**answer, "model": model, "source": "generate"}, "stop_reason": "stop"}
    return {
        "id": row.id,
        "epoch": 1,
        "input": str(definition.get("goal", "")),
        "target": "",
        "messages": messages,
        "output": {"model": model, "choices": [choice], "completion": said, "usage": _usage(usage)},
        "scores": _scores(row),
        "metadata": {
            "status": row.status,
            "reason": row.reason,
            "run": row.run,
            "turns": row.turns,
            "tokens": row.tokens,
            "cost_usd": row.cost_usd,
            "retries": row.retries,
            "result": row.result,
            **({"damaged": damaged} if damaged else {}),
        },
        "store": {},
        "events": [],
        "model_usage": {model: _usage(usage)},
        "attachments": {},
        "total_time": row.seconds,
        "working_time": row.seconds,
        "uuid": _id(f"{archive.prefix}/{row.run}"),
        **_error(row),
    }


def _error(row: ResultRow) -> dict[str, Any]:
    if row.status in {"succeeded", "budget", OPEN}:
        return {}
    return {"error": {"message": row.reason or row.status, "traceback": "", "traceback_ansi": ""}}


def _scores(row: ResultRow) -> dict[str, Any]:
    value = CORRECT if row.status == "succeeded" else INCORRECT
    scores: dict[str, Any] = {SUCCESS: {"value": value, "explanation": row.reason or row.status}}
    if row.score is not None:
        scores["check"] = {"value": row.score, "explanation": row.remarks}
    return scores


def _usage(usage: Usage) -> dict[str, int]:
    return {
        "input_tokens": usage.prompt,
        "output_tokens": usage.completion,
        "total_tokens": usage.total,
        "input_tokens_cache_read": usage.cache_read,
        "input_tokens_cache_write": usage.cache_write,
    }


def _definition(archive: JobArchive) -> Mapping[str, Any]:
    try:
        return archive.definition() or {}
    except UNREADABLE:
        return {}


def _called(archive: JobArchive, row: ResultRow) -> str | None:
    """The run whose calls are told: one that ended before its first has those of the run in whose
    midst it began.
    """
    if row.run is None or row.run in archive.runs_that_called():
        return row.run
    try:
        end = archive.end(row.run)
    except UNREADABLE:
        return row.run
    place = None if end is None or end.parent is None else keys.parse_turn_key(end.parent.key)
    return row.run if place is None else unquote(place.run)


def _steps(archive: JobArchive, run: str | None) -> tuple[list[Step], list[Gap]]:
    """The turns of a run that can be read, and what of it cannot."""
    if run is None:
        return [], []
    try:
        read = readable(archive, run)
    except UNREADABLE as error:
        return [], [named_gap(error)]
    return read.steps, read.gaps


def _layout(
    archive: JobArchive, run: str | None, turns: int, steps: Sequence[Step], gaps: list[Gap]
) -> tuple[Segment, ...]:
    """The prompt of the last turn that can be read: one that a job was to take as it ended may
    never have begun. What is the matter with one that cannot is put into ``gaps``.
    """
    # Turns are counted without those whose step cannot be read.
    last = steps[-1].turn if steps else 0
    for turn in dict.fromkeys([max(turns, last), last]):
        if run is not None and turn:
            try:
                return archive.turn_layout(run, turn)
            except NotFound:
                # One that has a reply had a prompt.
                gaps += [
                    Gap(turn, step.attempt.key, "is not there")
                    for step in steps[-1:]
                    if step.turn == turn and step.attempt is not None
                ]
            except UNREADABLE as error:
                gaps.append(named_gap(error, turn))
    return ()


def _message(segment: Segment) -> dict[str, Any]:
    message: dict[str, Any] = {"role": segment.role.value, "content": segment.text}
    if segment.role is Role.TOOL:
        return {**message, "tool_call_id": segment.tool_call_id}
    if segment.tool_calls:
        message["tool_calls"] = [
            _call(call.id, call.name, call.arguments) for call in segment.tool_calls
        ]
    return message


def _call(id: str, name: str, arguments: str) -> dict[str, Any]:
    try:
        value = read_arguments(arguments)
    except ValueError:
        value = None
    if isinstance(value, dict):
        return {"id": id, "function": name, "arguments": value, "type": "function"}
    problem = "the arguments are no JSON object"
    raw = {"raw": arguments}
    return {
        "id": id,
        "function": name,
        "arguments": raw,
        "type": "function",
        "parse_error": problem,
    }


def _id(text: str) -> str:
    """A name of the length that Inspect's own have, the same each time."""
    return hashlib.sha256(text.encode()).hexdigest()[:22]
