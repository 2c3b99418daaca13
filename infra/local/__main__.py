"""``python -m infra.local up | down | status DIR``: a fleet of processes on this machine."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from infra.local.fleet import Fleet


def main() -> int:
    """Give one command; returns the exit code."""
    parser = argparse.ArgumentParser(prog="python -m infra.local", description=__doc__)
    parser.add_argument("command", choices=["up", "down", "status"])
    parser.add_argument("folder", type=Path, help="where the fleet keeps its disks and logs")
    arguments = parser.parse_args()
    fleet = Fleet.at(arguments.folder)
    try:
        if arguments.command == "up":
            fleet.up()
        elif arguments.command == "down":
            fleet.down()
    except RuntimeError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    for line in fleet.told():
        sys.stdout.write(f"{line}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
