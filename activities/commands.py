"""Running a command of a statement in the files of a version, and taking in what it changed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from activities.contracts import WorkspaceChange
from activities.setups import Setups
from activities.versions import WAIT_SECONDS, Versions
from runtime.archive.trees import TooMuch
from runtime.base.failpoints import failpoint
from runtime.base.redaction.redactor import Redactor, redactor_of
from runtime.sandbox.choice import sandbox_of
from runtime.sandbox.command import Command, Finished, Limits, Place, SandboxKilled
from runtime.tools.environment import named_secrets
from runtime.trees.tree import Tree
from runtime.workspace.checkouts.excluded import excluded
from runtime.workspace.checkouts.taking import Difference, Digests, differing, left_in

R = TypeVar("R")

SANDBOX_TRIES = 3
"""How often a command is run whose sandbox somebody kills: each time from the files before it."""

TOLD_DROPPED = 50
"""Lines of what no version can hold: a command may leave any number of such."""

SHOWN_CHARS = 6_000
"""Characters of each end of a stream that a statement is given."""


def _at_once(write: Callable[[], str]) -> str:
    return write()


@dataclass(frozen=True)
class Ran:
    """What a command came to: the value that its statement gets, the version after it, and all that
    it printed; ``error`` is what its statement gets in place of the value, where what the command
    left can be no version.
    """

    value: dict[str, Any]
    version: str
    texts: Mapping[str, bytes]
    error: TooMuch | None = None


class Commands:
    """Runs commands on this host."""

    def __init__(self, versions: Versions, setups: Setups, digests: Digests) -> None:
        self._versions = versions
        self._setups = setups
        self._checkouts = versions.checkouts
        self._trees = versions.checkouts.trees
        self._digests = digests

    def run(
        self, change: WorkspaceChange, stop: threading.Event, on_line: Callable[[str], None]
    ) -> Ran:
        """Run the command that ``change`` asks for.

        One whose sandbox was killed from outside has come to nothing, and is run again.

        Raises:
            SandboxKilled: if it was killed each time.
            SandboxFailed: if it could not be started.
            SetupFailed: if what it needs cannot be made on this host.
            Busy: if the job's files are in use for long.
            ValueError: if there can be no such command.
        """
        told = ""
        for _ in range(SANDBOX_TRIES):
            try:
                return self._run(change, stop, on_line)
            except SandboxKilled as error:
                # A sandbox that ended since nobody wants the command is not started again.
                _check_stop(stop)
                told = str(error)
        raise SandboxKilled(f"the command was run {SANDBOX_TRIES} times, and each time {told}")

    def _run(
        self, change: WorkspaceChange, stop: threading.Event, on_line: Callable[[str], None]
    ) -> Ran:
        sandbox = sandbox_of(change.held.sandbox)
        command = _command(change)
        base = self._trees.version(change.held.version).base
        setup_held = self._setups.held(change.writable, base, stop, on_line)
        with setup_held as setup, self._checkouts.scratch("command-") as top:
            env = None if setup is None else setup.directory
            streams = top / "stdout", top / "stderr"
            ended: list[Finished] = []

            def go(place: Place) -> None:
                ended.append(sandbox.run(command, place, *streams, on_beat=on_line, stop=stop))
                # Before anything is taken over: a command that was ended half way has changed
                # nothing.
                _check_stop(stop)

            failpoint("hands.command.before")
            linked = self._versions.linked(change.held.sandbox)
            error = None
            try:
                if linked:
                    version, dropped = self._layered(change, env, top, go)
                else:
                    version, dropped = self._direct(change, env, go)
            except TooMuch as too_much:
                # It ran all the same: how long, and what it printed, is told.
                version, dropped, error = change.held.version, [], too_much
            # Before it is cut at both ends: half a secret is found by no search.
            redactor = redactor_of(change.redact)
            texts = {path.name: redactor.data(_bytes(path)) for path in streams}
            value = _value(change, ended[0], texts, dropped, redactor)
            return Ran(value, version, texts, error)

    def _layered(
        self, change: WorkspaceChange, setup: Path | None, top: Path, go: Callable[[Place], None]
    ) -> tuple[str, list[str]]:
        """In an overlay: what it changed is what is in the upper layer."""
        version = change.held.version
        upper, work = top / "upper", top / "work"
        upper.mkdir()
        work.mkdir()
        checkout = self._checkouts.of(change.key, linked=True)
        with checkout.at(version, seconds=WAIT_SECONDS) as files:
            go(Place(lowers=(files,), upper=upper, work=work, setup=setup))
            failpoint("hands.command.after")
            before = self._trees.tree(version)
            difference = left_in(upper, before, excluded(change.writable.exclude))
        after = self._version(version, difference)
        if after != version:
            # After the version is archived: a crash before leaves files that the next attempt
            # begins with.
            checkout.take_over(upper, version, after)
        return after, difference.dropped

    def _direct(
        self, change: WorkspaceChange, setup: Path | None, go: Callable[[Place], None]
    ) -> tuple[str, list[str]]:
        """In the files themselves."""
        _, version, dropped = self.in_files(
            change, lambda files: go(Place(directory=files, setup=setup))
        )
        return version, dropped

    def in_files(
        self,
        change: WorkspaceChange,
        work: Callable[[Path], R],
        archived: Callable[[Callable[[], str]], str] = _at_once,
    ) -> tuple[R, str, list[str]]:
        """What some work comes to in the files themselves, the version after it, and what was
        dropped: what it changed is found by looking at all of them. ``archived`` writes the
        version.
        """
        version, leave = change.held.version, excluded(change.writable.exclude)
        checkout = self._checkouts.of(change.key, linked=False)
        # Alone: it writes into the files themselves, so nobody may read them meanwhile.
        with checkout.at(version, alone=True, seconds=WAIT_SECONDS) as files:
            done = work(files)
            failpoint("hands.command.after")
            before = self._trees.tree(version)
            difference = differing(files, before, leave, self._digests)
            after = archived(lambda: self._version(version, difference))
            checkout.settle(difference.left, before, self._trees.tree(after))
        return done, after, difference.dropped

    def _version(self, before: str, difference: Difference) -> str:
        if not difference.changes:
            return before
        tree: Tree = self._trees.write_change(before, difference.changes, difference.data).tree
        return tree.version


def _command(change: WorkspaceChange) -> Command:
    arguments = change.arguments
    env = {str(name): str(value) for name, value in arguments.get("env", {}).items()}
    # What the statement says wins over a secret of that name.
    env = {**named_secrets(change.writable.secrets, os.environ), **env}
    return Command(
        shell=str(arguments["command"]),
        stdin=str(arguments.get("stdin", "")).encode("utf-8"),
        env=env,
        network=change.writable.network,
        limits=Limits(seconds=float(arguments["timeout"])),
    )


def _check_stop(stop: threading.Event) -> None:
    """A command that was ended because nobody wants it has come to nothing.

    Raises:
        OSError: if it was.
    """
    if stop.is_set():
        raise InterruptedError("the command is not wanted any more")


def _bytes(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _value(
    change: WorkspaceChange,
    finished: Finished,
    texts: Mapping[str, bytes],
    dropped: list[str],
    redactor: Redactor,
) -> dict[str, Any]:
    where = f"holdfast://self@{change.turn}/effect/{change.effect}"
    notes = [finished.stopped] if finished.stopped else []
    if finished.output_cut:
        notes.append("it printed more than is kept")
    notes += [redactor.text(line) for line in dropped[:TOLD_DROPPED]]
    if len(dropped) > TOLD_DROPPED:
        notes.append(f"and {len(dropped) - TOLD_DROPPED:,} more such were dropped")
    return {
        "exit_code": finished.exit_code,
        **{name: _shown(texts[name], f"{where}/{name}") for name in ("stdout", "stderr")},
        "seconds": round(finished.seconds, 3),
        "note": "; ".join(notes),
        "output": where,
    }


def _shown(data: bytes, where: str) -> str:
    """Both ends of what a stream had, and where the rest is."""
    text = data.decode("utf-8", "replace")
    if len(text) <= 2 * SHOWN_CHARS:
        return text
    head, tail = text[:SHOWN_CHARS], text[-SHOWN_CHARS:]
    missing = len(text) - len(head) - len(tail)
    return f'{head}\n[… {missing:,} characters are not shown: view("{where}") …]\n{tail}'
