"""Questions to a person, and their answers: both archived beside the call that they are about."""

from __future__ import annotations

import asyncio
import datetime
from dataclasses import dataclass
from typing import Any

from temporalio import activity

from activities._once import CLAIMS
from activities.contracts import ApprovalQuestion, Asked, Decision, ToolRequest, WorkspaceChange
from runtime.archive.approvals import DECISIONS, QUESTIONS
from runtime.archive.job import JobArchive
from runtime.archive.stores import ObjectStore
from runtime.base.redaction.redactor import redactor_of


@dataclass(frozen=True)
class ApprovalActivities:
    """The activity ``ask_approval``."""

    store: ObjectStore

    @activity.defn(name="ask_approval")
    async def ask_approval(self, question: ApprovalQuestion) -> Asked:
        """Archive a question, which ``holdfast approvals`` lists until it is answered.

        Raises:
            ArchiveError: the archive cannot be read or written.
        """
        asked = {
            "id": question.id,
            "tool": question.tool,
            "args": list(question.args),
            "kwargs": question.kwargs,
            "asked_at": datetime.datetime.now(datetime.UTC).isoformat(),
            "wait": question.wait,
            "otherwise": question.otherwise,
        }
        # Everybody who may list questions reads it.
        masked: dict[str, Any] = redactor_of(question.redact).value(asked)
        archive = JobArchive.of(self.store, question.key)
        run = activity.info().workflow_run_id or ""
        if (made := await asyncio.to_thread(_made, archive, run, question)) is not None:
            return Asked(made=made)
        number = QUESTIONS + question.effect
        stands = await asyncio.to_thread(
            archive.write_effect, run, question.turn, number, {"question": masked}
        )
        # That of the run whose statement this one goes on with, if it had asked: who answered that
        # is heard.
        return Asked(id=stands["question"]["id"])


def _made(archive: JobArchive, run: str, question: ApprovalQuestion) -> Decision | None:
    """The decision on a call that a run made which this one goes on from; None if none did."""
    turn, effect = question.turn, question.effect
    if all(archive.effect(run, turn, number) is None for number in (effect, CLAIMS + effect)):
        return None
    # Where the job's record has no question, it was approved by a decision on an earlier call. What
    # arguments were given is no matter: no call is made with them.
    kept = archive.effect(run, turn, DECISIONS + effect)
    decision = {"question": question.id, "approved": True} if kept is None else kept["decision"]
    return Decision.model_validate({**decision, "arguments": None, "kept": ()})


def keep_decision(
    archive: JobArchive, run: str, request: ToolRequest | WorkspaceChange, decision: Decision
) -> None:
    """Archive who decided what, and when, before it has an effect."""
    told = redactor_of(request.redact).value(decision.model_dump(mode="json"))
    archive.write_effect(run, request.turn, DECISIONS + request.effect, {"decision": told})


def rejected(name: str, decision: Decision) -> dict[str, str]:
    """The exception that the statement gets in place of a call that was not approved."""
    by = f" by {decision.by}" if decision.by else ""
    reason = f": {decision.reason}" if decision.reason else ""
    return {
        "error_type": "PermissionError",
        "error_message": f"{name}() was rejected{by}{reason}",
    }
