"""Where text enters a job it is masked: reads, file calls, tools, goals and messages."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from temporalio.testing import ActivityEnvironment

from activities.contracts import FileCall, ReadBatch
from activities.tools import ToolActivities
from activities.workspace import WorkspaceActivities
from runtime.archive.job import JobArchive
from runtime.archive.stores import MemoryStore
from runtime.base.errors import InputError
from runtime.base.redaction.marks import mark_of
from runtime.base.redaction.rules import Redaction
from runtime.base.spec.models import JobSpec, ModelSettings
from runtime.client.masking import (
    MOST_MESSAGE_BYTES,
    masked_message,
    masked_spec,
    masked_text,
)
from runtime.context.sources import ReadRequest

KEY = "k" * 20
SECRET = "correct-horse"
RULES = Redaction(env=("PIN",))
MARK = mark_of("PIN", SECRET.encode(), KEY.encode())


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOLDFAST_REDACTION_KEY", KEY)
    monkeypatch.setenv("PIN", SECRET)


def read(workspace: Path, **request: object) -> tuple[str, int]:
    asked = ReadRequest(obj_id="v", path="a.txt", **{"tokens": 200, **request})
    batch = ReadBatch(
        workspace=str(workspace), requests=(asked,), encoding="cl100k_base", redact=RULES
    )
    (result,) = ActivityEnvironment().run(WorkspaceActivities().read_sources, batch).results
    return result.text or result.error_message, result.tokens


@pytest.mark.parametrize("lod", [0, 1])
def test_views_show_marks(tmp_path: Path, lod: int) -> None:
    """An excerpt and a structure have the mark, counted in their tokens, and no secret, wherever
    they are cut.
    """
    (tmp_path / "a.txt").write_text(f"# {SECRET}\n" + f"word {SECRET} " * 300)
    for tokens in range(20, 60):
        text, counted = read(tmp_path, lod=lod, tokens=tokens)
        assert "correct" not in text
        assert counted <= tokens
    assert MARK in read(tmp_path, lod=lod)[0]


def test_line_numbers_stay_behind_a_key_of_several_lines(tmp_path: Path) -> None:
    """A masked private key leaves its lines empty, so positions still name the lines they named."""
    key = "-----BEGIN PRIVATE KEY-----\nabc\ndef\n-----END PRIVATE KEY-----"
    (tmp_path / "a.txt").write_text(f"first\n{key}\nlast\n")
    text, _ = read(tmp_path, pos="5:0")
    assert text.splitlines()[-1].endswith("last")
    assert "abc" not in text


def test_errors_do_not_repeat_a_secret(tmp_path: Path) -> None:
    """The path that was asked for may hold one."""
    asked = FileCall(workspace=str(tmp_path), operation="Path.read_text", path=SECRET, redact=RULES)
    result = ActivityEnvironment().run(WorkspaceActivities().file_call, asked)
    assert result.error_type == "FileNotFoundError"
    assert SECRET not in result.error_message


def test_file_calls_give_marks(tmp_path: Path) -> None:
    """Text, bytes, and names of files."""
    (tmp_path / "a.txt").write_text(f"pin {SECRET}\n")
    (tmp_path / SECRET).write_text("")

    def call(operation: str, path: str) -> object:
        asked = FileCall(workspace=str(tmp_path), operation=operation, path=path, redact=RULES)
        return ActivityEnvironment().run(WorkspaceActivities().file_call, asked).value

    assert call("Path.read_text", "a.txt") == f"pin {MARK}\n"
    assert base64.b64decode(str(call("Path.read_bytes", "a.txt"))) == f"pin {MARK}\n".encode()
    assert SECRET not in str(call("Path.iterdir", "."))


def test_goals_and_messages_are_masked_before_they_are_submitted() -> None:
    """By the job's own rules; a message's come from the archived definition."""
    spec = JobSpec(
        id="a", goal=f"Use {SECRET}.", workspace="/w", model=ModelSettings(name="m/x"), redact=RULES
    )
    assert masked_spec(spec).goal == f"Use {MARK}."
    assert masked_spec(masked_spec(spec)) == masked_spec(spec)
    archive = JobArchive(MemoryStore(), "b", "a")
    archive.write_definition(spec.model_dump(mode="json"))
    assert masked_message(archive, f"now {SECRET}") == f"now {MARK}"


def test_a_message_that_no_prompt_has_room_for_is_refused() -> None:
    """By the tokens of its job, and before it is sent; an edited statement is no message."""
    spec = JobSpec(
        id="a", goal="x", workspace="/w", model=ModelSettings(name="m/x"), context_tokens=2_000
    )
    archive = JobArchive(MemoryStore(), "b", "a")
    archive.write_definition(spec.model_dump(mode="json"))
    most = "word " * 999 + "word"
    assert masked_message(archive, most) == most
    with pytest.raises(InputError, match=r"1,001 tokens to a job .* 2,000: expected 1,000 at most"):
        masked_message(archive, f"{most} word")
    with pytest.raises(InputError, match="of 262,145 bytes: expected 262,144 at most"):
        masked_message(archive, "x" * (MOST_MESSAGE_BYTES + 1))
    for nothing in ("", " \n"):
        with pytest.raises(InputError, match="expected a message that says something"):
            masked_message(archive, nothing)
    assert masked_text(archive, most * 2) == most * 2


async def test_a_tools_result_is_archived_masked(tmp_path: Path) -> None:
    """What the archive holds of a tool call, the statement got: marks."""
    from activities.contracts import ToolRequest
    from runtime.base.values import JobKey

    (tmp_path / "pintools.py").write_text(
        f"def code() -> dict[str, list[str]]:\n    return {{'a': ['{SECRET}']}}\n\n"
        f"def bad() -> None:\n    raise ValueError('{SECRET}')\n"
    )
    store = MemoryStore()
    tools = ToolActivities(store)
    for number, name in enumerate(("code", "bad")):
        request = ToolRequest(
            key=JobKey(batch="b", job="a"), turn=1, effect=number, tool=f"pintools:{name}", search_path=str(tmp_path),
            redact=RULES,
        )  # fmt: skip
        result = await ActivityEnvironment().run(tools.call_tool, request)
        assert (result.value, result.error_message) in [({"a": [MARK]}, ""), (None, MARK)]
        run = ActivityEnvironment().info.workflow_run_id or ""
        assert JobArchive(store, "b", "a").effect(run, 1, number) == result.model_dump(mode="json")
