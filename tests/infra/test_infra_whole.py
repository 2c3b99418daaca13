"""Every file of ``infra/`` is checked by something that can fail, and what shows metrics asks for
what there is.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from tests.infra.settings import ROOT

INFRA = ROOT / "infra"
CHECKED_BY = {
    "Dockerfile": "tests/infra/test_infra_image.py",
    "capacity.py": "tests/infra/test_infra_capacity.py",
    "compose.yaml": "tests/infra/test_infra_image.py",
    "grafana/dashboards": "tests/cli/test_cli_metrics.py",
    "grafana/provisioning": "tests/infra/test_infra_whole.py",
    "kubernetes": "tests/infra/test_infra_kubernetes.py",
    "local": "tests/infra/test_infra_local.py",
    "prometheus/adapter.yaml": "tests/infra/test_infra_autoscaling.py",
    "prometheus/alerts.yml": "tests/cli/test_cli_metrics.py",
    "prometheus/alerts_test.yml": "tests/infra/test_infra_whole.py",
    "prometheus/backlog.yml": "tests/infra/test_infra_autoscaling.py",
    "prometheus/backlog_test.yml": "tests/infra/test_infra_autoscaling.py",
    "prometheus/kubernetes.yml": "tests/infra/test_infra_autoscaling.py",
    "prometheus/prometheus.yml": "tests/infra/test_infra_image.py",
    "s3": "tests/infra/test_infra_s3.py",
    "temporal": "tests/infra/test_infra_image.py",
    "sizing": "tests/infra/test_infra_capacity.py",
}
"""Files, and folders whose files are all checked by one module."""


def yaml(name: str) -> Any:
    return YAML(typ="safe").load((INFRA / name).read_text())


def test_every_file_is_somebody_s() -> None:
    """A file that is new has to be given to the module that checks it; each module names it."""
    files = [path.relative_to(INFRA) for path in INFRA.rglob("*") if path.is_file()]
    kept = [file for file in files if "__pycache__" not in file.parts]
    assert [file for file in kept if not _owners(file)] == []
    assert {name for file in kept for name in _owners(file)} == CHECKED_BY.keys()
    for module in CHECKED_BY.values():
        assert (ROOT / module).exists(), module


def _owners(file: Path) -> list[str]:
    return [name for name in CHECKED_BY if file == Path(name) or Path(name) in file.parents]


def test_kustomizations_name_every_file() -> None:
    """No file of ``kubernetes/`` is left out by the kustomization beside it."""
    for told in (INFRA / "kubernetes").rglob("kustomization.yaml"):
        kept = told.read_text()
        for file in told.parent.iterdir():
            if file.is_file() and file != told:
                assert file.name in kept, f"{told} does not name {file.name}"


def test_grafana_is_given_what_there_is() -> None:
    """Its data source is the service of compose that is Prometheus; its dashboards' folder is where
    compose mounts ours.
    """
    services = yaml("compose.yaml")["services"]
    (source,) = yaml("grafana/provisioning/datasources/prometheus.yaml")["datasources"]
    (provider,) = yaml("grafana/provisioning/dashboards/holdfast.yaml")["providers"]
    name, _, port = source["url"].removeprefix("http://").partition(":")
    assert services[name]["image"].startswith("prom/prometheus:")
    assert (source["type"], port) == ("prometheus", "9090")
    mounts = dict(one.split(":")[:2] for one in services["grafana"]["volumes"])
    assert mounts["./grafana/dashboards"] == provider["options"]["path"]
    assert mounts["./grafana/provisioning"] == "/etc/grafana/provisioning"


@pytest.mark.parametrize("rings", [True, False])
def test_each_alert_is_tried(rings: bool) -> None:
    """Its own tests, which promtool runs where it is installed, have a time at which it rings and
    one at which it does not, or not yet.
    """
    alerts = {
        rule["alert"]
        for group in yaml("prometheus/alerts.yml")["groups"]
        for rule in group["rules"]
    }
    tried = yaml("prometheus/alerts_test.yml")
    assert tried["rule_files"] == ["alerts.yml"]
    found = {
        one["alertname"]
        for test in tried["tests"]
        for one in test["alert_rule_test"]
        if bool(one.get("exp_alerts")) is rings
    }
    assert found == alerts
