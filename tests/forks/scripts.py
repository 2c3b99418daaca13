"""``python -c`` for tests that start many: each script is a process of its own, forked from one
that has loaded a module, and with it all that this imports.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Ended:
    """The exit code of a script, negative for the signal that killed it, and what it wrote."""

    code: int
    said: str


class Scripts:
    """Runs scripts, one after another, in forks of ``process``."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def __call__(self, script: str, *arguments: str, **variables: str) -> Ended:
        """Run one to its end, with these variables besides those of this process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked = [script, arguments, {**os.environ, **variables}]
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return Ended(*json.loads(self._process.stdout.readline()))


@contextmanager
def scripts(module: str) -> Iterator[Scripts]:
    """Scripts that find ``module`` loaded."""
    command = [sys.executable, __file__, module, *sys.path]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        yield Scripts(process)


def _main() -> None:
    module, *sys.path[:] = sys.argv[1:]
    import_module(module)
    from runtime.base import failpoints

    for line in sys.stdin:
        script, arguments, variables = json.loads(line)
        with tempfile.TemporaryFile() as said:
            pid = os.fork()
            if pid == 0:
                os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
                os.dup2(said.fileno(), 1)
                os.dup2(said.fileno(), 2)
                os.environ.clear()
                os.environ.update(variables)
                sys.argv = ["-c", *arguments]
                failpoints.arm(os.environ)
                exec(compile(script, "<string>", "exec"), {"__name__": "__main__"})
                return
            code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
            said.seek(0)
            sys.stdout.write(json.dumps([code, said.read().decode()]) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    _main()
