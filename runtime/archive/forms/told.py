"""What readers take for granted of what objects hold as JSON: a job of any release made it. What
else it has is passed over.
"""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from runtime.archive.forms.base import first_in
from runtime.job.condensed import CondensationOutcome


class _Told(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, defer_build=True)


class _Change(_Told):
    after: dict[str, Any]
    paths: list[str] = []


class _Variables(_Told):
    added: dict[str, dict[str, Any]] = {}
    changed: dict[str, _Change] = {}
    deleted: list[str] = []


class _Effect(_Told):
    kind: str
    name: str
    path: str | None = None
    error: str | None = None


class _Exception(_Told):
    type: str
    message: str = ""
    trace_summary: str = ""


class _Cost(_Told):
    effects: list[float | None] = []


class _Execution(_Told):
    status: str = ""
    exception: _Exception | None = None
    events: list[str] = []
    effects: list[_Effect] = []
    state_diff: _Variables = _Variables()
    namespace_digest: str = ""
    cost: _Cost = _Cost()


class _Node(_Told):
    obj_id: str


class _Job(_Told):
    batch: str
    job: str


class _Order(_Told):
    start: int = 1
    mode: str = ""
    source: _Job | None = None


_NODES = TypeAdapter(list[_Node], config=ConfigDict(defer_build=True))


def checked_execution(execution: dict[str, Any] | None) -> dict[str, Any] | None:
    """The execution of a statement, None for none.

    Raises:
        ValueError: if it is of another shape.
    """
    if execution is not None:
        _check(_Execution, execution)
    return execution


def checked_nodes(nodes: tuple[dict[str, Any], ...]) -> tuple[dict[str, Any], ...]:
    """The states of nodes.

    Raises:
        ValueError: if one is of another shape.
    """
    _check(_NODES, list(nodes))
    return nodes


def checked_condensations(
    condensations: tuple[CondensationOutcome, ...],
) -> tuple[CondensationOutcome, ...]:
    """Condensations, each of which forgot something; all ids say of which turn they are.

    Raises:
        ValueError: if one is of another shape.
    """
    for condensation in condensations:
        if not condensation.forgotten:
            raise ValueError(f"condensation {condensation.id!r} forgot nothing")
        for id in (condensation.id, *condensation.forgotten):
            try:
                turn_of(id)
            except ValueError:
                raise ValueError(f"no turn begins the id {id!r}") from None
    return condensations


def turn_of(event_id: str) -> int:
    """The turn in an event's or a condensation's id (``Job.next_id``)."""
    return int(event_id.partition(".")[0])


def checked_order(order: dict[str, Any]) -> dict[str, Any]:
    """The order of a replay.

    Raises:
        ValueError: if it is of another shape.
    """
    _check(_Order, order)
    return order


def _check(form: type[_Told] | TypeAdapter[Any], value: Any) -> None:
    check = form.validate_python if isinstance(form, TypeAdapter) else form.model_validate
    try:
        check(value)
    except ValidationError as error:
        raise ValueError(first_in(error)) from None
