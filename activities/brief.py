"""The short forms in which what came of a turn stands in a history: what the reader can tell by
itself is left out.

A turn may add less than 2 kB to the history beyond its new text (docs/design.md section 3), and
what came of the turn before is the larger part of that. Each short form is made only where the
long one comes back from it exactly.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from runtime.base.digests import digest_of
from runtime.base.fences import unfenced
from runtime.base.values import StepRef

_AT = "at"
"""The times of an execution in seconds, by which the short form is known."""

_SHOWN = "shown"
"""The digest of what was printed is that of a text which the turn's prompt shows."""

_NAMESPACE = "namespace_digest"

_LAST, _SAME, _FINAL = "<", "=", ">"
"""In place of a digest: that after the node's last call, that before this one, and that of the
node's state.
"""

_EVENTS = {
    "method_called": (
        "obj_id",
        "obj_type",
        "method",
        "before_digest",
        "after_digest",
        "args",
        "kwargs",
    ),
    "node_changed": ("obj_id", "delta"),
    "tick_applied": ("obj_id", "tick_kind", "delta"),
    "async_payload_prepared": ("obj_id", "payload_meta"),
    "async_payload_applied": ("obj_id", "payload_meta", "delta"),
    "group_recomputed": ("group_id", "delta"),
}
"""The fields of each type of event, in the order of its short form."""

_LETTERS = dict(zip(_EVENTS, "mntpag", strict=True))
_TYPES = {letter: type_ for type_, letter in _LETTERS.items()}

_IDS = "events"
"""The ids of a statement's events: numbers that follow each other stand as the first and how
many.
"""

_STEP = re.compile(r"(?P<job>[^/ ]+/[^/ ]+)/turns/(?P<run>[^/ ]+)/\d{5}/(?P<turn>\d{7})\.step")

_SHA256 = re.compile(r"sha256:[0-9a-f]{64}")


def brief_execution(
    execution: Mapping[str, Any], turn: int, shown: Iterable[str]
) -> dict[str, Any]:
    """The short form of the execution whose turn was before ``turn``; ``shown`` are the new texts
    of ``turn``'s prompt.
    """
    texts = tuple(shown)
    expected = _expected(execution, turn, texts)
    short = {name: value for name, value in execution.items() if name not in expected}
    if "stdout_digest" in execution and "stdout_digest" not in short:
        short[_SHOWN] = True
    if isinstance(digest := execution.get(_NAMESPACE), str):
        short[_NAMESPACE] = brief_digest(digest)
    if (numbers := _numbers(execution.get(_IDS), turn)) is not None:
        short[_IDS] = [numbers[0], len(numbers)]
    short[_AT] = [_seconds(execution.get(name)) for name in ("started_at", "ended_at")]
    # The proof is made each time: a short form that loses anything would be another history.
    return short if full_execution(short, turn, texts) == dict(execution) else dict(execution)


def full_execution(short: Mapping[str, Any], turn: int, shown: Iterable[str]) -> dict[str, Any]:
    """The execution of which ``brief_execution`` made ``short``."""
    if _AT not in short:
        return dict(short)
    began, ended = short[_AT]
    if began is None or ended is None:
        return dict(short)
    told = {name: value for name, value in short.items() if name not in {_AT, _SHOWN}}
    milliseconds = int((ended - began) * 1000)
    return {
        **_identity(turn),
        "started_at": _iso(began),
        "ended_at": _iso(ended),
        "status": "ok",
        **({"cost": {"time_ms": milliseconds}} if milliseconds else {}),
        **({"stdout_digest": _printed(turn, shown)} if short.get(_SHOWN) else {}),
        **told,
        **({_NAMESPACE: full_digest(told[_NAMESPACE])} if _NAMESPACE in told else {}),
        **({_IDS: _ids(told[_IDS], turn)} if _IDS in told else {}),
    }


def brief_events(
    events: Iterable[Mapping[str, Any]], turn: int, nodes: Iterable[Mapping[str, Any]]
) -> list[Any]:
    """The short forms of the context's events before the call of ``turn``; ``nodes`` are the
    states of those that changed.

    A list each: the number (below zero in ``turn`` itself, else in the turn before), the type's
    letter, and the fields in the order of ``_EVENTS``. A call's digests are left out where the last
    call on the node or ``nodes`` tells them.
    """
    long = [dict(event) for event in events]
    final = {node["obj_id"]: node.get("digest") for node in nodes}
    last: dict[str, str] = {}
    short: list[Any] = []
    for event in long:
        short.append(_brief_event(event, turn, last, final))
    return short if list(full_events(short, turn, final_nodes(final))) == long else long


def full_events(
    short: Iterable[Any], turn: int, nodes: Iterable[Mapping[str, Any]]
) -> tuple[dict[str, Any], ...]:
    """The events of which ``brief_events`` made ``short``; those in full stay as they are."""
    final = {node["obj_id"]: node.get("digest") for node in nodes}
    last: dict[str, str] = {}
    return tuple(_full_event(event, turn, last, final) for event in short)


def final_nodes(digests: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Nodes' digests as states of nodes."""
    return [{"obj_id": obj_id, "digest": digest} for obj_id, digest in digests.items()]


def _brief_event(
    event: dict[str, Any], turn: int, last: dict[str, str], final: Mapping[str, Any]
) -> Any:
    place, _, number = str(event.get("id", "")).partition(".")
    letter = _LETTERS.get(event["type"])
    if letter is None or not number.isdecimal() or place not in {str(turn), str(turn - 1)}:
        return event
    fields = {**event}
    if letter == "m" and "before_digest" in fields and "after_digest" in fields:
        obj_id, before, after = (
            str(fields[name]) for name in ("obj_id", "before_digest", "after_digest")
        )
        fields["before_digest"] = _LAST if last.get(obj_id) == before else brief_digest(before)
        fields["after_digest"] = (
            _SAME
            if after == before
            else _FINAL
            if final.get(obj_id) == after
            else brief_digest(after)
        )
        last[obj_id] = after
    values = [fields.get(name) for name in _EVENTS[event["type"]]]
    while values and values[-1] is None:
        values.pop()
    return [-int(number) if place == str(turn) else int(number), letter, *values]


def _full_event(
    short: Any, turn: int, last: dict[str, str], final: Mapping[str, Any]
) -> dict[str, Any]:
    if not isinstance(short, list):
        return dict(short)
    number, letter, *values = short
    type_ = _TYPES[letter]
    fields = {
        name: value
        for name, value in zip(_EVENTS[type_], values, strict=False)
        if value is not None
    }
    if letter == "m" and "before_digest" in fields:
        obj_id, before, after = (
            str(fields["obj_id"]),
            fields["before_digest"],
            fields["after_digest"],
        )
        before = last.get(obj_id, "") if before == _LAST else full_digest(before) if before else ""
        after = (
            before
            if after == _SAME
            else str(final.get(obj_id))
            if after == _FINAL
            else full_digest(after)
        )
        fields |= {"before_digest": before, "after_digest": after}
        last[obj_id] = after
    return {"id": f"{turn if number < 0 else turn - 1}.{abs(number)}", "type": type_, **fields}


def brief_parent(parent: StepRef, job: str, turn: int) -> list[str] | StepRef:
    """The run and the digest, of a parent that is the step of the turn before in a run of the
    job.
    """
    head, tail = _around(job, turn)
    run = parent.key.removeprefix(head).removesuffix(tail)
    return (
        [run, brief_digest(parent.digest)]
        if parent.key == f"{head}{run}{tail}" and "/" not in run
        else parent
    )


def full_parent(short: list[str], job: str, turn: int) -> StepRef:
    """The parent of which ``brief_parent`` made ``short``."""
    head, tail = _around(job, turn)
    return StepRef(key=f"{head}{short[0]}{tail}", digest=full_digest(short[1]))


def brief_step(step: StepRef) -> str | StepRef:
    """A step's job, run, turn and digest in one text."""
    parts = _STEP.fullmatch(step.key)
    if parts is None:
        return step
    short = " ".join(
        [parts["job"], parts["run"], str(int(parts["turn"])), brief_digest(step.digest)]
    )
    return short if full_step(short) == step else step


def full_step(short: str) -> StepRef:
    """The reference of which ``brief_step`` made ``short``."""
    job, run, turn, digest = short.split(" ")
    head, tail = _around(job, int(turn) + 1)
    return StepRef(key=f"{head}{run}{tail}", digest=full_digest(digest))


def brief_digest(digest: str) -> str:
    """A SHA-256 digest in base64url without padding, 43 characters for 71; any other is left as it
    is.
    """
    if _SHA256.fullmatch(digest) is None:
        return digest
    return (
        base64.urlsafe_b64encode(bytes.fromhex(digest.removeprefix("sha256:")))
        .rstrip(b"=")
        .decode()
    )


def full_digest(short: str) -> str:
    """The digest of which ``brief_digest`` made ``short``."""
    return short if ":" in short else "sha256:" + base64.urlsafe_b64decode(short + "=").hex()


def _around(job: str, turn: int) -> tuple[str, str]:
    return f"{job}/turns/", f"/{(turn - 1) // 100:05d}/{turn - 1:07d}.step"


def _numbers(ids: Any, turn: int) -> list[int] | None:
    """The numbers of a statement's events, if they follow each other and are of the turn before
    ``turn``.
    """
    parts = [str(event).partition(".") for event in ids or ()]
    if not parts or any(
        place != str(turn - 1) or not number.isdecimal() for place, _, number in parts
    ):
        return None
    numbers = [int(number) for _, _, number in parts]
    return numbers if numbers == list(range(numbers[0], numbers[0] + len(numbers))) else None


def _ids(told: Any, turn: int) -> list[Any]:
    """The ids of which ``_numbers`` told the first and how many; ids in full stay as they are."""
    if len(told) == 2 and all(isinstance(one, int) for one in told):
        return [f"{turn - 1}.{number}" for number in range(told[0], told[0] + told[1])]
    return list(told)


def _expected(execution: Mapping[str, Any], turn: int, shown: Iterable[str]) -> set[str]:
    """The fields of ``execution`` that are as they can be told."""
    known = {**_identity(turn), "status": "ok", "stdout_digest": _printed(turn, shown)}
    times = {"started_at", "ended_at", "cost"}
    return times | {
        name for name, value in known.items() if value is not None and execution.get(name) == value
    }


def _identity(turn: int) -> dict[str, str]:
    return {"execution_id": f"e{turn - 1}.1", "statement_id": f"s{turn - 1}"}


def _printed(turn: int, shown: Iterable[str]) -> str | None:
    """The digest of what the turn before printed, from the text of its outcome; None if no new text
    is one.
    """
    head = f"[turn {turn - 1}: ok]\n"
    return next(
        (
            digest_of(unfenced(text.removeprefix(head)) + "\n")
            for text in shown
            if text.startswith(head)
        ),
        None,
    )


def _seconds(iso: Any) -> float | None:
    try:
        return datetime.fromisoformat(str(iso)).timestamp()
    except ValueError:
        return None


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat()
