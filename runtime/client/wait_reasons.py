"""What an open job waits for, in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.job.phases import Phase

if TYPE_CHECKING:
    from workflows.messages import JobProgress

WAITS = {
    Phase.APPROVAL: "waits for a person's approval: 'holdfast approvals' lists the calls",
    Phase.GRANT: "waits for a slice of its batch's budget",
    Phase.ASLEEP: "sleeps, as its last statement asked for",
    Phase.PAUSED: "paused by a user: 'holdfast resume' has it go on",
}
"""By the phases in which a job can do nothing until something comes."""


def is_paused(progress: JobProgress) -> bool:
    """Whether no turn of the job goes on before a user has it go on, whatever it waits for beside;
    one that works comes to the end of its turn first.
    """
    return progress.phase is Phase.PAUSED or (progress.paused and progress.phase in WAITS)


def wait_of(progress: JobProgress) -> str:
    """What the job waits for; empty if it works."""
    wait = WAITS.get(progress.phase, "")
    if progress.phase is not Phase.PAUSED and is_paused(progress):
        return f"{WAITS[Phase.PAUSED]}; {wait}"
    return wait
