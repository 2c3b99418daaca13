"""``python -m infra.local up | down | status DIR``: a fleet of processes on this machine."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from infra.local.fleet import FILE, Fleet


def main(words: Sequence[str] | None = None) -> int:
    """Give one command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m infra.local", description=__doc__)
    parser.add_argument("command", choices=["up", "down", "status"])
    parser.add_argument("folder", type=Path, help="where the fleet keeps its disks and logs")
    arguments = parser.parse_args(words)
    if arguments.command != "up" and not (arguments.folder / FILE).exists():
        # To make one would say of a mistyped folder that all is down.
        sys.stderr.write(f"error: there is no fleet in {arguments.folder}: 'up' makes one\n")
        return 2
    try:
        fleet = Fleet.at(arguments.folder)
        if arguments.command == "up":
            fleet.up()
        elif arguments.command == "down":
            fleet.down()
    except (RuntimeError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    try:
        sys.stdout.write("".join(f"{line}\n" for line in fleet.told()))
        sys.stdout.flush()
    except BrokenPipeError:
        # All is done that was asked for (``| head``). Python flushes once more as it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


if __name__ == "__main__":
    sys.exit(main())
