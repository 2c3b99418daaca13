"""What ``kustomize build`` makes of a folder, for the few means that ``infra/kubernetes`` uses:
resources, components, and patches that are merged as Kubernetes' strategic merge does.

Kustomize itself is not among the packages that tests can have. Whatever else a file asks for is an
error here, so nothing is taken for checked that is not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

KNOWN = {"apiVersion", "kind", "namespace", "resources", "components", "patches"}

MERGED_BY = {
    "containers": "name",
    "env": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
    "ports": "containerPort",
}
"""Lists whose items are merged by a key, in pods (k8s.io/api core/v1, ``patchMergeKey``); others
are replaced.
"""

Manifest = dict[str, Any]


def build(folder: Path) -> list[Manifest]:
    """All objects of a folder with a ``kustomization.yaml``.

    Raises:
        ValueError: for what this does not know, and for a patch of what is not there.
    """
    return _applied(folder, [])


def documents(path: Path) -> list[Manifest]:
    """The documents of a YAML file."""
    return [one for one in YAML(typ="safe").load_all(path.read_text()) if one is not None]


def _applied(folder: Path, found: list[Manifest]) -> list[Manifest]:
    (about,) = documents(folder / "kustomization.yaml")
    if unknown := about.keys() - KNOWN:
        raise ValueError(f"{folder}: {sorted(unknown)}")
    for name in about.get("resources", ()):
        place = folder / name
        found = found + (build(place) if place.is_dir() else documents(place))
    for name in about.get("components", ()):
        found = _applied(folder / name, found)
    for patch in about.get("patches", ()):
        target = patch.get("target")
        if not {"path"} <= patch.keys() <= {"path", "target"}:
            raise ValueError(f"{folder}: {patch}")
        for document in documents(folder / patch["path"]):
            one = _patched if target is None else _all_patched
            found = one(found, document)
            if target is not None and target != {"kind": document["kind"]}:
                raise ValueError(f"{folder}: {patch}")
    return found


def identity(manifest: Manifest) -> tuple[str, str, str]:
    """What names an object: its API, kind and name."""
    return (manifest["apiVersion"], manifest["kind"], manifest["metadata"]["name"])


def _patched(found: list[Manifest], patch: Manifest) -> list[Manifest]:
    if identity(patch) not in map(identity, found):
        raise ValueError(f"a patch of {identity(patch)}, which is not there")
    return [merged(one, patch) if identity(one) == identity(patch) else one for one in found]


def _all_patched(found: list[Manifest], patch: Manifest) -> list[Manifest]:
    """With the patch of all objects of a kind, whatever their names."""
    body = {key: value for key, value in patch.items() if key != "metadata"}
    kind = patch["kind"]
    if kind not in {one["kind"] for one in found}:
        raise ValueError(f"a patch of each {kind}, of which there is none")
    return [merged(one, body) if one["kind"] == kind else one for one in found]


def merged(old: Any, new: Any, name: str = "") -> Any:
    """``new`` over ``old``; None removes a key."""
    if isinstance(old, dict) and isinstance(new, dict):
        both = {**old, **{key: merged(old.get(key), value, key) for key, value in new.items()}}
        return {key: value for key, value in both.items() if value is not None}
    if isinstance(old, list) and isinstance(new, list) and name in MERGED_BY:
        key = MERGED_BY[name]
        items = {item[key]: item for item in old}
        for item in new:
            items[item[key]] = merged(items.get(item[key]), item)
        return list(items.values())
    return new
