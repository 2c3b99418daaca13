"""The console script: ``holdfast``, and ``python -m holdfast``.

Our packages are ours, whatever is on the path (``rooms``). What cannot be loaded for another
reason, such as a ``typer.py`` on PYTHONPATH, is told in one line.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from typing import NoReturn

CANNOT_START, INTERRUPTED = 2, 130


def entry() -> NoReturn:
    """Run the command of ``sys.argv``, and end the process with its exit code."""
    try:
        from holdfast.program import entry as run
    except KeyboardInterrupt:
        raise SystemExit(INTERRUPTED) from None
    except Exception as error:  # noqa: BLE001 - whatever stands in the way, a user sees one line
        # As ``is_debugging`` of runtime.cli.logs, which may be what cannot be loaded.
        if os.environ.get("HOLDFAST_DEBUG", "") not in {"", "0"}:
            traceback.print_exc()
        sys.stderr.write(f"error: holdfast cannot start: {_told(error)}\n")
        raise SystemExit(CANNOT_START) from None
    # Outside of the block: what a command raises is no trouble with starting.
    run()


def _told(error: Exception) -> str:
    """What went wrong, and the file that is to blame if it is none of ours."""
    what = " ".join(f"{type(error).__name__}: {error}".split())
    at = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    blamed = (
        # A module that is another than was meant: what it lacks was looked for in it.
        getattr(getattr(error, "obj", None), "__file__", None)
        or getattr(error, "path", None)
        or next((name for name in reversed(at) if Path(name).is_file()), None)
    )
    return f"{what} (in {blamed})" if blamed and str(blamed) not in what else what


if __name__ == "__main__":
    entry()
