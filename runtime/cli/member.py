"""One process of several that work together (``runtime/worker/crew.py``): the command, which ends
with the process that started it.
"""

from __future__ import annotations

import sys

from runtime.cli.main import entry
from runtime.worker.crew import leave_with_parent


def main() -> None:
    """Run the command of ``sys.argv``, in which this module is named first."""
    del sys.argv[1]
    leave_with_parent()
    entry()
