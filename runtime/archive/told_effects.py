"""What statements did to the world, call by call, as the archive has it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from runtime.archive import keys
from runtime.archive.approvals import DECISIONS
from runtime.archive.gaps import UNREADABLE
from runtime.archive.job import JobArchive
from runtime.archive.recorded import recorded_effect
from runtime.base.effect_numbers import HANDED_PATCH
from runtime.base.values import Value

_CHANGE = "change"

HANDS = frozenset({"write", "edit", "move", "delete", "sh", "open"})
"""The calls of no tool that change a workspace, but for those whose names have a dot."""


class ToldDecision(Value):
    """A person's decision on a call: ``by`` whom and ``at`` which time (seconds since 1970),
    neither if nobody answered; ``edited``: with other arguments.
    """

    approved: bool
    by: str = ""
    at: float = 0.0
    reason: str = ""
    edited: bool = False


class ToldEffect(Value):
    """One call that left the interpreter, and of a change of the workspace what it came to.

    ``kind`` is ``read``, ``file``, ``tool``, ``server``, ``change`` or ``spawn``; ``path`` the
    file, the first line of a command, or the sub-job. ``exit_code`` is a command's. ``seconds``
    is how long the command ran, or was worked for another call. ``changed`` are the first changed
    paths with A, M or D, of ``count`` in all. ``damaged`` says why what it came to, or the
    ``decision`` on it, cannot be read.
    """

    turn: int
    effect: int
    kind: str
    name: str
    path: str | None = None
    error: str | None = None
    exit_code: int | None = None
    seconds: float | None = None
    changed: tuple[tuple[str, str], ...] = ()
    count: int = 0
    decision: ToldDecision | None = None
    damaged: str | None = None


class _Changed(BaseModel):
    """What an effect's value tells of a change. What else it tells is another's concern."""

    changed: tuple[tuple[str, str], ...] = ()
    count: int = 0


class _Command(BaseModel):
    exit_code: int | None = None
    seconds: float | None = None


class _Decided(BaseModel):
    approved: bool
    by: str = ""
    at: float = 0.0
    reason: str = ""
    arguments: dict[str, Any] | None = None


class _Decision(BaseModel):
    decision: _Decided


def told_effects(
    archive: JobArchive,
    run: str,
    turn: int,
    execution: dict[str, Any] | None,
    named: Iterable[str] = (),
) -> Iterator[ToldEffect]:
    """The effects of a turn's statement, in order, by its ``execution``; one archive object is read
    for each that changed the workspace, and one for each decision that is ``named``: the keys of
    effects that the record after the turn has.
    """
    done = execution or {}
    worked = dict(enumerate(worked_for(done)))
    decisions = dict(_decisions(named, turn))
    for number, effect in enumerate(done.get("effects", ())):
        told = ToldEffect(
            turn=turn,
            effect=number,
            kind=str(effect["kind"]),
            name=str(effect["name"]),
            path=_path(effect),
            error=effect.get("error"),
            seconds=worked.get(number),
        )
        try:
            if told.kind == _CHANGE:
                archived = recorded_effect(archive, run, turn, number)
                told = told.model_copy(update=_came_to(told.name, archived) if archived else {})
            if number in decisions:
                decision = _decided(archive, decisions[number])
                told = told.model_copy(update={"decision": decision})
        except UNREADABLE as error:
            told = told.model_copy(update={"damaged": str(error)})
        except ValidationError:
            words = f"what effect {number} came to is told in no known form"
            told = told.model_copy(update={"damaged": words})
        yield told


def _path(effect: Mapping[str, Any]) -> str | None:
    """The path of an effect. The record of a tool that works on the job's files has its name there,
    which is told already.
    """
    path: str | None = effect.get("path")
    name = effect["name"]
    is_tool = effect["kind"] == _CHANGE and path == name and name not in HANDS
    return None if is_tool else path


def _decisions(named: Iterable[str], turn: int) -> Iterator[tuple[int, str]]:
    """The effects of a turn that were decided on, each with the key of its decision."""
    for key in named:
        place = keys.parse_turn_key(key)
        if place is not None and place.turn == turn and DECISIONS <= place.number < HANDED_PATCH:
            yield place.number - DECISIONS, key


def _decided(archive: JobArchive, key: str) -> ToldDecision:
    value = archive.objects.get(key, "effect").header["value"]
    decision = _Decision.model_validate(value).decision
    edited = decision.arguments is not None
    return ToldDecision(**decision.model_dump(exclude={"arguments"}), edited=edited)


def worked_for(execution: Mapping[str, Any]) -> Sequence[float | None]:
    """The seconds that were worked for each effect of an execution; none that an earlier release
    archived.
    """
    told: Sequence[float | None] = execution.get("cost", {}).get("effects", ())
    return told


def _came_to(name: str, archived: dict[str, Any]) -> dict[str, Any]:
    value = archived.get("value")
    command = _Command.model_validate(value if name == "sh" and isinstance(value, dict) else {})
    return dict(_Changed.model_validate(archived)) | command.model_dump(exclude_unset=True)
