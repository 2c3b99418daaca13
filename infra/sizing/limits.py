"""What breaks first: each limit that is known, and how much of it a load uses in its busiest
hour.
"""

from __future__ import annotations

from dataclasses import dataclass

from infra.sizing import counts
from infra.sizing.model import Need

CLOUD_ACTIONS = 500
CLOUD_REQUESTS = 2_000
"""Of a namespace by default, a second: docs.temporal.io/cloud/limits, read 2026-11-22."""

S3_WRITES, S3_READS = 3_500, 5_500
"""At least, a second, of each partition of a bucket that S3 has made: PUT and LIST, GET
(AmazonS3 user guide, optimizing-performance), read 2026-11-22.
"""

POSTGRES_TABLE = 32 * 2**40
"""Bytes that a table of PostgreSQL may have (its appendix of limits, with pages of 8 KiB)."""


@dataclass(frozen=True)
class Limit:
    """A limit: what is needed of it, and what there is; None where only you know.

    ``then`` says why it is one, and what to do.
    """

    name: str
    needed: float
    there_is: float | None
    then: str

    @property
    def used(self) -> float | None:
        """The share that is used; above 1 it breaks."""
        return None if self.there_is is None else self.needed / self.there_is


def limits(need: Need, tokens_a_minute: float | None = None) -> list[Limit]:
    """All limits, the one that breaks first in front; those that are not known at the end.

    ``tokens_a_minute`` is what the provider's account may use.
    """
    known = [
        Limit(
            "a provider's tokens a minute",
            need.tokens_a_minute,
            tokens_a_minute,
            "calls wait and are tried again; have the account's limit raised, or spread jobs over"
            " accounts and hours (`limits:` keeps within it)",
        ),
        *_of_temporal(need),
        Limit(
            "one worker's process",
            need.of_one_worker,
            1.0,
            "it needs more time of a core, or has more calls at a time, than one has; start as many"
            " as are needed",
        ),
        *_of_s3(need),
        *_of_postgresql(need),
    ]
    return sorted(known, key=lambda one: -1.0 if one.used is None else one.used, reverse=True)


def _of_temporal(need: Need) -> list[Limit]:
    """Those of the server, in Temporal Cloud or embedded."""
    return [
        Limit(
            "Temporal Cloud: Actions a second of a namespace",
            need.actions_a_second,
            CLOUD_ACTIONS,
            "tasks are delayed, none is lost; it rises with use, or by provisioned capacity. Most"
            " are heartbeats where calls are long",
        ),
        Limit(
            "Temporal Cloud: requests a second of a namespace",
            need.requests_a_second,
            CLOUD_REQUESTS,
            "as above",
        ),
        Limit(
            "the embedded server and its workers on two cores: turns and effects a second",
            need.turns_a_second * (1 + need.load.effects),
            counts.embedded_turns_a_second(),
            "one process with SQLite: jobs get slower; use a server with PostgreSQL, or Temporal"
            " Cloud",
        ),
    ]


def _of_s3(need: Need) -> list[Limit]:
    """Those of the archive's bucket."""
    return [
        Limit(
            "S3: PUT and LIST a second of one partition",
            need.s3_writes_a_second,
            S3_WRITES,
            "503 until S3 has split the keys, which it does by itself within an hour; they begin"
            " with the batch's name, so use several batches",
        ),
        Limit(
            "S3: GET a second of one partition",
            need.s3_reads_a_day / 86_400 * need.load.peak,
            S3_READS,
            "as above",
        ),
    ]


def _of_postgresql(need: Need) -> list[Limit]:
    """Those of the database of a server of one's own."""
    return [
        Limit(
            "PostgreSQL: bytes of the table of histories",
            need.database_bytes,
            POSTGRES_TABLE,
            "long before that, backups and vacuum take too long: shorten the retention (`fork` and"
            " `show` need the archive alone), or use several namespaces on several databases",
        ),
        Limit(
            "PostgreSQL: transactions a second",
            need.requests_a_second,
            None,
            "not measured here: run Temporal's own load test (maru, omes) on your database",
        ),
    ]
