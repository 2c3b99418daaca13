"""The short forms in which a turn's records stand in a history: what the reader can tell by itself is left out.

A turn may add less than 2 kB to the history beyond its new text (DESIGN.md section 3), and the records of the turn before are
the larger part of that. Each short form is made only where the long one comes back from it exactly.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any

from runtime.digests import digest_of
from runtime.fences import unfenced
from runtime.values import StepRef

_AT = "at"
"""The times of an execution in seconds, by which the short form is known."""

_SHOWN = "shown"
"""The digest of what was printed is that of a text which the turn's prompt shows."""

_NAMESPACE = "namespace_digest"

_STEP = re.compile(r"(?P<job>[^/ ]+/[^/ ]+)/turns/(?P<run>[^/ ]+)/\d{5}/(?P<turn>\d{7})\.step")

_SHA256 = re.compile(r"sha256:[0-9a-f]{64}")


def brief_execution(record: Mapping[str, Any], turn: int, shown: Iterable[str]) -> dict[str, Any]:
    """The short form of the execution whose turn was before ``turn``; ``shown`` are the new texts of ``turn``'s prompt."""
    texts = tuple(shown)
    short = {name: value for name, value in record.items() if name not in _expected(record, turn, texts)}
    if "stdout_digest" in record and "stdout_digest" not in short:
        short[_SHOWN] = True
    if isinstance(digest := record.get(_NAMESPACE), str):
        short[_NAMESPACE] = brief_digest(digest)
    short[_AT] = [_seconds(record.get(name)) for name in ("started_at", "ended_at")]
    return short if full_execution(short, turn, texts) == dict(record) else dict(record)


def full_execution(record: Mapping[str, Any], turn: int, shown: Iterable[str]) -> dict[str, Any]:
    """The record of which ``brief_execution`` made ``record``."""
    if _AT not in record:
        return dict(record)
    began, ended = record[_AT]
    if began is None or ended is None:
        return dict(record)
    told = {name: value for name, value in record.items() if name not in {_AT, _SHOWN}}
    milliseconds = int((ended - began) * 1000)
    return {
        **_identity(turn),
        "started_at": _iso(began),
        "ended_at": _iso(ended),
        "status": "ok",
        **({"cost": {"time_ms": milliseconds}} if milliseconds else {}),
        **({"stdout_digest": _printed(turn, shown)} if record.get(_SHOWN) else {}),
        **told,
        **({_NAMESPACE: full_digest(told[_NAMESPACE])} if _NAMESPACE in told else {}),
    }


def brief_parent(parent: StepRef, job: str, turn: int) -> list[str] | StepRef:
    """The run and the digest, of a parent that is the step of the turn before in a run of the job."""
    head, tail = _around(job, turn)
    run = parent.key.removeprefix(head).removesuffix(tail)
    return [run, brief_digest(parent.digest)] if parent.key == f"{head}{run}{tail}" and "/" not in run else parent


def full_parent(short: list[str], job: str, turn: int) -> StepRef:
    """The parent of which ``brief_parent`` made ``short``."""
    head, tail = _around(job, turn)
    return StepRef(key=f"{head}{short[0]}{tail}", digest=full_digest(short[1]))


def brief_step(step: StepRef) -> str | StepRef:
    """A step's job, run, turn and digest in one text."""
    found = _STEP.fullmatch(step.key)
    if found is None:
        return step
    short = " ".join([found["job"], found["run"], str(int(found["turn"])), brief_digest(step.digest)])
    return short if full_step(short) == step else step


def full_step(short: str) -> StepRef:
    """The reference of which ``brief_step`` made ``short``."""
    job, run, turn, digest = short.split(" ")
    head, tail = _around(job, int(turn) + 1)
    return StepRef(key=f"{head}{run}{tail}", digest=full_digest(digest))


def brief_digest(digest: str) -> str:
    """A SHA-256 digest in base64url without padding, 43 characters for 71; any other is left as it is."""
    if _SHA256.fullmatch(digest) is None:
        return digest
    return base64.urlsafe_b64encode(bytes.fromhex(digest.removeprefix("sha256:"))).rstrip(b"=").decode()


def full_digest(short: str) -> str:
    """The digest of which ``brief_digest`` made ``short``."""
    return short if ":" in short else "sha256:" + base64.urlsafe_b64decode(short + "=").hex()


def _around(job: str, turn: int) -> tuple[str, str]:
    return f"{job}/turns/", f"/{(turn - 1) // 100:05d}/{turn - 1:07d}.step"


def _expected(record: Mapping[str, Any], turn: int, shown: Iterable[str]) -> set[str]:
    """The fields of ``record`` that are as they can be told."""
    known = {**_identity(turn), "status": "ok", "stdout_digest": _printed(turn, shown)}
    times = {"started_at", "ended_at", "cost"}
    return times | {name for name, value in known.items() if value is not None and record.get(name) == value}


def _identity(turn: int) -> dict[str, str]:
    return {"execution_id": f"e{turn - 1}.1", "statement_id": f"s{turn - 1}"}


def _printed(turn: int, shown: Iterable[str]) -> str | None:
    """The digest of what the turn before printed, from the text of its outcome; None if no new text is one."""
    head = f"[turn {turn - 1}: ok]\n"
    return next((digest_of(unfenced(text.removeprefix(head)) + "\n") for text in shown if text.startswith(head)), None)


def _seconds(iso: Any) -> float | None:
    try:
        return datetime.fromisoformat(str(iso)).timestamp()
    except ValueError:
        return None


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, tz=UTC).isoformat()
