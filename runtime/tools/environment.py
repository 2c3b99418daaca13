"""What a tool's process is given of the worker's environment: no key of a provider, of Holdfast, or
of anything else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from urllib.parse import urlsplit

from runtime.base.redaction.shapes import SHAPES

LET_THROUGH = "HOLDFAST_TOOL_ENV"
"""The variable of a worker that names, with commas between them, those that its tools get all the
same.
"""

ALWAYS = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")
"""What an MCP server gets in any case, beside what the jobs file names: without them few programs
start.
"""

_SECRET = re.compile(
    r"(^|_)([A-Z]*KEY|KEYS|[A-Z]*TOKEN|TOKENS|SECRETS?|PASS|PASSWORD|PASSWD|PASSPHRASE"
    r"|PWD|CREDENTIALS?|COOKIE)(_|$|\d)"
    r"|(^|_)AUTH(ORIZATION)?$|^AWS_|^(AZURE|GOOGLE|VERTEX\w*|OPENAI|ANTHROPIC)_",
    re.IGNORECASE,
)
# Named like passwords, and they are directories.
_HARMLESS = frozenset({"PWD", "OLDPWD"})


def tool_environment(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that are no secret, by their names or by the form of their values, and those
    that are let through by name.
    """
    named = {name.strip() for name in environment.get(LET_THROUGH, "").split(",")}
    return {
        name: value
        for name, value in environment.items()
        if name in named or not _is_secret(name, value)
    }


def named_secrets(names: Sequence[str], environment: Mapping[str, str]) -> dict[str, str]:
    """The secrets that a job's commands or tools are given by name.

    Raises:
        ValueError: if the worker has one of them not.
    """
    missing = [name for name in names if name not in environment]
    if missing:
        raise ValueError(f"the secret {missing[0]} is not in the worker's environment")
    return {name: environment[name] for name in names}


def _is_secret(name: str, value: str) -> bool:
    if name in _HARMLESS:
        return False
    data = value.encode("utf-8", "surrogateescape")
    return (
        bool(_SECRET.search(name))
        or _has_password(value)
        or any(any(shape.spans(data)) for shape in SHAPES)
    )


def _has_password(value: str) -> bool:
    """Whether the value is a URL with a password in it."""
    with suppress(ValueError):
        return "://" in value and bool(urlsplit(value).password)
    return False
