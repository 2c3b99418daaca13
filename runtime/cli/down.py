"""``holdfast down``: stop the embedded server."""

from __future__ import annotations

from runtime.cli.options import Json
from runtime.cli.output import json_document, say


def command(json: Json = False) -> None:
    """Stop the embedded Temporal server. Jobs stay as they are and can be resumed."""
    import asyncio

    from runtime.base.home import state_home
    from runtime.server.embedded import stop_server

    stopped = asyncio.run(stop_server(state_home()))
    if json:
        json_document({"stopped": stopped})
    else:
        say("stopped" if stopped else "it was not running")
