"""The short forms in a history: each comes back exactly, and what has no short form is left as it
is.
"""

from __future__ import annotations

from typing import Any

import pytest

from activities.brief import (
    brief_digest,
    brief_execution,
    brief_parent,
    brief_step,
    full_digest,
    full_execution,
    full_parent,
    full_step,
)
from activities.contracts import TurnReply
from runtime.base.digests import digest_of
from runtime.base.fences import fenced
from runtime.base.values import StepRef
from runtime.projection.segments import Add, Keep, LayoutDelta, Reply, Segment, SegmentKind

DIGEST = digest_of("x")
STEP = StepRef(key="nightly/licences/turns/01a1-f/00001/0000107.step", digest=DIGEST)


def execution(**fields: Any) -> dict[str, Any]:
    return {
        "execution_id": "e7.1",
        "statement_id": "s7",
        "status": "ok",
        "started_at": "2026-11-21T05:59:45.374000+00:00",
        "ended_at": "2026-11-21T05:59:45.392500+00:00",
        "cost": {"time_ms": 18},
        "stdout_digest": digest_of("said\n"),
        "namespace_digest": DIGEST,
        **fields,
    }


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"status": "error", "exception": {"type": "ValueError", "message": "no"}},
        {"cost": {}},
        {"cost": {"time_ms": 18, "tokens": 3}},
        {"execution_id": "e7.2", "statement_id": "other"},
        {"stdout_digest": digest_of("said something else\n")},
        {"namespace_digest": "blake3:12"},
        {"started_at": "never"},
        {"ended_at": None},
    ],
)
def test_an_execution_comes_back(changed: dict[str, Any]) -> None:
    """Whatever its fields are."""
    record = execution(**changed)
    short = brief_execution(record, 8, ["[turn 7: ok]\n" + fenced("said")])
    assert full_execution(short, 8, ["[turn 7: ok]\n" + fenced("said")]) == record


def test_an_ordinary_execution_is_short() -> None:
    """Its ids, status, cost and printed text can be told from the turn and the prompt."""
    short = brief_execution(execution(), 8, ["[turn 7: ok]\n" + fenced("said")])
    assert set(short) == {"namespace_digest", "at", "shown"}


def test_a_parent_comes_back() -> None:
    """The step of the turn before in any run of the job; another job's is not shortened."""
    short = brief_parent(STEP, "nightly/licences", 108)
    assert short == ["01a1-f", brief_digest(DIGEST)]
    assert isinstance(short, list)
    assert full_parent(short, "nightly/licences", 108) == STEP
    assert brief_parent(STEP, "nightly/other", 108) == STEP
    assert brief_parent(STEP, "nightly/licences", 107) == STEP


@pytest.mark.parametrize(
    "key", ["a/b/attempts/1", "a/b/turns/r/00000/0000107.step", "a/b c/turns/r/00001/0000107.step"]
)
def test_a_step_elsewhere_is_left(key: str) -> None:
    """A key that is not one of a turn's steps, or does not come back."""
    assert brief_step(StepRef(key=key, digest=DIGEST)) == StepRef(key=key, digest=DIGEST)


def test_a_reply_names_its_step_in_short() -> None:
    """One text in JSON, the reference in Python."""
    short = brief_step(STEP)
    assert short == f"nightly/licences 01a1-f 107 {brief_digest(DIGEST)}"
    assert isinstance(short, str)
    assert full_step(short) == STEP
    reply = TurnReply(text="x", step=STEP)
    assert short in reply.model_dump_json()
    assert TurnReply.model_validate_json(reply.model_dump_json()) == reply


@pytest.mark.parametrize("digest", [DIGEST, "sha256:ff", "sha512:" + "0" * 128, DIGEST.upper()])
def test_a_digest_comes_back(digest: str) -> None:
    """Also one of another algorithm."""
    assert full_digest(brief_digest(digest)) == digest


def test_a_layout_comes_back() -> None:
    """Parts in JSON are spans, a word, and segments without what their kind tells."""
    budget = Segment(
        kind=SegmentKind.BUDGET, origin="tail", role="user", text="[budget]", tokens=3, tail=True
    )
    other = Segment(
        kind=SegmentKind.BUDGET, origin="node:1", role="user", text="[budget]", tokens=3
    )
    delta = LayoutDelta(
        parts=(Keep(start=0, stop=4), Reply(), Add(segment=budget), Add(segment=other))
    )
    dumped = delta.model_dump(mode="json")
    assert dumped["parts"][:3] == [
        [0, 4],
        "reply",
        {"kind": "budget", "text": "[budget]", "tokens": 3},
    ]
    assert LayoutDelta.model_validate(dumped) == delta
