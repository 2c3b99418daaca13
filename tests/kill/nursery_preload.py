"""What the process loads from which commands are forked: all that a worker imports."""

import runtime.cli.main
import runtime.cli.run
import runtime.cli.running
import runtime.worker.worker
from activities.model import warm

__all__ = ["runtime"]

warm()
