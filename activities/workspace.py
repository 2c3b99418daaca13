"""The activities that read a job's workspace: sources for its context objects, and file calls of
its statements.

Both are short, idempotent and bounded in time, memory and in what they put into history. What is
wrong with a file is a result, an exception that the model sees; only trouble of the host (no
descriptors, no memory) fails an activity, so that Temporal tries again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from temporalio import activity

from activities._recorded_effects import ReadEffects
from activities._resources import ServerResources
from activities._summary_cache import Region, known_summary, region_of
from activities.contracts import FileCall, FileCallResult, ReadBatch, ReadBatchResult
from activities.versions import Versions
from runtime.archive.stores import ObjectStore
from runtime.base import os_values
from runtime.base.characters import as_unicode
from runtime.base.digests import digest_of
from runtime.base.failpoints import failpoint
from runtime.base.host_trouble import host_trouble
from runtime.base.redaction.redactor import Redactor, redactor_of
from runtime.base.spec.servers import with_tokens
from runtime.base.tokens import encoding
from runtime.context.excerpts import Count, Excerpt, basis_of, excerpt, fitting
from runtime.context.source_text import SourceText
from runtime.context.sources import NO_WRITER, STANDS_IN, ReadRequest, ReadResult, ReadStatus
from runtime.context.structure import structure
from runtime.sources.finding import Sources
from runtime.sources.outlining import outline_apart
from runtime.sources.resources import NoResources
from runtime.sources.source import Opened
from runtime.sources.web import Pages
from runtime.tools.calls import shortened
from runtime.tools.host import ToolHosts
from runtime.workspace.files import Limits, Workspace
from runtime.workspace.fingerprints import FingerprintCache

BATCH_BYTES = 1_500_000
"""The most bytes of JSON in one batch's results; above 2 MiB Temporal would fail the workflow's
task for ever.
"""

_EXCERPT, _STRUCTURE, _SUMMARY = 0, 1, 2


def count_with(name: str) -> Count:
    """The token counter of the encoding ``name``."""
    return encoding(name).count


class WorkspaceActivities:
    """``read_sources`` and ``file_call``, for a worker with a thread pool.

    ``counter`` makes a token counter from an encoding's name, ``now`` tells nanoseconds since 1970.
    With a ``store``, what a statement or a tick was given is archived before it is returned, so
    that a replay can be given the same. One instance serves all jobs of the process, and its cache
    of ``fingerprints`` makes rereading an unchanged file one ``stat``. ``versions`` lays out the
    workspaces that jobs change, ``hosts`` has the processes of MCP servers.
    """

    def __init__(
        self,
        *,
        counter: Callable[[str], Count] = count_with,
        limits: Limits | None = None,
        now: Callable[[], int] = time.time_ns,
        fingerprints: FingerprintCache | None = None,
        pages: Pages | None = None,
        store: ObjectStore | None = None,
        versions: Versions | None = None,
        hosts: ToolHosts | None = None,
    ) -> None:
        self._counter = counter
        self._limits = limits
        self._now = now
        self._fingerprints = fingerprints or FingerprintCache()
        self._pages = pages or Pages()
        self._store = store
        self._versions = versions
        self._hosts = hosts
        self._effects = ReadEffects(store)

    @property
    def has_servers(self) -> bool:
        """Whether this process may start MCP servers."""
        return self._hosts is not None

    @activity.defn(name="read_sources")
    def read_sources(self, batch: ReadBatch) -> ReadBatchResult:
        """One result for each request, in order.

        What is past ``BATCH_BYTES`` in all is an error that says so.
        """
        used: list[str] = []
        return self._effects.sources(batch, lambda asked: self._read_all(asked, used), used)

    @activity.defn(name="file_call")
    def file_call(self, call: FileCall) -> FileCallResult:
        """The value of one ``open``, ``os`` or ``pathlib`` call, or the exception that it
        raises.
        """
        return self._effects.file(call, self._call)

    def keep(
        self, batch: ReadBatch, result: ReadBatchResult, uses: Iterable[str]
    ) -> ReadBatchResult:
        """Archive ``result`` as what was read for ``batch``; what the archive has already stays.

        ``uses``: what it was made from.
        """
        return self._effects.sources(batch, lambda _: result, uses)

    def _read_all(self, batch: ReadBatch, used: list[str]) -> ReadBatchResult:
        failpoint("read.before")
        with self._workspace(batch) as workspace:
            results = self._read_in(workspace, batch, used)
        failpoint("read.after")
        return ReadBatchResult(results=tuple(results))

    def _read_in(self, workspace: Workspace, batch: ReadBatch, used: list[str]) -> list[ReadResult]:
        sources = self._sources(batch, workspace)
        count = self._counter(batch.encoding)
        redactor = redactor_of(with_tokens(batch.redact, batch.servers))
        results: list[ReadResult] = []
        room = BATCH_BYTES
        for request in batch.requests:
            result = self._read(sources, request, count, redactor, batch.summary_model, used)
            size = len(result.model_dump_json())
            # One by one: a reading that is too large in all is an error of its own, and the others
            # are given.
            if size > room:
                result = _failed(
                    request,
                    OSError("too much for one read together with the others; ask for fewer tokens"),
                    redactor,
                )
                size = len(result.model_dump_json())
            room -= size
            results.append(result)
        return results

    def region(self, batch: ReadBatch) -> Region | None:
        """What the batch's one request wants a summary of; None if it cannot be read, or nobody
        writes summaries.
        """
        [request] = batch.requests
        try:
            with self._workspace(batch) as workspace:
                opened = self._sources(batch, workspace).find(request.path).open()
            source = _masked(opened, redactor_of(with_tokens(batch.redact, batch.servers)))
            return region_of(
                request, source, opened.name, batch.summary_model, self._counter(batch.encoding)
            )
        except (OSError, ValueError) as error:
            if host_trouble(error):
                raise
            return None

    def _read(
        self,
        sources: Sources,
        request: ReadRequest,
        count: Count,
        redactor: Redactor,
        summary_model: dict[str, Any] | None,
        used: list[str],
    ) -> ReadResult:
        try:
            source = sources.find(request.path)
            # Asked before it is opened: of most sources that are due nothing has changed.
            known = source.known()
            if known is not None and basis_of(request, known.fingerprint) == request.known:
                return _unchanged(request, known.fingerprint, known.size)
            opened = source.open()
            # Once more, now that its content is known: a file that was written anew may be as it
            # was.
            if basis_of(request, opened.fingerprint) == request.known:
                return _unchanged(request, opened.fingerprint, opened.size)
            if request.lod == _SUMMARY:
                return self._summary(request, opened, count, redactor, summary_model, used)
            return _rendered(request, opened, count, redactor)
        except (OSError, ValueError) as error:
            if host_trouble(error):
                raise
            return _failed(request, error, redactor)

    def _summary(
        self,
        request: ReadRequest,
        opened: Opened,
        count: Count,
        redactor: Redactor,
        model: dict[str, Any] | None,
        used: list[str],
    ) -> ReadResult:
        """Level 2: the summary, if it is written; until then level 1 stands in, and says so."""
        source = _masked(opened, redactor)
        region = region_of(request, source, opened.name, model, count)
        text = None if region is None else known_summary(self._store, region)
        if region is not None and text is not None:
            used.append(region.key)
            text = fitting(text, region.budget, count)
            shown = replace(region.shown, text=text, tokens=count(text))
            return _result(
                request, opened, shown, basis_of(request, opened.fingerprint), opened.note
            )
        # Its basis is another than the summary's, so that a reading brings that as soon as it is
        # there.
        stands_in = digest_of([basis_of(request, opened.fingerprint), "stands in", model])
        if request.known == stands_in:
            return _unchanged(request, opened.fingerprint, opened.size)
        note = "; ".join(filter(None, [opened.note, NO_WRITER if region is None else STANDS_IN]))
        return _result(
            request, opened, _structure(request, opened, source, count, redactor), stands_in, note
        )

    @contextmanager
    def _workspace(self, asked: ReadBatch | FileCall) -> Iterator[Workspace]:
        """The directory, or the version of a workspace, that is read."""
        if asked.held is None or asked.key is None or self._versions is None:
            yield Workspace(asked.workspace, self._limits)
            return
        with self._versions.laid_out(asked.key, asked.held) as root:
            yield Workspace(str(root), self._limits, own=True)

    def _sources(self, batch: ReadBatch, workspace: Workspace) -> Sources:
        return Sources(
            workspace=workspace,
            fingerprints=self._fingerprints,
            now=self._now,
            allowed=batch.urls,
            pages=self._pages,
            store=self._store,
            own=batch.key,
            resources=(
                NoResources()
                if self._hosts is None
                else ServerResources(self._hosts, batch.servers)
            ),
        )

    def _call(self, call: FileCall) -> FileCallResult:
        failpoint("read.before")
        result = self._answered(call)
        failpoint("read.after")
        return result

    def _answered(self, call: FileCall) -> FileCallResult:
        redactor = redactor_of(call.redact)
        try:
            if os_values.would_write(call.operation, call.args, call.kwargs):
                raise PermissionError(f"{os_values.READ_ONLY}: {call.path!r}")
            with self._workspace(call) as workspace:
                value = redactor.value(_answer(workspace, call))
        except (OSError, ValueError, NotImplementedError) as error:
            if host_trouble(error):
                raise
            return FileCallResult(
                error_type=os_values.error_name(error), error_message=redactor.text(_message(error))
            )
        encoded, form = os_values.encode(call.operation, call.path, value)
        return FileCallResult(value=encoded, encoding=form)


def _answer(workspace: Workspace, call: FileCall) -> Any:
    match call.operation:
        case "open":
            binary = "b" in os_values.open_mode(call.args, call.kwargs)
            return workspace.read_bytes(call.path) if binary else workspace.read_text(call.path)
        case "Path.read_text":
            return workspace.read_text(call.path)
        case "Path.read_bytes":
            return workspace.read_bytes(call.path)
        case "Path.exists":
            return workspace.exists(call.path)
        case "Path.is_file":
            return workspace.is_file(call.path)
        case "Path.is_dir":
            return workspace.is_dir(call.path)
        case "Path.is_symlink":
            return workspace.is_symlink(call.path)
        case "Path.iterdir":
            return workspace.listdir(call.path)
        case "Path.scan":
            options = call.kwargs
            return workspace.scan(
                call.path,
                max_depth=options.get("max_depth"),
                follow_symlinks=bool(options.get("follow_symlinks", False)),
                pattern=options.get("pattern"),
                case_sensitive=options.get("case_sensitive"),
            )
        case "Path.stat":
            return workspace.stat(call.path)
        case "Path.resolve":
            return workspace.resolve(call.path)
        case "Path.absolute":
            return os_values.virtual_path(call.path)
        case _:
            raise NotImplementedError(f"{call.operation} is not available in a statement")


def _masked(opened: Opened, redactor: Redactor) -> SourceText:
    """The source's text without secrets.

    Before anything is cut out of it: half a secret is found by no search.
    """
    source = SourceText.of(opened.data)
    return replace(source, data=redactor.data(source.data))


def _rendered(request: ReadRequest, opened: Opened, count: Count, redactor: Redactor) -> ReadResult:
    source = _masked(opened, redactor)
    if request.lod == _EXCERPT:
        shown = excerpt(source, request.pos, request.tokens, count)
    elif request.lod == _STRUCTURE:
        shown = _structure(request, opened, source, count, redactor)
    else:
        raise ValueError(f"a source is read at level of detail 0, 1 or 2, not {request.lod}")
    return _result(request, opened, shown, basis_of(request, opened.fingerprint), opened.note)


def _structure(
    request: ReadRequest, opened: Opened, source: SourceText, count: Count, redactor: Redactor
) -> Excerpt:
    items = None if opened.outline is None else opened.outline(redactor.data)
    return structure(source, opened.name, request.pos, request.tokens, count, items, outline_apart)


def _result(
    request: ReadRequest, opened: Opened, shown: Excerpt, basis: str, note: str
) -> ReadResult:
    return ReadResult(
        obj_id=request.obj_id,
        status=ReadStatus.OK,
        basis=basis,
        fingerprint=opened.fingerprint,
        text=shown.text,
        first_line=shown.first_line,
        last_line=shown.last_line,
        total_lines=shown.total_lines,
        size=opened.size,
        tokens=shown.tokens,
        truncated=shown.truncated,
        note=note,
    )


def _unchanged(request: ReadRequest, fingerprint: str, size: int) -> ReadResult:
    return ReadResult(
        obj_id=request.obj_id,
        status=ReadStatus.UNCHANGED,
        basis=request.known or "",
        fingerprint=fingerprint,
        size=size,
    )


def _failed(request: ReadRequest, error: Exception, redactor: Redactor) -> ReadResult:
    return ReadResult(
        obj_id=request.obj_id,
        status=ReadStatus.ERROR,
        error_type=os_values.error_name(error),
        # What a server said is bounded here alone: half a secret is found by no search.
        error_message=shortened(redactor.text(_message(error))),
    )


def _message(error: Exception) -> str:
    """The exception's text without lone surrogates, which JSON and Monty cannot hold."""
    return as_unicode(str(error))
