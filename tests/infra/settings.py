"""Which variables and words a part of the system understands, asked of the part itself."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import typer
from botocore.configprovider import BOTOCORE_DEFAUT_SESSION_VARIABLES
from botocore.credentials import EnvProvider
from temporalio.envconfig import ClientConfigProfile

from runtime.cli.main import app

ROOT = Path(__file__).parents[2]
UsageError = typer.BadParameter.__mro__[1]
"""What a wrong command line raises, wherever this release of typer has it from."""

PACKAGES = ("holdfast", "workflows", "activities", "runtime")


@cache
def _of_holdfast() -> frozenset[str]:
    """The variables that the code names, whole, as a constant."""
    found: set[str] = set()
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            found.update(re.findall(r'^[A-Z_]+ = "(HOLDFAST_[A-Z_]+)"$', path.read_text(), re.M))
    return frozenset(found)


def _of_aws(name: str) -> bool:
    told = [row[1] for row in BOTOCORE_DEFAUT_SESSION_VARIABLES.values() if row[1]]
    names = {one for row in told for one in ([row] if isinstance(row, str) else row)}
    keys = {EnvProvider.ACCESS_KEY, EnvProvider.SECRET_KEY, *EnvProvider.TOKENS}
    return name in names | keys


def _of_temporal(name: str) -> bool:
    """Whether Temporal's own loader takes another profile where the variable is set."""
    plain = {"TEMPORAL_ADDRESS": "a:1"}

    def loaded(more: dict[str, str]) -> object:
        return ClientConfigProfile.load(disable_file=True, override_env_vars=plain | more)

    return any(loaded({name: value}) != loaded({}) for value in ("x", "true", "false"))


def is_known(name: str) -> bool:
    """Whether the program, the SDK or the S3 library reads the environment variable ``name``."""
    if name.startswith("HOLDFAST_"):
        return name in _of_holdfast()
    if name.startswith("TEMPORAL_"):
        return _of_temporal(name)
    return name.startswith("AWS_") and _of_aws(name)


def read_command(words: list[str]) -> str:
    """Have the program take its command line apart, without running it; returns the command's name.

    Raises:
        UsageError: for a command or an option that it does not know.
    """
    group = typer.main.get_command(app)
    context = typer.Context(group)
    name, command, rest = group.resolve_command(context, list(words))  # type: ignore[attr-defined]
    assert command is not None
    command.make_context(name, list(rest), parent=context)
    return str(name)
