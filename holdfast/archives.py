"""An archive of jobs, to be read: also one that other machines write to."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from holdfast.arguments import check_type
from runtime.archive.catalog import all_jobs, find_job
from runtime.archive.reader import JobReader
from runtime.archive.stores import ObjectStore
from runtime.cli.stores import archive_to_read

__all__ = ["Archive", "JobReader"]


class Archive:
    """The jobs that an archive holds: a directory's path or ``s3://bucket/prefix``, else the one
    that commands would read.

    Raises:
        InputError: if it is neither a path nor a text.
        NotFound: if no archive is there.
        ArchiveError: if it cannot be read.
    """

    def __init__(self, url: str | Path | None = None) -> None:
        check_type("url", url, os.PathLike, type(None))
        self.store: ObjectStore = archive_to_read(None if url is None else os.fspath(url))

    def __iter__(self) -> Iterator[str]:
        """The names of all jobs, ``batch/id``, sorted."""
        return map(str, all_jobs(self.store))

    def job(self, name: str = "last") -> JobReader:
        """What there is of one job: its runs, steps, requests and replies.

        ``name`` is ``batch/id``, a unique prefix of that or of the id alone, or ``last``.

        Raises:
            InputError: if it is no text.
            NotFound: if no job, or more than one, is so named.
        """
        check_type("name", name, str)
        key = find_job(self.store, name)
        return JobReader(self.store, key.batch, key.job)
