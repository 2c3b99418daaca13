"""Traces: what a collector really gets of a run, and that nothing depends on one."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from activities.traced import tell_losses
from runtime.base.errors import InputError
from runtime.base.trace_ids import trace_id, turn_span_id
from runtime.cli import telemetry
from tests.cli.command_line import CommandLine

SECRET = "a-text-of-the-prompt"

SCRIPT = f"""
def respond(messages):
    n = sum(m["role"] == "assistant" for m in messages)
    if n == 0:
        return {{"code": "r = sh('echo {SECRET}')"}}
    if n == 1 and "{SECRET}" in str(messages):
        return {{"code": "x = 1", "fail": {{"status": 500, "message": "No {SECRET}."}}, "times": 1}}
    return {{"code": "finish(1)"}}
"""

PATIENT = {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "100"}
"""Of a run whose spans a test counts, on however busy a machine."""

HURRIED = {"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT": "1"}

WORKSPACE = "workspace: {from: ./ws, write: true, sandbox: none}"

UNTRACED = """
import os, sys
from runtime.cli.main import main
code = main(sys.argv[1:])
sys.stdout.flush()
print(code, *sys.modules, file=sys.stderr, flush=True)
os._exit(code)
"""

Spans = list[dict[str, Any]]


@dataclass
class Collector:
    """A server that speaks OpenTelemetry's protocol over HTTP, and keeps what it got."""

    url: str = ""
    bodies: list[tuple[str, bytes]] = field(default_factory=list)

    def spans(self) -> Spans:
        """Every span that came."""
        found: Spans = []
        for path, body in self.bodies:
            assert path == "/v1/traces"
            for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
                (service,) = (
                    a.value.string_value
                    for a in resource.resource.attributes
                    if a.key == "service.name"
                )
                assert service == "holdfast"
                found += [_plain(span) for scope in resource.scope_spans for span in scope.spans]
        return found


def _plain(span: Any) -> dict[str, Any]:
    return {
        "trace": span.trace_id.hex(),
        "id": span.span_id.hex(),
        "parent": span.parent_span_id.hex(),
        "name": span.name,
        "failed": span.status.code == span.status.STATUS_CODE_ERROR,
        "events": len(span.events),
        "seconds": (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
        **{a.key: getattr(a.value, a.value.WhichOneof("value")) for a in span.attributes},
    }


@pytest.fixture
def collector() -> Iterator[Collector]:
    made = Collector()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            made.bodies.append((self.path, body))
            self.send_response(200)
            self.end_headers()

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        made.url = f"http://127.0.0.1:{server.server_address[1]}"
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        yield made
        server.shutdown()
        serving.join()


def test_a_run_is_a_trace(cli: CommandLine, collector: Collector) -> None:
    """Turns, attempts at their calls, effects and what each wrote are spans below one another, with
    what the conventions say of a call; none holds text, and the logs tell the trace.
    """
    cli.write("a.py", SCRIPT)
    file = cli.jobs(f"id: a, model: scripted/a.py, {WORKSPACE}", batch="traced")
    done = cli.finished(
        cli.start("run", file, HOLDFAST_TRACES=collector.url, HOLDFAST_LOG="json", **PATIENT)
    )
    assert done.code == 0, done.err
    archive = cli.archive("traced", "a")
    (run,) = archive.runs()
    steps = list(archive.steps())
    everything = collector.spans()
    assert all(span["seconds"] >= 0 and span["events"] == 0 for span in everything)
    assert not any(SECRET.encode() in body for _, body in collector.bodies)
    spans = [span for span in everything if span["trace"] == trace_id(run)]
    assert {span.get("holdfast.job", "a") for span in spans} == {"a"}

    turns = {span["name"]: span for span in spans if span["name"].startswith("turn ")}
    assert {name: (one["id"], one["parent"]) for name, one in turns.items()} == {
        f"turn {n}": (turn_span_id(run, n), "") for n in (1, 2, 3)
    }
    calls = [span for span in spans if span.get("gen_ai.operation.name") == "chat"]
    told = [(c["parent"], c["holdfast.attempt"], c.get("error.type")) for c in calls]
    assert (turn_span_id(run, 2), 1, "ServerError") in told
    assert {parent for parent, _, error in told if error is None} == {
        turn_span_id(run, n) for n in (1, 2, 3)
    }
    assert [call["failed"] for call in calls] == ["error.type" in call for call in calls]
    answered = {c["holdfast.turn"]: c for c in calls if "gen_ai.usage.input_tokens" in c}
    assert {
        turn: (call["gen_ai.usage.input_tokens"], call["gen_ai.usage.output_tokens"])
        for turn, call in answered.items()
    } == {step.turn: (step.usage.prompt, step.usage.completion) for step in steps}
    for call in calls:
        assert call["gen_ai.provider.name"] == "scripted"
        assert call["gen_ai.request.model"].endswith("a.py")
        assert call["gen_ai.conversation.id"] == "traced/a"
        assert (call["holdfast.batch"], call["holdfast.run"]) == ("traced", run)
        assert call["holdfast.queue.wait_seconds"] >= 0

    effects = [s for s in spans if s.get("gen_ai.operation.name") == "execute_tool"]
    assert {(e["name"], e["parent"], e["holdfast.effect"]) for e in effects} == {
        ("execute_tool sh", turn_span_id(run, 1), 0)
    }
    writes = {s["holdfast.archive.key"] for s in spans if s["name"] == "archive put"}
    assert {step.ref.key for step in steps} <= writes
    below = {s["parent"] for s in spans if s["name"] == "archive put"}
    assert {call["id"] for call in answered.values()} <= below
    ids = {span["id"] for span in spans}
    assert {span["parent"] for span in spans} <= ids | {""}

    logged = [json.loads(line) for line in done.err.splitlines() if line.startswith("{")]
    about = [one for one in logged if one.get("activity") == "turn-2"]
    assert {one["trace_id"] for one in about} == {trace_id(run)}


PROGRAM = """
import os, sys
import holdfast
ended = holdfast.run(sys.argv[1]).succeeded
os._exit(0 if ended else 1)
"""


def test_a_run_from_python_is_traced_too(cli: CommandLine, collector: Collector) -> None:
    """With the setting, what ``holdfast.run`` runs is sent before it returns: this program ends at
    once, and its spans are there.
    """
    cli.write("a.py", "def respond(messages):\n    return {'code': 'finish(1)'}\n")
    file = cli.jobs("id: a, model: scripted/a.py", batch="traced-python")
    root = str(telemetry.__file__).partition("/runtime/")[0]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(file)],
        cwd=cli.path,
        env={**os.environ, "PYTHONPATH": root, "HOLDFAST_TRACES": collector.url, **PATIENT},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (run,) = cli.archive("traced-python", "a").runs()
    spans = [span for span in collector.spans() if span["trace"] == trace_id(run)]
    assert turn_span_id(run, 1) in {span["id"] for span in spans if span["name"] == "turn 1"}
    assert {"begin_job", "end_job"} <= {span["name"] for span in spans}


def test_without_the_setting_nothing_is_loaded(cli: CommandLine) -> None:
    """A whole run loads nothing of what makes or sends spans."""
    cli.write("a.py", "def respond(messages):\n    return {'code': 'finish(1)'}\n")
    file = cli.jobs("id: a, model: scripted/a.py", batch="untraced")
    done = subprocess.run(
        [sys.executable, "-c", UNTRACED, "run", str(file)],
        cwd=cli.path,
        env={**os.environ, "PYTHONPATH": str(telemetry.__file__).partition("/runtime/")[0]},
        capture_output=True,
        text=True,
        check=False,
    )
    code, *names = done.stderr.splitlines()[-1].split()
    assert code == "0", done.stderr
    assert "activities.model" in names
    ours = ("activities.traced", "opentelemetry.sdk", "opentelemetry.exporter")
    assert [name for name in names if name.startswith(ours)] == []


@pytest.mark.parametrize("answers", [False, True], ids=["refuses", "never-answers"])
def test_a_dead_collector(cli: CommandLine, answers: bool) -> None:
    """One that is not there, or that takes what is sent and says nothing, costs no job anything."""
    cli.write("a.py", "def respond(messages):\n    return {'code': 'finish(1)'}\n")
    file = cli.jobs("id: a, model: scripted/a.py", batch=f"dead-{answers}".lower())
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        if answers:
            held.listen()
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        done = cli.finished(cli.start("run", file, "--json", HOLDFAST_TRACES=url, **HURRIED))
    assert done.code == 0, done.err
    assert done.summary()["a"]["status"] == "succeeded"
    assert "Traceback" not in done.err
    assert "spans batch" not in done.err


def test_losses_are_told_once(caplog: pytest.LogCaptureFixture) -> None:
    """A collector that goes away is told of once, until it has answered again."""
    results = [SpanExportResult.FAILURE, SpanExportResult.FAILURE, SpanExportResult.SUCCESS]

    class Sender(SpanExporter):
        def export(self, spans: Any) -> SpanExportResult:
            return results[len(spans)]

    telling = tell_losses(Sender())
    for number in (0, 1, 2, 0):
        telling.export([ReadableSpan("x")] * number)
    told = [record.getMessage() for record in caplog.records]
    assert told == ["traces cannot be sent to HOLDFAST_TRACES: they are lost, jobs go on"] * 2


@pytest.mark.parametrize(
    ("given", "endpoint"),
    [
        (None, None),
        ("", None),
        ("http://collector:4318", "http://collector:4318/v1/traces"),
        ("https://collector/otlp/", "https://collector/otlp/v1/traces"),
        ("http://[::1]:4318/v1/traces", "http://[::1]:4318/v1/traces"),
    ],
)
def test_where_traces_go(
    given: str | None, endpoint: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are off without a collector; one is named by its base, as elsewhere, or in full."""
    monkeypatch.delenv("HOLDFAST_TRACES", raising=False)
    if given is not None:
        monkeypatch.setenv("HOLDFAST_TRACES", given)
    assert telemetry.traces_endpoint() == endpoint


@pytest.mark.parametrize(
    "wrong",
    ["collector:4318", "grpc://collector:4317", "http://", "http://u:pw@h:4318", "http://h:99999"],
)
def test_what_is_no_collector(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is no collector's URL is refused by the name of the setting, a password untold."""
    monkeypatch.setenv("HOLDFAST_TRACES", wrong)
    with pytest.raises(InputError, match=r"^HOLDFAST_TRACES: expected the URL") as told:
        telemetry.traces_endpoint()
    assert "pw" not in str(told.value)


def test_traces_need_their_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without what sends traces, the setting says what to install."""
    monkeypatch.setenv("HOLDFAST_TRACES", "http://collector:4318")
    monkeypatch.setattr(telemetry, "find_spec", lambda name: None)
    with pytest.raises(InputError, match=r"pip install .* -e '\.\[traces\]'$"):
        telemetry.traces_endpoint()


def test_a_wrong_collector_ends_a_worker(cli: CommandLine) -> None:
    """Nothing is started: the command ends with exit code 2."""
    done = cli.finished(cli.start("worker", HOLDFAST_TRACES="collector"))
    assert done.code == 2
    assert done.err.startswith("error: HOLDFAST_TRACES: expected the URL of a collector")


def test_ids_are_the_same_everywhere() -> None:
    """A run's trace is its id; whatever else a run is called has one too."""
    assert trace_id("01a203e6-a3a3-72a4-b395-c594db1551cb") == "01a203e6a3a372a4b395c594db1551cb"
    assert len(trace_id("run-1")) == 32
    assert int(trace_id("0" * 32), 16) != 0
    assert turn_span_id("r", 1) != turn_span_id("r", 2)
