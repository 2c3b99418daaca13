"""All that a worker needs, looked at in turn."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

from runtime.base.home import Home
from runtime.base.roles import EVERY, VARIABLE, Role, own_roles, told
from runtime.server.target import Target
from runtime.worker.doctor import machine
from runtime.worker.doctor.finding import Finding, good
from runtime.worker.doctor.server import server
from runtime.worker.doctor.store import store


async def examine(home: Home, target: Target, store_url: str) -> AsyncIterator[Finding]:
    """What is found of each thing, as soon as it was looked at."""
    yield machine.packages()
    yield machine.state_directory(home)
    key = await asyncio.to_thread(machine.payload_key, home)
    yield key
    if (service := await asyncio.to_thread(machine.key_service)) is not None:
        yield service
    if (signing := machine.signing_key()) is not None:
        yield signing
    archive, folder = await asyncio.to_thread(store, store_url)
    yield archive
    folders: dict[str, Path] = {"state directory": home.path}
    yield machine.room(folders | ({"archive": folder} if folder is not None else {}))
    yield await asyncio.to_thread(machine.workspaces, home)
    roles = own_roles()
    does = EVERY if roles is None else roles
    if roles is not None:
        yield good("roles", f"{told(roles)}, by {VARIABLE}")
    if Role.TURNS in does:
        yield await asyncio.to_thread(machine.interpreter)
    if Role.SANDBOXES in does:
        yield await asyncio.to_thread(machine.sandbox)
    yield machine.provider_keys(os.environ, does)
    for finding in await server(target):
        yield finding
