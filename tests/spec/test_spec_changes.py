"""A started job's definition may not change unseen: the digest notices, and the lines say what."""

from __future__ import annotations

from typing import Any

import pytest

from runtime.base.redaction.rules import Redaction
from runtime.base.spec.models import (
    Budget,
    CondenserSpec,
    JobSpec,
    ModelSettings,
    Sections,
    Spawn,
    ToolSpec,
    Writable,
)
from runtime.jobsfile.changes import changes, definition_digest

TOOL = ToolSpec(
    name="search", target="mytools:search", search_path="/b", stub="def search() -> None: ..."
)
JOB = JobSpec(
    id="a",
    goal="Find it.",
    workspace="/w",
    tools=(TOOL,),
    result={"type": "object"},
    model=ModelSettings(name="openai/x", options={"temperature": 0}),
    budget=Budget(turns=40, wall_seconds=21_600),
)


@pytest.mark.parametrize(
    ("update", "lines"),
    [
        ({"goal": "Find it all."}, ["goal changed"]),
        ({"workspace": "/v"}, ["workspace: /w -> /v"]),
        (
            {"budget": Budget(turns=40, wall_seconds=21_600, deadline=28_800.0)},
            ["budget.deadline: not set -> 8h"],
        ),
        ({"budget": Budget(turns=60, wall_seconds=7_200)}, ["budget.turns: 40 -> 60", "budget.wall: 6h -> 2h"]),
        ({"model": ModelSettings(name="openai/y")}, ["model.name: openai/x -> openai/y", "model.options.temperature: 0 -> not set"]),
        ({"model": ModelSettings(name="openai/x", options={"temperature": False})}, ["model.options.temperature: 0 -> false"]),
        ({"model": ModelSettings(name="openai/x", options={"temperature": 0, "stop": ["x" * 80]})}, ["model.options.stop changed"]),
        ({"result": {"type": "array"}}, ["result changed"]),
        ({"result": None}, ["result changed"]),
        ({"form": "script"}, ["form: tool -> script"]),
        ({"context_tokens": 9_000}, ["context_tokens: 60000 -> 9000"]),
        ({"condenser": ()}, ["condenser changed"]),
        ({"sections": Sections(views=900)}, ["sections.views: not set -> 900"]),
        ({"condenser": (CondenserSpec(kind="summary", max_size=90),)}, ["condenser.max_size: not set -> 90"]),
        ({"writable": Writable(network=True)}, ["workspace changed"]),
        ({"pin_user_messages": True}, ["pin_user_messages: false -> true"]),
        ({"encoding": "p50k_base"}, ["encoding: cl100k_base -> p50k_base"]),
        ({"redact": Redaction(env=("TEAM_KEY",))}, ['redact.env: not set -> ["TEAM_KEY"]']),
        ({"tools": ()}, ["tools.search removed"]),
        ({"check": TOOL}, ["check changed"]),
        ({"spawn": Spawn(max=3)}, ["spawn changed"]),
        ({"parent": "a"}, ["parent changed"]),
        ({"secrets": ("A",)}, ['secrets: [] -> ["A"]']),
        ({"tools": (TOOL, TOOL.model_copy(update={"name": "other"}))}, ["tools.other added"]),
        ({"tools": (TOOL.model_copy(update={"stub": "def search(x: int) -> None: ..."}),)},
         ["tools.search.stub: def search() -> None: ... -> def search(x: int) -> None: ..."]),
    ],
)  # fmt: skip
def test_each_change_is_a_line(update: dict[str, Any], lines: list[str]) -> None:
    """Whatever changed is named as the jobs file names it, and the digest differs."""
    new = JOB.model_copy(update=update)
    assert changes(JOB, new) == lines
    assert definition_digest(new) != definition_digest(JOB)


def test_no_change() -> None:
    """An equal definition has no lines and the same digest, also after travelling as JSON."""
    same = JobSpec.model_validate_json(JOB.model_dump_json())
    assert changes(JOB, same) == []
    assert definition_digest(same) == definition_digest(JOB)


def test_every_field_counts() -> None:
    """A field that is added to the job later cannot be forgotten here."""
    covered = {
        *(
            "goal",
            "workspace",
            "writable",
            "budget",
            "model",
            "result",
            "form",
            "context_tokens",
            "encoding",
            "tools",
            "secrets",
            "mcp",
            "approvals",
            "id",
            "redact",
        ),
        *(
            "condenser",
            "pin_user_messages",
            "projection",
            "urls",
            "summary_model",
            "sections",
            "retry",
            "check",
            "spawn",
            "parent",
        ),
    }
    assert set(JobSpec.model_fields) == covered
