"""What a command finds in any sandbox: its shell, its variables, the kernel's bounds."""

from __future__ import annotations

import resource
from pathlib import Path

from runtime.sandbox.command import SETUP_VARIABLE, Limits
from runtime.sandbox.system import search_path

SHELL = next((path for path in ("/bin/bash", "/usr/bin/bash") if Path(path).exists()), "/bin/sh")


def variables(setup: str | None) -> dict[str, str]:
    """Those that are the same in each sandbox, or name ``setup``, where the command finds what its
    job's set-up made.
    """
    return {
        "PATH": search_path(setup),
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "PYTHONDONTWRITEBYTECODE": "1",
        **({} if setup is None else {SETUP_VARIABLE: setup}),
    }


def kernel_limits(limits: Limits) -> dict[int, int]:
    """What the kernel bounds of each of a command's processes, by the ``RLIMIT_`` of it."""
    return {
        # What is written to, not what is reserved: V8, Go and Java reserve far more than they use.
        resource.RLIMIT_DATA: limits.memory_bytes,
        resource.RLIMIT_FSIZE: limits.file_bytes,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_NOFILE: 4096,
    }
