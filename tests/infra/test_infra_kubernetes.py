"""The manifests of ``infra/kubernetes``: by Kubernetes' own schemas, and by what the program
reads.
"""

from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest

from activities.metered import Metered
from runtime.cli.telemetry import metrics_address
from runtime.worker.worker import CALLS, GRACE
from tests.infra.kustomize import Manifest, build
from tests.infra.settings import ROOT, is_known, read_command

FOLDER = ROOT / "infra" / "kubernetes"
BUILDS = ("base", "overlays/temporal-cloud", "overlays/self-hosted")
VERSIONS = ("1.32", "1.37")
"""The oldest and the newest Kubernetes that the manifests are checked for."""

OF_OPERATORS = {"holdfast-key", "holdfast-providers", "temporal-cloud", "temporal-tls"}
"""Secrets that the files say how to make."""


@pytest.fixture(params=BUILDS)
def manifests(request: pytest.FixtureRequest) -> list[Manifest]:
    return build(FOLDER / request.param)


def pods(manifests: list[Manifest]) -> list[dict[str, Any]]:
    return [
        one["spec"]["template"]["spec"] for one in manifests if "template" in one.get("spec", {})
    ]


def of_kind(manifests: list[Manifest], kind: str) -> Manifest:
    (found,) = (one for one in manifests if one["kind"] == kind)
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_each_object_has_its_schema(manifests: list[Manifest], version: str) -> None:
    """Every object is valid, with no field that Kubernetes does not know."""
    for manifest in manifests:
        kubernetes_validate.validate(manifest, version, strict=True)
        assert manifest["kind"] == "Namespace" or manifest["metadata"]["namespace"] == "holdfast"


def test_a_wrong_field_is_seen() -> None:
    """A misspelt field of a pod fails."""
    manifest = of_kind(build(FOLDER / "base"), "Deployment")
    manifest["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = {}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(manifest, VERSIONS[-1], strict=True)


def test_each_setting_is_read_by_the_program(manifests: list[Manifest]) -> None:
    """Every variable and every word of a command line is one that the program knows."""
    settings = of_kind(manifests, "ConfigMap")
    names = set(settings["data"])
    for pod in pods(manifests):
        for container in pod["containers"]:
            names |= {variable["name"] for variable in container["env"]}
            assert read_command(container["args"]) in {"worker", "init"}
            if "--metrics" in container["args"]:
                assert metrics_address(container["args"][-1]) is not None
    assert {name for name in names if not is_known(name)} == set()
    assert {"TEMPORAL_ADDRESS", "HOLDFAST_STORE", "HOLDFAST_KEY", "HOLDFAST_HOME"} <= names


def test_what_is_named_is_there(manifests: list[Manifest]) -> None:
    """Config maps, secrets, accounts, volumes and ports that are named are made, or told how to."""
    made = {(one["kind"], one["metadata"]["name"]) for one in manifests}
    for pod in pods(manifests):
        assert ("ServiceAccount", pod.get("serviceAccountName", "holdfast-worker")) in made
        volumes = {volume["name"] for volume in pod["volumes"]}
        secrets = {v["secret"]["secretName"] for v in pod["volumes"] if "secret" in v}
        for container in pod["containers"]:
            assert {mount["name"] for mount in container["volumeMounts"]} <= volumes
            for source in container["envFrom"]:
                secrets |= {source["secretRef"]["name"]} if "secretRef" in source else set()
                if "configMapRef" in source:
                    assert ("ConfigMap", source["configMapRef"]["name"]) in made
            for variable in container["env"]:
                if "valueFrom" in variable:
                    secrets.add(variable["valueFrom"]["secretKeyRef"]["name"])
        assert secrets <= OF_OPERATORS


def test_pods_hold_no_more_than_they_need(manifests: list[Manifest]) -> None:
    """No root, no capability, no token, nothing to write to but its own volumes, limits for all."""
    for pod in pods(manifests):
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 10001
        assert pod["automountServiceAccountToken"] is False
        for container in pod["containers"]:
            context = container["securityContext"]
            assert context["readOnlyRootFilesystem"] is True
            assert context["allowPrivilegeEscalation"] is False
            assert context["capabilities"] == {"drop": ["ALL"]}
            assert "memory" in container["resources"]["limits"]


def test_a_worker_may_drain(manifests: list[Manifest]) -> None:
    """A pod has more time to end than a worker gives its calls."""
    (worker,) = (pod for pod in pods(manifests) if "terminationGracePeriodSeconds" in pod)
    assert worker["terminationGracePeriodSeconds"] >= GRACE.total_seconds() + 30


def test_selectors_select_the_worker(manifests: list[Manifest]) -> None:
    """Deployment, budget, autoscaler and policy are about the worker's pods, the budget about no
    others.
    """
    deployment = of_kind(manifests, "Deployment")
    labels = deployment["spec"]["template"]["metadata"]["labels"]
    budget = of_kind(manifests, "PodDisruptionBudget")["spec"]["selector"]["matchLabels"]
    assert deployment["spec"]["selector"]["matchLabels"].items() <= labels.items()
    assert budget.items() <= labels.items()
    selected = of_kind(manifests, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"]
    for manifest in manifests:
        if "template" in manifest.get("spec", {}):
            of_pod = manifest["spec"]["template"]["metadata"]["labels"]
            assert selected.items() <= of_pod.items()
            assert (budget.items() <= of_pod.items()) is (manifest["kind"] == "Deployment")
    target = of_kind(manifests, "HorizontalPodAutoscaler")["spec"]["scaleTargetRef"]
    assert target == {
        "apiVersion": "apps/v1", "kind": "Deployment", "name": deployment["metadata"]["name"],
    }  # fmt: skip


def test_workers_are_added_before_they_are_full() -> None:
    """The autoscaler aims below a worker's calls at a time."""
    metrics = of_kind(build(FOLDER / "base"), "HorizontalPodAutoscaler")["spec"]["metrics"]
    assert int(metrics[0]["pods"]["target"]["averageValue"]) < CALLS
    assert Metered.__doc__


def test_only_the_way_to_temporal_differs() -> None:
    """Each overlay's policy lets out to its Temporal's port, and to private addresses nowhere but
    by namespace.
    """
    for name in BUILDS[1:]:
        policy = of_kind(build(FOLDER / name), "NetworkPolicy")["spec"]
        out = policy["egress"]
        assert 7233 in {port["port"] for rule in out for port in rule["ports"]}
        blocks = [to["ipBlock"] for rule in out for to in rule["to"] if "ipBlock" in to]
        assert all("169.254.0.0/16" in block["except"] for block in blocks)
        assert policy["ingress"] and policy["policyTypes"] == ["Ingress", "Egress"]


def test_commands_need_the_component() -> None:
    """Only with the component for commands are user namespaces and an unmasked /proc asked for,
    and never the host's users.
    """
    (with_it,) = (p for p in pods(build(FOLDER / BUILDS[2])) if "hostUsers" in p)
    assert with_it["hostUsers"] is False
    context = with_it["containers"][0]["securityContext"]
    assert (context["procMount"], context["seccompProfile"]) == ("Unmasked", {"type": "Unconfined"})
    (without,) = pods(build(FOLDER / "base"))
    assert "procMount" not in without["containers"][0]["securityContext"]
