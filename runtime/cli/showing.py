"""The parts of an archived turn that ``holdfast show`` prints."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from runtime.archive.forms import Attempt, Capture, End, ExchangeReason, Failure, Form, Step
from runtime.archive.gaps import UNREADABLE, Gap, check_turns, readable, start_gaps
from runtime.archive.job import JobArchive
from runtime.archive.layouts import layout_of
from runtime.archive.recorded import turn_record
from runtime.archive.requests import RequestReader
from runtime.archive.told_effects import told_effects
from runtime.archive.variables import variables_at
from runtime.base.errors import NotFound, ObjectCorrupt
from runtime.base.native_arguments import read_arguments
from runtime.base.redaction.marks import count_marks
from runtime.base.visible import escaped
from runtime.cli.effects import effect_line, effect_row
from runtime.cli.headings import Headed, under_headings
from runtime.cli.outcomes import outcome_of
from runtime.cli.output import note
from runtime.cli.text import one_line
from runtime.cli.turns import form_of, statement_of
from runtime.job.happenings import line_of
from runtime.projection.segments import Segment


def chosen_run(archive: JobArchive, name: str, run: str | None) -> str:
    """The run that the user named, by its id or a unique prefix of it; the newest one for None.

    Raises:
        NotFound: if the job ``name`` has no such run.
    """
    runs = archive.runs_that_called()
    if not runs:
        raise NotFound(f"{name} has no turn in the archive yet")
    if run is None:
        return runs[-1]
    if archive.has_side_run(run):
        return run
    # A whole id is meant itself, also where others begin with it.
    matching = [one for one in runs if one == run] or [
        one for one in runs if run and one.startswith(run)
    ]
    if len(matching) != 1:
        _check_called(archive, name, run)
        how = "more than one run" if matching else "no run"
        raise NotFound(f"{name} has {how} {run!r} in the archive; it has {', '.join(runs)}")
    return matching[0]


def tell_newest(archive: JobArchive, name: str) -> None:
    """Say on stderr if the newest run is another one than ``chosen_run`` gives for None, since it
    has no turns that could be told.
    """
    newest = None
    with suppress(*UNREADABLE):
        newest = archive.end_without_calls()
    if newest is not None:
        note(
            f"the newest run of {name}, {newest.run}, ended before its first call"
            f" ({_came_to(newest)}); this is the run before it"
        )


def _check_called(archive: JobArchive, name: str, run: str) -> None:
    """See that a run is none that ended before its first call, as that of a replay may.

    Raises:
        NotFound: if it is.
    """
    # Looked for among those that are there: what a user writes need be no object's name.
    end = None
    with suppress(*UNREADABLE):
        end = archive.end(run) if run in archive.ended_runs() else None
    if end is not None:
        raise NotFound(
            f"run {run} of {name} ended before its first call, and has no turns ({_came_to(end)})"
        )


def _came_to(end: End) -> str:
    """How a run ended, and why, where there is a reason."""
    return f"{end.status}: {one_line(end.reason)}" if end.reason else end.status


class ShownTurn:
    """One turn of one run. Without ``turn``, the newest one, which may be in flight.

    ``attempt`` is the number of one of its attempts; without it, that which was answered, else the
    last one.
    """

    def __init__(
        self,
        archive: JobArchive,
        name: str,
        run: str | None,
        turn: int | None,
        attempt: int | None = None,
    ) -> None:
        self.archive = archive
        self.name = name
        self.run = chosen_run(archive, name, run)
        self.turn = self._newest() if turn is None else self._existing(turn)
        self._attempt = None if attempt is None else self._numbered(attempt)

    @property
    def address(self) -> str:
        """``BATCH/JOB@N``."""
        return f"{self.name}@{self.turn}"

    def gap(self) -> Gap | None:
        """What cannot be read of the turn, if its step is damaged or missing, or the start of a run
        that it goes back to.
        """
        return self._lost_step() or next(iter(start_gaps(self.archive, self.run)), None)

    def _lost_step(self) -> Gap | None:
        return (
            None
            if self._readable_step() is not None
            else readable(self.archive, self.run).missing(self.turn)
        )

    def _readable_step(self, before: int = 0) -> Step | None:
        """The step of the turn, or of so many turns before; None also where it cannot be read (see
        ``_lost_step``).
        """
        try:
            return self.archive.find_step(self.run, self.turn - before)
        except ObjectCorrupt:
            return None

    def prompt(self) -> tuple[Segment, ...]:
        """The segments that the model was shown, in order."""
        if self._attempt is not None:
            return layout_of(
                RequestReader(self.archive.store.get).layout(self._attempt.key)
            ).segments
        return self.archive.turn_layout(self.run, self.turn)

    def request(self) -> Any:
        """The request's JSON body."""
        return json.loads(self.wire())

    def wire(self) -> bytes:
        """The request's exact bytes."""
        if self._attempt is not None:
            return RequestReader(self.archive.store.get).wire(self._attempt.key)
        return self.archive.wire_request(self.run, self.turn)

    def wire_response(self) -> bytes:
        """The response's exact bytes: of a failed attempt, what was received of it.

        Raises:
            NotFound: if nothing came back.
        """
        exchanged, failed = self._exchanged(), self._failed()
        if exchanged is not None:
            return self.archive.exchanged_response(exchanged)
        if failed is not None:
            return self.archive.failed_response(failed)
        return self.archive.wire_response(self.run, self.turn)

    def is_wire(self) -> bool:
        """Whether the recorded bytes went over a wire; else they are the request as handed to the
        provider.
        """
        if self._attempt is not None:
            return self._attempt.capture is Capture.WIRE
        step = self._readable_step()
        capture = step.capture if step else self.archive.attempts(self.run, self.turn)[-1].capture
        return capture is Capture.WIRE

    def response(self) -> dict[str, Any]:
        """The reply, its usage and its cost.

        Raises:
            NotFound: if there is none, or it is not that of the attempt that was asked for.
        """
        step = self._asked_step()
        return {
            **step.reply.model_dump(mode="json"),
            "usage": step.usage.model_dump(mode="json"),
            "cost_usd": step.cost_usd,
            **({} if step.prefix is None else {"prefix": step.prefix.model_dump(mode="json")}),
            "status_code": step.status_code,
        }

    def statement(self) -> dict[str, Any]:
        """The statement and its execution, which the record after the turn holds.

        Raises:
            NotFound: as ``response``.
        """
        source, problem = statement_of(form_of(self.archive), self._asked_step())
        record = turn_record(self.archive, self.run, self.turn)
        named = record.after.effects if record.after is not None else ()
        effects = told_effects(self.archive, self.run, self.turn, record.execution, named)
        told = {
            "statement": source,
            "problem": problem,
            "execution": record.execution,
            "effects": [effect_row(one) for one in effects],
        }
        return told | outcome_of(self.archive, self.run, record)

    def namespace(self) -> dict[str, dict[str, Any]]:
        """The variables as they stood when the model was called."""
        variables = variables_at(self.archive, self.run, self._step().turn)
        # What its digest tells apart has no repr in its record.
        return {name: {"repr": "", **about} for name, about in variables.items()}

    def events(self) -> list[dict[str, Any]]:
        """The context's events between the call before and this one: of the statement before, and
        of the tick.

        Raises:
            NotFound: if they were not recorded, as in archives of earlier releases.
        """
        step = self._step()
        if step.events is None:
            raise NotFound(
                f"{self.address} has no events in the archive: they were not recorded yet in its"
                " release"
            )
        return list(step.events)

    def attempts(self) -> list[dict[str, Any]]:
        """The turn's attempts, and how the failed ones failed."""
        answered = self._answered()
        rows: list[dict[str, Any]] = []
        for attempt in self.archive.attempts(self.run, self.turn):
            failure = self.archive.failure(attempt.key)
            row = _part_of(attempt, _SHOWN_OF_ATTEMPT)
            exchange = self.archive.exchange(attempt.key)
            other = "no answer recorded" if exchange is None else _OTHERWISE[exchange.reason]
            outcome = "answered" if attempt.key == answered else "failed" if failure else other
            failed = None if failure is None else _part_of(failure, _SHOWN_OF_FAILURE)
            told = None if exchange is None else _part_of(exchange, _SHOWN_OF_EXCHANGE)
            rows.append({**row, "outcome": outcome, "failure": failed, "exchange": told})
        return rows

    def chunks(self) -> list[dict[str, int]]:
        """When each piece of the reply arrived, in microseconds since the request was sent, and its
        size in bytes.
        """
        exchanged, failed = self._exchanged(), self._failed()
        if exchanged is not None:
            pieces = self.archive.exchanged_chunks(exchanged)
        elif failed:
            pieces = self.archive.failed_chunks(failed)
        else:
            self._step()
            pieces = self.archive.chunks(self.run, self.turn)
        return [{"at_us": chunk.at_us, "bytes": chunk.size} for chunk in pieces]

    def nodes(self) -> dict[str, Any]:
        """The nodes as they stood at this turn's call; of a turn in flight, at the call before."""
        self._whole()
        step = self._readable_step() or self._readable_step(before=1)
        return self.archive.nodes(None if step is None else step.ref)

    def changed_nodes(self) -> list[str]:
        """The ids of the nodes that changed since the call before; none of a turn in flight."""
        step = self._readable_step()
        return [] if step is None else list(step.changed)

    def recent_events(self) -> list[dict[str, Any]]:
        """The context's events since the call before; none of a turn in flight, or where none were
        recorded.
        """
        step = self._readable_step()
        return [] if step is None else list(step.events or ())

    def _answered(self) -> str | None:
        step = self._readable_step()
        return None if step is None else step.attempt.key

    def _exchanged(self) -> str | None:
        """The key of the attempt that was asked for, if what came back of it is not the turn's
        reply.
        """
        key = None if self._attempt is None else self._attempt.key
        return key if key is not None and self.archive.exchange(key) is not None else None

    def _failed(self) -> str | None:
        """The key of the failed attempt that was asked for; without one, the last of a turn that
        was not answered.
        """
        if self._attempt is None:
            refused = self._refused()
            return None if refused is None else refused[0].key
        if self._attempt.key == self._answered() or self._exchanged() is not None:
            return None
        if self.archive.failure(self._attempt.key) is None:
            raise NotFound(
                f"attempt {self._attempt.number} at {self.address} has no response in the archive"
            )
        return self._attempt.key

    def _refused(self) -> tuple[Attempt, Failure] | None:
        """The last attempt of a turn without a reply, and its failure, if it failed."""
        last = None if self._answered() else self.archive.attempts(self.run, self.turn)[-1]
        failure = None if last is None else self.archive.failure(last.key)
        return None if last is None or failure is None else (last, failure)

    def _numbered(self, number: int) -> Attempt:
        for attempt in self.archive.attempts(self.run, self.turn):
            if attempt.number == number:
                return attempt
        raise NotFound(f"{self.address} has no attempt {number} in run {self.run}")

    def _whole(self) -> None:
        if self._readable_step() is None:
            check_turns(self.archive, self.run, self.turn)

    def _step(self) -> Step:
        step = self._readable_step()
        if step is None:
            self._whole()
            refused = self._refused()
            raise NotFound(
                f"turn {self.turn} of {self.name} has no reply yet: only what was sent can be shown"
                if refused is None
                else (
                    f"turn {self.turn} of {self.name} has no reply: attempt {refused[0].number}"
                    f" failed with {refused[1].error_type}: {one_line(refused[1].error_message)};"
                    " --part wire-response prints what came back"
                )
            )
        return step

    def _asked_step(self) -> Step:
        """The turn's step, if the attempt that was asked for is the one whose reply it has."""
        step, asked = self._step(), self._attempt
        if asked is None or asked.key == step.attempt.key:
            return step
        failure = self.archive.failure(asked.key)
        how = (
            f"failed with {failure.error_type}: {one_line(failure.error_message)}"
            if failure is not None
            else "is not the one whose reply the turn has"
        )
        raise NotFound(
            f"turn {self.turn} of {self.name} has its reply from another attempt: attempt"
            f" {asked.number} {how}; --part wire-response prints what came back"
        )

    def _existing(self, turn: int) -> int:
        if not self.archive.has_turn(self.run, turn):
            check_turns(self.archive, self.run, turn)
            places = self.archive.lineage.places(self.run)
            turns = [place.turn for _, place in places if place.kind == "attempt"]
            has = f"it has turns {turns[0]} to {turns[-1]}" if turns else "it has none"
            raise NotFound(f"{self.name} has no turn {turn} in run {self.run}: {has}")
        return turn

    def _newest(self) -> int:
        places = self.archive.lineage.places(self.run)
        turns = [place.turn for _, place in places if place.kind in {"attempt", "step"}]
        # An end knows of the last turn, also where nothing is left of that.
        end = None
        with suppress(ObjectCorrupt):
            end = self.archive.end(self.run)
        if end is not None and end.turns > max(turns, default=0):
            check_turns(self.archive, self.run, end.turns)
        if not turns:
            raise NotFound(f"{self.name} has no turn in run {self.run}")
        return max(turns)


_SHOWN_OF_ATTEMPT = {
    "number",
    "temporal_attempt",
    "started_at",
    "capture",
    "url",
    "request_bytes",
    "key",
    "digest",
}
_SHOWN_OF_EXCHANGE = {"reason", "status_code", "usage", "cost_usd", "finished_at", "response_bytes"}
_OTHERWISE = {
    ExchangeReason.FOLLOWED: "followed by another request",
    ExchangeReason.SUPERSEDED: "answered, but another attempt was faster",
}
_SHOWN_OF_FAILURE = {"error_type", "error_message", "status_code", "failed_at", "response_bytes"}


def _part_of(form: Form, names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in form.document().items() if name in names}


def attempts_text(attempts: Iterable[dict[str, Any]]) -> str:
    """Attempts, a line each."""
    lines = []
    for row in attempts:
        failure = row["failure"]
        how = ""
        if failure is not None:
            status = (
                f", HTTP {failure['status_code']}" if failure["status_code"] is not None else ""
            )
            how = (
                f": {failure['error_type']}{status}, {failure['response_bytes']:,} bytes received:"
                f" {one_line(failure['error_message'])}"
            )
        lines.append(
            f"attempt {row['number']}  {row['started_at']}  {row['request_bytes']:,} bytes"
            f" ({row['capture']})  {row['outcome']}{how}"
        )
    return "\n".join(lines)


def chunks_text(chunks: Sequence[dict[str, int]]) -> str:
    """Pieces of a reply, a line each: when they arrived and which bytes of it they are."""
    lines, start = [], 0
    for chunk in chunks:
        lines.append(f"{chunk['at_us'] / 1e6:>12.6f} s  bytes {start}-{start + chunk['bytes']}")
        start += chunk["bytes"]
    return "\n".join(lines) or "(when the reply arrived was not recorded)"


def prompt_text(
    segments: Iterable[Segment], standing: Mapping[str, str], without: Iterable[str]
) -> str:
    """A prompt as text: a heading for each segment, then what it says.

    ``standing`` says what a summary stands for, by its origin; ``without`` are lines on what is not
    shown any more and left nothing behind.
    """
    parts = [Headed(f"(not shown any more, {line})") for line in without]
    for segment in segments:
        about = f" · {standing[segment.origin]}" if segment.origin in standing else ""
        heading = (
            f"{segment.role} · {segment.kind} · {segment.origin} · {segment.tokens:,} tokens"
            f"{_masked(segment)}{about}"
        )
        parts.append(Headed("\n".join(_lines_of(segment)), heading))
    return under_headings(parts)


def _lines_of(segment: Segment) -> Iterator[str]:
    """What a segment says."""
    for block in segment.thinking:
        yield f"thinking: {json.dumps(block, ensure_ascii=False)}"
    if segment.text:
        yield segment.text
    for call in segment.tool_calls:
        yield f"call {call.id} {call.name}: {_arguments(call.arguments)}"


def _masked(segment: Segment) -> str:
    masked = count_marks(segment.text)
    return f" · {masked} masked" if masked else ""


def _arguments(arguments: str) -> str:
    try:
        value = read_arguments(arguments)
    except ValueError:
        return arguments
    # A native call has the whole statement as one text with its line ends escaped.
    if isinstance(value, dict) and set(value) == {"code"}:
        return "\n" + str(value["code"])
    return json.dumps(value, ensure_ascii=False)


def statement_text(shown: dict[str, Any]) -> str:
    """A statement and its execution as text."""
    parts = [Headed(shown["statement"] if shown["statement"] is not None else "(no statement)")]
    if shown["problem"]:
        parts.append(Headed(f"[problem: {shown['problem']}]"))
    for stream in ("stdout", "stderr"):
        if shown[stream] is None:
            why = f"[what it printed to {stream} is not to be found: no readable prompt shows it]"
            parts.append(Headed(why))
        elif shown[stream]:
            parts.append(Headed(shown[stream].rstrip("\n"), stream))
    if shown["effects"]:
        parts.append(Headed("\n".join(map(effect_line, shown["effects"])), "effects"))
    if shown["events"]:
        parts.append(Headed("\n".join(map(line_of, shown["events"])), "events"))
    if shown["execution"]:
        if shown["execution"].get("unchecked"):
            why = "[ran unchecked: the type checker needed too much processor time]"
            parts.append(Headed(why))
        parts.append(Headed(json.dumps(shown["execution"], indent=2, ensure_ascii=False)))
    return under_headings(parts)


def events_text(events: Iterable[dict[str, Any]]) -> str:
    """The context's events, a line each."""
    return "\n".join(map(line_of, events)) or "(no events)"


def nodes_text(nodes: dict[str, Any]) -> str:
    """The nodes, a line each."""
    return "\n".join(node_line(*one) for one in nodes.items()) or "(no nodes)"


def node_line(obj_id: str, state: Mapping[str, Any]) -> str:
    """A node and its state on one line, whatever a job names."""
    fields = "  ".join(f"{name}={value}" for name, value in state.items() if name != "obj_id")
    return escaped(f"{obj_id}  {fields}")


def namespace_text(variables: dict[str, dict[str, Any]]) -> str:
    """The variables, a line each: what they were, where the statement before changed them, what
    their digest leaves out.
    """
    return (
        "\n".join(_variable(name, info) for name, info in sorted(variables.items()))
        or "(no variables)"
    )


def _variable(name: str, info: Mapping[str, Any]) -> str:
    size = "" if info.get("size") is None else f"[{info['size']}]"
    line = f"{name}: {info['type']}{size} = {info.get('repr', '')}".rstrip(" =")
    if info.get("paths"):
        line += f"  (changed: {', '.join(info['paths'])})"
    if info.get("partial"):
        line += f"  (its digest leaves out: {'; '.join(info['partial'])})"
    return line
