"""The activities by which a job changes its own workspace: it is opened once, and then each effect
is a function from a version to a version (docs/workspaces.md).

An effect that was archived is not carried out again. One that a crash cut short has left nothing
that counts: its next attempt starts from the files of the version before.
"""

from __future__ import annotations

import asyncio
import base64
import contextvars
import errno
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities._once import in_archive
from activities._recorded_effects import NOT_RECORDED, Address, value_in_record
from activities.approvals import keep_decision, rejected
from activities.commands import Commands, Ran
from activities.contracts import (
    ToolResult,
    WorkspaceChange,
    WorkspaceChanged,
    WorkspaceOpen,
    WorkspaceOpened,
)
from activities.record import EffectName
from activities.setups import Setups, masked_log
from activities.versions import Versions
from activities.workspace_tools import WorkspaceTools
from runtime.archive.job import JobArchive
from runtime.archive.recorded import recorded_stream
from runtime.archive.stores import ObjectStore
from runtime.archive.trees import tree_key
from runtime.archive.workspaces import OPENING, opening_of, version_after
from runtime.base import os_values
from runtime.base.addresses import SCHEME
from runtime.base.digests import digest_bytes
from runtime.base.errors import ArchiveError, HoldfastError
from runtime.base.failpoints import failpoint
from runtime.base.host_trouble import host_trouble
from runtime.base.kept import Busy
from runtime.base.path_lengths import too_long
from runtime.base.redaction.redactor import Redactor, redactor_of
from runtime.sandbox.choice import sandbox_of
from runtime.sandbox.command import SandboxFailed, SandboxKilled, SandboxUnavailable
from runtime.sandbox.setup import SetupFailed
from runtime.tools.calls import shortened
from runtime.tools.host import ToolHosts
from runtime.trees import editing
from runtime.trees.editing import Edited
from runtime.trees.entries import Changes, Entry, shown
from runtime.trees.tree import Tree
from runtime.workspace.checkouts.excluded import excluded, left_out
from runtime.workspace.checkouts.taking import Digests, check_file, read_file, take

R = TypeVar("R")

TOLD_PATHS = 50
"""Changed paths that an effect's result names."""

LINE_CHARS = 200
"""Characters of a command, and of its last line, that a heartbeat tells."""

_TRIES = 3
"""So often a directory is copied that changes meanwhile."""

_THREADS = 64


class _Changing(Exception):
    """The directory changed while it was copied."""


class HandsActivities:
    """``open_workspace`` and ``change_workspace``."""

    def __init__(
        self, store: ObjectStore, versions: Versions, tools: ToolHosts | None = None
    ) -> None:
        self._store = store
        self._trees = versions.checkouts.trees
        self._digests = Digests()
        self._setups = Setups(versions)
        self._commands = Commands(versions, self._setups, self._digests)
        self._tools = WorkspaceTools(self._commands, tools or ToolHosts())
        # Threads of its own: commands that run for hours must not take those that readings need.
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="holdfast-hands")

    @activity.defn(name="open_workspace")
    async def open_workspace(self, request: WorkspaceOpen) -> WorkspaceOpened:
        """The version that a job's own workspace begins with.

        Raises:
            ApplicationError: type ``WorkspaceUnavailable``, not to be tried again: the directory
                cannot be copied, the sandbox does not work here.
            ArchiveError: the archive cannot be read or written.
        """
        redactor = redactor_of(request.redact)
        return await self._beating(
            "setup", redactor, lambda stop, line: self._opened(request, stop, line)
        )

    @activity.defn(name="change_workspace")
    async def change_workspace(self, change: WorkspaceChange) -> WorkspaceChanged:
        """What an effect came to, and the version after it.

        Raises:
            ApplicationError: type ``WorkspaceBusy``: a reading of another version has its files;
                ``SetupFailed``: what its commands need cannot be made on this host.
            ArchiveError: the archive cannot be read or written.
        """
        archive = JobArchive.of(self._store, change.key)
        address = activity.info().workflow_run_id or "", change.turn, change.effect
        if change.recorded is not None:
            effect = change.recorded
            return await self._in_thread(lambda: self._recorded(change, effect, archive, address))
        archived = await self._in_thread(lambda: archive.effect(*address))
        if archived is None:
            changed, texts = await self._allowed(change, archive, address[0])
            failpoint("hands.before_effect")
            value = changed.model_dump(mode="json")
            archived = await in_archive(
                change.tool,
                lambda: self._in_thread(
                    lambda: archive.write_effect(*address, value, _uses(changed), texts)
                ),
            )
        failpoint("hands.before_return")
        return WorkspaceChanged.model_validate(archived)

    async def _allowed(
        self, change: WorkspaceChange, archive: JobArchive, run: str
    ) -> tuple[WorkspaceChanged, Mapping[str, bytes]]:
        """What an effect comes to, if nobody has rejected it, and the texts that it printed."""
        if (decision := change.decision) is not None:
            await self._in_thread(lambda: keep_decision(archive, run, change, decision))
            if not decision.approved:
                version = change.held.version
                name = change.operation
                if change.tool is not None:
                    name = change.tool.called.rpartition(":")[2]
                told = rejected(name, decision)
                return WorkspaceChanged(version=version, base=version, **told), {}
        command = str(change.arguments.get("command", "")).strip().partition("\n")[0]
        if change.tool is not None:
            command = change.tool.called
        return await self._beating(
            command,
            redactor_of(change.redact),
            lambda stop, line: self._carried_out(change, archive, run, stop, line),
        )

    def _recorded(
        self, change: WorkspaceChange, effect: EffectName, archive: JobArchive, address: Address
    ) -> WorkspaceChanged:
        """What the record has of the effect, kept with all that its command printed."""
        value = value_in_record(self._store, effect, change.turn, change.effect)
        if value is None:
            return WorkspaceChanged(
                version=change.held.version, error_type="RuntimeError", error_message=NOT_RECORDED
            )
        changed = WorkspaceChanged.model_validate(value)
        if effect.kept:
            source = JobArchive.of(self._store, effect.source)
            place = effect.source.run, change.turn, change.effect
            streams = ("stdout", "stderr") if change.operation == "sh" else ()
            texts = {name: recorded_stream(source, *place, name) for name in streams}
            archive.write_effect(*address, value, _uses(changed), texts)
        return changed

    async def _in_thread(self, work: Callable[[], R]) -> R:
        # activity.info() is a context variable, which a pool's thread has not by itself.
        run = contextvars.copy_context().run
        return await asyncio.get_running_loop().run_in_executor(self._threads, run, work)

    def _opened(
        self, request: WorkspaceOpen, stop: threading.Event, line: list[str]
    ) -> WorkspaceOpened:
        failpoint("hands.open.before")
        archive = JobArchive.of(self._store, request.key)
        run = activity.info().workflow_run_id or ""
        known = archive.effect(run, OPENING, 0)
        if known is None and (record := request.recorded) is not None:
            known = opening_of(JobArchive.of(self._store, record.source), record.source.run)
            if known is not None and record.kept:
                uses = (tree_key(known["version"]),)
                known = archive.write_effect(run, OPENING, 0, known, uses)
        if known is not None:
            return WorkspaceOpened.model_validate(known)
        try:
            sandbox = sandbox_of(request.writable.sandbox).name
            version, dropped = self._base(request)
            base = self._trees.version(version).base
            with self._setups.held(request.writable, base, stop, line.append) as setup:
                log = masked_log(setup, redactor_of(request.redact))
        except (OSError, ValueError, HoldfastError, _Changing) as error:
            if isinstance(error, ArchiveError | SandboxKilled) or host_trouble(error):
                raise
            raise ApplicationError(
                f"the workspace cannot be opened: {error}",
                type="WorkspaceUnavailable",
                non_retryable=True,
            ) from error
        tree = self._trees.tree(version)
        opened = WorkspaceOpened(
            version=version,
            files=tree.count,
            size=tree.size,
            dropped=dropped[:TOLD_PATHS],
            sandbox=sandbox,
        )
        archived = archive.write_effect(
            run, OPENING, 0, opened.model_dump(mode="json"), (tree_key(version),), log
        )
        failpoint("hands.open.after")
        return WorkspaceOpened.model_validate(archived)

    def _base(self, request: WorkspaceOpen) -> tuple[str, tuple[str, ...]]:
        """The version to begin with, archived, and what was not taken in."""
        place = request.workspace
        if not place:
            return self._trees.write_base(Tree(), _nothing).tree.version, ()
        leave = excluded(request.writable.exclude)
        if place.startswith(SCHEME):
            version = version_after(self._store, place, request.key.batch)
            gone = dict.fromkeys(left_out(self._trees.tree(version), leave))
            return self._trees.write_change(version, gone, {}).tree.version, ()
        # A directory that is being written to is copied again as a whole.
        for _ in range(_TRIES):
            try:
                taken = take(Path(place), leave, self._digests, check_file)
                base = self._trees.write_base(taken.tree, _reader(Path(place), taken.tree))
            except (_Changing, FileNotFoundError, NotADirectoryError):
                if not Path(place).is_dir():
                    raise
                continue
            return base.tree.version, taken.dropped
        raise _Changing(f"{place} was changed each time while it was copied")

    async def _beating(
        self, command: str, redactor: Redactor, work: Callable[[threading.Event, list[str]], R]
    ) -> R:
        """What a thread comes to; a heartbeat each second says what runs, and its last line."""
        stop = threading.Event()
        line: list[str] = []
        working = asyncio.ensure_future(self._in_thread(lambda: work(stop, line)))
        try:
            while True:
                done, _ = await asyncio.wait({working}, timeout=1.0)
                if done:
                    return working.result()
                last = redactor.text("".join(line[-1:]))[:LINE_CHARS]
                activity.heartbeat({"command": redactor.text(command)[:LINE_CHARS], "line": last})
                del line[:-1]
        finally:
            # Also when the activity was cancelled: a thread hears of that by nothing else.
            stop.set()
            if not working.done():
                # A command ends within moments of the wish; its files are nobody's then.
                await asyncio.wait({working})

    def _carried_out(
        self,
        change: WorkspaceChange,
        archive: JobArchive,
        run: str,
        stop: threading.Event,
        line: list[str],
    ) -> tuple[WorkspaceChanged, Mapping[str, bytes]]:
        version = change.held.version
        redactor = redactor_of(change.redact)
        try:
            if change.operation == "sh":
                ran = self._commands.run(change, stop, line.append)
                return self._ran(change, ran, redactor), ran.texts
            if change.tool is not None:
                made, after_it = self._tools.run(change, change.tool, archive, run, stop)
                return self._tool_ran(change, made, after_it, redactor), {}
            before = self._trees.tree(version)
            edited = self._edited(before, change.operation, change.arguments)
            leave = excluded(change.writable.exclude)
            for path, entry in edited.changes.items():
                if entry is not None and too_long(path):
                    # Before anything is made of it: no host could lay it out, now or ever.
                    raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path)
                if entry is not None and leave.above(path):
                    raise PermissionError(
                        errno.EACCES, "The workspace leaves such files out (exclude)", path
                    )
            after = self._trees.write_change(version, edited.changes, edited.data).tree
            value = edited.value
        except Busy as error:
            raise ApplicationError(str(error), type="WorkspaceBusy") from error
        except SetupFailed as error:
            # It has been made before, on another host if not on this one: it is tried again.
            raise ApplicationError(str(error), type="SetupFailed") from error
        except (OSError, ValueError, SandboxFailed, SandboxUnavailable) as error:
            # Trouble of this host, not of the statement: another attempt, perhaps elsewhere, may
            # not have it.
            if host_trouble(error):
                raise
            raised = _raised(error, redactor)
            return WorkspaceChanged(version=version, base=version, **raised), {}
        return _told(version, before, after, value), {}

    def _tool_ran(
        self, change: WorkspaceChange, made: ToolResult, after: str, redactor: Redactor
    ) -> WorkspaceChanged:
        version = change.held.version
        told = _told(version, self._trees.tree(version), self._trees.tree(after), None)
        return told.model_copy(
            update={
                "value": redactor.value(made.value),
                "error_type": made.error_type,
                "error_message": shortened(redactor.text(made.error_message)),
            }
        )

    def _ran(self, change: WorkspaceChange, ran: Ran, redactor: Redactor) -> WorkspaceChanged:
        version = change.held.version
        before = self._trees.tree(version)
        told = _told(version, before, self._trees.tree(ran.version), ran.value)
        if ran.error is None:
            return told
        return told.model_copy(update=_raised(ran.error, redactor))

    def _edited(self, tree: Tree, operation: str, arguments: dict[str, Any]) -> Edited:
        read = self._trees.content
        path = arguments.get("path", "")
        match operation:
            case "write":
                return editing.write(
                    tree, path, _data(arguments), parents=arguments.get("parents", True)
                )
            case "append":
                return editing.append(tree, path, _data(arguments), read)
            case "edit":
                return editing.edit(
                    tree, path, arguments["old"], arguments["new"], arguments["count"], read
                )
            case "delete":
                return editing.delete(tree, path)
            case "unlink":
                return editing.unlink(tree, path)
            case "rmdir":
                return editing.rmdir(tree, path)
            case "mkdir":
                return editing.mkdir(
                    tree, path, parents=arguments["parents"], exist_ok=arguments["exist_ok"]
                )
            case "move":
                return editing.move(tree, path, arguments["to"], into=arguments["into"])
            case _:
                raise ValueError(f"{operation} is not available in a statement")


def _raised(error: Exception, redactor: Redactor) -> dict[str, str]:
    """The fields of a result that say which exception a statement gets."""
    known = isinstance(error, OSError | ValueError)
    return {
        "error_type": os_values.error_name(error) if known else "RuntimeError",
        "error_message": redactor.text(str(error)),
    }


def _uses(changed: WorkspaceChanged) -> tuple[str, ...]:
    """What of the archive an effect's result needs: the version that it made, if it made one."""
    return (tree_key(changed.version),) if changed.version != changed.base else ()


def _told(version: str, before: Tree, after: Tree, value: Any) -> WorkspaceChanged:
    """The result of an effect that led from one tree to another."""
    changes = before.difference(after)
    told = letters(before, changes)
    return WorkspaceChanged(
        value=value,
        version=after.version,
        base=version,
        changed=tuple(told[:TOLD_PATHS]),
        count=len(changes),
        within=folders([path for path, _ in told[TOLD_PATHS:]], TOLD_PATHS),
    )


def folders(paths: Sequence[str], most: int) -> tuple[str, ...]:
    """The deepest folders, ``most`` at most, in which all paths are; ``""`` is the one of all."""
    parents = [path.split("/")[:-1] for path in paths]
    depth = max(map(len, parents), default=0)
    while len(shared := {"/".join(parts[:depth]) for parts in parents}) > most:
        depth -= 1
    return tuple(sorted(shared))


def letters(before: Tree, changes: Changes) -> list[tuple[str, str]]:
    """Each changed path with ``A``, ``M`` or ``D``, as JSON can hold it."""

    def letter(path: str, entry: Entry | None) -> str:
        return "D" if entry is None else "A" if before.get(path) is None else "M"

    return [(shown(path), letter(path, entry)) for path, entry in changes.items()]


def _data(arguments: dict[str, Any]) -> bytes:
    if "data" in arguments:
        return base64.b64decode(arguments["data"])
    return str(arguments["text"]).encode("utf-8")


def _nothing(path: str) -> bytes:
    raise FileNotFoundError(path)


def _reader(root: Path, tree: Tree) -> Callable[[str], bytes]:
    """The bytes of a directory's files, as they were when its tree was taken."""

    def read(path: str) -> bytes:
        data, entry = read_file(root / path), tree.get(path)
        if entry is None or digest_bytes(data) != entry.content:
            raise _Changing(path)
        return data

    return read
