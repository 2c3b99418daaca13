"""The process that outlines texts: started with ``own_process.command``, it gets a text and a
suffix in each line of its input, as JSON, and answers with a line, the outline's items.

A text that takes more memory, or more time of the processor, than a source ever should ends it.
"""

from __future__ import annotations

import json
import signal
import sys
from dataclasses import astuple

from runtime.base.own_process import bound_memory
from runtime.context.outlines import outline

MEMORY = 512 * 1024**2
"""Bytes of address space."""

CPU_SECONDS = 10.0
"""Of the processor's time for one text."""


def main() -> None:
    """Answer until the input ends."""
    bound_memory(MEMORY)
    # Who ends the worker in a terminal, or with all its processes as systemd does, ends it in good
    # order, which takes outlines still.
    for one in (signal.SIGINT, signal.SIGTERM):
        signal.signal(one, signal.SIG_IGN)
    for line in sys.stdin.buffer:
        text, suffix = json.loads(line)
        # Its signal ends a process that does not handle it, also in the midst of a parser.
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        answer = json.dumps([astuple(item) for item in outline(text, suffix)])
        signal.setitimer(signal.ITIMER_PROF, 0)
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
