"""``scripted/FILE``: written replies on the path of a real provider, without a wire and saying
so.
"""

import json
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from model_calls import RUN, STREAMING, Job, attempt, run
from temporalio.exceptions import ApplicationError

from activities._script import reply_to
from activities.contracts import ReplyForm
from runtime.archive.forms import Capture
from runtime.base.digests import canonical_json
from runtime.base.tokens import encoding
from runtime.base.values import ToolCall, Usage
from runtime.projection.replies import parse_reply

pytestmark = pytest.mark.usefixtures("litellm")

LONG = "A long reply, in which  blanks and\nlines count. " * 20


def scripted(path: Path, text: str, *, suffix: str = ".yaml", **options: Any) -> Job:
    """A job whose model is the script ``text``."""
    file = path / f"script{suffix}"
    file.write_text(text)
    return Job({"name": f"scripted/{file}", **options})


async def failure(job: Job, number: int = 1) -> ApplicationError:
    with pytest.raises(ApplicationError) as raised:
        await run(job.store, job.call(), attempt(number))
    return raised.value


@STREAMING
async def test_a_list_is_replied_in_order(tmp_path: Path, stream: bool) -> None:
    """Each turn gets the next reply; text, statement and thinking arrive as written."""
    replies = [
        LONG,
        {"text": "Now.", "code": "x = 'é'\nprint(x)", "thinking": "Hm."},
        {"refusal": "No."},
        "",
    ]
    job = scripted(tmp_path, json.dumps(replies), stream=stream)
    first, second, third, fourth = [await job.take_turn() for _ in replies]
    assert (first.text, first.tool_calls, first.finish_reason) == (LONG, (), "stop")
    assert second.tool_calls == (
        ToolCall(id="call_1", name="python", arguments='{"code":"x = \'é\'\\nprint(x)"}'),
    )
    assert second.thinking == ({"type": "thinking", "thinking": "Hm.", "signature": "scripted"},)
    assert second.finish_reason == "tool_calls"
    assert third.refusal == "No."
    assert fourth.text == ""
    assert [r.response_id for r in (first, fourth)] == ["scripted-0", "scripted-3"]


async def test_a_statement_comes_in_the_form_that_was_asked_for(tmp_path: Path) -> None:
    """In the form `script` the statement is a block in the text."""
    job = scripted(tmp_path, json.dumps([{"text": "Now.", "code": "print(1)"}]))
    job.form = ReplyForm.SCRIPT
    reply = await job.take_turn()
    parsed = parse_reply(reply.text, reply.tool_calls, reply.finish_reason, reply.refusal, "script")
    assert (parsed.statement, parsed.user_text, parsed.problem) == ("print(1)", "Now.", None)


async def test_a_policy_sees_the_messages(tmp_path: Path) -> None:
    """A Python file's `respond` decides by what it is shown."""
    policy = """
def respond(messages):
    return {"code": f"seen = {[m['role'] for m in messages]}"}
"""
    job = scripted(tmp_path, policy, suffix=".py")
    await job.take_turn()
    reply = await job.take_turn()
    roles = ["system", "user", "assistant", "tool", "user"]
    assert json.loads(reply.tool_calls[0].arguments) == {"code": f"seen = {roles}"}


async def test_the_record_says_that_there_was_no_wire(tmp_path: Path) -> None:
    """The archived request is the one handed over, in canonical JSON, and is marked so; usage is
    counted.
    """
    job = scripted(tmp_path, json.dumps(["Hello."]), temperature=0)
    reply = await job.take_turn()
    step = job.archive.step(reply.step)
    assert step.capture is Capture.HANDED_OVER
    request = job.archive.wire_request(RUN, 1)
    asked = json.loads(request)
    assert request == canonical_json(asked)
    assert asked["model"] == job.model["name"]
    assert [m["role"] for m in asked["messages"]] == ["system", "user"]
    assert asked["temperature"] == 0
    assert [t["function"]["name"] for t in asked["tools"]] == ["python"]
    assert job.archive.wire_response(RUN, 1) == b'{"content":"Hello."}\n{"finish_reason":"stop"}\n'
    prompt = sum(segment.tokens for segment in job.archive.turn_layout(RUN, 1))
    assert reply.usage == Usage(
        prompt=prompt, completion=encoding("cl100k_base").count("Hello."), reported=False
    )


@STREAMING
async def test_a_failure_happens_on_the_first_attempts(tmp_path: Path, stream: bool) -> None:
    """`fail` answers as a provider would on `times` attempts, then the reply comes."""
    fail = {"status": 429, "message": "Slow down", "retry_after": 3}
    job = scripted(
        tmp_path, json.dumps([{"text": "Hello.", "fail": fail, "times": 2}]), stream=stream
    )
    for number in (1, 2):
        error = await failure(job, number)
        assert (error.type, error.message, error.non_retryable) == (
            "RateLimitError",
            "Slow down (HTTP 429)",
            False,
        )
        assert error.next_retry_delay == timedelta(seconds=3)
    reply = await run(job.store, job.call(), attempt(3))
    assert (reply.text, reply.attempt) == ("Hello.", 3)


@STREAMING
async def test_a_reply_can_break_off(tmp_path: Path, stream: bool) -> None:
    """`break_after` closes the stream in the middle of the reply."""
    job = scripted(tmp_path, json.dumps([{"text": LONG, "break_after": 100}]), stream=stream)
    assert (await failure(job)).type == "StreamBroken"
    assert (await run(job.store, job.call(), attempt(2))).text == LONG


async def test_a_slow_reply_is_noticed(tmp_path: Path) -> None:
    """`delay` counts against the limit for the first byte."""
    job = scripted(tmp_path, json.dumps([{"text": "Late.", "delay": 30}]), first_byte=0.2)
    error = await failure(job)
    assert (error.type, error.message) == (
        "ModelTimeout",
        "no byte of a reply arrived within 0.2 s",
    )


async def test_an_end_by_the_token_limit_is_told(tmp_path: Path) -> None:
    """`finish_reason` is passed on."""
    assert (
        await scripted(
            tmp_path, json.dumps([{"text": "Cut", "finish_reason": "length"}])
        ).take_turn()
    ).finish_reason == "length"


@pytest.mark.parametrize(
    ("suffix", "text", "words"),
    [
        (".yaml", "[]", "it has 0 replies, and reply 1 was asked for"),
        (".yaml", "x: 1", "a list of replies is expected"),
        (".yaml", "[{txt: a}]", "reply 1: txt: Extra inputs are not permitted"),
        (".yaml", "[", "while parsing a flow"),
        (".yaml", '[{"text": "a", "text": "b"}]', 'found duplicate key "text"'),
        (".py", "x = 1", "it has no function respond(messages)"),
        (
            ".py",
            "def respond(messages): return 1/0",
            "respond raised ZeroDivisionError: division by zero",
        ),
        (".py", "def respond(messages): raise SystemExit(3)", "respond raised SystemExit: 3"),
        (".py", "raise SystemExit('no key')", "SystemExit: no key"),
        (".py", "def respond(messages): return 7", "the reply: Input should be"),
        (".py", "def", "SyntaxError"),
    ],
)
async def test_a_script_that_cannot_be_used_ends_the_job(
    tmp_path: Path, suffix: str, text: str, words: str
) -> None:
    """A wrong script is a bad request, with the file and what is wrong."""
    job = scripted(tmp_path, text, suffix=suffix)
    error = await failure(job)
    assert (error.type, error.non_retryable) == ("BadRequestError", True)
    assert f"scripted model {tmp_path}" in error.message
    assert words in error.message


def test_a_script_in_json_is_read_as_json(tmp_path: Path) -> None:
    """Not by the parser of YAML, which takes hundreds of times as long; pairs of surrogates are
    characters.
    """
    script = tmp_path / "script.yaml"
    script.write_text('["Done \\ud83d\\ude00", {"text": "x"}]')
    files: set[str] = set()
    sys.setprofile(lambda frame, *_: files.add(frame.f_code.co_filename))
    try:
        reply = reply_to(str(script), [], 1)
    finally:
        sys.setprofile(None)
    assert ascii(reply.text) == r"'Done \U0001f600'"
    assert [file for file in files if "ruamel" in file] == []


async def test_what_no_transport_saw_is_not_passed_off_as_wire() -> None:
    """A provider that our transports do not carry is recorded as handed over, after the fact."""
    job = Job(
        {"name": "openai/gpt-4o", "mock_response": "Hello.", "api_key": "sk-test-0123456789abcdef"}
    )
    reply = await job.take_turn()
    assert reply.text == "Hello."
    assert job.archive.step(reply.step).capture is Capture.HANDED_OVER
    assert b"sk-test" not in job.archive.wire_request(RUN, 1)
    assert json.loads(job.archive.wire_response(RUN, 1))["text"] == "Hello."
