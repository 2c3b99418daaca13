"""The image and the compose file: what they name is there, and what they set is read."""

from __future__ import annotations

import json
import re
import shlex
import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from ruamel.yaml import YAML

from runtime.archive.stores.s3 import S3Store
from runtime.base.durations import parse_duration
from runtime.base.roles import Role, roles_in
from runtime.cli.telemetry import metrics_address
from runtime.server.process import SETTINGS
from tests.infra.settings import ROOT, is_known, read_command

DOCKERFILE = ROOT / "infra" / "Dockerfile"
OF_SERVICES = {
    *("build", "image", "environment", "env_file", "command", "volumes", "ports", "depends_on"),
    *("healthcheck", "restart", "init", "read_only", "tmpfs", "cap_drop", "security_opt"),
    "stop_grace_period",
}
"""Keys of a service by the Compose specification that the file uses."""


def instructions() -> list[tuple[str, str]]:
    """The Dockerfile's instructions, each on one line."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.M).replace("\\\n", " ")
    return [(line.split()[0], line.split(None, 1)[1]) for line in text.splitlines() if line.strip()]


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = YAML(typ="safe").load((ROOT / "infra" / "compose.yaml").read_text())
    return loaded


def ours() -> dict[str, Any]:
    return {n: one for n, one in compose()["services"].items() if one["image"] == "holdfast"}


def test_the_image_is_made_of_what_there_is() -> None:
    """Each file that is copied is there and passes .dockerignore; versions come from the lock."""
    let_in = re.findall(r"^!(\S+)$", (ROOT / ".dockerignore").read_text(), re.M)
    copied = [w for name, words in instructions() if name == "COPY" for w in words.split()[:-1]]
    local = [word for word in copied if not word.startswith(("-", "/"))]
    assert "requirements.lock" in local
    for word in local:
        assert (ROOT / word).exists(), word
        assert word in let_in
    assert any("-c requirements.lock" in words for name, words in instructions() if name == "RUN")


def test_the_image_has_every_package() -> None:
    """All that the wheel is made of is copied, onto a base whose version is told."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text())
    packages = told["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    copied = {words.split()[0] for name, words in instructions() if name == "COPY"}
    assert set(packages) <= copied
    (base,) = (words for name, words in instructions() if name == "ARG")
    assert re.fullmatch(r"PYTHON=python:3\.\d+-slim-[a-z]+", base)


def test_the_image_s_user_owns_the_state_directory() -> None:
    """The user that is made is the one that runs, and the state directory is below its own."""
    last = dict(instructions())
    user, _, group = last["USER"].partition(":")
    (made,) = (words for name, words in instructions() if name == "RUN" and "useradd" in words)
    assert f"--uid {user} " in made
    owned = re.search(rf"install -d -m 0700 -o {user} -g {group} (\S+)", made)
    assert owned is not None
    variables = dict(word.partition("=")[::2] for word in shlex.split(last["ENV"]))
    assert Path(variables["HOLDFAST_HOME"]).parent == Path(owned[1]) == Path(last["WORKDIR"])
    assert metrics_address(variables["HOLDFAST_METRICS"]) == f"0.0.0.0:{last['EXPOSE']}"


def test_the_image_runs_the_program_as_nobody() -> None:
    """It ends with a user without privileges, the program, and variables that it reads."""
    last = dict(instructions())
    assert last["USER"] == "10001:10001"
    assert (last["ENTRYPOINT"], last["STOPSIGNAL"]) == ('["holdfast"]', "SIGTERM")
    assert read_command(YAML(typ="safe").load(last["CMD"])) == "worker"
    stages = [words for name, words in instructions() if name == "FROM"]
    assert len(stages) == 2
    assert all(stage.startswith("${PYTHON}") for stage in stages)
    settings = [word.partition("=")[0] for word in shlex.split(last["ENV"])]
    assert [name for name in settings if name != "PATH" and not is_known(name)] == []


def test_services_of_compose_find_each_other() -> None:
    """Hosts that settings name are services of the image that is meant, with the account and the
    bucket that these are given.
    """
    services = compose()["services"]
    server, database, s3 = (services[name] for name in ("temporal", "postgresql", "s3"))
    for name, service in services.items():
        address = service.get("environment", {}).get("TEMPORAL_ADDRESS", "temporal:7233")
        assert address == "temporal:7233", name
    assert server["ports"] == ["127.0.0.1:7233:7233"]
    assert server["healthcheck"]["test"][-1] == "temporal:7233"
    given = server["environment"]
    assert (given["DB"], given["DB_PORT"]) == ("postgres12", "5432")
    assert services[given["POSTGRES_SEEDS"]] is database
    of_database = database["environment"]
    assert given["POSTGRES_USER"] == of_database["POSTGRES_USER"]
    assert given["POSTGRES_PWD"] == of_database["POSTGRES_PASSWORD"]
    assert database["healthcheck"]["test"][-1] == of_database["POSTGRES_USER"]
    worker = ours()["turns"]["environment"]
    store = urlsplit(worker["HOLDFAST_STORE"])
    assert dict(parse_qsl(store.query))["endpoint_url"] == "http://s3:8333"
    assert {f"-bucket={store.netloc}", "-ip=s3"} <= set(s3["command"])
    for key in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        assert worker[key] == s3["environment"][key]
    words = services["prepare"]["command"]
    assert (
        parse_duration(words[words.index("--retention") + 1]) >= timedelta(days=1).total_seconds()
    )


def test_the_server_of_compose_can_keep_limits() -> None:
    """Its matching is set as the embedded server's, by a file that is there where it is named."""
    server = compose()["services"]["temporal"]
    source, folder, _ = server["volumes"][0].split(":")
    named = Path("/etc/temporal") / server["environment"]["DYNAMIC_CONFIG_FILE_PATH"]
    assert named.parent == Path(folder)
    settings = YAML(typ="safe").load((ROOT / "infra" / source / named.name).read_text())
    assert {
        name: [{"value": json.loads(value)}]
        for name, value in SETTINGS.items()
        if name.startswith("matching.")
    } == settings


def test_services_of_compose_name_what_there_is() -> None:
    """Keys are the specification's, volumes and other services are there, images have versions."""
    told = compose()
    for name, service in told["services"].items():
        assert service.keys() <= OF_SERVICES, name
        tag = service["image"].partition(":")[2]
        assert service["image"] == "holdfast" or (tag and tag != "latest")
        assert set(service.get("depends_on", {})) <= told["services"].keys()
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            there = (ROOT / "infra" / source).exists()
            assert there if source.startswith(".") else source in told["volumes"]
        for port in service.get("ports", ()):
            assert port.startswith("127.0.0.1:")


WORKERS = ("turns", "models", "hands")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["prepare", *WORKERS])
def test_settings_of_compose_are_read(name: str) -> None:
    """Variables and command lines of Holdfast's services are ones that the program knows, and its
    store is an address that it takes apart.
    """
    service = ours()[name]
    assert [one for one in service["environment"] if not is_known(one)] == []
    assert read_command(service["command"]) == {"prepare": "init"}.get(name, "worker")
    address = service["environment"]["HOLDFAST_STORE"]
    assert str(S3Store.from_url(address)).startswith(
        "s3://holdfast/archive?endpoint_url=http://s3:"
    )


@pytest.mark.parametrize("name", WORKERS)
def test_a_worker_of_compose_is_bounded(name: str) -> None:
    """It writes to its own volume alone, has no capability, and may drain."""
    worker = ours()[name]
    assert (worker["read_only"], worker["cap_drop"]) == (True, ["ALL"])
    assert (worker["volumes"], worker["stop_grace_period"]) == (
        [f"{name}:/var/lib/holdfast"],
        "60s",
    )


def test_roles_of_compose() -> None:
    """Each role has one service; the one with providers' keys runs no program, and Prometheus asks
    them all.
    """
    services = {name: ours()[name] for name in WORKERS}
    roles = {name: roles_in(one["command"][2], "--roles") for name, one in services.items()}
    assert sorted(role for some in roles.values() for role in some) == sorted(Role)
    assert [name for name, one in services.items() if "env_file" in one] == ["models"]
    assert roles["models"] == {Role.MODELS}
    scraped = YAML(typ="safe").load((ROOT / "infra/prometheus/prometheus.yml").read_text())
    (found,) = (each for one in scraped["scrape_configs"] for each in one["dns_sd_configs"])
    assert found["names"] == list(WORKERS)
    for one in services.values():
        given = one["command"][one["command"].index("--metrics") + 1]
        assert given == f"0.0.0.0:{found['port']}"
    # Which alerts choose their targets by.
    assert [one["job_name"] for one in scraped["scrape_configs"]] == ["holdfast"]
