"""What a job's ``setup:`` makes, on the host that needs it: when its workspace is opened, and on
another host when that runs a command of the job.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from activities.versions import WAIT_SECONDS, Versions
from runtime.base.redaction.redactor import Redactor
from runtime.base.spec.models import Writable
from runtime.sandbox.choice import sandbox_of
from runtime.sandbox.command import Place
from runtime.sandbox.setup import Made, Setup, already_made, made
from runtime.tools.environment import named_secrets


class Setups:
    """The set-ups of this host."""

    def __init__(self, versions: Versions) -> None:
        self._versions = versions
        self._checkouts = versions.checkouts

    @contextmanager
    def held(
        self,
        writable: Writable,
        base: str,
        stop: threading.Event,
        on_line: Callable[[str], None],
    ) -> Iterator[Made | None]:
        """What the commands of ``setup:`` make of the files of ``base``, run here if they were not;
        None if there are none. It stays for as long as the block.

        Raises:
            SetupFailed: if they fail.
            SandboxUnavailable: if there is no sandbox for them.
            ValueError: if a secret is not there.
            Busy: if it is being deleted for long.
        """
        if not writable.setup:
            yield None
            return
        setup = Setup(writable.setup, base=base, env=named_secrets(writable.secrets, os.environ))
        sandbox = sandbox_of(writable.sandbox)
        kept = self._checkouts.kept_setup(setup.key(sandbox))
        top = kept.place.parent
        # Held for as long as a command uses it, or tidying would take it away in the midst.
        with kept.held(seconds=WAIT_SECONDS, said="the set-up is being deleted"):
            # Each command asks: files are laid out only where something is to be made of them.
            there = already_made(setup, sandbox, top)
            if there is None:
                with self._files(writable, base) as place:
                    there = made(setup, sandbox, place, top, on_beat=on_line, stop=stop)
            yield there

    @contextmanager
    def _files(self, writable: Writable, base: str) -> Iterator[Place]:
        """The base's files; what becomes of them is thrown away."""
        with self._checkouts.scratch("setup-") as own:
            if not self._versions.linked(writable.sandbox):
                self._checkouts.lay_out(base, own)
                yield Place(directory=own)
                return
            # On the disk: without an upper layer it would be in memory, of which a build has less.
            upper, work = own / "upper", own / "work"
            upper.mkdir()
            work.mkdir()
            with self._checkouts.base(base) as files:
                yield Place(lowers=(files,), upper=upper, work=work)


def masked_log(setup: Made | None, redactor: Redactor) -> dict[str, bytes]:
    """What the set-up printed, for the archive."""
    return {} if setup is None else {"setup": redactor.data(setup.log)}
