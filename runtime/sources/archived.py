"""The archive as a source: ``holdfast://JOB@N``, a turn of any job of the same archive, ``self``
for the reader's own.

``holdfast://JOB`` tells of the job as a whole, ``holdfast://JOB@N/effect/K`` is what effect K of
turn N's statement came to: the result of a tool, say, that is too long to be printed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from runtime.archive.catalog import find_job
from runtime.archive.job import JobArchive
from runtime.archive.keys import job_prefix
from runtime.archive.lifecycle.tombstones import tombstones_of
from runtime.archive.recorded import recorded_effect, recorded_stream, turn_record
from runtime.archive.stores import ObjectStore
from runtime.base.addresses import ARCHIVED, SCHEME
from runtime.base.digests import digest_bytes
from runtime.base.errors import NotFound, ObjectMissing
from runtime.base.plurals import counted
from runtime.base.values import JobKey
from runtime.context.sub_jobs import is_named_after
from runtime.projection.replies import parse_reply
from runtime.projection.segments import SegmentKind
from runtime.sources.source import Known, Opened

_HELP = (
    "expected holdfast://JOB, holdfast://JOB@TURN, holdfast://JOB@TURN/effect/K or"
    " holdfast://JOB@TURN/effect/K/stdout"
)


@dataclass(frozen=True)
class ArchiveSource:
    """What ``uri`` names in ``store``. ``own`` is the job that reads."""

    uri: str
    store: ObjectStore
    own: JobKey | None

    def known(self) -> Known | None:
        """Never: a job's newest run may be another by now."""
        return None

    def open(self) -> Opened:
        """The turn's statement and what came of it, as Markdown; of an effect the JSON of its
        result.

        Raises:
            FileNotFoundError: if the archive has no such job, turn or effect.
            ValueError: if ``uri`` is no such address.
        """
        match = ARCHIVED.fullmatch(self.uri)
        if match is None:
            raise ValueError(f"{_HELP}, not {self.uri!r}")
        if match["turn"] is None and self._is_to_begin(match["job"]):
            return self._opened("# Status\n\nstarted, nothing is recorded yet\n", "job.md")
        try:
            archive = JobArchive.of(self.store, self._job(match["job"]))
            runs = archive.runs()
            # A job that waits for its place has a definition and no run.
            if match["turn"] is None and (runs or archive.definition() is not None):
                return self._opened(_job_text(archive, runs[-1] if runs else ""), "job.md")
            if not runs:
                raise FileNotFoundError(f"that job has no turn yet: {self.uri!r}")
            turn = int(match["turn"])
            if match["effect"] is not None:
                effect = int(match["effect"])
                if match["stream"] is not None:
                    data = recorded_stream(archive, runs[-1], turn, effect, match["stream"])
                    return Opened(data, digest_bytes(data), len(data), f"{match['stream']}.txt")
                return self._effect(archive, runs[-1], turn, effect)
            return self._opened(_turn_text(archive, runs[-1], turn), "turn.md")
        except (NotFound, ObjectMissing) as error:
            raise FileNotFoundError(f"{error}: {self.uri!r}") from None

    def _is_to_begin(self, name: str) -> bool:
        """Whether that is a sub-job which the reader has just started: the archive knows of it once
        a worker has it.
        """
        batch, _, job = name.partition("/")
        if self.own is None or batch != self.own.batch or not is_named_after(job, self.own.job):
            return False
        prefix = job_prefix(batch, job)
        known = next(self.store.list(f"{prefix}/"), None) is not None
        return not known and not tombstones_of(self.store, prefix)

    def _job(self, name: str) -> JobKey:
        if name == "self" and self.own is not None:
            return self.own
        if self.own is not None and "/" not in name:
            # A job of the same batch is the nearest that a name can mean.
            near = JobKey(batch=self.own.batch, job=name)
            if JobArchive.of(self.store, near).runs():
                return near
        return find_job(self.store, name)

    def _effect(self, archive: JobArchive, run: str, turn: int, effect: int) -> Opened:
        value = recorded_effect(archive, run, turn, effect)
        if value is not None and _is_command(value, turn, effect):
            data = recorded_stream(archive, run, turn, effect, "stdout")
            errors = recorded_stream(archive, run, turn, effect, "stderr")
            both = b"".join(filter(None, [data, errors]))
            return Opened(both, digest_bytes(both), len(both), "output.txt")
        if value is None:
            raise FileNotFoundError(
                f"turn {turn} has no effect {effect} in the archive: {self.uri!r}"
            )
        result = (
            value["value"]
            if set(value) >= {"value", "error_type"} and value["error_type"] is None
            else value
        )
        text = (
            result if isinstance(result, str) else json.dumps(result, indent=2, ensure_ascii=False)
        )
        return self._opened(text, "effect.txt" if isinstance(result, str) else "effect.json")

    def _opened(self, text: str, name: str) -> Opened:
        data = text.encode("utf-8", "replace")
        return Opened(data, digest_bytes(data), len(data), name)


def _is_command(value: dict[str, Any], turn: int, effect: int) -> bool:
    """Whether an effect's result is a command's: what it printed is kept beside it, and it says
    where. A tool may give a mapping with the same keys.
    """
    result = value.get("value")
    return (
        isinstance(result, dict)
        and "exit_code" in result
        and result.get("output") == f"{SCHEME}self@{turn}/effect/{effect}"
    )


def _turn_text(archive: JobArchive, run: str, turn: int) -> str:
    record = turn_record(archive, run, turn)
    reply = record.step.reply
    form = str((archive.definition() or {}).get("form", "tool"))
    statement = parse_reply(
        reply.text, reply.tool_calls, reply.finish_reason, reply.refusal, form
    ).statement
    parts = [f"# Turn {turn}", *([reply.text] if reply.text.strip() else [])]
    parts += ["## Statement", statement if statement is not None else "(none)"]
    parts += ["## Result", *(_results(archive, run, turn) or ["(not shown to the model yet)"])]
    return "\n\n".join(parts) + "\n"


def _results(archive: JobArchive, run: str, turn: int) -> list[str]:
    """What the model was told of a turn's statement, from the prompt after it."""
    if archive.find_step(run, turn + 1) is None:
        # Not in the archive yet: what a statement printed stands in the prompt after it.
        return []
    kinds, own = (SegmentKind.RESULT, SegmentKind.ERROR), f"event:{turn}."
    return [
        s.text
        for s in archive.turn_layout(run, turn + 1)
        if s.kind in kinds and s.origin.startswith(own)
    ]


def _job_text(archive: JobArchive, run: str) -> str:
    """How a job stands, what it came to, what it is to do, and its turns."""
    definition = archive.definition() or {}
    steps = list(archive.steps(run)) if run else []
    parts = ["# Status", *_status(archive, run, len(steps))]
    parts += ["# Goal", str(definition.get("goal", "(not recorded)")), "# Turns"]
    parts += [
        f"{step.turn}: {step.reply.text.strip().partition(chr(10))[0][:200]}".rstrip()
        for step in steps
    ]
    return "\n\n".join(parts) + "\n"


def _status(archive: JobArchive, run: str, turns: int) -> list[str]:
    end = archive.end(run) if run else None
    after = counted(turns, "turn")
    if end is None:
        return [f"not ended, {after}"]
    told = f"{end.status}: {end.reason}" if end.reason else end.status
    result = json.dumps(end.result, indent=2, ensure_ascii=False)
    return [f"{told}, {after}", *([result] if end.result is not None else [])]
