"""``ls``, ``log`` and ``show`` of jobs that ran, run, or talk to a real endpoint; ``send`` and
``cancel``.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from runtime.cli.showing import statement_text
from tests.cli.command_line import ROOT, UNHURRIED, CommandLine, counting, script, wait_for
from tests.servers.program import endpoint

pytestmark = pytest.mark.server

POLICY = """
def respond(messages, number):
    if number == 1:
        return {"text": "look", "code": "v = view('a.txt')"}
    return {"code": "finish({'seen': 'ünïcode \\x1b[31m'})"}
"""


TOLD = """
def respond(messages):
    n = sum(m["role"] == "assistant" for m in messages)
    code = "finish('told')" if "look at" in str(messages) else f"x = {n}"
    return {"code": code, "delay": 0.2}
"""
"""It ends when it is told something."""


def test_a_call_that_was_refused(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn whose call failed for good tells why, and has the bytes that came back."""
    refusal = (
        "def respond(messages, number):\n    return {'fail': {'status': 401, 'message': 'No such"
        " key.'}, 'times': 99}\n"
    )
    policy, log = cli.write("policy.py", refusal), tmp_path / "log"
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    with endpoint(policy, log) as address:
        model = f"model: {{name: openai/local, api_base: '{address}/v1'}}"
        assert cli("run", cli.jobs(f"id: refused, {model}", batch="show")).code == 1
    assert "1  AuthenticationError" in cli("log", "refused").out
    assert (
        cli("show", "refused@1", "--part", "wire-response").out.encode()
        == (log / "00001.response").read_bytes()
    )
    reply = cli("show", "refused@1", "--part", "response")
    assert (reply.code, reply.out) == (2, "")
    assert (
        "has no reply: attempt 3 failed with AuthenticationError: No such key. (HTTP 401)"
        in reply.err
    )


def test_the_bytes_of_a_real_endpoint(
    cli: CommandLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parts "wire" and "wire-response" are what the endpoint received and sent, byte for byte;
    the other parts are readable.
    """
    policy, log = cli.write("policy.py", POLICY), tmp_path / "log"
    (tmp_path / "ws").mkdir()
    cli.write("ws/a.txt", "hello\n")
    monkeypatch.setenv("OPENAI_API_KEY", "dummy")
    with endpoint(policy, log) as address:
        model = f"model: {{name: openai/local, api_base: '{address}/v1'}}"
        assert cli("run", cli.jobs(f"id: wired, {model}", batch="show")).code == 0
    for turn in (1, 2):
        for part, kind in (("wire", "request"), ("wire-response", "response")):
            shown = cli("show", f"show/wired@{turn}", "--part", part)
            assert (shown.out.encode(), shown.err) == (
                (log / f"{turn:05d}.{kind}").read_bytes(),
                "",
            )
    shown = subprocess.run(
        [sys.executable, "-m", "runtime.cli.main", "show", "wired@2", "--part", "wire"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    assert (shown.stdout, shown.stderr) == ((log / "00002.request").read_bytes(), b"")
    assert cli("show", "wired@2", "--part", "request", "--json").json()["request"] == json.loads(
        (log / "00002.request").read_bytes()
    )
    prompt = cli("show", "wired@2").out
    assert "--- system · contract · " in prompt
    assert "hello" in prompt
    response = cli("show", "wired@1", "--part", "response", "--json").json()["response"]
    assert response["text"] == "look"
    assert response["usage"]["prompt"] == 1000
    assert cli("show", "wired", "--part", "statement").out.startswith(
        "finish({'seen': 'ünïcode '})"
    )
    assert "view-1" in cli("show", "wired@2", "--part", "nodes").out
    nothing = cli("show", "wired@9")
    assert (nothing.code, nothing.out) == (2, "")
    assert "9" in nothing.err
    absent = cli("log", "show/wired", "--run", "none")
    assert (absent.code, "has no run 'none' in the archive" in absent.err) == (2, True)


def test_a_job_in_flight_is_shown_told_and_cancelled(cli: CommandLine) -> None:
    """log and show have the attempt in flight; a message reaches the next prompt; cancel breaks the
    call off.
    """
    cli.write("told.py", TOLD)
    cli.write("stuck.py", counting(1, 600))
    file = cli.jobs(
        f"id: told, model: scripted/told.py, {UNHURRIED}",
        f"id: stuck, model: scripted/stuck.py, {UNHURRIED}",
        batch="flight",
    )
    process = cli.start("run", file)
    for job in ("told", "stuck"):
        archive = cli.archive("flight", job)
        wait_for(
            lambda a=archive: bool(a.runs()) and a.in_flight() is not None,
            f"a call of {job} in flight",
            process,
        )
    sent = cli("send", "flight/to", "look at \x1b[2J this")
    assert (sent.code, sent.out) == (
        0,
        "flight/told: the message is recorded; the job's model reads it at its next turn\n",
    )
    _, step, *now = cli("log", "stuck").out.splitlines()
    assert step == "   1  in flight                       0+0 tokens  $0.0000"
    # A worker that is too busy to answer does not say what it does.
    assert now in ([], ["now: running: turn 1: model"])
    shown = cli("show", "stuck")
    assert (shown.code, "--- user · goal · " in shown.out) == (0, True)
    wire = cli("show", "stuck", "--part", "request", "--json")
    assert wire.json()["request"]["model"] == f"scripted/{cli.path}/stuck.py"
    reply = cli("show", "stuck", "--part", "response")
    assert (reply.code, "no reply yet" in reply.err) == (2, True)
    listed = {row["job"]: row for row in cli("ls", "flight", "--json").json()}
    assert listed.keys() == {"flight/told", "flight/stuck"}
    # A worker that is too busy to answer leaves a job open.
    assert listed["flight/stuck"]["status"] in {"running", "open"}
    cancelled = cli("cancel", "stuck", "--json")
    assert (cancelled.code, cancelled.json()) == (0, {"job": "flight/stuck", "cancelled": True})
    done = cli.finished(process)
    assert done.code == 1
    assert "flight/stuck  cancelled after 0 turns" in done.out
    assert "look at  this" in cli("show", "told").out
    gone = cli("send", "flight/told", "too late")
    assert (gone.code, "job flight/told does not run" in gone.err) == (2, True)
    ended = cli("cancel", "flight/told")
    assert (ended.code, "job flight/told does not run: it has ended" in ended.err) == (2, True)


def test_a_scripted_model_has_no_wire(cli: CommandLine) -> None:
    """Its record is the request as handed over, and each command that tells of it says so."""
    cli.write("one.yaml", script("finish(1)"))
    assert cli("run", cli.jobs("id: handed, model: scripted/one.yaml", batch="nowire")).code == 0
    shown = cli("show", "handed@1", "--part", "wire")
    assert json.loads(shown.out)["model"] == f"scripted/{cli.path}/one.yaml"
    assert shown.err.startswith("these bytes went over no wire")
    compared = cli("diff", "handed@1", "handed@1", "--wire")
    assert compared.err.startswith("the bytes of nowire/handed@1 went over no wire")
    logged = cli("log", "handed")
    assert logged.err == "not captured on the wire: 1 turn (handed-over)\n"
    assert cli("log", "handed", "--json").json()["turns"][0]["capture"] == "handed-over"
    assert "holds the request as handed over" in cli("verify", "handed").out


def test_arguments_that_no_reader_takes_are_told_as_text(cli: CommandLine) -> None:
    """A model that nests them hid its prompts from whoever asked, and made exports that no program
    reads.
    """
    deep = "[" * 100_000
    calls = [[{"name": "python", "arguments": a}] for a in (deep, '{"a": NaN}')]
    replies = [*({"calls": one} for one in calls), {"code": "finish(1)"}]
    cli.write("odd.yaml", json.dumps(replies))
    assert cli("run", cli.jobs("id: odd, model: scripted/odd.yaml", batch="odd")).code == 0
    shown = cli("show", "odd@3")
    assert (shown.code, deep in shown.out, '{"a": NaN}' in shown.out) == (0, True, True)
    assert cli("show", "odd@3", "--part", "segments").code == 0
    told = cli("export", "odd", "--format", "inspect").out
    log = json.loads(told, parse_constant=pytest.fail)
    arguments = [
        one["arguments"]
        for message in log["samples"][0]["messages"]
        for one in message.get("tool_calls", ())
    ]
    assert arguments == [{"raw": deep}, {"raw": '{"a": NaN}'}, {"code": "finish(1)"}]
    spans = cli("export", "odd", "--format", "otel")
    assert (spans.code, "NaN}}" in spans.out) == (0, False)


@pytest.mark.parametrize(
    ("execution", "told"), [({"status": "ok"}, False), ({"status": "ok", "unchecked": True}, True)]
)
def test_a_statement_that_ran_unchecked_is_told(execution: dict[str, Any], told: bool) -> None:
    """``show --part statement`` says so, as ``log`` does."""
    shown = {
        "statement": "x = 1",
        "problem": None,
        "stdout": "",
        "stderr": "",
        "effects": [],
        "events": [],
        "execution": execution,
    }
    assert ("ran unchecked: the type checker" in statement_text(shown)) == told
