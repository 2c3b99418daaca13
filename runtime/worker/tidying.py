"""Keeping what a worker's host keeps within its bound, and ending what killed workers left there,
now and then, for as long as it works.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from runtime.base.home import Home
from runtime.base.kept_bytes import kept_bytes
from runtime.sandbox.orphans import end_orphans
from runtime.worker.beside import stopped
from runtime.workspace.checkouts.tidying import tidy

LOOK_SECONDS = 300.0
"""Between two looks at what is kept."""

_log = logging.getLogger(__name__)


@asynccontextmanager
async def tidied(home: Home) -> AsyncIterator[None]:
    """Tidy this host's workspaces and processes until the end of the block.

    Raises:
        InputError: if ``HOLDFAST_KEPT_BYTES`` is no number.
    """
    stop = threading.Event()
    looking = asyncio.create_task(_look(home.workspaces, kept_bytes(), stop))
    try:
        yield
    finally:
        # A thread cannot be cancelled: this one looks at ``stop`` between two directories.
        stop.set()
        await stopped(looking)


async def _look(workspaces: Path, most: int, stop: threading.Event) -> None:
    while True:
        try:
            await asyncio.to_thread(end_orphans)
            await asyncio.to_thread(tidy, workspaces, most, stop=stop)
        except OSError as error:
            _log.warning("the workspaces in %s cannot be tidied: %s", workspaces, error)
        await asyncio.sleep(LOOK_SECONDS)
