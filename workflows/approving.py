"""Calls that wait for a person: the statement is suspended in its midst, and holds no worker."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import timedelta

from temporalio import workflow

with workflow.unsafe.imports_passed_through():
    from activities.contracts import ApprovalQuestion, Asked, Decision
    from runtime.base.digests import digest_of
    from runtime.base.durations import format_duration
    from runtime.base.effect_classes import Approval
    from runtime.base.spec.models import JobSpec
    from runtime.base.values import JobKey
    from runtime.base.workflow_ids import approval_activity_id
    from runtime.context.outcomes import Refused
    from runtime.interpreter.approved import other_request, shown_arguments
    from runtime.interpreter.hands import TOOL
    from runtime.interpreter.host import Effect, EffectKind
    from workflows.calling import result_of
    from workflows.moment import Moment
    from workflows.patches import CUT, patched

LONGEST = timedelta(days=3_650)


class Approving:
    """The questions of one job, and the answers that came."""

    def __init__(self, key: JobKey, spec: JobSpec, moment: Moment) -> None:
        self._key, self._spec, self._moment = key, spec, moment
        self._decisions: dict[str, Decision] = {}

    def decide(self, decision: Decision) -> None:
        """Take an answer; the first one counts."""
        # Two people may answer; the second answer may come when the call was made already.
        self._decisions.setdefault(decision.question, decision)

    def wants(self, effect: Effect) -> bool:
        """Whether a call must be approved now.

        What a record answers has been decided there.
        """
        approval = _approval_of(self._spec, effect)
        if approval is Approval.NEVER or self._moment.answers.effect is not None:
            return False
        # A list in the job's state, so that checkpoints carry what was approved into the next run.
        known = self._moment.job.desk.approved
        return approval is Approval.ALWAYS or _digest(effect) not in known

    async def decided(self, effect: Effect, turn: int, number: int) -> Decision:
        """The answer to whether a call may be made, however long it takes."""
        approvals = self._spec.approvals
        args, kwargs = shown_arguments(effect)
        question = ApprovalQuestion(
            # A run that was reset asks anew: the answers to another are delivered to it again.
            id=f"{workflow.info().run_id}/{turn}/{number}",
            key=self._key,
            turn=turn,
            effect=number,
            tool=effect.name,
            args=args,
            kwargs=kwargs,
            wait=approvals.wait,
            otherwise=approvals.otherwise,
            redact=self._spec.redact,
        )
        asked = result_of(
            "ask_approval",
            question,
            Asked,
            id=approval_activity_id(turn, number),
            until=self._moment.until_deadline(),
            summary=f"may {effect.name} be called?"[:120],
        )
        stands = await self._moment.after(asked, lambda asked: asked.worked)
        if stands.made is not None:
            return stands.made
        name = stands.id or question.id
        wait, cut = self._longest()
        await self._moment.after(self._arrival(name, wait), lambda _: 0.0)
        decision = self._decisions.pop(name, None)
        if decision is None:
            # What the jobs file says holds once its time is over, and that was not.
            ends = cut and patched(CUT)
            by_deadline = ends or approvals.wait is None
            waited = "the job's deadline" if by_deadline else _told(approvals.wait or 0.0)
            decision = Decision(
                question=name,
                approved=approvals.otherwise == "approve" and not ends,
                reason=f"nobody answered within {waited}",
            )
        decision = _fitting(decision, effect)
        once = _approval_of(self._spec, effect) is Approval.ONCE_PER_ARGS
        # Other arguments than those asked for were approved for this one call alone.
        if decision.approved and decision.arguments is None and once:
            self._moment.job.desk.approved.append(_digest(effect))
        return decision

    def _longest(self) -> tuple[timedelta, bool]:
        """How long the answer is waited for, and whether the deadline cuts that short."""
        wait = self._spec.approvals.wait
        longest = LONGEST if wait is None else timedelta(seconds=wait)
        until = self._moment.until_deadline()
        return (longest, False) if until is None or until >= longest else (until, True)

    async def _arrival(self, name: str, longest: timedelta) -> None:
        """Wait for the answer."""
        with contextlib.suppress(asyncio.TimeoutError):
            await workflow.wait_condition(
                lambda: name in self._decisions,
                timeout=longest,
                timeout_summary="waiting for approval",
            )


def _approval_of(spec: JobSpec, effect: Effect) -> Approval:
    """What the jobs file says of a command or a tool, else what the tool says itself."""
    match effect.kind:
        case EffectKind.TOOL | EffectKind.SERVER:
            tools = (tool.approval for tool in spec.tools if tool.name == effect.name)
            return spec.approvals.of_tool(effect.name, next(tools, Approval.NEVER))
        case EffectKind.CHANGE if effect.request.operation == TOOL:
            tools = (tool.approval for tool in spec.tools if tool.name == effect.name)
            return spec.approvals.of_tool(effect.name, next(tools, Approval.NEVER))
        case EffectKind.CHANGE if effect.request.operation == "sh":
            return spec.approvals.of_command(effect.request.arguments["command"])
        case _:
            return Approval.NEVER


def _fitting(decision: Decision, effect: Effect) -> Decision:
    """The decision; one with arguments that the call cannot have rejects it."""
    if not decision.approved or decision.arguments is None:
        return decision
    try:
        other_request(effect, decision.arguments, decision.kept)
    except Refused as refused:
        reason = f"the arguments that were given do not fit: {refused}"
        return decision.model_copy(update={"approved": False, "arguments": None, "reason": reason})
    return decision


def _digest(effect: Effect) -> str:
    return digest_of([effect.name, effect.request.model_dump(mode="json")])


def _told(seconds: float) -> str:
    return str(format_duration(seconds))
