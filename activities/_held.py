"""What is held while the archive cannot be written: a reply that is paid for, and what came of a
call that is not made again.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from runtime.base.errors import ArchiveError, ObjectCorrupt, ObjectMissing

PAUSE = 1.0
"""Seconds between tries to archive what is held."""

T = TypeVar("T")
_log = logging.getLogger(__name__)


class Held:
    """Something that ``what`` names, held for so many ``seconds``. A line of the log tells that it
    waits.
    """

    def __init__(self, what: str, seconds: float = math.inf) -> None:
        self._what = what
        self._until = time.monotonic() + seconds
        self.why = ""
        """Why it waits, of what is held now."""

    async def archived(self, write: Callable[[], Awaitable[T]]) -> T:
        """What ``write`` comes to, once the archive lets it.

        Raises:
            ArchiveError: if it does not for too long, or waiting mends nothing.
        """
        while True:
            try:
                return await write()
            except ArchiveError as error:
                self._refused(error)
            await asyncio.sleep(PAUSE)

    def archived_here(self, write: Callable[[], T], stop: threading.Event) -> T:
        """As ``archived``, in a thread of its own, and as long as nobody wants it to ``stop``."""
        while True:
            try:
                return write()
            except ArchiveError as error:
                self._refused(error)
                if stop.wait(PAUSE):
                    raise

    def _refused(self, error: ArchiveError) -> None:
        # No store that is out of reach, but an object that is damaged.
        if isinstance(error, ObjectCorrupt | ObjectMissing) or time.monotonic() > self._until:
            raise error
        if not self.why:
            _log.warning("%s waits to be archived: %s", self._what, error)
        self.why = str(error)
