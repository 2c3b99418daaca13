"""The bucket's settings are what S3's own model of the calls takes, and never remove an object that
the archive holds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import botocore.session
import pytest
from botocore.validate import ParamValidator
from ruamel.yaml import YAML

from runtime.archive.stores.tries import TRIES

FOLDER = Path(__file__).parents[2] / "infra" / "s3"
CALLS = {
    "object-lock.json": ("PutObjectLockConfiguration", "ObjectLockConfiguration"),
    "lifecycle.json": ("PutBucketLifecycleConfiguration", "LifecycleConfiguration"),
}


def misfits(name: str, settings: dict[str, Any]) -> str:
    """What botocore says of some settings."""
    operation, parameter = CALLS[name]
    model = botocore.session.get_session().get_service_model("s3").operation_model(operation)
    found = ParamValidator().validate({"Bucket": "b", parameter: settings}, model.input_shape)
    return str(found.generate_report())


def enums(shape: Any, value: Any) -> list[str]:
    """The values that are none of those that the model lists, which botocore does not check."""
    if shape.type_name == "structure":
        return [one for key, inner in value.items() for one in enums(shape.members[key], inner)]
    if shape.type_name == "list":
        return [one for inner in value for one in enums(shape.member, inner)]
    return [str(value)] if getattr(shape, "enum", None) and value not in shape.enum else []


@pytest.mark.parametrize("name", sorted(CALLS))
def test_the_settings_are_s3_s(name: str) -> None:
    """Each file is the argument of its call; a name or a value that S3 does not know fails."""
    settings = json.loads((FOLDER / name).read_text())
    assert misfits(name, settings) == ""
    assert misfits(name, {**settings, "Colour": "red"}) != ""
    operation, parameter = CALLS[name]
    model = botocore.session.get_session().get_service_model("s3").operation_model(operation)
    assert enums(model.input_shape.members[parameter], settings) == []


def test_every_file_is_looked_at() -> None:
    """There is none that nothing checks."""
    assert {path.name for path in FOLDER.iterdir()} == set(CALLS)


def test_no_rule_expires_what_an_archive_holds() -> None:
    """Current objects expire below the prefix of tries alone."""
    rules = json.loads((FOLDER / "lifecycle.json").read_text())["Rules"]
    expiring = [rule["Filter"] for rule in rules if "Expiration" in rule]
    assert expiring == [{"Prefix": f"holdfast/{TRIES}/"}]


def test_rules_are_about_the_archive_and_keep_it_readable() -> None:
    """Each rule is on and about the prefix that the docs name, or all; what is moved goes to
    classes that answer a GET at once.
    """
    at_once = {"STANDARD_IA", "ONEZONE_IA", "INTELLIGENT_TIERING", "GLACIER_IR"}
    for rule in json.loads((FOLDER / "lifecycle.json").read_text())["Rules"]:
        assert rule["Status"] == "Enabled"
        prefix = rule["Filter"].get("And", rule["Filter"]).get("Prefix", "holdfast/")
        assert prefix.startswith("holdfast/")
        assert {move["StorageClass"] for move in rule.get("Transitions", ())} <= at_once


def test_rules_are_about_the_archive_of_the_pods() -> None:
    """Of one with another prefix nothing that was deleted would ever go from its versions."""
    settings = FOLDER.parent / "kubernetes" / "base" / "settings.yaml"
    store = YAML(typ="safe").load(settings.read_text())["data"]["HOLDFAST_STORE"]
    prefix = urlsplit(store).path.strip("/") + "/"
    for rule in json.loads((FOLDER / "lifecycle.json").read_text())["Rules"]:
        assert rule["Filter"].get("And", rule["Filter"]).get("Prefix", prefix).startswith(prefix)
