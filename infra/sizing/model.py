"""What a load needs, by the counts of a job and of a turn."""

from __future__ import annotations

import math
from dataclasses import dataclass

from infra.sizing import counts
from infra.sizing.load import Load

DAY = 86_400
MIB = 2**20
MONTH_DAYS = 30
_ROUNDS = 8
"""How often the workers are reckoned anew: more workers read more, which takes more workers. What
one reads has a bound, so the last rounds change nothing.
"""


@dataclass(frozen=True)
class Job:
    """What one job takes, from its begin to its end.

    ``actions`` are Temporal Cloud's, ``heartbeats`` are among them. Bytes are those of the job's
    histories, with what stands of it in its batch's, and of its objects in the archive.
    """

    actions: float
    heartbeats: float
    requests: float
    history_bytes: float
    writes: float
    reads: float
    lists: float
    archive_bytes: float
    seconds: float
    processor_seconds: float

    @classmethod
    def of(cls, load: Load, processes: float = 1) -> Job:
        """The job of a load that so many workers' processes share."""
        turns, effect = load.turns, counts.effect()
        a_job, a_turn = counts.A_JOB, counts.A_TURN
        effects = turns * load.effects
        said, new = (
            turns * tokens * load.bytes_per_token
            for tokens in (load.completion_tokens, load.new_tokens)
        )
        workspace = counts.A_WORKSPACE if effects else 0
        runs = max(math.ceil(turns / counts.turns_of_a_run()), 1)
        beats = turns * _beats(load.call_seconds) + effects * _beats(load.effect_seconds)
        writes = a_job.writes + a_turn.writes * turns + effect.writes * effects + runs - 1
        lists = a_job.lists + a_turn.lists * turns + effect.lists * effects
        reads = (
            a_job.reads
            + a_turn.reads * turns
            + effect.reads * (effects + workspace)
            + turns * counts.readers(processes, turns)
            + counts.attempts_read(processes, turns)
            # The newest list of files alone is read, whoever wrote those before.
            + effects * counts.another(processes)
        )
        return cls(
            actions=a_job.actions
            + a_turn.actions * turns
            + workspace
            + effect.actions * effects
            + (runs - 1) * counts.A_FURTHER_RUN
            + beats,
            heartbeats=beats,
            requests=counts.REQUESTS_OF_A_TURN
            * (turns + effects + counts.OTHER_ACTIVITIES + workspace)
            + beats,
            history_bytes=runs * counts.HISTORY_OF_A_JOB
            + counts.HISTORY_OF_A_CHILD
            + (counts.HISTORY_OF_A_WORKSPACE if effects else 0)
            + (turns + effects) * counts.history_of_a_turn()
            # What an effect brings is its result, and goes to the next turn in its order.
            + said
            + 2 * new,
            writes=writes,
            reads=reads,
            lists=lists,
            archive_bytes=counts.ARCHIVE_OF_A_JOB
            + counts.ARCHIVE_OF_A_TURN * turns
            + effect.stored_bytes * effects
            + counts.stored_of_a_byte(turns) * (said + new)
            + (counts.STORED_OF_A_RESULT * new if effects else 0),
            seconds=turns * load.call_seconds + effects * load.effect_seconds,
            processor_seconds=counts.processor_seconds() * turns
            + effect.processor_seconds * effects
            + counts.PROCESSOR_SECONDS_OF_A_REQUEST * (writes + reads + lists),
        )


@dataclass(frozen=True)
class Need:
    """What a load needs: a day's amounts, the busiest hour's rates a second, what is kept."""

    load: Load
    job: Job
    turns_a_day: float
    prompt_tokens_a_day: float
    completion_tokens_a_day: float
    actions_a_day: float
    turns_a_second: float
    actions_a_second: float
    requests_a_second: float
    s3_writes_a_day: float
    s3_reads_a_day: float
    s3_writes_a_second: float
    tokens_a_minute: float
    open_jobs: float
    calls_at_a_time: float
    database_bytes: float
    open_history_bytes: float
    archive_bytes_a_day: float
    archive_bytes: float
    worker_cores: float
    of_one_worker: float
    worker_processes: int
    worker_bytes: float

    @classmethod
    def of(cls, load: Load) -> Need:
        """What a load needs."""
        jobs = load.jobs_per_day
        peak = jobs / DAY * load.peak
        calls, workers = peak * load.turns * load.call_seconds, 1
        for _ in range(_ROUNDS):
            job = Job.of(load, workers)
            open_jobs, cores = peak * job.seconds, peak * job.processor_seconds
            # Whichever of its three bounds a worker comes to first: a core, calls at a time, jobs
            # in memory.
            processes = max(
                cores / load.worker_cores,
                peak * job.seconds / counts.CALLS_OF_A_WORKER,
                open_jobs / counts.JOBS_OF_A_WORKER,
            )
            workers = max(math.ceil(processes), 1)
        # S3 bills, and limits, both as one.
        writes = (job.writes + job.lists) * jobs
        return cls(
            load=load,
            job=job,
            turns_a_day=jobs * load.turns,
            prompt_tokens_a_day=jobs * load.turns * load.prompt_tokens,
            completion_tokens_a_day=jobs * load.turns * load.completion_tokens,
            actions_a_day=jobs * job.actions,
            turns_a_second=peak * load.turns,
            actions_a_second=peak * job.actions,
            requests_a_second=peak * job.requests,
            s3_writes_a_day=writes,
            s3_reads_a_day=job.reads * jobs,
            s3_writes_a_second=writes / DAY * load.peak,
            tokens_a_minute=60 * peak * load.turns * (load.prompt_tokens + load.completion_tokens),
            open_jobs=open_jobs,
            calls_at_a_time=calls,
            # What is closed and kept, and what is open.
            database_bytes=jobs * load.retention_days * job.history_bytes
            + open_jobs * job.history_bytes,
            # Half: a job's history grows from nothing while the job is open.
            open_history_bytes=jobs * job.seconds / DAY * job.history_bytes / 2,
            archive_bytes_a_day=jobs * job.archive_bytes,
            archive_bytes=jobs * load.archive_days * job.archive_bytes,
            worker_cores=cores,
            of_one_worker=processes,
            worker_processes=workers,
            worker_bytes=workers * counts.worker_mib() * MIB,
        )


def _beats(seconds: float) -> float:
    """Heartbeats of an activity that reach the server."""
    # The first beat is due after the interval, so a short call has none.
    later = seconds - counts.FIRST_HEARTBEAT_SECONDS
    return 0 if later < 0 else 1 + math.floor(later / counts.HEARTBEAT_SECONDS)
