"""What libraries log while jobs run, as single lines on stderr."""

from __future__ import annotations

import logging
import os

from runtime.cli.output import note
from runtime.cli.text import one_line

DEBUG = "HOLDFAST_DEBUG"
"""The environment variable that asks for tracebacks."""


class _Lines(logging.Handler):
    """A line for each record: the message, and the exception's own words instead of its traceback."""

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        # Activities that fail are told of by the command itself, with the job's name and the next attempt.
        if record.name == "temporalio.activity" and record.getMessage().startswith("Completing activity as failed"):
            return
        message = record.getMessage().partition(" ({'")[0]
        what = f": {type(error).__name__}: {error}" if error is not None else ""
        note(f"{record.levelname.lower()}: {one_line(message + what)}")


def log_in_lines() -> None:
    """Log warnings and errors of every library as single lines, or in full where ``HOLDFAST_DEBUG`` is set."""
    if os.environ.get(DEBUG):
        logging.basicConfig(level=logging.WARNING)
        return
    logging.basicConfig(level=logging.WARNING, handlers=[_Lines()])
