"""What an open job waits for, in a sentence."""

from __future__ import annotations

from runtime.job.phases import Phase

WAITS = {
    Phase.APPROVAL: "waits for a person's approval: 'holdfast approvals' lists the calls",
    Phase.GRANT: "waits for a slice of its batch's budget",
    Phase.ASLEEP: "sleeps, as its last statement asked for",
    Phase.PAUSED: "paused by a user: 'holdfast resume' has it go on",
}
"""By the phases in which a job can do nothing until something comes."""
