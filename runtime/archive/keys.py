"""Where each object of a job stands in the store.

::

    BATCH/JOB/definition/0001                         the job's definition; a later one has the next
                                                      number
    BATCH/JOB/runs/RUN                                a run was started, and from which step
    BATCH/JOB/turns/RUN/00000/0000041.attempt-001     a request, written before the call
    BATCH/JOB/turns/RUN/00000/0000041.failure-001     what came back of an attempt that failed, in
                                                      place of a step
    BATCH/JOB/turns/RUN/00000/0000041.exchange-001    what came back of an attempt that is not the
                                                      turn's reply: see ``exchanges``
    BATCH/JOB/turns/RUN/00000/0000041.step            the reply, written after it
    BATCH/JOB/turns/RUN/00000/0000041.effect-000000   the result of a read or a tool call of turn
                                                      41's statement
    BATCH/JOB/turns/RUN/00000/0000041.effect-690000   what the job's check gave turn 41's result
    BATCH/JOB/turns/RUN/00000/0000041.effect-700000   the claim on effect 0, a call that is made at
                                                      most once; of others from 700000 on
    BATCH/JOB/turns/RUN/00000/0000001.effect-750000   what the job's MCP servers offered as it began
    BATCH/JOB/turns/RUN/00000/0000041.effect-800000   what a tick read while the job slept after
                                                      turn 41, from 800000 on
    BATCH/JOB/turns/RUN/00000/0000041.effect-999999   what the tick before turn 41's call read, if
                                                      anything had changed
    BATCH/JOB/turns/RUN/00000/0000041.checkpoint      the job's whole state after turn 41
    BATCH/JOB/replays/ID, ID.run                      a replay was ordered, and which run it became
    BATCH/JOB/ends/RUN                                the end of the run
    BATCH/JOB/packs/RUN/0000032                       objects of the turns 32 to 63, in one

A side run ``RUN~NAME`` holds the one call by which a model wrote a summary for RUN: it starts from
RUN's last step.

The number before the turn is the turn's hundred: it keeps directories and listings small. Names
that users choose are percent-encoded, so no name can leave its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote, unquote

from runtime.base.errors import InputError
from runtime.base.quoted import shown
from runtime.base.values import JobKey

_TURN_KEY = re.compile(
    r"(?P<job>[^/]+/[^/]+)/turns/(?P<run>[^/]+)/\d+/(?P<turn>\d+)\.(?P<kind>attempt"
    r"|step|effect|failure|exchange|checkpoint)(-(?P<number>\d+))?"
)


_PACK = re.compile(r"(?P<job>[^/]+/[^/]+)/packs/(?P<run>[^/]+)/\d{7}")

INTERVAL = 32
"""Every so many turns a step is a keyframe; turns from one to the next may stand in one pack."""

ARCHIVE_ID = "_holdfast/id"
"""Where the archive's own id is."""

CLAIM = ".run"
"""What the key of a replay's claim has more than that of its order."""


class TurnKey(NamedTuple):
    """A key under ``turns``, taken apart.

    ``number`` is the attempt's (also of a failure or an exchange) or the effect's, 0 for a step.
    """

    job: str
    run: str
    turn: int
    kind: str
    number: int

    @property
    def prefix(self) -> str:
        """The prefix of the run's turns, with the final slash."""
        return f"{self.job}/turns/{self.run}/"


def name(text: str) -> str:
    """A user's name as one part of a key.

    Raises:
        InputError: if it is no text: from Python a run may be named by anything.
    """
    if not isinstance(text, str):
        raise InputError(f"expected the name of a run or a job, got {shown(text)}")
    quoted = quote(text, safe="")
    # ``quote`` leaves dots alone, and ``.`` and ``..`` would leave their place in a directory.
    return quoted.replace(".", "%2E") if set(quoted) <= {"."} else quoted


def job_prefix(batch: str, job: str) -> str:
    """The prefix of a job's objects, without the final slash."""
    return f"{name(batch)}/{name(job)}"


def job_prefix_in(key: str) -> str:
    """The prefix of the job of an object."""
    return "/".join(key.split("/", 2)[:2])


def job_of(prefix: str) -> JobKey:
    """The job of a prefix."""
    batch, _, name = prefix.partition("/")
    return JobKey(batch=unquote(batch), job=unquote(name))


def definition_key(job: str, number: int) -> str:
    """The key of the job's ``number``-th definition, from 1."""
    return f"{job}/definition/{number:04d}"


def run_key(job: str, run: str) -> str:
    """The key of a run's start."""
    return f"{job}/runs/{name(run)}"


def side_run(run: str, name: str) -> str:
    """The run beside ``run`` that holds one model call: a summary's.

    Names of runs have no ``~``.
    """
    return f"{run}~{name}"


def is_side_run(run: str) -> bool:
    """Whether a run is a side run of another."""
    return "~" in run


def main_run(run: str) -> str:
    """The run that a side run is beside; of any other, itself."""
    return run.partition("~")[0]


def is_side_run_of(name: str, run: str) -> bool:
    """Whether ``name`` is a side run of ``run``."""
    return name.startswith(side_run(run, ""))


def end_key(job: str, run: str) -> str:
    """The key of a run's end."""
    return f"{job}/ends/{name(run)}"


def is_end(key: str) -> bool:
    """Whether a key is that of a run's end."""
    return key.rpartition("/")[0].endswith("/ends")


def run_prefix(job: str, run: str) -> str:
    """The prefix of a run's turns, with the final slash."""
    return f"{job}/turns/{name(run)}/"


def run_in(prefix: str) -> str:
    """The run whose turns have a prefix."""
    return unquote(prefix.rstrip("/").rpartition("/")[2])


def run_key_of(prefix: str) -> str:
    """The key of the start of the run whose turns have a prefix."""
    # The last of them: a batch or a job may be called so.
    job, _, run = prefix.rstrip("/").rpartition("/turns/")
    return f"{job}/runs/{run}"


def turn_prefix(job: str, run: str, turn: int) -> str:
    """The prefix of a turn's objects, with the final dot."""
    return turn_prefix_in(run_prefix(job, run), turn)


def turn_prefix_in(prefix: str, turn: int) -> str:
    """The prefix of a turn's objects, from its run's prefix.

    Raises:
        InputError: if the turn is no number, as ``name``.
    """
    check_turn(turn)
    return f"{prefix}{turn // 100:05d}/{turn:07d}."


def check_turn(turn: int) -> None:
    """See that a turn is a number.

    Raises:
        InputError: if it is not.
    """
    if not isinstance(turn, int):
        raise InputError(f"expected the number of a turn, got {shown(turn)}")


def attempt_key(job: str, run: str, turn: int, number: int) -> str:
    """The key of a turn's ``number``-th attempt in this run, from 1."""
    return attempt_key_in(run_prefix(job, run), turn, number)


def attempt_key_in(prefix: str, turn: int, number: int) -> str:
    """The key of an attempt, from its run's prefix."""
    return f"{prefix}{turn // 100:05d}/{turn:07d}.attempt-{number:03d}"


def failure_key(attempt: str) -> str:
    """The key of an attempt's failure, from the attempt's key."""
    return _beside(attempt, "failure")


def exchange_key(attempt: str) -> str:
    """The key of what came back of an attempt beside the turn's reply, from the attempt's key."""
    return _beside(attempt, "exchange")


def is_attempt(key: str) -> bool:
    """Whether a key is an attempt's."""
    place = parse_turn_key(key)
    return place is not None and place.kind == "attempt"


def attempts_among(listed: Iterable[str]) -> list[str]:
    """The attempts among the keys of a turn, in their order: that of their names is another from
    the thousandth on.
    """
    places = ((parse_turn_key(key), key) for key in listed)
    numbered = [(place.number, key) for place, key in places if place and place.kind == "attempt"]
    return [key for _, key in sorted(numbered)]


def _beside(attempt: str, kind: str) -> str:
    # The last of them: a batch or a job may have that in its name.
    prefix, _, number = attempt.rpartition(".attempt-")
    return f"{prefix}.{kind}-{number}"


def step_key(job: str, run: str, turn: int) -> str:
    """The key of a turn's step."""
    return step_key_in(run_prefix(job, run), turn)


def step_key_in(prefix: str, turn: int) -> str:
    """The key of a turn's step, from its run's prefix."""
    return f"{prefix}{turn // 100:05d}/{turn:07d}.step"


def checkpoint_key(job: str, run: str, turn: int) -> str:
    """The key of the checkpoint after a turn."""
    return f"{turn_prefix(job, run, turn)}checkpoint"


def effect_key(job: str, run: str, turn: int, effect: int) -> str:
    """The key of the recorded result of a turn's ``effect``-th effect, from 0."""
    return f"{turn_prefix(job, run, turn)}effect-{effect:06d}"


def effect_key_in(prefix: str, turn: int, effect: int) -> str:
    """The key of an effect's result among the turns under ``prefix``."""
    return f"{effects_in(prefix, turn)}{effect:06d}"


def effects_in(prefix: str, turn: int) -> str:
    """The prefix of a turn's effects, from its run's prefix."""
    return f"{prefix}{turn // 100:05d}/{turn:07d}.effect-"


def turn_prefix_of(key: TurnKey) -> str:
    """The prefix of the objects of a key's turn, with the final dot."""
    return f"{key.prefix}{key.turn // 100:05d}/{key.turn:07d}."


def pack_key(prefix: str, turn: int) -> str:
    """The key of the pack that may hold a turn, from its run's prefix."""
    # The last of them: a batch or a job may be called so.
    job, _, run = prefix.rstrip("/").rpartition("/turns/")
    return f"{packs_prefix(job, run)}{turn // INTERVAL * INTERVAL:07d}"


def packs_prefix(job: str, run: str) -> str:
    """The prefix of the packs of a run, named as in its key."""
    return f"{job}/packs/{run}/"


def packed_prefix(key: str) -> str | None:
    """The prefix of the run of which a pack holds turns; None for a key that is no pack's."""
    parts = _PACK.fullmatch(key)
    return None if parts is None else f"{parts['job']}/turns/{parts['run']}/"


def parse_turn_key(key: str) -> TurnKey | None:
    """The parts of a key under ``turns``, or None if it is none.

    ``run`` is as in the key, still encoded.
    """
    parts = _TURN_KEY.fullmatch(key)
    if parts is None:
        return None
    return TurnKey(
        parts["job"], parts["run"], int(parts["turn"]), parts["kind"], int(parts["number"] or 0)
    )


def grouped_attempts(attempts: Iterable[str]) -> list[list[Any]]:
    """Keys of attempts by their run's prefix: ``[[prefix, turn, number, turn, number, …], …]``;
    turns as differences.

    Raises:
        ValueError: if one is no attempt's.
    """
    groups: dict[str, list[Any]] = {}
    last: dict[str, int] = {}
    for key in attempts:
        parsed = parse_turn_key(key)
        if parsed is None or parsed.kind != "attempt":
            raise ValueError(f"{key} is no attempt")
        group = groups.setdefault(parsed.prefix, [parsed.prefix])
        group += (parsed.turn - last.get(parsed.prefix, 0), parsed.number)
        last[parsed.prefix] = parsed.turn
    return list(groups.values())


def attempts_in(grouped: Iterable[Sequence[Any]]) -> list[str]:
    """The keys that ``grouped_attempts`` grouped."""
    attempts = []
    for prefix, *numbers in grouped:
        turn = 0
        for change, number in zip(numbers[::2], numbers[1::2], strict=True):
            turn += change
            attempts.append(attempt_key_in(prefix, turn, number))
    return attempts
