"""Which part of jobs' work a process does.

Where nobody says otherwise there are no roles: each worker does everything, by one task queue for
each batch. Where ``HOLDFAST_ROLES`` is set, calls go by a queue for each role, so that what runs
commands needs no provider's key, and what has the key runs no command.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum

from runtime.base.errors import InputError

VARIABLE = "HOLDFAST_ROLES"

MEMO = "roles"
"""The entry of a workflow's memo that says that its calls go by the queues of roles: workers that
have some of them alone leave others alone.
"""


class Role(StrEnum):
    """A part of the work, and the name of its queue."""

    TURNS = "turns"
    """Workflow code, statements, the archive's records; by the batch's own queue."""
    MODELS = "models"
    """Calls of models, with the providers' keys."""
    TOOLS = "tools"
    """Tools, MCP servers and what they offer to be read, checks of results, who is told of ends."""
    SANDBOXES = "sandboxes"
    """Commands and all else that changes a job's files."""
    READS = "reads"
    """Files, listings, tables, web pages."""


Roles = frozenset[Role]

EVERY: Roles = frozenset(Role)


def roles_in(text: str, named: str) -> Roles:
    """The roles in a list with commas, such as ``tools,sandboxes``, which is called ``named``.

    Raises:
        InputError: if one is unknown, or there is none.
    """
    names = [name.strip() for name in text.split(",")]
    try:
        return frozenset(map(Role, names))
    except ValueError as error:
        raise InputError(
            f"{named} {text!r}: expected names of roles with commas between, of {', '.join(Role)}"
        ) from error


def own_roles() -> Roles | None:
    """The roles of this process by its environment; None: there are none, and it does everything.

    Raises:
        InputError: if the variable has no roles in it.
    """
    text = os.environ.get(VARIABLE, "")
    return roles_in(text, VARIABLE) if text else None


def key_names(environment: Mapping[str, str]) -> list[str]:
    """The variables that are set and have the name of a provider's key."""
    return sorted(name for name, value in environment.items() if name.endswith("_API_KEY") if value)


def told(roles: Roles) -> str:
    """Roles as they are written, in their order."""
    return ",".join(role for role in Role if role in roles)
