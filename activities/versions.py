"""The workspaces of this host's jobs, laid out as their commands and readings need them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path

from temporalio.exceptions import ApplicationError

from activities.contracts import HeldVersion
from runtime.base.kept import Busy
from runtime.base.values import JobKey
from runtime.sandbox.choice import overlays_work
from runtime.workspace.checkouts.checkout import Checkouts

WAIT_SECONDS = 30.0
"""How long a job's files are waited for, which somebody has at another version."""


class Versions:
    """Which way files are laid out on this host, and a job's at a version."""

    def __init__(self, checkouts: Checkouts) -> None:
        self.checkouts = checkouts

    @cached_property
    def overlays(self) -> bool:
        """Whether what a command changes can land in a layer of its own on this host."""
        return overlays_work(self.checkouts.root)

    def linked(self, sandbox: str) -> bool:
        """Whether a job with that sandbox has its files laid out as links that nobody writes to."""
        return sandbox != "none" and self.overlays

    def forget(self, key: JobKey) -> None:
        """Remove what a job that has ended has here; what is in use stays."""
        # It only gives room back: what stays is tidied away later.
        with suppress(Busy, OSError):
            self.checkouts.forget(key)

    @contextmanager
    def laid_out(self, key: JobKey, held: HeldVersion) -> Iterator[Path]:
        """A job's files at a version, to be read.

        Raises:
            ApplicationError: type ``WorkspaceBusy``: a command has them at another version.
        """
        checkout = self.checkouts.of(key, linked=self.linked(held.sandbox))
        try:
            with checkout.at(held.version, seconds=WAIT_SECONDS) as files:
                yield files
        except Busy as error:
            raise ApplicationError(str(error), type="WorkspaceBusy") from error
