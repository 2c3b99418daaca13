"""Ctrl-C and SIGTERM: the first asks for an orderly end, the second ends the process at once. A
terminal that is closed (SIGHUP) asks too.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from functools import partial
from types import TracebackType

from runtime.base.home import Home
from runtime.cli.exit_codes import INTERRUPTED
from runtime.cli.output import leave_terminal, note
from runtime.server.embedded import abandon_server

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupts:
    """Listens within its block.

    The first signal sets ``asked``, and cancels the task of the block unless it is patient.

    ``farewell`` is printed before the second signal ends the process.
    """

    def __init__(self, farewell: str) -> None:
        self.asked = asyncio.Event()
        self.patient = False
        self._abandoned: list[Callable[[], None]] = []
        self._farewell = farewell
        self._task: asyncio.Task[object] | None = None

    def abandons(self, what: Callable[[], None]) -> None:
        """Have ``what`` called, before all that was to be, when the second signal ends the
        process.
        """
        self._abandoned.append(what)

    def abandons_server(self, home: Home | None) -> None:
        """Have the embedded server of ``home``, if it is one, end with the process, too, unless
        others use it.
        """
        if home is not None:
            self.abandons(partial(abandon_server, home))

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
            for what in reversed(self._abandoned):
                what()
            note(f"stopped at once; {self._farewell}")
            # Without any other clean-up, which may be what hangs: all that counts is in the
            # server's database and the archive.
            os._exit(INTERRUPTED)
        self.asked.set()
        if not self.patient and self._task is not None:
            self._task.cancel()
