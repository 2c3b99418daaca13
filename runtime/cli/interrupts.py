"""Ctrl-C and SIGTERM: the first asks for an orderly end, the second ends the process at once. A
terminal that is closed (SIGHUP) asks too.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from types import TracebackType

from runtime.cli.exit_codes import INTERRUPTED
from runtime.cli.output import leave_terminal, note

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Listens within its block.

    The first signal sets ``asked``, and cancels the task of the block unless it is patient.

    ``abandon`` is called before the second signal ends the process, and ``farewell`` is printed.
    """

    def __init__(self, abandon: Callable[[], None], farewell: str) -> None:
        self.asked = asyncio.Event()
        self.patient = False
        self._abandon = abandon
        self._farewell = farewell
        self._task: asyncio.Task[object] | None = None

    def abandons(self, what: Callable[[], None]) -> None:
        """Have ``what`` called before the second signal ends the process, too."""
        before = self._abandon

        def both() -> None:
            before()
            what()

        self._abandon = both

    def __enter__(self) -> Interrupts:
        self._task = asyncio.current_task()
        loop = asyncio.get_running_loop()
        for signum in SIGNALS:
            loop.add_signal_handler(signum, self._hear)
        # Under ``nohup`` it stays ignored.
        if signal.getsignal(signal.SIGHUP) is signal.SIG_DFL:
            loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for signum in (*SIGNALS, signal.SIGHUP):
            asyncio.get_running_loop().remove_signal_handler(signum)

    def _hang_up(self) -> None:
        leave_terminal()
        # The system and the shell send one each, which is no wish to end at once.
        if not self.asked.is_set():
            self._hear()

    def _hear(self) -> None:
        if self.asked.is_set():
            self._abandon()
            note(f"stopped at once; {self._farewell}")
            # Without any clean-up, which may be what hangs: all that counts is in the server and
            # the archive.
            os._exit(INTERRUPTED)
        self.asked.set()
        if not self.patient and self._task is not None:
            self._task.cancel()
