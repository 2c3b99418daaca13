"""What statements did to the world, call by call, as the archive has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ValidationError

from runtime.archive.gaps import UNREADABLE
from runtime.archive.job import JobArchive
from runtime.archive.recorded import recorded_effect
from runtime.base.values import Value

_CHANGE = "change"


class ToldEffect(Value):
    """One call that left the interpreter, and of a change of the workspace what it came to.

    ``kind`` is ``read``, ``file``, ``tool``, ``server``, ``change`` or ``spawn``; ``path`` the
    file, the first line of a command, or the sub-job. ``exit_code`` is a command's. ``seconds``
    is how long the command ran, or was worked for another call. ``changed`` are the first changed
    paths with A, M or D, of ``count`` in all. ``damaged`` says why what it came to cannot be read.
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
    damaged: str | None = None


class _Changed(BaseModel):
    """What an effect's value tells of a change. What else it tells is another's concern."""

    changed: tuple[tuple[str, str], ...] = ()
    count: int = 0


class _Command(BaseModel):
    exit_code: int | None = None
    seconds: float | None = None


def told_effects(
    archive: JobArchive, run: str, turn: int, execution: dict[str, Any] | None
) -> Iterator[ToldEffect]:
    """The effects of a turn's statement, in order, by its ``execution``; one archive object is read
    for each that changed the workspace.
    """
    done = execution or {}
    worked = dict(enumerate(worked_for(done)))
    for number, effect in enumerate(done.get("effects", ())):
        told = ToldEffect(
            turn=turn,
            effect=number,
            kind=str(effect["kind"]),
            name=str(effect["name"]),
            path=effect.get("path"),
            error=effect.get("error"),
            seconds=worked.get(number),
        )
        if told.kind != _CHANGE:
            yield told
            continue
        try:
            archived = recorded_effect(archive, run, turn, number)
            came_to = {} if archived is None else _came_to(told.name, archived)
        except UNREADABLE as error:
            yield told.model_copy(update={"damaged": str(error)})
        except ValidationError:
            words = f"what effect {number} came to is told in no known form"
            yield told.model_copy(update={"damaged": words})
        else:
            yield told.model_copy(update=came_to)


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
