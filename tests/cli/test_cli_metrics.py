"""Metrics: what a worker really exports, and that dashboards and alerts ask for nothing else."""

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from runtime.base.errors import InputError
from runtime.cli.telemetry import metrics_address
from runtime.server.ports import unused_ports
from tests.cli.command_line import ROOT, UNHURRIED, CommandLine, wait_for

DASHBOARD = ROOT / "infra" / "grafana" / "dashboards" / "holdfast.json"
ALERTS = ROOT / "infra" / "prometheus" / "alerts.yml"

FAILING = """
def respond(messages):
    n = sum(m["role"] == "assistant" for m in messages)
    if n == 1:
        return {"code": "x = 1", "fail": {"status": 500, "message": "No."}, "times": 1}
    return {"code": f"x = {n}", "delay": 0.2}
"""

OF_PROMETHEUS = {"up"}
"""What Prometheus itself says of a target."""


def queries() -> dict[str, str]:
    """Each query of the dashboard and the alerts, by its name."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    found = {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in panels
        for target in panel["targets"]
    }
    for group in YAML(typ="safe").load(ALERTS.read_text())["groups"]:
        found |= {rule["alert"]: rule["expr"] for rule in group["rules"]}
    return found


def asked_for(query: str) -> dict[str, set[str]]:
    """The metrics of a query, each with the labels that it is chosen or grouped by."""
    groups = re.findall(r"\bby \(([^)]*)\)", query)
    by = {label.strip() for group in groups for label in group.split(",")}
    bare = re.sub(r"\bby \([^)]*\)", "", query)
    found = re.findall(r"\b(?!(?:inf|or)\b)([a-z][a-z_]+)\b(?!\s*\()(\{[^}]*\})?", bare)
    chosen = re.sub(r"\{[^}]*\}", "", bare)
    return {
        name: by | set(re.findall(r"([a-z_]+)=", labels))
        for name, labels in found
        if re.search(rf"\b{name}\b", chosen)
    }


def exported(text: str) -> dict[str, set[str]]:
    """The metrics of a scrape, each with its labels."""
    found: dict[str, set[str]] = {}
    for name, labels in re.findall(r"^([a-z_]+)(?:\{(.*)\})? \S+$", text, re.MULTILINE):
        found.setdefault(name, set()).update(re.findall(r'([a-z_]+)="', labels))
    return found


def scrape(port: int) -> str:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            return str(answer.read().decode())
    except (urllib.error.URLError, OSError):
        return ""


def test_each_query_finds_what_a_worker_exports(cli: CommandLine) -> None:
    """Every metric and label that the dashboard and the alerts ask for is in the scrape of a worker
    that has had turns, replays and a failed attempt.
    """
    cli.write("a.py", FAILING)
    file = cli.jobs(f"id: a, model: scripted/a.py, {UNHURRIED}", batch="metrics")
    (port,) = unused_ports(1)
    process = cli.start("run", file, HOLDFAST_METRICS=f"127.0.0.1:{port}")
    wanted: dict[str, set[str]] = {}
    for query in queries().values():
        for name, labels in asked_for(query).items():
            if name not in OF_PROMETHEUS:
                wanted.setdefault(name, set()).update(labels)
    # What workers are added by (infra/prometheus/adapter.yaml).
    wanted["temporal_worker_task_slots_used"] = {"worker_type"}
    assert len(wanted) > 8

    there: dict[str, set[str]] = {}

    def all_there() -> bool:
        there.update(exported(scrape(port)))
        return wanted.keys() <= there.keys()

    wait_for(all_there, f"metrics {sorted(wanted)}", process)
    missing = {name: labels - there[name] for name, labels in wanted.items()}
    # ``instance`` and ``job`` are Prometheus' own.
    left = {name: labels - {"instance", "job"} for name, labels in missing.items()}
    assert {name: labels for name, labels in left.items() if labels} == {}


def test_queries_are_taken_apart() -> None:
    """Names, labels that are chosen by and labels that are grouped by are found, functions not."""
    query = 'histogram_quantile(0.95, sum by (le, a) (rate(x_bucket{b="c"}[5m]))) > 5'
    assert asked_for(query) == {"x_bucket": {"le", "a", "b"}}
    assert asked_for("sum(y_total) / 1e6 or 0") == {"y_total": set()}
    assert exported('x_bucket{le="1",a="2"} 3\ny_total 4\n# TYPE z counter') == {
        "x_bucket": {"le", "a"},
        "y_total": set(),
    }


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool (Debian: prometheus)")
def test_alerts_ring_when_they_should() -> None:
    """promtool takes the configuration, the rules and every query of the dashboard, and the rules'
    own tests pass.
    """
    folder = ALERTS.parent
    for words in (
        ["check", "config", "prometheus.yml"],
        ["test", "rules", "alerts_test.yml"],
    ):
        done = subprocess.run(
            ["promtool", *words], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_each_alert_has_a_runbook() -> None:
    """The page has a section for each alert, by the name that the alert links to."""
    page = (ROOT / "docs" / "deploying.md").read_text()
    for group in YAML(typ="safe").load(ALERTS.read_text())["groups"]:
        for rule in group["rules"]:
            name = rule["alert"]
            assert rule["annotations"]["runbook"] == f"docs/deploying.md#{name.lower()}"
            assert re.search(rf"^#+ {name}$", page, re.MULTILINE), name


def test_an_address_is_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metrics are off without an address; one that is none is refused by the name of the
    setting.
    """
    monkeypatch.delenv("HOLDFAST_METRICS", raising=False)
    assert metrics_address() is None
    assert metrics_address("[::1]:9464") == "[::1]:9464"
    monkeypatch.setenv("HOLDFAST_METRICS", "localhost")
    with pytest.raises(InputError, match="HOLDFAST_METRICS 'localhost'"):
        metrics_address()
    for wrong in ("127.0.0.1", "127.0.0.1:0", "127.0.0.1:70000"):
        with pytest.raises(InputError, match="--metrics"):
            metrics_address(wrong)


def test_an_address_that_is_taken(own_cli: CommandLine) -> None:
    """A worker whose metrics cannot be served says so and does not begin."""
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        at = f"127.0.0.1:{other.getsockname()[1]}"
        done = own_cli.finished(own_cli.start("worker", "--metrics", at))
    assert done.code == 2
    assert f"metrics cannot be served at {at}" in done.err
    assert not Path(os.environ["HOLDFAST_HOME"], "server", "temporal.db").exists()


def test_logs_as_documents(own_cli: CommandLine) -> None:
    """With HOLDFAST_LOG=json what has to be known is one JSON object a line, with job, activity and
    attempt; another value is refused.
    """
    code = (
        "import logging; from runtime.cli.logs import log_in_lines; log_in_lines();"
        "told = {'workflow_id': 'holdfast/b/j', 'workflow_run_id': 'r', 'activity_id': 'turn-4',"
        " 'attempt': 2};"
        "logging.getLogger('activities.x').warning('slow %s', 'a\\nb',"
        " extra={'temporal_activity': told})"
    )

    def run(form: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "HOLDFAST_LOG": form, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )

    (line,) = run("json").stderr.splitlines()
    told = json.loads(line)
    assert {name: told[name] for name in told if name not in {"time", "process"}} == {
        "level": "warning",
        "logger": "activities.x",
        "message": "slow a\nb",
        "job": "b/j",
        "run": "r",
        "activity": "turn-4",
        "turn": 4,
        "attempt": 2,
    }
    assert "HOLDFAST_LOG 'xml': expected json or text" in run("xml").stderr
