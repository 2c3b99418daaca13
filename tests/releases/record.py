"""Keeps what a release leaves behind, for good: ``python -m tests.releases.record``.

``tests/releases/VERSION/`` has the histories of jobs of every kind as that release ran them, the
archives of these jobs, and one with every kind of object; ``test_releases.py`` replays, reads,
verifies and forks them with the code of today. A release's material is never recorded again: what
does not replay any more is what this code would break. Paths in it are of directories that are
gone; payloads are signed with the key of tests.
"""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import re
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import zstandard
from temporalio.client import WorkflowHistory

sys.path.append(str(Path(__file__).resolve().parent.parent / "archive"))

from archive_jobs import rich_archive

from activities.build import Build, this_build
from runtime.archive.stores import open_store
from tests.histories.record import KINDS, history_of, record_kind
from tests.servers.temporal_server import temporal_server
from tests.workflow.stage import Stage

HERE = Path(__file__).parent
MOST_BYTES = 2_000_000
"""A release's material: it stays in the repository for ever."""
_LEVEL = 19


@dataclass(frozen=True)
class Release:
    """The material of one release, in its directory."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def build(self) -> Build:
        """The build that made it."""
        return Build.model_validate_json((self.path / "build.json").read_text())

    def histories(self) -> Iterator[tuple[str, WorkflowHistory]]:
        """Each history and its name."""
        for path in sorted(self.path.glob("*.json.gz")):
            yield (
                path.name.removesuffix(".json.gz"),
                history_of(gzip.decompress(path.read_bytes()).decode()),
            )

    def unpack(self, folder: Path) -> list[Path]:
        """The archives, below ``folder``, each in a directory of its own."""
        data = zstandard.ZstdDecompressor().decompress(
            (self.path / "archives.tar.zst").read_bytes()
        )
        with tarfile.open(fileobj=io.BytesIO(data)) as packed:
            # ``extractall`` wants a filter, which Python has from 3.11.4 on only.
            for member in packed:
                content = packed.extractfile(member)
                assert content is not None, member.name
                path = folder / member.name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(content.read())
        return sorted(folder.iterdir())


def releases() -> list[Release]:
    """All that were recorded, oldest first."""
    names = [path.parent for path in HERE.glob("*/build.json")]
    return [
        Release(path)
        for path in sorted(names, key=lambda path: [int(part) for part in path.name.split(".")])
    ]


def release_name() -> str:
    """The release that this code is: the first two numbers of its version."""
    found = re.match(r"\d+\.\d+", this_build().version)
    assert found is not None
    return found[0]


async def record(path: Path) -> None:
    """Run a job of each kind, and keep histories and archives in ``path``, an empty directory."""
    with tempfile.TemporaryDirectory(prefix="hold") as folder:
        archives = Path(folder) / "archives"
        archives.mkdir()
        rich_archive(open_store(str(archives / "rich")))
        async with temporal_server() as environment:
            for kind in KINDS:
                (Path(folder) / kind).mkdir()
                stage = Stage(environment.client, Path(folder) / kind, kind)
                await record_kind(stage, kind, path)
                (stage.path / "archive").rename(archives / kind)
        (path / "archives.tar.zst").write_bytes(_packed(archives))


def _packed(folder: Path) -> bytes:
    """The files below ``folder``, in the order of their names, owned by nobody."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as packed:
        for path in sorted(folder.rglob("*")):
            if path.is_file():
                member = tarfile.TarInfo(path.relative_to(folder).as_posix())
                member.size, member.mode = path.stat().st_size, 0o600
                packed.addfile(member, io.BytesIO(path.read_bytes()))
    return zstandard.ZstdCompressor(level=_LEVEL).compress(out.getvalue())


def main() -> None:
    """Record this release, once."""
    path = HERE / release_name()
    if path.exists():
        sys.exit(
            f"{path} is there: a release's material is kept as it was; raise the version to record"
            " another"
        )
    path.mkdir()
    asyncio.run(record(path))
    (path / "build.json").write_text(this_build().model_dump_json(indent=2) + "\n")
    size = sum(one.stat().st_size for one in path.iterdir())
    if size > MOST_BYTES:
        sys.exit(f"{path} has {size:,} bytes, {MOST_BYTES:,} at most: make the jobs smaller")
    print(json.dumps({"release": path.name, "bytes": size, **this_build().model_dump()}))  # noqa: T201


if __name__ == "__main__":
    main()
