"""``holdfast status``: what the embedded server does, and where ``holdfast run`` would connect
to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from runtime.cli.options import Json
from runtime.cli.output import json_document, say

if TYPE_CHECKING:
    from runtime.server.embedded import ServerStatus


def command(json: Json = False) -> None:
    """Show the embedded Temporal server's state.

    Its addresses, process, database and log, and the processes that use it.
    """
    import asyncio

    from activities.build import this_build
    from runtime.base.home import state_home
    from runtime.server.connection import load_profile
    from runtime.server.embedded import server_status
    from runtime.server.target import Target

    status = asyncio.run(server_status(state_home()))
    configured = load_profile(Target()).address
    if json:
        document = status.model_dump(mode="json")
        if status.server is not None:
            document["server"] |= {"address": status.server.address, "ui_url": status.server.ui_url}
        json_document(
            {
                **document,
                "configured_address": configured,
                "build": this_build().model_dump(mode="json"),
            }
        )
        return
    for name, value in _lines(status, configured):
        say(f"{name:<10} {value}")
    say(f"{'build':<10} {this_build().id}, replay version {this_build().replay_version}")


def _lines(status: ServerStatus, configured: str | None) -> list[tuple[str, str]]:
    lines = [
        ("server", status.state.value + (", pinned by 'holdfast up'" if status.pinned else ""))
    ]
    if status.server is not None:
        lines += [
            ("address", status.server.address),
            ("web UI", status.server.ui_url or "off; 'holdfast up --ui' starts it"),
            (
                "process",
                f"{status.server.pid}, since {status.server.started_at:%Y-%m-%d %H:%M:%S} UTC",
            ),
        ]
    if status.version is not None:
        lines.append(("version", status.version))
    lines += [
        ("used by", ", ".join(f"process {pid}" for pid in status.users) or "nobody"),
        ("database", f"{status.database} ({status.database_bytes / 1e6:.1f} MB)"),
        ("log", str(status.log)),
    ]
    if configured is not None:
        lines.append(
            ("note", f"jobs run at {configured}, as Temporal's configuration says, not here")
        )
    return lines
