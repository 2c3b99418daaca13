"""Resources of a job's MCP servers as sources: ``mcp://SERVER/URI``, and ``mcp://SERVER`` for the
list of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Protocol

from runtime.base.addresses import RESOURCE
from runtime.base.digests import digest_bytes
from runtime.sources.source import ENDS, Known, Opened


@dataclass(frozen=True)
class Resource:
    """What a server gave: bytes, their media type or nothing, and what a reader must know."""

    data: bytes
    kind: str = ""
    note: str = ""


class Resources(Protocol):
    """What reads a job's servers."""

    def read(self, server: str, uri: str) -> Resource:
        """A resource of the server of that name; of no URI the list of them.

        Raises:
            OSError: if it cannot be read.
        """
        ...


class NoResources:
    """There is no server to read."""

    def read(self, server: str, uri: str) -> Resource:
        """See ``Resources``."""
        raise FileNotFoundError(f"this job has no MCP server {server!r}")


@dataclass(frozen=True)
class ResourceSource:
    """What ``address`` names among ``resources``."""

    address: str
    resources: Resources

    def known(self) -> Known | None:
        """Never: the server must be asked."""
        return None

    def open(self) -> Opened:
        """The resource as the server gives it now."""
        server, _, uri = self.address.removeprefix(RESOURCE).partition("/")
        resource = self.resources.read(server, uri)
        end = ENDS.get(resource.kind.partition(";")[0].strip().lower(), "")
        name = uri if PurePosixPath(uri).suffix else f"{uri}{end or '.txt'}"
        size = len(resource.data)
        return Opened(resource.data, digest_bytes(resource.data), size, name, resource.note)
