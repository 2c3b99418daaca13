"""The manifests of ``infra/kubernetes``: by Kubernetes' own schemas, and by what the program
reads.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest

from runtime.base.roles import Role, Roles, roles_in
from runtime.cli.telemetry import metrics_address
from runtime.worker.worker import GRACE
from tests.infra.kustomize import Manifest, build
from tests.infra.settings import ROOT, is_known, read_command

pytestmark = pytest.mark.slow

FOLDER = ROOT / "infra" / "kubernetes"
BUILDS = ("base", "overlays/temporal-cloud", "overlays/self-hosted")
VERSIONS = ("1.32", "1.37")
"""The oldest and the newest Kubernetes that the manifests are checked for."""

OF_OPERATORS = {"holdfast-key", "holdfast-providers", "temporal-cloud", "temporal-tls"}
"""Secrets that the files say how to make."""

PRIVATE = {"10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16", "100.64.0.0/10"}
"""RFC 1918's, link-local with the clouds' metadata, and RFC 6598's that some clusters use."""


@pytest.fixture(params=BUILDS)
def manifests(request: pytest.FixtureRequest) -> list[Manifest]:
    return build(FOLDER / request.param)


def pods(manifests: list[Manifest]) -> list[dict[str, Any]]:
    return [
        one["spec"]["template"]["spec"] for one in manifests if "template" in one.get("spec", {})
    ]


def all_of(manifests: list[Manifest], kind: str) -> list[Manifest]:
    return [one for one in manifests if one["kind"] == kind]


def of_kind(manifests: list[Manifest], kind: str) -> Manifest:
    (found,) = all_of(manifests, kind)
    return found


def roles_by(manifests: list[Manifest]) -> dict[str, Roles]:
    """The roles of each deployment."""
    found = {}
    for one in all_of(manifests, "Deployment"):
        (container,) = one["spec"]["template"]["spec"]["containers"]
        given = container["args"][container["args"].index("--roles") + 1]
        found[one["metadata"]["name"]] = roles_in(given, "--roles")
    return found


@pytest.mark.parametrize("version", VERSIONS)
def test_each_object_has_its_schema(manifests: list[Manifest], version: str) -> None:
    """Every object is valid, with no field that Kubernetes does not know."""
    for manifest in manifests:
        kubernetes_validate.validate(manifest, version, strict=True)
        assert manifest["kind"] == "Namespace" or manifest["metadata"]["namespace"] == "holdfast"


def test_a_wrong_field_is_seen() -> None:
    """A misspelt field of a pod fails."""
    manifest = all_of(build(FOLDER / "base"), "Deployment")[0]
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


def test_ports_are_those_that_are_served(manifests: list[Manifest]) -> None:
    """Metrics are served where the container, its probes and what scrapes say, and the policy lets
    in to that port by its name.
    """
    served = {"metrics"}
    for worker in all_of(manifests, "Deployment"):
        template = worker["spec"]["template"]
        (container,) = template["spec"]["containers"]
        (port,) = container["ports"]
        given = container["args"][container["args"].index("--metrics") + 1]
        annotations = template["metadata"]["annotations"]
        assert {port["name"]} == served
        assert given == f"0.0.0.0:{port['containerPort']}"
        assert annotations["prometheus.io/port"] == str(port["containerPort"])
        assert annotations["prometheus.io/scrape"] == "true"
        for probe in ("startupProbe", "readinessProbe", "livenessProbe"):
            assert container[probe]["httpGet"] == {"path": "/metrics", "port": port["name"]}
    (let_in,) = of_kind(manifests, "NetworkPolicy")["spec"]["ingress"]
    assert {port["port"] for port in let_in["ports"]} == served


def test_files_that_are_named_are_on_volumes(manifests: list[Manifest]) -> None:
    """The state directory is on a volume that may be written to, and what the settings name is on
    one that every container has.
    """
    settings = of_kind(manifests, "ConfigMap")["data"].values()
    named = {Path(value) for value in settings if value.startswith("/")}
    for pod in pods(manifests):
        for container in pod["containers"]:
            mounts = {Path(one["mountPath"]): one for one in container["volumeMounts"]}
            (home,) = (one["value"] for one in container["env"] if one["name"] == "HOLDFAST_HOME")
            (of_home,) = mounts.keys() & set(Path(home).parents)
            assert not mounts[of_home].get("readOnly")
            assert [path for path in named if not mounts.keys() & set(path.parents)] == []


def test_a_worker_may_drain(manifests: list[Manifest]) -> None:
    """A pod has more time to end than a worker gives its calls."""
    for worker in all_of(manifests, "Deployment"):
        seconds = worker["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        assert seconds >= GRACE.total_seconds() + 30


def test_each_role_is_somebodys(manifests: list[Manifest]) -> None:
    """Each role has one deployment; the providers' keys are where models are called, and no program
    runs there.
    """
    roles = roles_by(manifests)
    assert sorted(role for some in roles.values() for role in some) == sorted(Role)
    for deployment in all_of(manifests, "Deployment"):
        own = roles[deployment["metadata"]["name"]]
        (container,) = deployment["spec"]["template"]["spec"]["containers"]
        secrets = [one["secretRef"]["name"] for one in container["envFrom"] if "secretRef" in one]
        assert secrets == (["holdfast-providers"] if Role.MODELS in own else [])
        if Role.MODELS in own:
            assert own.isdisjoint({Role.TOOLS, Role.SANDBOXES})


def test_selectors_select_the_workers(manifests: list[Manifest]) -> None:
    """Each deployment's pods are its own, and those of one budget and one autoscaler; the policy is
    about all pods.
    """
    workers = all_of(manifests, "Deployment")
    of_pods = {
        one["metadata"]["name"]: one["spec"]["template"]["metadata"]["labels"] for one in workers
    }
    budgets = [
        one["spec"]["selector"]["matchLabels"] for one in all_of(manifests, "PodDisruptionBudget")
    ]
    own = [one["spec"]["selector"]["matchLabels"] for one in workers]
    for selectors in (budgets, own):
        for labels in of_pods.values():
            assert len([one for one in selectors if one.items() <= labels.items()]) == 1
    selected = of_kind(manifests, "NetworkPolicy")["spec"]["podSelector"]["matchLabels"]
    for manifest in manifests:
        if "template" in manifest.get("spec", {}):
            of_pod = manifest["spec"]["template"]["metadata"]["labels"]
            assert selected.items() <= of_pod.items()
            if manifest["kind"] != "Deployment":
                assert not any(one.items() <= of_pod.items() for one in budgets)
    targets = [
        one["spec"]["scaleTargetRef"] for one in all_of(manifests, "HorizontalPodAutoscaler")
    ]
    assert targets == [
        {"apiVersion": "apps/v1", "kind": "Deployment", "name": name} for name in of_pods
    ]


@pytest.mark.parametrize("name", BUILDS[1:])
def test_only_the_way_to_temporal_differs(name: str) -> None:
    """Each overlay's policy lets out to names, to its own Temporal's port, in its namespace where
    it is the cluster's, and to HTTPS; to private addresses nowhere but by namespace.
    """
    manifests = build(FOLDER / name)
    policy = of_kind(manifests, "NetworkPolicy")["spec"]
    address = of_kind(manifests, "ConfigMap")["data"]["TEMPORAL_ADDRESS"]
    host, _, port = address.partition(":")
    out = {_where(rule): {one["port"] for one in rule["ports"]} for rule in policy["egress"]}
    inside = host.partition(".")[2]
    temporal = inside if inside in out else "anywhere"
    wanted = {"kube-system": {53}, "anywhere": {443}}
    wanted[temporal] = wanted.get(temporal, set()) | {int(port)}
    assert out == wanted
    assert (temporal == "anywhere") == ("temporal-cloud" in name)
    for rule in policy["egress"]:
        udp = [one["port"] for one in rule["ports"] if one["protocol"] == "UDP"]
        assert udp == ([53] if _where(rule) == "kube-system" else [])
    blocks = [to["ipBlock"] for rule in policy["egress"] for to in rule["to"] if "ipBlock" in to]
    assert [set(block["except"]) for block in blocks] == [PRIVATE]
    assert policy["ingress"] and policy["policyTypes"] == ["Ingress", "Egress"]


def _where(rule: dict[str, Any]) -> str:
    """The namespace that a rule lets out to, or ``anywhere``."""
    (to,) = rule["to"]
    if "ipBlock" in to:
        assert to["ipBlock"]["cidr"] == "0.0.0.0/0"
        return "anywhere"
    return str(to["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"])


def test_commands_need_the_component() -> None:
    """Only with the component for commands are user namespaces and an unmasked /proc asked for, by
    the pods that run them alone, and never the host's users.
    """
    manifests = build(FOLDER / BUILDS[2])
    (named,) = (name for name, own in roles_by(manifests).items() if Role.SANDBOXES in own)
    (deployment,) = (
        one
        for one in all_of(manifests, "Deployment")
        if "hostUsers" in one["spec"]["template"]["spec"]
    )
    with_it = deployment["spec"]["template"]["spec"]
    assert (deployment["metadata"]["name"], with_it["hostUsers"]) == (named, False)
    context = with_it["containers"][0]["securityContext"]
    assert (context["procMount"], context["seccompProfile"]) == ("Unmasked", {"type": "Unconfined"})
    for without in pods(build(FOLDER / "base")):
        assert "procMount" not in without["containers"][0]["securityContext"]
