"""Questions to a person, and their answers: both archived beside the call that they are about."""

from __future__ import annotations

import asyncio
import datetime
from dataclasses import dataclass
from typing import Any

from temporalio import activity

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
        number = QUESTIONS + question.effect
        await asyncio.to_thread(
            archive.write_effect, run, question.turn, number, {"question": masked}
        )
        return Asked(id=question.id)


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
