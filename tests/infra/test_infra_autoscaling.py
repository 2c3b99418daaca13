"""What workers are added by: from the Temporal server's and the workers' metrics, by Prometheus and
its adapter, to the autoscalers of ``infra/kubernetes``.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from runtime.base.roles import Role
from runtime.base.spec.limits import Routes, named_queue, role_queue
from runtime.server.ports import unused_ports
from runtime.worker.worker import CALLS
from tests.cli.command_line import CommandLine
from tests.eventually import eventually
from tests.infra.kustomize import Manifest, build, documents
from tests.infra.settings import ROOT
from tests.infra.test_infra_kubernetes import FOLDER, all_of, of_kind, pods, roles_by
from tests.servers.temporal_server import temporal_server
from workflows.messages import batch_queue

PROMETHEUS = ROOT / "infra" / "prometheus"
ARCHIVE = "5f0e9a3c-1111-4222-8333-444444444444"
EVERY_SECOND = 'matching.backlogMetricsEmitInterval="1s"'
"""Temporal's own interval is a minute."""


def told(name: str) -> Any:
    (one,) = documents(PROMETHEUS / name)
    return one


def scalers(overlay: str) -> dict[str, list[Manifest]]:
    """The metrics of each autoscaler, by the deployment whose workers it adds."""
    return {
        one["spec"]["scaleTargetRef"]["name"]: one["spec"]["metrics"]
        for one in all_of(build(FOLDER / overlay), "HorizontalPodAutoscaler")
    }


def of_type(metrics: list[Manifest], kind: str) -> Manifest:
    (one,) = (metric for metric in metrics if metric["type"] == kind)
    return one


def counted_for(queue: str, label: str) -> list[str]:
    """The workers for whom the rules count a queue, by the label that has its name."""
    (group,) = told("backlog.yml")["groups"]
    return [
        rule["labels"]["workers"]
        for rule in group["rules"]
        for pattern in re.findall(rf'\b{label}=~"([^"]+)"', rule["expr"])
        # Prometheus' own patterns are about the whole value.
        if re.fullmatch(pattern, queue)
    ]


def test_each_queue_is_somebodys() -> None:
    """The rules count each task queue of the program for the deployment that has its role, however
    a server writes its name; those that wait for a rate or for workers of their own for nobody.
    """
    roles = roles_by(build(FOLDER / "overlays/self-hosted"))
    queues = {role_queue(role, ARCHIVE): role for role in Role if role is not Role.TURNS}
    queues[batch_queue("nightly/a b")] = Role.TURNS
    limited = Routes(archive=ARCHIVE, models=("openai/*",), tools=("m:here",)).queues
    for told_as, label in ((_as_temporal, "taskqueue"), (str, "temporal_task_queue")):
        for queue, role in queues.items():
            (workers,) = counted_for(told_as(queue), label)
            assert role in roles[f"holdfast-{workers}"]
        for queue in (*limited, named_queue("gpu", ARCHIVE), "another/program"):
            assert counted_for(told_as(queue), label) == []


def _as_temporal(queue: str) -> str:
    """A queue's name as a Temporal server's metrics have it (seen at 1.32)."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", queue)


@pytest.mark.parametrize("overlay", ["base", "overlays/self-hosted"])
def test_workers_are_added_before_they_are_full(overlay: str) -> None:
    """Each autoscaler aims below a worker's calls at a time, by the metric that workers export and
    the adapter finds by the labels that Prometheus gives.
    """
    (rule,) = told("adapter.yaml")["rules"]["custom"]
    for metrics in scalers(overlay).values():
        asked = of_type(metrics, "Pods")["pods"]
        assert int(asked["target"]["averageValue"]) < CALLS
        assert asked["metric"]["name"] == rule["name"]["as"] == rule["seriesQuery"].split("{")[0]
    labels = rule["resources"]["overrides"]
    assert {name: one["resource"] for name, one in labels.items()} == {
        "kubernetes_namespace": "namespace",
        "pod": "pod",
    }
    for label in labels:
        assert f'{label}!=""' in rule["seriesQuery"]
    assert rule["metricsQuery"] == "sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})"
    holdfast, _ = told("kubernetes.yml")["scrape_configs"]
    given = {one.get("target_label") for one in holdfast["relabel_configs"]} - {None}
    assert given == labels.keys()


def test_each_autoscaler_asks_for_its_own_backlog() -> None:
    """By the name that the rules record and the adapter tells without a namespace of Kubernetes',
    of the namespace that the workers are set to; the other metrics stay.
    """
    (rule,) = told("adapter.yaml")["rules"]["external"]
    (group,) = told("backlog.yml")["groups"]
    recorded = {one["record"] for one in group["rules"]}
    assert recorded == {rule["name"]["as"]} == {rule["seriesQuery"].split("{")[0]}
    assert rule["resources"] == {"namespaced": False}
    made = build(FOLDER / "overlays/self-hosted")
    namespace = of_kind(made, "ConfigMap")["data"]["TEMPORAL_NAMESPACE"]
    plain = scalers("base")
    for name, (backlog, *others) in scalers("overlays/self-hosted").items():
        assert others == plain[name]
        metric = backlog["external"]["metric"]
        assert metric["name"] in recorded
        workers = name.removeprefix("holdfast-")
        assert metric["selector"]["matchLabels"] == {
            "temporal_namespace": namespace,
            "workers": workers,
        }
        assert [one["labels"] for one in group["rules"]].count({"workers": workers}) == 1
        assert int(backlog["external"]["target"]["averageValue"]) < CALLS
    assert list(scalers("overlays/temporal-cloud").values()) == list(plain.values())


def test_prometheus_finds_the_pods() -> None:
    """It looks where the manifests put them, for the annotation and the port that they have, as the
    job that the alerts are about; Temporal's where the policy lets workers out to.
    """
    config = told("kubernetes.yml")
    assert set(config["rule_files"]) == {"alerts.yml", "backlog.yml"}
    made = build(FOLDER / "overlays/self-hosted")
    holdfast, temporal = config["scrape_configs"]
    (annotated, port, *_) = holdfast["relabel_configs"]
    (worker, *_) = all_of(made, "Deployment")
    annotations = worker["spec"]["template"]["metadata"]["annotations"]
    assert annotated["regex"] == annotations["prometheus.io/scrape"]
    assert annotated["source_labels"] == ["__meta_kubernetes_pod_annotation_prometheus_io_scrape"]
    (named,) = pods(made)[0]["containers"][0]["ports"]
    assert (port["regex"], port["action"]) == (named["name"], "keep")
    assert _namespaces(holdfast) == [of_kind(made, "Namespace")["metadata"]["name"]]
    alerts = (PROMETHEUS / "alerts.yml").read_text()
    assert set(re.findall(r'job="(\w+)"', alerts)) == {holdfast["job_name"]}
    host = of_kind(made, "ConfigMap")["data"]["TEMPORAL_ADDRESS"].partition(":")[0]
    assert _namespaces(temporal) == [host.partition(".")[2]]


def _namespaces(job: Mapping[str, Any]) -> list[str]:
    (looked,) = job["kubernetes_sd_configs"]
    assert looked["role"] == "pod"
    return [str(name) for name in looked["namespaces"]["names"]]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool (Debian: prometheus)")
def test_the_backlog_s_rules_record_what_they_should() -> None:
    """promtool takes the rules, whose own tests pass."""
    done = subprocess.run(
        ["promtool", "test", "rules", "backlog_test.yml"],
        cwd=PROMETHEUS,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.fixture
def cli(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[CommandLine]:
    """Commands with a state directory of their own."""
    for name in list(os.environ):
        if name.startswith(("TEMPORAL_", "HOLDFAST_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("TEMPORAL_CONFIG_FILE", str(tmp_path / "none.toml"))
    monkeypatch.setenv("HOLDFAST_HOME", str(tmp_path / "home"))
    line = CommandLine(tmp_path, tmp_path / "home", capsys)
    try:
        yield line
    finally:
        line.end()


@pytest.mark.server
@pytest.mark.slow
async def test_what_waits_is_told(cli: CommandLine, tmp_path: Path) -> None:
    """A real server's metrics have what waits: two jobs' calls of models, for whose role there is
    no worker, and what three workflows wait with. By the rules it counts for these deployments; a
    real Prometheus, where it is installed, answers the adapter's query so for each autoscaler.
    """
    (port,) = unused_ports(1)
    cli.write("a.py", 'def respond(messages):\n    return {"code": "finish()"}\n')
    jobs = cli.jobs("id: a, model: scripted/a.py", "id: b, model: scripted/a.py", batch="waiting")
    options = ("--metrics-port", str(port))
    async with temporal_server(EVERY_SECOND, options=options) as server:
        address = server.client.service_client.config.target_host
        queue = batch_queue("nobody works on it")
        for number in range(3):
            await server.client.start_workflow("Any", id=f"any-{number}", task_queue=queue)
        cli.start("run", jobs, "--address", address, HOLDFAST_ROLES="turns,reads")
        await eventually(
            lambda: _counted(port) == {"models": 2, "turns": 3}, "all that waits is told"
        )
        if shutil.which("prometheus") is None:
            return
        with _prometheus(tmp_path, port) as asked:
            for name, expected in (("turns", 3), ("models", 2)):
                query = _query_of(scalers("overlays/self-hosted")[f"holdfast-{name}"])
                await eventually(
                    lambda query=query, expected=expected: asked(query) == expected,  # type: ignore[misc]
                    f"{query} is {expected}",
                )


def _counted(port: int) -> dict[str, int]:
    """What a server's metrics tell of what waits, by the deployment that the rules count it for."""
    url = f"http://127.0.0.1:{port}/metrics"
    with urllib.request.urlopen(url, timeout=60) as answer:
        text = answer.read().decode()
    found: dict[str, int] = {}
    for labels, value in re.findall(r"^approximate_backlog_count\{(.*)\} (\d+)$", text, re.M):
        names = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        for workers in counted_for(names["taskqueue"], "taskqueue"):
            found[workers] = found.get(workers, 0) + int(value)
    return {workers: waits for workers, waits in sorted(found.items()) if waits}


def _query_of(metrics: list[Manifest]) -> str:
    """The query that the adapter makes of an autoscaler's external metric, on a server whose
    namespace is the development server's.
    """
    (rule,) = told("adapter.yaml")["rules"]["external"]
    metric = of_type(metrics, "External")["external"]["metric"]
    chosen = {**metric["selector"]["matchLabels"], "temporal_namespace": "default"}
    matchers = ",".join(f'{name}="{value}"' for name, value in chosen.items())
    query: str = rule["metricsQuery"]
    return query.replace("<<.Series>>", metric["name"]).replace("<<.LabelMatchers>>", matchers)


@contextmanager
def _prometheus(folder: Path, scraped: int) -> Iterator[Any]:
    """A Prometheus with the rules that scrapes one server; what asks it for a query's value."""
    (port,) = unused_ports(1)
    file = folder / "prometheus.json"
    often = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    jobs = [{"job_name": "temporal", "static_configs": [{"targets": [f"127.0.0.1:{scraped}"]}]}]
    rules = [str(PROMETHEUS / "backlog.yml")]
    file.write_text(json.dumps({"global": often, "rule_files": rules, "scrape_configs": jobs}))
    process = subprocess.Popen(
        [
            *("prometheus", f"--config.file={file}", f"--storage.tsdb.path={folder / 'data'}"),
            f"--web.listen-address=127.0.0.1:{port}",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def value(query: str) -> float | None:
        words = urllib.parse.urlencode({"query": query})
        url = f"http://127.0.0.1:{port}/api/v1/query?{words}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                found = json.loads(answer.read())["data"]["result"]
        except OSError:
            assert process.poll() is None, "Prometheus has ended"
            return None
        return float(found[0]["value"][1]) if found else None

    try:
        yield value
    finally:
        process.kill()
        process.wait()
