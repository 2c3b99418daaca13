"""A job's effects on the world: reads, file calls and tool calls, each an activity."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts import (
        CutCall,
        Decision,
        FileCall,
        FileCallResult,
        GroupMaterial,
        HeldVersion,
        ReadBatch,
        ReadBatchResult,
        ServersListed,
        ServersQuestion,
        ToolRequest,
        ToolResult,
        WorkspaceChange,
        WorkspaceChanged,
        WorkspaceOpen,
        WorkspaceOpened,
        summary_name,
    )
    from activities.record import EffectName
    from runtime.base.addresses import server_in
    from runtime.base.effect_numbers import TICK, UNWRITTEN, WAIT_EFFECTS
    from runtime.base.roles import Role
    from runtime.base.spec.models import JobSpec, Retry
    from runtime.base.spec.servers import ServerSpec
    from runtime.base.values import JobKey
    from runtime.base.workflow_ids import effect_activity_id
    from runtime.context.material import Material
    from runtime.context.payloads import Preparation
    from runtime.context.sources import SUMMARY_LOD, ReadRequest, ReadResult, ReadStatus
    from runtime.interpreter.approved import other_request
    from runtime.interpreter.hands import TOOL, ChangeRequest
    from runtime.interpreter.host import Effect, EffectKind
    from runtime.interpreter.job_host import ServerRequest
    from runtime.job.sleeping import Sleep
    from workflows.calling import call_within, result_of, start
    from workflows.limits import (
        CALL_LIMIT,
        OPEN_LIMIT,
        READ_LIMIT,
        SERVERS_LIMIT,
        SUMMARY_LIMIT,
        TOOL_LIMIT,
        command_limit,
        sooner,
        summary_retry,
    )
    from workflows.moment import Moment
    from workflows.routing import Routing


@dataclass(frozen=True)
class Effects:
    """Carries out the effects of one job, or has them answered from a record; the deadline bounds
    each.
    """

    key: JobKey
    spec: JobSpec
    moment: Moment
    routing: Routing

    async def perform(
        self, effect: Effect, turn: int, number: int, decision: Decision | None
    ) -> tuple[Any, float | None]:
        """The result of effect ``number`` of the turn's statement, and the seconds worked for it,
        if somebody told. ``decision`` is a person's on the call that it is.
        """
        request, place = effect.request, self._place(turn, number)
        place["recorded"] = self.moment.answers.effect_for(effect, number)
        if decision is not None:
            place["decision"] = decision
            if decision.arguments is not None:
                request = other_request(effect, decision.arguments, decision.kept)
        match effect.kind:
            case EffectKind.CHANGE:
                return await self._change(request, place)
            case EffectKind.READ:
                read = await self._read((request,), effect_activity_id(turn, number), place)
                return read.results[0], read.worked
            case EffectKind.FILE:
                file = FileCall(
                    workspace=self.spec.workspace,
                    held=self._held(),
                    operation=request.operation,
                    path=request.path,
                    args=request.args,
                    kwargs=request.kwargs,
                    redact=self.spec.redact,
                    **place,
                )
                summary = f"{request.operation} {request.path}"[:120]
                route = self.routing.to(Role.READS)
                done = await self._call(
                    "file_call", file, FileCallResult, summary, READ_LIMIT, place, **route
                )
                return done.timeless, done.worked
            case EffectKind.TOOL:
                call = self._tool_request(request.tool, request.args, request.kwargs, place)
                route = self.routing.of_tool(call.tool, recorded=call.recorded is not None)
                done = await self._call(
                    "call_tool", call, ToolResult, request.tool, TOOL_LIMIT, place, **route
                )
                return done.timeless, done.worked
            case EffectKind.SPAWN:
                raise RuntimeError("sub-jobs are started by workflows/sub_jobs.py")
            case EffectKind.SERVER:
                done = await self._server_call(request, place)
                return done.timeless, done.worked

    def _tool_request(
        self, name: str, args: Sequence[Any], kwargs: dict[str, Any], place: dict[str, Any]
    ) -> ToolRequest:
        tool = next(tool for tool in self.spec.tools if tool.name == name)
        return ToolRequest(
            tool=tool.target,
            search_path=tool.search_path,
            args=tuple(args),
            kwargs=kwargs,
            often=tool.effect,
            timeout=tool.timeout,
            retries=tool.retries,
            secrets=self.spec.secrets,
            redact=self.spec.redact,
            **place,
        )

    async def _server_call(self, request: ServerRequest, place: dict[str, Any]) -> ToolResult:
        """A call of a tool as its server offered it when the job began."""
        server = next(one for one in self.spec.mcp if one.name == request.server)
        listing = next(one for one in self.moment.job.desk.servers if one.name == server.name)
        tool = listing.tool(request.method)
        assert tool is not None, "the host calls what is offered"
        call = ToolRequest(
            tool=tool.tool,
            search_path="",
            kwargs=request.kwargs,
            often=tool.effect,
            timeout=server.timeout,
            server=server,
            digest=tool.digest,
            redact=self.spec.redact,
            **place,
        )
        summary = f"{server.name}.{request.method}"
        route = self.routing.to(Role.TOOLS)
        done: ToolResult = await self._call(
            "call_tool", call, ToolResult, summary, TOOL_LIMIT, place, **route
        )
        return done

    async def offered(self, recorded: EffectName | None) -> ServersListed:
        """What the job's MCP servers offer, or what the record says that they did."""
        question = ServersQuestion(
            key=self.key, servers=self.spec.mcp, redact=self.spec.redact, recorded=recorded
        )
        listed: ServersListed = await result_of(
            "list_servers",
            question,
            ServersListed,
            id="servers",
            limit=SERVERS_LIMIT,
            until=self.moment.until_deadline(),
            summary="ask the MCP servers what they offer",
            **self.routing.to(Role.TOOLS),
        )
        return listed

    async def open(self, recorded: EffectName | None) -> WorkspaceOpened:
        """The version that the job's own workspace begins with, which a record may say."""
        if self.spec.writable is None:
            raise RuntimeError("the job has no workspace of its own")
        opened: WorkspaceOpened = await result_of(
            "open_workspace",
            WorkspaceOpen(
                key=self.key,
                workspace=self.spec.workspace,
                writable=self.spec.writable,
                redact=self.spec.redact,
                recorded=recorded,
            ),
            WorkspaceOpened,
            id="open-workspace",
            limit=OPEN_LIMIT,
            until=self.moment.until_deadline(),
            summary="open the workspace",
            **self.routing.to(Role.SANDBOXES),
        )
        return opened

    async def _change(
        self, request: ChangeRequest, place: dict[str, Any]
    ) -> tuple[WorkspaceChanged, float | None]:
        """One effect on the workspace."""
        held, writable = self._held(), self.spec.writable
        if held is None or writable is None:
            raise RuntimeError("a job without a workspace of its own cannot change it")
        arguments = request.arguments
        tool = None
        if request.operation == TOOL:
            tool = self._tool_request(request.path, arguments["args"], arguments["kwargs"], place)
            # The tool's own request has them: in both they would be in the history twice.
            arguments = {}
        change = WorkspaceChange(
            tool=tool,
            held=held,
            writable=writable,
            operation=request.operation,
            arguments=arguments,
            redact=self.spec.redact,
            **place,
        )
        named = None if tool is None else tool.tool
        route = self.routing.of_change(named, recorded=change.recorded is not None)
        limit = READ_LIMIT if tool is None else TOOL_LIMIT
        if request.operation == "sh":
            limit = command_limit(request.arguments["timeout"], writable)
        summary = f"{request.operation} {request.path}"[:120]
        done = await self._call(
            "change_workspace", change, WorkspaceChanged, summary, limit, place, **route
        )
        return done.timeless, done.worked

    def _held(self) -> HeldVersion | None:
        """The version of the job's own workspace now."""
        if self.spec.writable is None:
            return None
        return HeldVersion(
            version=self.moment.job.desk.workspace, sandbox=self.spec.writable.sandbox
        )

    async def tick(self, requests: tuple[ReadRequest, ...], turn: int) -> ReadBatchResult:
        """The readings of the turn's tick."""
        return await self._read(requests, f"turn-{turn}-tick", self._place(turn, TICK))

    async def look(
        self, requests: tuple[ReadRequest, ...], turn: int, sleep: Sleep, *, marked: bool
    ) -> ReadBatchResult:
        """The readings of a tick of the job asleep after ``turn``; ``marked`` as in
        ``ReadBatch``.
        """
        place = self._place(turn, WAIT_EFFECTS + len(sleep.news))
        name = f"turn-{turn}-asleep-{sleep.ticks}"
        return await self._read(requests, name, place, marked=marked)

    async def repeated(
        self,
        requests: tuple[ReadRequest, ...],
        turn: int,
        payloads: tuple[tuple[str, int, int], ...],
    ) -> tuple[ReadResult, ...]:
        """What the ``payloads`` that a recorded tick applied had brought; ``requests`` are for
        them, in order.
        """
        results: list[ReadResult] = []
        for request, (_, begun, effect) in zip(requests, payloads, strict=True):
            if effect == UNWRITTEN:
                results.append(ReadResult(obj_id=request.obj_id, status=ReadStatus.UNWRITTEN))
                continue
            place = self._place(begun, effect)
            results += (
                await self._read((request,), f"turn-{turn}-payload-{effect}", place)
            ).results
        return tuple(results)

    async def prepare(self, preparation: Preparation) -> workflow.ActivityHandle[ReadBatchResult]:
        """Start reading for a payload, or writing a group's summary. Nobody waits for it."""
        servers = self._servers((preparation.request,))
        summary = preparation.request.lod == SUMMARY_LOD
        kept = "" if preparation.material is None else await self._keep(preparation.material)
        batch = ReadBatch(
            workspace=self.spec.workspace,
            held=self._held(),
            requests=(preparation.request,),
            encoding=self.spec.encoding,
            urls=self.spec.urls,
            servers=servers,
            summary_model=self._summary_model((preparation.request,)),
            redact=self.spec.redact,
            material=kept,
            left=self.moment.left(held=preparation.payload_id) if summary else None,
            retry=summary_retry(self.spec.retry) if summary else Retry(),
            **self._place(preparation.turn, preparation.effect),
        )
        of = preparation.request.path or preparation.obj_id
        until = self.moment.until_deadline()
        self.moment.kept = True
        return start(
            "summarise_group" if kept else "summarise_source" if summary else "read_sources",
            batch,
            ReadBatchResult,
            id=preparation.payload_id,
            limit=CALL_LIMIT if summary else READ_LIMIT,
            until=sooner(SUMMARY_LIMIT, until) if summary else until,
            summary=f"prepare {of}"[:120],
            **(
                self.routing.of_model(batch.summary_model)
                if summary
                else self.routing.of_reading(servers=bool(servers))
            ),
        )

    def summary_call(self, preparation: Preparation) -> CutCall | None:
        """The model call that ``prepare`` may come to, by which it is asked what it used if it is
        cut; None if it only reads.
        """
        if (model := self._summary_model((preparation.request,))) is None:
            return None
        kind = "view" if preparation.material is None else "group"
        return CutCall(
            key=self.key,
            turn=preparation.turn,
            activity=preparation.payload_id,
            model=model,
            side=summary_name(kind, preparation.turn, preparation.effect),
        )

    async def _keep(self, material: Material) -> str:
        """Where a group's material is kept.

        It goes to the activity within the worker, so the history holds its address alone.
        """
        kept: str = await call_within(
            "keep_material",
            GroupMaterial(material=material, redact=self.spec.redact),
            str,
        )
        return kept

    async def _read(
        self,
        requests: tuple[ReadRequest, ...],
        name: str,
        place: dict[str, Any],
        *,
        marked: bool = False,
    ) -> ReadBatchResult:
        batch = ReadBatch(
            workspace=self.spec.workspace,
            held=self._held(),
            requests=requests,
            encoding=self.spec.encoding,
            urls=self.spec.urls,
            servers=self._servers(requests),
            summary_model=self._summary_model(requests),
            redact=self.spec.redact,
            marked=marked,
            **place,
        )
        summary = f"read {len(requests)} source{'s' if len(requests) != 1 else ''}"
        route = self.routing.of_reading(servers=bool(batch.servers))
        result: ReadBatchResult = await self._call(
            "read_sources", batch, ReadBatchResult, summary, READ_LIMIT, place, name, **route
        )
        news = any(one.status is not ReadStatus.UNCHANGED for one in result.results)
        # As ``ReadEffects`` has it.
        self.moment.kept |= news or marked or place["effect"] < WAIT_EFFECTS
        return result

    def _servers(self, requests: tuple[ReadRequest, ...]) -> tuple[ServerSpec, ...]:
        """The MCP servers whose resources are read; all, if one is named that the job has not."""
        named = {name for request in requests if (name := server_in(request.path)) is not None}
        servers = tuple(server for server in self.spec.mcp if server.name in named)
        return servers if len(servers) == len(named) else self.spec.mcp

    def _summary_model(self, requests: tuple[ReadRequest, ...]) -> dict[str, Any] | None:
        """What writes summaries, if a request wants one."""
        model = self.spec.writer
        if model is None or all(request.lod != SUMMARY_LOD for request in requests):
            return None
        return {"name": model.name, **model.options}

    async def _call(
        self,
        activity: str,
        question: Any,
        result: type,
        summary: str,
        limit: timedelta,
        place: dict[str, Any],
        name: str = "",
        **route: Any,
    ) -> Any:
        return await result_of(
            activity,
            question,
            result,
            id=name or effect_activity_id(place["turn"], place["effect"]),
            limit=limit,
            until=self.moment.until_deadline(),
            summary=summary,
            **route,
        )

    def _place(self, turn: int, number: int) -> dict[str, Any]:
        """Where the archive keeps the effect's result, and which record answers it, if one does."""
        return {
            "key": self.key,
            "turn": turn,
            "effect": number,
            "recorded": self.moment.answers.effect,
        }
