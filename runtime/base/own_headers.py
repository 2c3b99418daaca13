"""Headers that a model's options add to its requests: which may stand in a jobs file, and which
come from the worker's environment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from runtime.base.errors import InputError
from runtime.base.spec.finish import VARIABLE

_HARMLESS = frozenset(
    {
        *("accept", "accept-language", "content-type", "referer", "user-agent"),
        *("anthropic-beta", "anthropic-version", "openai-beta", "openai-version"),
        *("openai-organization", "openai-project", "x-goog-user-project"),
        *("http-referer", "x-title", "x-openrouter-title", "x-openrouter-categories"),
    }
)
"""Names of headers that hold no secret, and so may stand in a jobs file and be kept.

A gateway's own has a name that no list of secrets knows.
"""


_WITHHELD = ("HOLDFAST_", "AWS_")
"""What the names of variables begin with that no header takes: the worker's own keys, and those of
its archive.
"""


def headers_in(options: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """All headers: the option in which each stands, its name and value."""
    for option, headers in options.items():
        if option.lower().endswith("headers") and isinstance(headers, Mapping):
            for name, value in headers.items():
                yield option, name, str(value)


def own_headers(options: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Those that may hold a secret."""
    return (header for header in headers_in(options) if header[1].lower() not in _HARMLESS)


def is_variable(value: str) -> bool:
    """Whether a value is the name of an environment variable: ``$NAME`` or ``${NAME}``."""
    return VARIABLE.fullmatch(value) is not None


def is_withheld(value: str) -> bool:
    """Whether it names a variable that no header takes."""
    variable = VARIABLE.fullmatch(value)
    return variable is not None and variable["name"].startswith(_WITHHELD)


def with_variables(options: Mapping[str, Any], environment: Mapping[str, str]) -> dict[str, Any]:
    """``options`` with what the environment has where a header names a variable.

    Raises:
        InputError: if it is one that no header takes.
        KeyError: of the name of one that is not set.
    """
    filled = dict(options)
    for option, name, value in headers_in(options):
        if is_withheld(value):
            raise InputError(f"{option}.{name}: no header takes {value}")
        if (variable := VARIABLE.fullmatch(value)) is not None:
            filled[option] = {**filled[option], name: environment[variable["name"]]}
    return filled
