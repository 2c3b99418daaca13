"""Reading the resources of MCP servers, in the processes that talk to them
(``runtime/tools/server_child.py``).

A server that hangs, crashes or answers garbage ends one reading, as its error, and costs the
readings of one activity no more than a minute and a half in all.
"""

from __future__ import annotations

import base64
import time
from collections.abc import Sequence
from typing import Any

from runtime.base.spec.servers import ServerSpec
from runtime.sources.resources import Resource
from runtime.tools.host import Asked, HostClosed, HostEnded, ToolHost, ToolHosts

TRIES = 2
CONNECT_SECONDS = 60.0
ALL_SECONDS = 90.0
"""For the readings of one activity, which may take two minutes."""
LOOK_SECONDS = 0.5


class ServerResources:
    """The servers that one activity reads. One that was silent is not asked again in it."""

    def __init__(self, hosts: ToolHosts, servers: Sequence[ServerSpec]) -> None:
        self._hosts = hosts
        self._servers = {server.name: server for server in servers}
        self._until = time.monotonic() + ALL_SECONDS
        self._silent: dict[str, str] = {}

    def read(self, server: str, uri: str) -> Resource:
        """See ``runtime.sources.resources.Resources``."""
        spec = self._servers.get(server)
        if spec is None:
            names = ", ".join(self._servers) or "none"
            raise FileNotFoundError(f"this job has no MCP server {server!r}; it has {names}")
        if server in self._silent:
            raise TimeoutError(self._silent[server])
        frame: dict[str, Any] = {}
        # Again only where the process had gone before it was asked: then nothing was read.
        for _ in range(TRIES):
            frame = self._frame(spec, uri)
            if "gone" not in frame:
                break
        if "unavailable" in frame:
            raise FileNotFoundError(f"{server}: {frame['unavailable']}")
        if "resource" not in frame:
            raise ConnectionError(str(frame.get("broken", frame.get("gone"))))
        return _resource(frame["resource"])

    def _frame(self, spec: ServerSpec, uri: str) -> dict[str, Any]:
        host = self._hosts.of(spec)
        asked = host.read(uri)
        try:
            frame = self._answer(host, asked, spec)
        except (HostEnded, HostClosed) as error:
            # A process that ended in mid-reading may have been ended by it: it is not asked again.
            how = "broken" if isinstance(error, HostEnded) and error.begun else "gone"
            return {how: f"the process of the server {spec.name} {error}"}
        if "gone" in frame:
            host.retire()
        return frame

    def _answer(self, host: ToolHost, asked: Asked, spec: ServerSpec) -> dict[str, Any]:
        asked_at = time.monotonic()
        while True:
            try:
                return asked.answer.result(LOOK_SECONDS)
            except TimeoutError:
                now = time.monotonic()
                since, limit = (
                    (asked_at, CONNECT_SECONDS)
                    if asked.begun_at is None
                    else (asked.begun_at, spec.timeout)
                )
                if now - since < limit and now < self._until:
                    continue
                # It takes nothing new, and ends with the last of what others have asked.
                host.give_up(asked)
                why = f"the server {spec.name} did not answer in time"
                self._silent[spec.name] = why
                raise TimeoutError(why) from None


def _resource(told: dict[str, str]) -> Resource:
    """What crossed, as bytes."""
    kind, note = told["kind"], told["note"]
    if "blob" not in told:
        return Resource(told["text"].encode("utf-8"), kind, note)
    try:
        return Resource(base64.b64decode(told["blob"], validate=True), kind, note)
    except ValueError:
        raise ConnectionError("the server gave bytes that are no base64") from None
