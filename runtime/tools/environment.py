"""What a tool's process is given of the worker's environment: no key of a provider, of Holdfast, or
of anything else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from runtime.base.redaction.shapes import SHAPES

LET_THROUGH = "HOLDFAST_TOOL_ENV"
"""The variable of a worker that names, with commas between them, those that its tools get all the
same.
"""

ALWAYS = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR")
"""What an MCP server gets in any case, beside what the jobs file names: without them few programs
start.
"""

# Some words stand in no other name. The others end a word: a KEYBOARD and a TOKENIZER are no
# secrets, and neither is what only ends as a password does.
_SECRET = re.compile(
    r"PASSWORD|PASSWD|PASSPHRASE|SECRET(?!AR)|COOKIE(?!CUTTER)|CREDENTIAL"
    r"|(KEYS?|TOKENS?|PWD|CREDS)(?![A-Z])"
    r"|(?<!ASK)(?<!BY)(?<!COM)(?<!OVER)(?<!SUR)(?<!TRES)(?<!UNDER)PASS(?![A-Z])"
    r"|(^|_)AUTH(ORIZATION)?$|^AWS_|^(AZURE|GOOGLE|VERTEX\w*|OPENAI|ANTHROPIC)_",
    re.IGNORECASE,
)
# Named like passwords, and they are directories.
_HARMLESS = frozenset({"PWD", "OLDPWD"})

# No parser: a value may hold several URLs, and one that no parser reads has its password too.
_USER = re.compile(r"://[^/?#:]*:[^/?#]+@")
_PARAMETER = re.compile(r"[?&;]([^=&;#\s]+)=[^&;#\s]")


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
    """Whether the value is a URL with a password in it, before its host or as a parameter."""
    if "://" not in value:
        return False
    named = (match[1] for match in _PARAMETER.finditer(value))
    return bool(_USER.search(value)) or any(map(_SECRET.search, named))
